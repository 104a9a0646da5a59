#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "binomial.hpp"
#include "tilewave/transport.hpp"

namespace tilewave {

namespace {

constexpr int collective_tag = 1;  // below every tag of a schedule
constexpr double stall_s = 30;

// A rank that does not take part shows here: say so once, and go on waiting.
void tell_stall(const Transport& t, int peer) {
    std::fprintf(stderr,
                 "tilewave: rank %d has waited %.0f s for rank %d in a collective call; did every rank call it?\n",
                 t.rank(), stall_s, peer);
}

void wait_all(Transport& t, int n, int peer) {
    t.must_work();
    std::vector<int> done;
    Backoff backoff;
    double since = 0;
    while (static_cast<int>(done.size()) < n) {
        const auto before = done.size();
        t.poll(done);
        if (done.size() != before) continue;
        backoff.pause();
        if (!backoff.slow() || since < 0) continue;
        const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        if (since == 0) since = now;
        if (now - since > stall_s) {
            tell_stall(t, peer);
            since = -1;
        }
    }
}

void send(Transport& t, const void* data, std::size_t bytes, int peer) {
    t.post_send(0, static_cast<const std::byte*>(data), static_cast<std::int64_t>(bytes), peer, collective_tag, false);
    wait_all(t, 1, peer);
}

void receive(Transport& t, void* data, std::size_t bytes, int peer) {
    t.post_recv(0, static_cast<std::byte*>(data), static_cast<std::int64_t>(bytes), peer, collective_tag);
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

void Backoff::pause() {
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

void allreduce_min(Transport& t, std::vector<std::int64_t>& values) {
    if (t.size() == 1 || !t.connected()) return;
    std::vector<std::int64_t> other(values.size());
    const std::size_t bytes = values.size() * sizeof(std::int64_t);
    binomial::for_children(t.rank(), t.size(), [&](int child) {
        receive(t, other.data(), bytes, child);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::min(values[i], other[i]);
    });
    if (t.rank()) send(t, values.data(), bytes, binomial::parent(t.rank()));
    broadcast_fixed(t, values.data(), bytes, 0);
}

void broadcast(Transport& t, std::string& bytes, int root) {
    if (t.size() == 1 || !t.connected()) return;
    std::int64_t size = static_cast<std::int64_t>(bytes.size());
    broadcast_fixed(t, &size, sizeof size, root);
    bytes.resize(static_cast<std::size_t>(size));
    if (size) broadcast_fixed(t, bytes.data(), bytes.size(), root);
}

std::vector<std::string> gather(Transport& t, const std::string& bytes) {
    if (t.size() == 1 || !t.connected()) return {bytes};
    std::int64_t size = static_cast<std::int64_t>(bytes.size());
    if (t.rank()) {
        send(t, &size, sizeof size, 0);
        if (size) send(t, bytes.data(), bytes.size(), 0);
        return {};
    }
    std::vector<std::string> all(static_cast<std::size_t>(t.size()));
    all[0] = bytes;
    for (int r = 1; r < t.size(); ++r) {
        receive(t, &size, sizeof size, r);
        all[r].resize(static_cast<std::size_t>(size));
        if (size) receive(t, all[r].data(), all[r].size(), r);
    }
    return all;
}

void barrier(Transport& t) {
    std::vector<std::int64_t> nothing{0};
    allreduce_min(t, nothing);
}

}  // namespace tilewave
