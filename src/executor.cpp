#include "tilewave/executor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>

#include "mailroom.hpp"

namespace tilewave {

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

struct alignas(64) Counter {
    std::atomic<int> value{0};
};

// When a lane polls next while it computes: kept from tile to tile, so that small tiles poll too.
struct alignas(64) Pace {
    std::int64_t quota = 2048, left = quota;  // points between polls, adapted to the poll period; to the next
    double spent_s = 0;                       // computing since the last poll, in tiles before this one
};

// Rows longer than this are cut, so that a poll is never far away.
constexpr std::int64_t longest_row = 8192;

class Run {
public:
    Run(const Schedule& s, std::span<const Binding> bindings, const Kernel& kernel, Transport& transport,
        const ExecuteOptions& options)
        : s_(s), bindings_(bindings), kernel_(kernel), options_(options), transport_(transport), mailroom_(s, transport),
          counters_(s.lanes.size()), paces_(s.lanes.size()), ends_(s.lanes.size()), begin_(now_s()) {
        for (const Access& r : s.reads) {
            std::int64_t bytes = 0;
            for (int k = 0; k < r.offset.n; ++k) bytes += r.offset[k] * bindings_[r.array].stride_bytes[k];
            read_bytes_.push_back(bytes);
        }
        for (std::int64_t bytes : s.buffers) buffers_.push_back(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)));
        if (options.record)
            for (std::size_t l = 0; l < s.lanes.size(); ++l) ends_[l].reserve(s.lanes[l].size() + 1);
    }

    void lane(int l) {
        try {
            run_steps(l);
            if (l == 0) serve_until_all_ended();
        } catch (...) {
            std::scoped_lock guard(error_lock_);
            if (!error_) error_ = std::current_exception();
            broken_.store(true, std::memory_order_release);
        }
        ended_.fetch_add(1, std::memory_order_acq_rel);
    }

    Outcome outcome() {
        if (error_) {
            // What is pending may still be written to: the buffers stay, the transport is given up.
            transport_.mark_failed();
            (void)new auto(std::move(buffers_));
            std::rethrow_exception(error_);
        }
        Outcome o;
        o.time_s = now_s() - begin_;
        o.interrupted = interrupted_;
        if (failed_) o.failure = failure_;
        if (options_.record) o.timeline = timeline();
        return o;
    }

private:
    void run_steps(int l);
    void compute(int l, const Tile& tile);
    void copy(const Message& m, bool pack);
    template <class Ready>
    void wait_for(int l, std::size_t step, Ready ready);
    void serve_until_all_ended();
    void look_around(int l);
    void fail(const Index& point, std::int64_t site);
    std::byte* address(int array, const Index& point) const {
        const Binding& b = bindings_[array];
        std::int64_t at = 0;
        for (int k = 0; k < point.n; ++k) at += (point[k] - s_.arrays[array].storage.lo[k]) * b.stride_bytes[k];
        return b.data + at;
    }
    std::byte* message_data(const Message& m) const {
        return m.buffer >= 0 ? buffers_[m.buffer].get() : address(m.array, m.region.lo);
    }
    Timeline timeline() const;

    const Schedule& s_;
    std::span<const Binding> bindings_;
    const Kernel& kernel_;
    const ExecuteOptions& options_;
    Transport& transport_;
    Mailroom mailroom_;
    std::vector<std::unique_ptr<std::byte[]>> buffers_;
    std::vector<std::int64_t> read_bytes_;
    std::vector<Counter> counters_;
    std::vector<Pace> paces_;
    std::vector<std::vector<double>> ends_;  // by lane, step
    double begin_;
    std::atomic<int> ended_{0};
    std::atomic<bool> stopped_{false};  // compute nothing more: failed or interrupted
    std::atomic<bool> broken_{false};   // the transport threw: leave at once
    bool failed_ = false, interrupted_ = false;
    Failure failure_;
    double last_look_ = 0;       // lane 0's alone, as is position_
    std::size_t position_ = 0;
    std::mutex error_lock_;
    std::exception_ptr error_;
};

