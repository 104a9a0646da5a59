#include "tilewave/context.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <span>
#include <sstream>

#include "context/agreement.hpp"
#include "context/exchange.hpp"
#include "context/machine_number.hpp"
#include "context/tuning.hpp"
#include "context/waiting.hpp"
#include "core/binomial.hpp"
#include "core/tags.hpp"
#include "data/memory.hpp"
#include "execute/executor.hpp"
#include "execute/lanes/lanes.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

using namespace tuning;

namespace {

std::string setting(const char* name, const char* otherwise) {
    const char* const given = std::getenv(name);
    return given ? given : otherwise;
}

struct Pinning {
    std::vector<int> cpus;
    int threads = 1, share = 1;
    bool oversubscribed = false;
    double ranks_per_core = 1;
    std::vector<std::int32_t> host_of, set_of;  // of each rank; none where other ranks are not here
    std::vector<double> set_cpus;
};

// Ranks that share a host and a CPU set split the set in rank order; ranks that a launcher has
// already bound to sets of their own use their own set from its start. Whoever pins must know of all
// that compute here: programs that nobody launched, or parts of a launch, would all take the first CPUs. So would
// launches of one rank that has all CPUs because nobody said how many.
Pinning pin_plan(Transport& t, int threads, bool launched, int announced_on_host) {
    const Place mine = Place::here(launched ? 0 : announced_on_host);
    const std::vector<std::string> all = allgather(t, mine.text());
    const bool everyone = all.size() == static_cast<std::size_t>(t.size());

    Pinning p;
    int before = 0, sharing = 0;
    std::size_t me = 0;       // in `here`
    std::vector<Place> here;  // of the ranks of this host: others' CPUs do not matter to them
    std::map<std::pair<std::string, std::vector<int>>, std::int32_t> sets;
    std::map<std::pair<std::string, std::string>, std::int32_t> hosts;
    for (std::size_t r = 0; r < all.size(); ++r) {
        Place place = Place::of(all[r]);
        const auto [set, fresh] =
            sets.try_emplace({place.host, place.cpus}, static_cast<std::int32_t>(p.set_cpus.size()));
        const auto host = hosts.try_emplace({place.host, place.name}, static_cast<std::int32_t>(hosts.size())).first;
        if (everyone) p.set_of.push_back(set->second);
        if (everyone) p.host_of.push_back(host->second);
        if (fresh) p.set_cpus.push_back(static_cast<double>(std::max<std::size_t>(place.cpus.size(), 1)));
        const bool own = !everyone || r == static_cast<std::size_t>(t.rank());
        if (own) me = here.size();
        if (place.same_cpus(mine)) {
            ++sharing;
            before += everyone && r < static_cast<std::size_t>(t.rank());
        }
        if (place.host == mine.host) here.push_back(std::move(place));
    }
    if (hosts.size() == 1) p.host_of.clear();
    const std::vector<double> shares = cpu_shares(here);
    std::vector<std::int64_t> least{lanes_of(*std::min_element(shares.begin(), shares.end()))};
    allreduce_min(t, least);
    p.share = static_cast<int>(least[0]);
    p.threads = threads ? threads : p.share;
    p.ranks_per_core = static_cast<double>(sharing) / static_cast<double>(std::max<std::size_t>(mine.cpus.size(), 1));
    p.oversubscribed = p.threads > lanes_of(shares[me]) || shares[me] < 1 - 1e-9;
    const std::string wanted = setting("TILEWAVE_PIN", "auto");
    if (!p.oversubscribed && (wanted == "on" || (wanted == "auto" && launched && sharing * std::max(threads, 1) > 1)))
        for (int l = before * p.threads; l < (before + 1) * p.threads; ++l)
            p.cpus.push_back(mine.cpus[static_cast<std::size_t>(l)]);
    return p;
}

// The transport to use; `off`: the fast paths that are switched off.
std::unique_ptr<Transport> checked(std::unique_ptr<Transport> t, int threads, const Caller& caller,
                                   const std::optional<std::string>& without, PathsOff& off) {
    constexpr int first_tag = tags::collective;  // of a transport that has carried nothing yet
    Statement s;
    s.caller = caller;
    const std::string sharing = setting("TILEWAVE_SHARED_MEMORY", "on"), pinning = setting("TILEWAVE_PIN", "auto");
    if (threads < 0 || threads > max_lanes)
        s.error =
            "threads " + std::to_string(threads) + " was given; 1 to " + std::to_string(max_lanes) + " are allowed";
    else if (sharing != "on" && sharing != "off")
        s.error = "TILEWAVE_SHARED_MEMORY is '" + sharing + "'; allowed: on, off";
    else if (pinning != "on" && pinning != "off" && pinning != "auto")
        s.error = "TILEWAVE_PIN is '" + pinning +
                  "'; allowed: on, off, auto (pinned where a launcher started several lanes on a host)";
    try {
        off = paths_off(without ? *without : setting("TILEWAVE_WITHOUT", ""));
        s.description = "TILEWAVE_WITHOUT '" + names_of(off) + "'";
    } catch (const ConfigError& error) {
        if (s.error.empty()) s.error = error.what();
    }
    if (!s.error.empty()) s.kind = Statement::Kind::config;
    agree(*t, first_tag, s);
    return share_memory(std::move(t), sharing == "on" && !tilewave::without(off, FastPath::shared));
}

void transfer(Transport& t, bool send, std::span<std::byte> data, int peer) {
    constexpr int tag = tags::clocks;
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

// This rank's clock minus rank 0's, down a tree: each rank plays with its parent, then with its children in turn. So
// the first rank plays with log2(ranks) others, however many there are; an error adds up over as many steps.
double clock_offset(Transport& t) {
    double own = 0;
    std::byte told[sizeof own];
    if (t.rank()) {
        const int parent = binomial::parent(t.rank());
        double unused = 0;
        ping(t, false, parent, sizeof(double), 8, &unused);
        transfer(t, false, told, parent);
        std::memcpy(&own, told, sizeof own);
    }
    std::vector<int> children;
    binomial::for_children(t.rank(), t.size(), [&](int child) { children.push_back(child); });
    for (auto child = children.rbegin(); child != children.rend(); ++child) {  // the largest subtree first
        double offset = 0;
        ping(t, true, *child, sizeof(double), 8, &offset);
        offset += own;
        std::memcpy(told, &offset, sizeof offset);
        transfer(t, true, told, *child);
    }
    return own;
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

// On the most crowded host, the same on all ranks.
double most_crowded(Transport& t, double ranks_per_core) {
    std::vector<std::int64_t> most{-std::llround(1e3 * std::max(ranks_per_core, 1.0))};
    allreduce_min(t, most);
    return -1e-3 * static_cast<double>(most[0]);
}

double hand_over(Lanes& lanes) {
    std::atomic<int> turn{0};
    double time = 0;
    lanes.run(2, [&](int lane) {
        const double begin = now_s();
        for (int i = lane; i < hand_over_rounds; i += 2) {
            Backoff backoff;
            while (turn.load(std::memory_order_acquire) != i) backoff.pause();
            turn.store(i + 1, std::memory_order_release);
        }
        if (lane == 0) time = (now_s() - begin) / hand_over_rounds;
    });
    return time;
}

}  // namespace

Context::~Context() = default;
const std::vector<int>& Context::cpus() const {
    return lanes_->cpus();
}

Context::Context(std::unique_ptr<Transport> transport, int threads, const Caller& caller,
                 const std::optional<std::string>& without)
    : launched_(transport->launched()),
      announced_on_host_(transport->announced_on_host()),
      exchange_(Exchange::make(checked(std::move(transport), threads, caller, without, paths_off_))),
      threads_(threads),
      options_(std::make_unique<ExecuteOptions>()) {
    exchange_->caller = caller;
    rank_ = this->transport().rank();
    size_ = this->transport().size();
    Pinning p = pin_plan(this->transport(), threads, launched_, announced_on_host_);
    threads_ = p.threads;
    share_ = p.share;
    oversubscribed_ = p.oversubscribed;
    ranks_per_core_ = p.ranks_per_core;
    host_of_ = std::move(p.host_of);
    set_of_ = std::move(p.set_of);
    set_cpus_ = std::move(p.set_cpus);
    lanes_ = std::make_unique<Lanes>(std::move(p.cpus));
    options_->crowded = oversubscribed_;
    options_->paths_off = paths_off_;
    // Now, while all ranks are here: a pattern that needs the numbers must not stop to measure.
    if (size_ > 1 && this->transport().connected()) measure();
}

Transport& Context::transport() {
    return exchange_->main();
}

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
    ++own<MachineNumber>().now;
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
    m.host_of = host_of_;
    m.set_of = set_of_;
    m.set_cpus = set_cpus_;
    if (threads_ > 1) m.hand_over_s = std::max(hand_over(*lanes_), 1e-8);
    const int last = t.connected() ? t.size() - 1 : 0;
    if (last > 0) {
        clock_offset_s_ = clock_offset(t);
        barrier(t);  // what follows is measured while the other ranks are idle
    }
    if (last > 0 && (rank() == 0 || rank() == last)) {
        const bool first = rank() == 0;
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
    machine_ = m;
}

void throw_as(Statement::Kind kind, const std::string& text) {
    switch (kind) {
        case Statement::Kind::mpi: throw MpiError(text);
        case Statement::Kind::kernel: throw KernelError(text);
        case Statement::Kind::resources: throw OutOfResources(text);
        case Statement::Kind::internal: throw InternalError(text);
        case Statement::Kind::interrupt: throw Interrupted(text);
        default: throw ConfigError(text);
    }
}

void Context::on_where(std::function<std::string()> where) {
    exchange_->where = std::move(where);
}

void Context::end() {
    if (size_ == 1 || exchange_->ended >= 0 || !transport().connected()) return;
    exchange_->ended = rank_;
    Agreement::end(exchange_->kept_port(), exchange_->tag(static_cast<int>(exchange_->started % Exchange::turns)));
    exchange_->move();
    exchange_->inner().mark_failed();  // others may send to it yet: it must not be taken down
}

int Context::ended() const {
    return exchange_->ended;
}

bool agree(Context& context, const Statement& mine) {
    return agree(context, std::make_shared<const Said>(mine));
}

bool agree(Context& context, std::shared_ptr<const Said> said) {
    auto& exchange = *context.exchange();
    const Statement& mine = said->statement;
    const auto number = take_number(context, [&] { return mine.caller; });
    std::vector<std::int64_t> values{mine.prepared, -mine.prepared};
    std::unique_ptr<Comparison> meeting = std::move(exchange.meeting);
    if (meeting)
        meeting->agreement.restate(said, std::move(values));
    else
        meeting = std::make_unique<Comparison>(exchange.kept_port(), said, std::move(values));
    Agreement& agreement = meeting->agreement;
    exchange.caller = mine.caller;
    agreement.start(exchange.tag(static_cast<int>(number % Exchange::turns)), {}, mine.caller.where, &exchange.where);
    try {
        wait_until(
            context, [&] { return agreement.advance(); }, [&] { return agreement.waits(); }, Backoff::Kind::idle);
    } catch (const MpiError&) {
        keep_for_ever(meeting.release());
        context.transport().mark_failed();
        throw;
    } catch (...) {
        keep_for_ever(meeting.release());
        throw;
    }
    if (agreement.ended() >= 0) exchange.ended = agreement.ended();
    exchange.meeting = std::move(meeting);
    agreement.raise();
    return agreement.value(0) > 0 && agreement.value(0) == -agreement.value(1);
}

}  // namespace tilewave
