#include "measure/links/links.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "core/binomial.hpp"
#include "core/clock.hpp"
#include "core/tags.hpp"
#include "data/memory.hpp"
#include "measure/links/tuning.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

using namespace tuning;

namespace {

void transfer(Transport& t, bool send, std::span<std::byte> data, int peer) {
    constexpr int tag = tags::clocks;
    if (send)
        t.post_send(0, data.data(), static_cast<std::int64_t>(data.size()), peer, tag, false);
    else
        t.post_recv(0, data.data(), static_cast<std::int64_t>(data.size()), peer, tag);
    wait_all(t, 1, peer);
}

std::shared_ptr<std::byte[]> zeros(std::size_t bytes) {
    auto memory = staging_memory(static_cast<std::int64_t>(bytes));
    std::fill_n(memory.get(), bytes, std::byte{0});
    return memory;
}

// Half of the shortest round trip of `bytes` between this rank and `peer`, over `n` trials; and,
// on the answering side, the peer's clock minus ours at that trial.
double ping(Transport& t, bool first, int peer, std::size_t bytes, int n, double* offset = nullptr) {
    // At one place in a page on both ranks: its luck is not to be measured (memory.hpp).
    const auto memory = zeros(std::max(bytes, sizeof(double)));
    const std::span data(memory.get(), std::max(bytes, sizeof(double)));
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < n; ++i) {
        const double begin = now_s();
        transfer(t, first, data, peer);
        if (!first && offset) *reinterpret_cast<double*>(data.data()) = now_s();
        transfer(t, !first, data, peer);
        const double end = now_s(), half = (end - begin) / 2;
        if (half < best) {
            best = half;
            if (first && offset) *offset = (begin + end) / 2 - *reinterpret_cast<double*>(data.data());
        }
    }
    return best;
}

// This rank's clock minus rank 0's, down a tree: each rank plays with its parent, then with its children in turn. So
// the first rank plays with log2(ranks) others, however many there are; an error adds up over as many steps.
double clock_offset(Transport& t) {
    double offset_here = 0;
    std::byte bytes[sizeof offset_here];
    if (t.rank()) {
        const int parent = binomial::parent(t.rank());
        double unused = 0;
        ping(t, false, parent, sizeof(double), 8, &unused);
        transfer(t, false, bytes, parent);
        std::memcpy(&offset_here, bytes, sizeof offset_here);
    }
    std::vector<int> children;
    binomial::for_children(t.rank(), t.size(), [&](int child) { children.push_back(child); });
    for (auto child = children.rbegin(); child != children.rend(); ++child) {  // the largest subtree first
        double offset = 0;
        ping(t, true, *child, sizeof(double), 8, &offset);
        offset += offset_here;
        std::memcpy(bytes, &offset, sizeof offset);
        transfer(t, true, bytes, *child);
    }
    return offset_here;
}

// Shortest time of `count` messages of `bytes` one after another, all posted at once, and an answer.
double stream(Transport& t, bool first, int peer, std::size_t bytes, int count, int trials) {
    constexpr int tag = tags::clocks;
    const auto memory = zeros(bytes * static_cast<std::size_t>(count));
    std::byte* const data = memory.get();
    std::byte answer[8] = {};
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < trials; ++i) {
        const double begin = now_s();
        for (int c = 0; c < count; ++c) {
            std::byte* at = data + bytes * static_cast<std::size_t>(c);
            if (first)
                t.post_send(c, at, static_cast<std::int64_t>(bytes), peer, tag, false);
            else
                t.post_recv(c, at, static_cast<std::int64_t>(bytes), peer, tag);
        }
        wait_all(t, count, peer);
        transfer(t, !first, answer, peer);
        best = std::min(best, now_s() - begin);
    }
    return best;
}

// What the system says of a core's second-level cache; `otherwise` where it says nothing.
std::int64_t core_cache(std::int64_t otherwise) {
#ifdef _SC_LEVEL2_CACHE_SIZE
    if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
        return std::clamp<std::int64_t>(bytes, 64 << 10, 8 << 20);
#endif
    return otherwise;
}

// CPUs of a list as the system writes it: 0-3,8.
int count_cpus(const std::string& list) {
    int count = 0;
    std::istringstream parts(list);
    for (std::string part; std::getline(parts, part, ',');) {
        int first = 0, last = 0;
        const int read = std::sscanf(part.c_str(), "%d-%d", &first, &last);
        count += read == 2 ? std::max(last - first, 0) + 1 : read == 1;
    }
    return count;
}

