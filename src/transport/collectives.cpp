#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "core/binomial.hpp"
#include "core/clock.hpp"
#include "core/concat.hpp"
#include "core/tags.hpp"
#include "transport/collectives.hpp"
#include "transport/ended_look.hpp"
#include "transport/tuning.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// Reports once that this rank waits for a rank that does not take part.
void report_stall(const Transport& t, int peer) {
    std::fprintf(stderr, "tilewave: rank %d waits %sfor rank %d\n", t.rank(), t.doing().c_str(), peer);
}

}  // namespace

void wait_all(Transport& t, int n, int peer, int other) {
    t.must_work();
    std::vector<int> done;
    Backoff backoff;
    EndedLook look;
    double since = 0, looked = 0;
    while (static_cast<int>(done.size()) < n) {
        const auto before = done.size();
        t.poll(done);
        if (done.size() != before) {
            look.restart();
            continue;
        }
        backoff.pause();
        if (!backoff.yielding()) continue;
        const double now = now_s();
        if (looked == 0) looked = now;
        if (t.meanwhile && now - looked > meanwhile_s) {
            looked = now;
            t.meanwhile();
        }
        // What is received has memory of the caller's, so it is not left in flight.
        const int rank = other < 0 || std::ranges::find(done, 0) == done.end() ? peer : other;
        const auto find = [&] { return t.has_ended(rank, false) ? rank : -1; };
        if (const int ended = look(now, find); ended >= 0) {
            t.mark_failed();
            throw MpiError(concat("rank ", ended, " has ended; rank ", t.rank(), " waits ", t.doing(), "for it"));
        }
        if (since < 0) continue;
        if (since == 0) since = now;
        if (now - since > patience_s()) {
            report_stall(t, peer);
            since = -1;
        }
    }
}