void Run::run_steps(int l) {
    const bool record = options_.record;
    auto& ends = ends_[l];
    if (record) ends.push_back(now_s());  // start of the lane, then the end of each step
    const auto& steps = s_.lanes[l];
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        if (l == 0) position_ = i;
        switch (step.op) {
            case Op::compute:
                if (!stopped_.load(std::memory_order_relaxed)) compute(l, s_.tiles[step.item]);
                break;
            case Op::post_recv:
            case Op::post_send: mailroom_.post(step.item, message_data(s_.messages[step.item]), l == 0); break;
            case Op::wait:
                if (!mailroom_.done(step.item)) wait_for(l, i, [&] { return mailroom_.done(step.item); });
                break;
            case Op::pack:
            case Op::unpack: copy(s_.messages[step.item], step.op == Op::pack); break;
            case Op::signal: counters_[l].value.store(step.count, std::memory_order_release); break;
            case Op::await: {
                const auto& counter = counters_[step.item].value;
                auto ready = [&] { return counter.load(std::memory_order_acquire) >= step.count; };
                if (!ready()) wait_for(l, i, ready);
                break;
            }
        }
        if (record) ends.push_back(now_s());
    }
}

template <class Ready>
void Run::wait_for(int l, std::size_t step, Ready ready) {
    Backoff backoff(options_.crowded ? Backoff::Kind::shared : Backoff::Kind::dedicated);
    double since = 0;
    bool told = false;
    while (true) {
        mailroom_.poll(l == 0);
        if (ready()) return;
        if (broken_.load(std::memory_order_acquire)) throw MpiError("another lane of this rank left the run");
        backoff.pause();
        if (!backoff.slow()) continue;
        const double now = now_s();
        if (since == 0) since = now;
        if (l == 0) look_around(l);
        if (!told && now - since > options_.stall_s) {
            told = true;
            const std::string text = "tilewave: stalled for " + std::to_string(static_cast<int>(now - since)) +
                                     " s: " + describe(s_, l, step);
            if (options_.stalled)
                options_.stalled(text);
            else
                std::fprintf(stderr, "%s\n", text.c_str());
        }
    }
}

// Other lanes may still need lane 0 for their messages, and the interpreter for its signals.
void Run::serve_until_all_ended() {
    Backoff backoff(options_.crowded ? Backoff::Kind::shared : Backoff::Kind::dedicated);
    const int others = static_cast<int>(s_.lanes.size()) - 1;
    while (ended_.load(std::memory_order_acquire) < others && !broken_.load(std::memory_order_acquire)) {
        mailroom_.poll(true);
        backoff.pause();
        if (backoff.slow()) look_around(0);
    }
}

void Run::look_around(int l) {
    if (l != 0 || !options_.heartbeat) return;
    const double now = now_s();
    if (now - last_look_ < 0.05) return;
    last_look_ = now;
    const double steps = std::max<double>(1, static_cast<double>(s_.lanes[0].size()));
    if (options_.heartbeat(static_cast<double>(position_) / steps) && !interrupted_) {
        interrupted_ = true;
        stopped_.store(true, std::memory_order_relaxed);
    }
}

void Run::fail(const Index& point, std::int64_t site) {
    std::scoped_lock guard(error_lock_);
    if (!failed_) failure_ = {site, point};
    failed_ = true;
    stopped_.store(true, std::memory_order_relaxed);
}

void Run::compute(int l, const Tile& tile) {
    const int n = tile.box.dims();
    const std::size_t reads = s_.reads.size();
    char* ptr[1 + max_reads];
    const bool polls = options_.poll_period_s > 0;
    Pace& pace = paces_[l];
    double begin = polls ? now_s() : 0;
    Index row = tile.box.lo;
    std::vector<char*> bases(s_.arrays.size());
    while (true) {
        for (std::size_t a = 0; a < bases.size(); ++a) bases[a] = reinterpret_cast<char*>(address(static_cast<int>(a), row));
        for (std::int64_t at = tile.box.lo[n - 1]; at < tile.box.hi[n - 1];) {
            std::int64_t points = std::min(longest_row, tile.box.hi[n - 1] - at);
            row[n - 1] = at;
            const std::int64_t skip = at - tile.box.lo[n - 1];
            ptr[0] = bases[0] + skip * s_.arrays[0].item_bytes;
            for (std::size_t r = 0; r < reads; ++r) {
                const int a = s_.reads[r].array;
                ptr[1 + r] = bases[a] + read_bytes_[r] + skip * s_.arrays[a].item_bytes;
            }
            if (const std::int64_t code = kernel_.row(ptr, points, row.begin(), kernel_.env); code != 0) {
                row[n - 1] += code / 4096;
                fail(row, code % 4096);
                return;
            }
            at += points;
            pace.left -= points;
            if (pace.left > 0 || !polls) continue;
            if (stopped_.load(std::memory_order_relaxed)) return;
            mailroom_.poll(l == 0, true);
            look_around(l);
            const double now = now_s();
            const double passed = pace.spent_s + now - begin;
            const double scale = std::clamp(options_.poll_period_s / std::max(passed, 1e-9), 0.25, 4.0);
            pace.quota = std::clamp<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(pace.quota) * scale), 64, 1 << 24);
            pace.left = pace.quota;
            pace.spent_s = 0;
            begin = now;
        }
        row[n - 1] = tile.box.lo[n - 1];
        int k = n - 2;
        while (k >= 0 && ++row[k] == tile.box.hi[k]) {
            row[k] = tile.box.lo[k];
            --k;
        }
        if (k < 0) break;
    }
    if (polls) pace.spent_s += now_s() - begin;
}

