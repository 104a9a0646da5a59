// Ranks as threads of one process: matching under the receiver's lock, one copy by whoever is second.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "tilewave/engine/transport.hpp"

namespace tilewave {

namespace {

struct Pending {
    int id, from, tag;
    std::byte* data;  // a send's data is only read
    std::int64_t bytes;
};

struct Mailbox {
    std::mutex lock;
    std::vector<Pending> sends, receives;  // not yet matched, in posting order
    std::mutex done_lock;
    std::vector<int> done;
    std::atomic<bool> any_done{false};
    std::mutex alarm_lock;
    std::vector<Alarm> alarms;
    std::atomic<bool> any_alarm{false};
    std::atomic<bool> ended{false};

    void complete(int id) {
        std::scoped_lock guard(done_lock);
        done.push_back(id);
        any_done.store(true, std::memory_order_release);
    }
};

bool take(std::vector<Pending>& list, int from, int tag, Pending& out) {
    const auto it = std::ranges::find_if(list, [&](const Pending& p) { return p.from == from && p.tag == tag; });
    if (it == list.end()) return false;
    out = *it;
    list.erase(it);
    return true;
}

}  // namespace

struct LocalFabric::Shared {
    Shared(int n, int host, int tag) : boxes(static_cast<std::size_t>(n)), ranks_per_host(host), max_tag(tag) {}
    std::vector<Mailbox> boxes;
    int ranks_per_host, max_tag;
};

namespace {

class LocalTransport final : public Transport {
public:
    LocalTransport(std::shared_ptr<LocalFabric::Shared> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}
    ~LocalTransport() override { shared_->boxes[rank_].ended = true; }
    int rank() const override { return rank_; }
    int max_tag() const override { return shared_->max_tag; }
    int size() const override { return static_cast<int>(shared_->boxes.size()); }
    bool has_ended(int peer, bool) override { return shared_->boxes[peer].ended; }
    std::vector<int> host_ranks() override {
        const int n = shared_->ranks_per_host, first = rank_ / n * n;
        std::vector<int> ranks;
        for (int r = first; r < std::min(first + n, size()); ++r) ranks.push_back(r);
        return ranks;
    }

    void post_send(int id, const std::byte* data, std::int64_t bytes, int peer, int tag, bool) override {
        Mailbox& box = shared_->boxes[peer];
        Pending match;
        {
            std::scoped_lock guard(box.lock);
            if (!take(box.receives, rank_, tag, match)) {
                box.sends.push_back({id, rank_, tag, const_cast<std::byte*>(data), bytes});
                return;
            }
        }
        move(match, data, bytes, tag);
        box.complete(match.id);
        shared_->boxes[rank_].complete(id);
    }

    void post_recv(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        Mailbox& box = shared_->boxes[rank_];
        const Pending posted{id, peer, tag, data, bytes};
        Pending match;
        {
            std::scoped_lock guard(box.lock);
            if (!take(box.sends, peer, tag, match)) {
                box.receives.push_back(posted);
                return;
            }
        }
        move(posted, match.data, match.bytes, tag);
        shared_->boxes[peer].complete(match.id);
        box.complete(id);
    }

    bool has_message(int peer, int tag) override {
        Mailbox& box = shared_->boxes[rank_];
        std::scoped_lock guard(box.lock);
        return std::ranges::any_of(box.sends, [&](const Pending& p) { return p.from == peer && p.tag == tag; });
    }

    void poll(std::vector<int>& done) override {
        Mailbox& box = shared_->boxes[rank_];
        if (!box.any_done.load(std::memory_order_acquire)) return;
        std::scoped_lock guard(box.done_lock);
        done.insert(done.end(), box.done.begin(), box.done.end());
        box.done.clear();
        box.any_done.store(false, std::memory_order_relaxed);
    }

    bool alarms() const override { return true; }
    void post_alarm(int peer, const Alarm& alarm) override {
        Mailbox& box = shared_->boxes[peer];
        std::scoped_lock guard(box.alarm_lock);
        box.alarms.push_back(alarm);
        box.any_alarm.store(true, std::memory_order_release);
    }
    void take_alarms(std::vector<Alarm>& alarms) override {
        Mailbox& box = shared_->boxes[rank_];
        if (!box.any_alarm.load(std::memory_order_acquire)) return;
        std::scoped_lock guard(box.alarm_lock);
        alarms.insert(alarms.end(), box.alarms.begin(), box.alarms.end());
        box.alarms.clear();
        box.any_alarm.store(false, std::memory_order_relaxed);
    }

private:
    static void move(const Pending& to, const std::byte* from, std::int64_t bytes, int tag) {
        if (bytes > to.bytes)
            throw MpiError("a message of " + std::to_string(bytes) + " bytes, tag " + std::to_string(tag) +
                           ", meets a receive of " + std::to_string(to.bytes));
        if (bytes) std::memcpy(to.data, from, static_cast<std::size_t>(bytes));
    }

    std::shared_ptr<LocalFabric::Shared> shared_;
    int rank_;
};

class DryTransport final : public Transport {
public:
    DryTransport(int rank, int size) : rank_(rank), size_(size) {}
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    bool connected() const override { return false; }
    void post_send(int id, const std::byte*, std::int64_t, int, int, bool) override { done_.push_back(id); }
    void post_recv(int id, std::byte*, std::int64_t, int, int) override { done_.push_back(id); }
    bool has_message(int, int) override { return true; }
    void poll(std::vector<int>& done) override {
        done.insert(done.end(), done_.begin(), done_.end());
        done_.clear();
    }

private:
    int rank_, size_;
    std::vector<int> done_;
};

}  // namespace

LocalFabric::LocalFabric(int ranks, int ranks_per_host, int max_tag) {
    if (ranks < 1)
        throw ConfigError("a fabric of " + std::to_string(ranks) + " ranks was asked for; at least 1 is allowed");
    shared_ = std::make_shared<Shared>(ranks, std::max(ranks_per_host, 1), max_tag);
}
LocalFabric::~LocalFabric() = default;

std::unique_ptr<Transport> LocalFabric::endpoint(int rank) {
    return std::make_unique<LocalTransport>(shared_, rank);
}

std::unique_ptr<Transport> make_dry_transport(int rank, int size) {
    return std::make_unique<DryTransport>(rank, size);
}

}  // namespace tilewave