namespace {

void send(Transport& t, const void* data, std::size_t bytes, int peer) {
    t.post_send(0, static_cast<const std::byte*>(data), static_cast<std::int64_t>(bytes), peer, tags::collective,
                false);
    wait_all(t, 1, peer);
}

void receive(Transport& t, void* data, std::size_t bytes, int peer) {
    t.post_recv(0, static_cast<std::byte*>(data), static_cast<std::int64_t>(bytes), peer, tags::collective);
    wait_all(t, 1, peer);
}

void broadcast_fixed(Transport& t, void* data, std::size_t bytes, int root) {
    const int p = t.size(), v = (t.rank() - root + p) % p;
    if (v) receive(t, data, bytes, (binomial::parent(v) + root) % p);
    std::vector<int> children;
    binomial::for_children(v, p, [&](int c) { children.push_back(c); });
    for (auto c = children.rbegin(); c != children.rend(); ++c) send(t, data, bytes, (*c + root) % p);
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

double patience_s() {
    static const double seconds = [] {
        const char* const given = std::getenv("TILEWAVE_WAIT_S");
        const double s = given ? std::strtod(given, nullptr) : 0;
        return s > 0 ? s : 10.0;
    }();
    return seconds;
}

thread_local void (*Backoff::instead)() = nullptr;

void Backoff::pause() {
    if (instead) {
        rounds_ = spins + yields + 1;
        return instead();
    }
    if (rounds_ <= spins + yields) ++rounds_;
    if (rounds_ <= spins) {
        for (int i = 0; i < 8; ++i) relax();
    } else if (rounds_ <= spins + yields || kind_ == Kind::dedicated) {
        sched_yield();
    } else {
        // About 3 % of the time slept so far: late by no more than that, and idle ranks stay idle.
        const int longest = kind_ == Kind::idle ? 1000 : 100;
        const int microseconds = std::clamp(slept_us_ / 32, 20, longest);
        slept_us_ = std::min(slept_us_ + microseconds, 1 << 20);
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    }
}

// In each round a rank passes on what it knows to the rank 1, 2, 4, ... further: half the latencies of a tree up and
// down.
void allreduce_min(Transport& t, std::span<std::int64_t> values, std::span<std::int64_t> room) {
    if (t.size() == 1 || !t.connected()) return;
    const int p = t.size(), me = t.rank();
    const std::size_t n = values.size(), bytes = n * sizeof(std::int64_t);
    const std::span<std::int64_t> sent = room.first(n), come = room.last(n);
    for (int step = 1; step < p; step *= 2) {
        std::ranges::copy(values, sent.begin());
        const int from = (me - step + p) % p;
        t.post_recv(0, reinterpret_cast<std::byte*>(come.data()), static_cast<std::int64_t>(bytes), from,
                    tags::collective);
        const int to = (me + step) % p;
        t.post_send(1, reinterpret_cast<const std::byte*>(sent.data()), static_cast<std::int64_t>(bytes), to,
                    tags::collective, false);
        wait_all(t, 2, from, to);
        for (std::size_t i = 0; i < n; ++i) values[i] = std::min(values[i], come[i]);
    }
}

void allreduce_min(Transport& t, std::vector<std::int64_t>& values) {
    if (t.size() == 1 || !t.connected()) return;
    std::vector<std::int64_t> room(2 * values.size());
    allreduce_min(t, values, room);
}

namespace {

// f(first byte, bytes) piece by piece.
template <class F>
void in_pieces(std::int64_t bytes, std::int64_t piece, F f) {
    for (std::int64_t at = 0; at < bytes; at += piece) f(at, static_cast<std::size_t>(std::min(piece, bytes - at)));
}

[[noreturn]] void lacking(const char* what, std::int64_t bytes) {
    throw OutOfResources(std::string("a rank has not the memory for ") + what +
                         (bytes > 0 ? " of " + std::to_string(bytes) + " bytes" : ""));
}

}  // namespace

void broadcast(Transport& t, std::span<const std::byte> given, int root,
               const std::function<std::byte*(std::int64_t)>& place, std::int64_t piece) {
    if (t.size() == 1 || !t.connected()) return;
    auto bytes = static_cast<std::int64_t>(given.size());
    broadcast_fixed(t, &bytes, sizeof bytes, root);
    std::byte* const data = t.rank() == root ? const_cast<std::byte*>(given.data()) : place(bytes);
    if (bytes <= collective_small) {
        std::byte passed[collective_small];
        return broadcast_fixed(t, data ? data : passed, static_cast<std::size_t>(bytes), root);
    }
    std::int64_t all_have = data != nullptr, room[2];
    allreduce_min(t, {&all_have, 1}, room);
    if (all_have == 0) lacking("a message", bytes);
    in_pieces(bytes, piece, [&](std::int64_t at, std::size_t n) { broadcast_fixed(t, data + at, n, root); });
}

void broadcast(Transport& t, std::string& bytes, int root, std::int64_t piece) {
    bool lacks = false;
    const auto place = [&](std::int64_t n) -> std::byte* {
        try {
            bytes.resize(n);
            return reinterpret_cast<std::byte*>(bytes.data());
        } catch (const std::bad_alloc&) {
            lacks = true;
            return nullptr;
        }
    };
    broadcast(t, std::as_bytes(std::span(bytes)), root, place, piece);
    if (lacks) throw std::bad_alloc();
}

// Sizes first: a rank that lacks memory reports it before anything is sent.
std::vector<std::string> gather(Transport& t, const std::function<std::string()>& make, std::int64_t piece) {
    if (t.size() == 1 || !t.connected()) return {make()};
    std::string bytes;
    std::vector<std::string> all;
    std::int64_t size = -1;  // it has none
    try {
        bytes = make();
        size = static_cast<std::int64_t>(bytes.size());
        if (t.rank() == 0) all.resize(t.size());
    } catch (const std::bad_alloc&) {
        size = -1;
    }
    std::int64_t all_have = size >= 0;
    if (t.rank()) send(t, &size, sizeof size, 0);
    for (int r = 1; t.rank() == 0 && r < t.size(); ++r) {
        receive(t, &size, sizeof size, r);
        try {
            if (all_have && size >= 0) all[r].resize(size);
        } catch (const std::bad_alloc&) {
            size = -1;
        }
        if (size < 0) all_have = 0;
    }
    broadcast_fixed(t, &all_have, sizeof all_have, 0);
    if (!all_have) lacking("what rank 0 gathers", 0);
    if (t.rank()) {
        in_pieces(size, piece, [&](std::int64_t at, std::size_t n) { send(t, bytes.data() + at, n, 0); });
        return {};
    }
    all[0] = std::move(bytes);
    for (int r = 1; r < t.size(); ++r) {
        std::string& one = all[r];
        in_pieces(static_cast<std::int64_t>(one.size()), piece,
                  [&](std::int64_t at, std::size_t n) { receive(t, one.data() + at, n, r); });
    }
    return all;
}

std::vector<std::string> gather(Transport& t, const std::string& bytes, std::int64_t piece) {
    return gather(t, [&] { return bytes; }, piece);
}

void allreduce(Transport& t, std::span<std::byte> bytes, std::span<std::byte> other,
               const std::function<void()>& combine) {
    if (t.size() == 1 || !t.connected() || bytes.empty()) return;
    binomial::for_children(t.rank(), t.size(), [&](int child) {
        receive(t, other.data(), other.size(), child);
        combine();
    });
    if (t.rank()) send(t, bytes.data(), bytes.size(), binomial::parent(t.rank()));
    broadcast_fixed(t, bytes.data(), bytes.size(), 0);
}

namespace {

// A rank's part of a tree: that of itself and of the next ranks.
void append(std::vector<Given>& all, std::vector<Given> more) {
    std::size_t first = 0;
    if (!all.empty() && !more.empty() && all.back().text == more[0].text) {
        all.back().ranks += more[0].ranks;
        first = 1;
    }
    std::move(more.begin() + static_cast<std::ptrdiff_t>(first), more.end(), std::back_inserter(all));
}

std::string packed(const std::vector<Given>& all) {
    std::string bytes;
    for (const Given& given : all) {
        const std::int64_t numbers[] = {given.ranks, static_cast<std::int64_t>(given.text.size())};
        bytes.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
        bytes += given.text;
    }
    return bytes;
}

std::vector<Given> unpacked(const std::string& bytes) {
    std::vector<Given> all;
    std::int64_t numbers[2];
    for (std::size_t at = 0; at < bytes.size();) {
        std::memcpy(numbers, bytes.data() + at, sizeof numbers);
        at += sizeof numbers;
        all.push_back({bytes.substr(at, static_cast<std::size_t>(numbers[1])), numbers[0]});
        at += all.back().text.size();
    }
    return all;
}

}  // namespace

std::vector<Given> allgather(Transport& t, const std::string& local) {
    std::vector<Given> all{{local}};
    if (t.size() == 1 || !t.connected()) return all;
    std::string bytes;
    std::int64_t size = 0;
    binomial::for_children(t.rank(), t.size(), [&](int child) {
        receive(t, &size, sizeof size, child);
        bytes.resize(static_cast<std::size_t>(size));
        in_pieces(size, collective_piece, [&](std::int64_t at, std::size_t n) { receive(t, &bytes[at], n, child); });
        append(all, unpacked(bytes));
    });
    bytes = packed(all);
    if (t.rank()) {
        const int parent = binomial::parent(t.rank());
        size = static_cast<std::int64_t>(bytes.size());
        send(t, &size, sizeof size, parent);
        in_pieces(size, collective_piece, [&](std::int64_t at, std::size_t n) { send(t, &bytes[at], n, parent); });
    }
    broadcast(t, bytes, 0);
    return unpacked(bytes);
}

void broadcast_among(Transport& t, const std::vector<int>& ranks, std::string& bytes) {
    if (ranks.size() < 2 || !t.connected()) return;
    const int n = static_cast<int>(ranks.size()),
              place = static_cast<int>(std::ranges::find(ranks, t.rank()) - ranks.begin());
    const auto rank_at = [&](int at) { return ranks[at]; };
    auto size = static_cast<std::int64_t>(bytes.size());
    if (place) {
        const int parent = rank_at(binomial::parent(place));
        receive(t, &size, sizeof size, parent);
        bytes.resize(size);
        in_pieces(size, collective_piece,
                  [&](std::int64_t at, std::size_t some) { receive(t, bytes.data() + at, some, parent); });
    }
    std::vector<int> children;
    binomial::for_children(place, n, [&](int child) { children.push_back(rank_at(child)); });
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
        send(t, &size, sizeof size, *child);
        in_pieces(size, collective_piece,
                  [&](std::int64_t at, std::size_t some) { send(t, bytes.data() + at, some, *child); });
    }
}

void barrier(Transport& t) {
    std::vector<std::int64_t> nothing{0};
    allreduce_min(t, nothing);
}

}  // namespace tilewave
