#include "tilewave/context.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <sstream>

#include "exchange.hpp"
#include "memory.hpp"

namespace tilewave {

namespace {

// The machine and allowed CPUs of one rank, as text: what decides who pins where. The kernel's
// boot id, not the host name: containers on one machine share its CPUs under names of their own.
std::string placement() {
    std::string text;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
    if (text.empty()) {
        char host[256] = "";
        gethostname(host, sizeof host - 1);
        text = host;
    }
    for (int c : allowed_cpus()) text += " " + std::to_string(c);
    return text;
}

struct Pinning {
    std::vector<int> cpus;
    bool oversubscribed = false;
    double ranks_per_core = 1;
    std::vector<std::int32_t> set_of;  // of each rank; none where other ranks are not here
    std::vector<double> set_cpus;
};

// Ranks that share a host and a CPU set split the set in rank order; ranks that a launcher has
// already bound to sets of their own use their own set from its start.
Pinning pin_plan(Transport& t, int threads) {
    std::string all;
    for (const std::string& p : gather(t, placement())) all += p + "\n";
    broadcast(t, all, 0);
    std::istringstream lines(all);
    std::string line, mine = placement();
    int before = 0, sharing = 0;
    Pinning p;
    std::vector<std::string> sets;
    for (int r = 0; std::getline(lines, line); ++r) {
        const auto set = std::find(sets.begin(), sets.end(), line);
        p.set_of.push_back(static_cast<std::int32_t>(set - sets.begin()));
        if (set == sets.end()) {
            sets.push_back(line);
            p.set_cpus.push_back(static_cast<double>(std::max<std::ptrdiff_t>(std::count(line.begin(), line.end(), ' '), 1)));
        }
        if (line != mine) continue;
        ++sharing;
        if (r < t.rank()) ++before;
    }
    if (p.set_of.size() != static_cast<std::size_t>(t.size())) p.set_of.clear();
    const std::vector<int> allowed = allowed_cpus();
    p.ranks_per_core = static_cast<double>(sharing) / static_cast<double>(allowed.size());
    p.oversubscribed = static_cast<std::size_t>(sharing) * static_cast<std::size_t>(threads) > allowed.size();
    if (!p.oversubscribed)
        for (int l = 0; l < threads; ++l) p.cpus.push_back(allowed[static_cast<std::size_t>(before * threads + l)]);
    return p;
}

std::unique_ptr<Transport> checked(std::unique_ptr<Transport> t, int threads) {
    Statement s;
    const char* const given = std::getenv("TILEWAVE_SHARED_MEMORY");
    const std::string sharing = given ? given : "on";
    if (threads < 1 || threads > max_lanes)
        s.error = "threads " + std::to_string(threads) + " was given; 1 to " + std::to_string(max_lanes) + " are allowed";
    else if (sharing != "on" && sharing != "off")
        s.error = "TILEWAVE_SHARED_MEMORY is '" + sharing + "'; allowed: on, off";
    if (!s.error.empty()) s.kind = Statement::Kind::config;
    agree(*t, s);
    return share_memory(std::move(t), sharing == "on");
}

void transfer(Transport& t, bool send, std::span<std::byte> data, int peer) {
    constexpr int tag = 2;
    if (send)
        t.post_send(0, data.data(), static_cast<std::int64_t>(data.size()), peer, tag, false);
    else
        t.post_recv(0, data.data(), static_cast<std::int64_t>(data.size()), peer, tag);
    std::vector<int> done;
    Backoff backoff;
    while (done.empty()) {
        t.poll(done);
        if (done.empty()) backoff.pause();
    }
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

// Shortest time of `count` messages of `bytes` one after another, all posted at once, and an answer.
double stream(Transport& t, bool first, int peer, std::size_t bytes, int count, int trials) {
    constexpr int tag = 2;
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
        std::vector<int> done;
        Backoff backoff;
        while (static_cast<int>(done.size()) < count) {
            const auto before = done.size();
            t.poll(done);
            if (done.size() == before) backoff.pause();
        }
        transfer(t, !first, answer, peer);
        best = std::min(best, now_s() - begin);
    }
    return best;
}

// What the system says of a core's second-level cache; `otherwise` where it says nothing.
std::int64_t core_cache(std::int64_t otherwise) {
#ifdef _SC_LEVEL2_CACHE_SIZE
    if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return std::clamp<std::int64_t>(bytes, 64 << 10, 8 << 20);
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

// On the most crowded host, the same on all ranks.
double most_crowded(Transport& t, double ranks_per_core) {
    std::vector<std::int64_t> most{-std::llround(1e3 * std::max(ranks_per_core, 1.0))};
    allreduce_min(t, most);
    return -1e-3 * static_cast<double>(most[0]);
}

double hand_over(Lanes& lanes) {
    std::atomic<int> turn{0};
    constexpr int rounds = 200;
    double time = 0;
    lanes.run(2, [&](int lane) {
        const double begin = now_s();
        for (int i = lane; i < rounds; i += 2) {
            Backoff backoff;
            while (turn.load(std::memory_order_acquire) != i) backoff.pause();
            turn.store(i + 1, std::memory_order_release);
        }
        if (lane == 0) time = (now_s() - begin) / rounds;
    });
    return time;
}

}  // namespace

Context::Context(std::unique_ptr<Transport> transport, int threads)
    : exchange_(Exchange::make(checked(std::move(transport), threads))), threads_(threads) {
    rank_ = this->transport().rank();
    size_ = this->transport().size();
    Pinning p = pin_plan(this->transport(), threads);
    oversubscribed_ = p.oversubscribed;
    ranks_per_core_ = p.ranks_per_core;
    set_of_ = std::move(p.set_of);
    set_cpus_ = std::move(p.set_cpus);
    lanes_ = std::make_unique<Lanes>(std::move(p.cpus));
    options_.crowded = oversubscribed_;
    // Now, while all ranks are here: a pattern that needs the numbers must not stop to measure.
    if (size_ > 1 && this->transport().connected()) measure();
}

Transport& Context::transport() { return exchange_->main(); }

const Machine& Context::machine() {
    if (!machine_) measure();
    return *machine_;
}

void Context::use_machine(const Machine& machine) {
    const double crowd = machine_ ? machine_->ranks_per_core : 1;  // of these ranks, whoever was measured
    machine_ = machine;
    machine_->ranks_per_core = crowd;
    machine_->set_of = set_of_;
    machine_->set_cpus = set_cpus_;
}

double Context::clock_offset_s() {
    if (!machine_) measure();
    return clock_offset_s_;
}

void Context::measure() {
    Transport& t = transport();
    Machine m;
    m.cache_bytes = core_cache(m.cache_bytes);
    m.shared_cache_bytes = std::max(shared_cache(m.shared_cache_bytes), m.cache_bytes);
    m.ranks_per_core = most_crowded(t, ranks_per_core_);
    m.set_of = set_of_;
    m.set_cpus = set_cpus_;
    if (threads_ > 1) m.hand_over_s = std::max(hand_over(*lanes_), 1e-8);
    const int last = t.connected() ? t.size() - 1 : 0;
    // Clocks first: each rank in turn plays with rank 0.
    for (int r = 1; r <= last; ++r)
        if (rank() == 0) {
            double offset = 0;
            ping(t, true, r, sizeof(double), 8, &offset);
            std::vector<std::byte> data(sizeof offset);
            *reinterpret_cast<double*>(data.data()) = offset;
            transfer(t, true, data, r);
        } else if (rank() == r) {
            double unused = 0;
            ping(t, false, 0, sizeof(double), 8, &unused);
            std::vector<std::byte> data(sizeof(double));
            transfer(t, false, data, 0);
            clock_offset_s_ = *reinterpret_cast<double*>(data.data());
        }
    if (last > 0 && (rank() == 0 || rank() == last)) {
        const bool first = rank() == 0;
        const int peer = first ? last : 0;
        constexpr std::size_t small = 128 << 10, large = 1 << 20;
        m.latency_s = ping(t, first, peer, 8, 20);
        const double a = ping(t, first, peer, small, 3), b = ping(t, first, peer, large, 3);
        m.byte_s = std::max((b - a) / static_cast<double>(large - small), 1e-12);
        constexpr int count = 16;
        constexpr std::size_t chunk = 16 << 10;
        const double many = stream(t, first, peer, chunk, count, 3), one = stream(t, first, peer, count * chunk, 1, 3);
        m.chunk_s = std::clamp((many - one) / (count - 1), 1e-6, 50e-6);
        const double shorts = stream(t, first, peer, short_bytes, 4 * count, 3) - stream(t, first, peer, short_bytes, count, 3);
        m.short_s = std::clamp(shorts / (3 * count), 1e-7, 1e-3);
    }
    // Rank 0's numbers are everyone's: equal plans need equal numbers.
    double* const numbers[] = {&m.latency_s, &m.byte_s, &m.chunk_s, &m.short_s, &m.hand_over_s};
    std::string bytes;
    for (const double* n : numbers) bytes.append(reinterpret_cast<const char*>(n), sizeof *n);
    for (const std::int64_t* n : {&m.cache_bytes, &m.shared_cache_bytes}) bytes.append(reinterpret_cast<const char*>(n), sizeof *n);
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
    machine_ = m;
}

namespace {

std::int64_t hash_of(const std::string& text) {  // FNV-1a: the same on every rank and run
    std::uint64_t h = 14695981039346656037u;
    for (unsigned char c : text) h = (h ^ c) * 1099511628211u;
    return static_cast<std::int64_t>(h >> 2);
}

[[noreturn]] void raise_difference(Transport& t, const std::string& mine) {
    const auto all = gather(t, mine);
    std::string text;
    for (int r = 1; t.rank() == 0 && r < t.size() && text.empty(); ++r)
        if (all[r] != all[0])
            text = "the ranks were given different arguments. Rank 0: " + all[0] + ". Rank " + std::to_string(r) + ": " +
                   all[r] + ". They must be the same on every rank";
    broadcast(t, text, 0);
    throw ConfigError(text);
}

}  // namespace

void throw_as(Statement::Kind kind, const std::string& text) {
    switch (kind) {
        case Statement::Kind::mpi: throw MpiError(text);
        case Statement::Kind::kernel: throw KernelError(text);
        case Statement::Kind::internal: throw InternalError(text);
        default: throw ConfigError(text);
    }
}

bool agree(Transport& t, const Statement& mine) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    const bool fine = mine.kind == Statement::Kind::fine;
    const std::int64_t hash = hash_of(mine.description);
    std::vector<std::int64_t> values{fine ? none : t.rank(), fine ? hash : none, fine ? -hash : none, mine.prepared, -mine.prepared};
    allreduce_min(t, values);
    if (values[0] != none) {
        const int from = static_cast<int>(values[0]);
        std::string text;
        if (t.rank() == from) text = static_cast<char>(mine.kind) + mine.error;
        broadcast(t, text, from);
        throw_as(static_cast<Statement::Kind>(text[0]), text.substr(1));
    }
    if (values[1] != -values[2]) raise_difference(t, mine.description);
    return values[3] > 0 && values[3] == -values[4];
}

}  // namespace tilewave