// A CPU's share of the last-level cache, as the system tells it; `otherwise` where it says nothing.
std::int64_t shared_cache(std::int64_t otherwise) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index3/";
    std::string cpus;
    std::int64_t kilobytes = 0;  // written as 32768K
    std::ifstream(folder + "size") >> kilobytes;
    std::getline(std::ifstream(folder + "shared_cpu_list"), cpus);
    if (kilobytes <= 0) return otherwise;
    return std::clamp<std::int64_t>((kilobytes << 10) / std::max(count_cpus(cpus), 1), 256 << 10, 64 << 20);
}

// Of some groups of rounds the fastest: in the first the other thread may have to begin, and other programs take CPUs.
double hand_over(Lanes& lanes) {
    std::atomic<int> turn{0};
    double time = std::numeric_limits<double>::infinity();
    lanes.run(2, [&](int lane) {
        double begin = now_s();
        for (int i = lane; i <= hand_over_rounds; i += 2) {
            Backoff backoff;
            while (turn.load(std::memory_order_acquire) != i) backoff.pause();
            turn.store(i + 1, std::memory_order_release);
            if (i == 0 || i % hand_over_group != 0) continue;
            const double now = now_s();
            time = std::min(time, (now - std::exchange(begin, now)) / hand_over_group);
        }
    });
    return time;
}

}  // namespace

ShortMeasurement measure_shortly(Transport& t, Lanes* lanes, Machine known) {
    ShortMeasurement found{std::move(known)};
    Machine& m = found.machine;
    m.cache_bytes = core_cache(m.cache_bytes);
    m.shared_cache_bytes = std::max(shared_cache(m.shared_cache_bytes), m.cache_bytes);
    if (lanes) m.hand_over_s = std::max(hand_over(*lanes), 1e-8);
    const int last = t.connected() ? t.size() - 1 : 0;
    if (last > 0) {
        found.clock_offset_s = clock_offset(t);
        barrier(t);  // what follows is measured while the other ranks are idle
    }
    if (last > 0 && (t.rank() == 0 || t.rank() == last)) {
        const bool first = t.rank() == 0;
        const int peer = first ? last : 0;
        m.latency_s = ping(t, first, peer, 8, 20);
        const double small = ping(t, first, peer, small_ping_bytes, 3);
        const double large = ping(t, first, peer, large_ping_bytes, 3);
        m.byte_s = std::max((large - small) / static_cast<double>(large_ping_bytes - small_ping_bytes), 1e-12);
        constexpr int chunks = stream_chunks;
        const double many = stream(t, first, peer, stream_chunk_bytes, chunks, 3);
        const double one = stream(t, first, peer, chunks * stream_chunk_bytes, 1, 3);
        m.chunk_s = std::clamp((many - one) / (chunks - 1), 1e-6, 50e-6);
        const double shorts =
            stream(t, first, peer, short_bytes, 4 * chunks, 3) - stream(t, first, peer, short_bytes, chunks, 3);
        m.short_s = std::clamp(shorts / (3 * chunks), 1e-7, 1e-3);
    }
    // Rank 0's numbers are everyone's: equal plans need equal numbers.
    double* const numbers[] = {&m.latency_s, &m.byte_s, &m.chunk_s, &m.short_s, &m.hand_over_s};
    std::string bytes;
    for (const double* n : numbers) bytes.append(reinterpret_cast<const char*>(n), sizeof *n);
    for (const std::int64_t* n : {&m.cache_bytes, &m.shared_cache_bytes})
        bytes.append(reinterpret_cast<const char*>(n), sizeof *n);
    broadcast(t, bytes, 0);
    const char* at = bytes.data();
    for (double* n : numbers) {
        std::memcpy(n, at, sizeof *n);
        at += sizeof *n;
    }
    for (std::int64_t* n : {&m.cache_bytes, &m.shared_cache_bytes}) {
        std::memcpy(n, at, sizeof *n);
        at += sizeof *n;
    }
    // Until more is measured, predictions have at least these of the network.
    if (!m.shares_host(0, last)) {
        m.other_host.latency_s = m.latency_s;
        m.other_host.byte_s = m.byte_s;
    }
    return found;
}

}  // namespace tilewave
