#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "core/binomial.hpp"
#include "core/tags.hpp"
#include "tilewave/transport.hpp"
#include "transport/tuning.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// A rank that does not take part shows here: say so once, and go on waiting.
void tell_stall(const Transport& t, int peer) {
    std::fprintf(stderr, "tilewave: rank %d waits %sfor rank %d\n", t.rank(), t.doing().c_str(), peer);
}

void wait_all(Transport& t, int n, int peer) {
    t.must_work();
    std::vector<int> done;
    Backoff backoff;
    double since = 0, looked = 0;
    while (static_cast<int>(done.size()) < n) {
        const auto before = done.size();
        t.poll(done);
        if (done.size() != before) continue;
        backoff.pause();
        if (!backoff.yielding()) continue;
        const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        if (looked == 0) looked = now;
        if (t.meanwhile && now - looked > meanwhile_s) {
            looked = now;
            t.meanwhile();
        }
        if (!backoff.slow() || since < 0) continue;
        if (since == 0) since = now;
        if (now - since > patience_s()) {
            tell_stall(t, peer);
            since = -1;
        }
    }
}

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

void allreduce(Transport& t, std::string& bytes, const std::function<void(const std::string&)>& join) {
    if (t.size() == 1 || !t.connected()) return;
    std::string other(bytes.size(), '\0');
    binomial::for_children(t.rank(), t.size(), [&](int child) {
        receive(t, other.data(), other.size(), child);
        join(other);
    });
    if (t.rank()) send(t, bytes.data(), bytes.size(), binomial::parent(t.rank()));
    broadcast_fixed(t, bytes.data(), bytes.size(), 0);
}

namespace {

// f(first byte, bytes) piece by piece.
template <class F>
void in_pieces(std::int64_t bytes, std::int64_t piece, F f) {
    for (std::int64_t at = 0; at < bytes; at += piece) f(at, static_cast<std::size_t>(std::min(piece, bytes - at)));
}

// Memory for one piece, where all of it has none: what comes in must be taken.
std::vector<std::byte> passing(std::int64_t bytes, std::int64_t piece) {
    return std::vector<std::byte>(static_cast<std::size_t>(std::min(bytes, piece)));
}

}  // namespace

void broadcast(Transport& t, std::span<const std::byte> given, int root,
               const std::function<std::byte*(std::int64_t)>& place, std::int64_t piece) {
    if (t.size() == 1 || !t.connected()) return;
    auto bytes = static_cast<std::int64_t>(given.size());
    broadcast_fixed(t, &bytes, sizeof bytes, root);
    std::byte* const data = t.rank() == root ? const_cast<std::byte*>(given.data()) : place(bytes);
    std::vector<std::byte> passed;
    if (!data) passed = passing(bytes, piece);
    in_pieces(bytes, piece,
              [&](std::int64_t at, std::size_t n) { broadcast_fixed(t, data ? data + at : passed.data(), n, root); });
}

void broadcast(Transport& t, std::string& bytes, int root, std::int64_t piece) {
    bool lacking = false;
    const auto place = [&](std::int64_t n) -> std::byte* {
        try {
            bytes.resize(static_cast<std::size_t>(n));
            return reinterpret_cast<std::byte*>(bytes.data());
        } catch (const std::bad_alloc&) {
            lacking = true;
            return nullptr;
        }
    };
    broadcast(t, std::as_bytes(std::span(bytes)), root, place, piece);
    if (lacking) throw std::bad_alloc();
}

std::vector<std::string> gather(Transport& t, const std::string& bytes, std::int64_t piece) {
    if (t.size() == 1 || !t.connected()) return {bytes};
    auto size = static_cast<std::int64_t>(bytes.size());
    if (t.rank()) {
        send(t, &size, sizeof size, 0);
        in_pieces(size, piece, [&](std::int64_t at, std::size_t n) { send(t, bytes.data() + at, n, 0); });
        return {};
    }
    std::vector<std::string> all(static_cast<std::size_t>(t.size()));
    all[0] = bytes;
    bool lacking = false;
    for (int r = 1; r < t.size(); ++r) {
        receive(t, &size, sizeof size, r);
        std::string& one = all[static_cast<std::size_t>(r)];
        std::vector<std::byte> passed;
        try {
            one.resize(static_cast<std::size_t>(size));
        } catch (const std::bad_alloc&) {
            lacking = true;
            passed = passing(size, piece);
        }
        in_pieces(size, piece, [&](std::int64_t at, std::size_t n) {
            receive(t, passed.empty() ? static_cast<void*>(one.data() + at) : passed.data(), n, r);
        });
    }
    if (lacking) throw std::bad_alloc();
    return all;
}

void barrier(Transport& t) {
    std::vector<std::int64_t> nothing{0};
    allreduce_min(t, nothing);
}

}  // namespace tilewave