void Run::copy(const Message& m, bool pack) {
    const int n = m.region.dims();
    const std::int64_t row = m.region.extent(n - 1) * s_.arrays[m.array].item_bytes;
    std::byte* buffer = buffers_[m.buffer].get();
    Index at = m.region.lo;
    if (m.region.empty()) return;
    while (true) {
        std::byte* array = address(m.array, at);
        if (pack)
            std::memcpy(buffer, array, static_cast<std::size_t>(row));
        else
            std::memcpy(array, buffer, static_cast<std::size_t>(row));
        buffer += row;
        int k = n - 2;
        while (k >= 0 && ++at[k] == m.region.hi[k]) {
            at[k] = m.region.lo[k];
            --k;
        }
        if (k < 0) return;
    }
}

Timeline Run::timeline() const {
    Timeline t;
    t.ranks = s_.ranks;
    t.dims = std::max(s_.space.dims(), 1);
    const double shift = options_.clock_offset_s;
    std::vector<int> lane_of(s_.messages.size(), 0);
    for (std::size_t l = 0; l < ends_.size(); ++l)
        for (std::size_t i = 0; i + 1 < ends_[l].size(); ++i) {
            const Step& step = s_.lanes[l][i];
            Event e{s_.rank, static_cast<std::int32_t>(l), static_cast<std::int32_t>(i), static_cast<std::int32_t>(step.op),
                    -1, -1, 0, 0, {-1, -1, -1, -1}, -1, 0, ends_[l][i] + shift, ends_[l][i + 1] + shift};
            int tile = -1;
            if (step.op == Op::compute) tile = step.item;
            if (step.op != Op::compute && step.op != Op::signal && step.op != Op::await) {
                const Message& m = s_.messages[step.item];
                lane_of[step.item] = static_cast<int>(l);
                e.peer = m.peer;
                e.tag = m.tag;
                e.send = m.send;
                e.bytes = m.bytes;
                tile = m.tile;
            }
            if (tile >= 0) {
                const Tile& where = s_.tiles[tile];
                for (int k = 0; k < where.coord.n; ++k) e.tile[k] = static_cast<std::int32_t>(where.coord[k]);
                e.slice = where.slice;
                e.time_step = where.time;
            }
            t.events.push_back(e);
        }
    for (std::size_t m = 0; m < s_.messages.size(); ++m) {
        const Message& message = s_.messages[m];
        if (!mailroom_.was_posted(static_cast<int>(m))) continue;
        t.requests.push_back({s_.rank, lane_of[m], message.peer, message.tag, message.send, 0, message.bytes,
                              mailroom_.posted_s(static_cast<int>(m)) + shift, mailroom_.completed_s(static_cast<int>(m)) + shift});
    }
    return t;
}

}  // namespace

Outcome execute(const Schedule& schedule, std::span<const Binding> bindings, const Kernel& kernel,
                Transport& transport, Lanes& lanes, const ExecuteOptions& options) {
    if (bindings.size() != schedule.arrays.size())
        throw ConfigError("execute: " + std::to_string(bindings.size()) + " bindings for " +
                          std::to_string(schedule.arrays.size()) + " arrays");
    if (transport.rank() != schedule.rank || transport.size() != schedule.ranks)
        throw ConfigError("execute: the schedule is for rank " + std::to_string(schedule.rank) + " of " +
                          std::to_string(schedule.ranks) + ", the transport is rank " + std::to_string(transport.rank()) +
                          " of " + std::to_string(transport.size()));
    if (!kernel.row && !schedule.tiles.empty()) throw ConfigError("execute: the schedule computes but no kernel was given");
    if (schedule.reads.size() > max_reads)
        throw ConfigError("execute: a kernel reads " + std::to_string(schedule.reads.size()) + " places; at most " +
                          std::to_string(max_reads) + " are allowed");
    transport.must_work();
    Run run(schedule, bindings, kernel, transport, options);
    lanes.run(std::max<int>(1, static_cast<int>(schedule.lanes.size())), [&](int l) {
        if (l < static_cast<int>(schedule.lanes.size())) run.lane(l);
    });
    return run.outcome();
}

}  // namespace tilewave
