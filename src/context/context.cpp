#include "tilewave/context.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "context/agreement.hpp"
#include "context/progress_engine.hpp"
#include "context/waiting.hpp"
#include "core/tags.hpp"
#include "execute/executor.hpp"
#include "execute/lanes/lanes.hpp"
#include "execute/lanes/topology.hpp"
#include "measure/links/links.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

namespace {

std::string setting(const char* name, const char* otherwise) {
    const char* const given = std::getenv(name);
    return given ? given : otherwise;
}

struct Pinning {
    std::vector<int> cpus;
    int threads = 1, share = 1, nodes = 1;
    bool oversubscribed = false;
    double ranks_per_core = 1;
    Runs<std::int32_t> host_of, set_of;  // of each rank; none where other ranks are not here
    Runs<double> set_cpus;
};

// Ranks that share a host and a CPU set split it (place_lanes); those that a launcher has bound to different sets place
// their lanes within their set, as if alone. Lanes are pinned only where all processes that compute here are known:
// programs without a launcher, parts of a launch, or several launches of one rank with all CPUs would all take the
// same.
Pinning pin_plan(Transport& t, int threads, bool launched, int announced_on_host) {
    const Place here = Place::here(launched ? 0 : announced_on_host);
    const std::vector<Given> all = allgather(t, here.text());
    const bool everyone = t.size() == 1 || t.connected();

    Pinning p;
    std::int64_t rank = 0, before = 0, sharing = 0;
    std::size_t me = 0;             // this rank's place in `neighbours`
    std::vector<Place> neighbours;  // of this host: others' CPUs do not matter to its ranks
    std::map<std::tuple<std::string, std::string, std::vector<int>>, std::int32_t> sets;
    std::map<std::pair<std::string, std::string>, std::int32_t> hosts;
    for (const Given& some : all) {
        Place place = Place::of(some.text);
        place.ranks = some.ranks;
        const auto [set, fresh] =
            sets.try_emplace({place.host, place.quota.group, place.cpus}, static_cast<std::int32_t>(p.set_cpus.size()));
        const auto host = hosts.try_emplace({place.host, place.name}, static_cast<std::int32_t>(hosts.size())).first;
        if (everyone) p.set_of.append(set->second, some.ranks);
        if (everyone) p.host_of.append(host->second, some.ranks);
        const auto cpus = static_cast<double>(std::max<std::size_t>(place.cpus.size(), 1));
        if (fresh) p.set_cpus.push_back(std::min(cpus, place.quota.cpus));
        const std::int64_t lower = everyone ? std::clamp<std::int64_t>(t.rank() - rank, 0, some.ranks) : 0;
        const bool this_rank = !everyone || (rank <= t.rank() && lower < some.ranks);
        if (this_rank) me = neighbours.size();
        if (place.same_cpus(here)) {
            sharing += some.ranks;
            before += lower;
        }
        if (place.host == here.host) neighbours.push_back(std::move(place));
        rank += some.ranks;
    }
    if (hosts.size() == 1) p.host_of.clear();
    const std::vector<double> shares = shares_of(neighbours), cores = shares_of(neighbours, ShareOf::cores);
    std::vector<std::int64_t> least{lanes_of(*std::ranges::min_element(cores))};
    allreduce_min(t, least);
    p.share = static_cast<int>(least[0]);
    p.threads = threads ? threads : p.share;
    p.ranks_per_core = static_cast<double>(sharing) / static_cast<double>(std::max<std::size_t>(here.cpus.size(), 1));
    p.oversubscribed = p.threads > lanes_of(shares[me]) || shares[me] < 1 - 1e-9;
    const Topology topology = Topology::here().only(here.cpus);
    p.nodes = topology.nodes();
    const std::string wanted = setting("TILEWAVE_PIN", "auto");
    if (!p.oversubscribed && (wanted == "on" || (wanted == "auto" && launched && sharing * std::max(threads, 1) > 1)))
        p.cpus = std::move(place_lanes(topology, sharing, p.threads)[before]);
    return p;
}

// The transport to use; `off`: the fast paths that are switched off.
std::unique_ptr<Transport> checked(std::unique_ptr<Transport> t, int threads, const Caller& caller,
                                   const std::optional<std::string>& without, PathsOff& off) {
    constexpr int first_tag = tags::collective;  // of a transport that has carried nothing yet
    RankStatus s;
    s.caller = caller;
    const std::string pinning = setting("TILEWAVE_PIN", "auto");
    if (threads < 0 || threads > max_lanes)
        s.error =
            "threads " + std::to_string(threads) + " was given; 1 to " + std::to_string(max_lanes) + " are allowed";
    else if (pinning != "on" && pinning != "off" && pinning != "auto")
        s.error = "TILEWAVE_PIN is '" + pinning +
                  "'; allowed: on, off, auto (pinned where a launcher started several lanes on a host)";
    try {
        off = paths_off(without ? *without : setting("TILEWAVE_WITHOUT", ""));
        s.description = "TILEWAVE_WITHOUT '" + names_of(off) + "'";
    } catch (const ConfigError& error) {
        if (s.error.empty()) s.error = error.what();
    }
    if (!s.error.empty()) s.kind = RankStatus::Kind::config;
    agree(*t, first_tag, s);
    return share_memory(std::move(t), !tilewave::without(off, FastPath::shared));
}

// On the most crowded host, the same on all ranks.
double most_crowded(Transport& t, double ranks_per_core) {
    std::vector<std::int64_t> most{-std::llround(1e3 * std::max(ranks_per_core, 1.0))};
    allreduce_min(t, most);
    return -1e-3 * static_cast<double>(most[0]);
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
      engine_(ProgressEngine::make(checked(std::move(transport), threads, caller, without, paths_off_))),
      threads_(threads),
      options_(std::make_unique<ExecuteOptions>()) {
    engine_->caller = caller;
    rank_ = this->transport().rank();
    size_ = this->transport().size();
    Pinning p = pin_plan(this->transport(), threads, launched_, announced_on_host_);
    threads_ = p.threads;
    share_ = p.share;
    nodes_ = p.nodes;
    oversubscribed_ = p.oversubscribed;
    ranks_per_core_ = p.ranks_per_core;
    host_of_ = std::move(p.host_of);
    set_of_ = std::move(p.set_of);
    set_cpus_ = std::move(p.set_cpus);
    lanes_ = std::make_unique<Lanes>(std::move(p.cpus));
    options_->crowded = oversubscribed_;
    Backoff::crowded = oversubscribed_;
    options_->paths_off = paths_off_;
    // By which a call reports that it lacks memory, the first one, too.
    engine_->give_back(engine_->take_comparison(std::make_shared<const HashedStatus>(RankStatus()), {}, true));
    // Now, while all ranks are here: a pattern that needs the numbers must not stop to measure.
    if (size_ > 1 && this->transport().connected()) measure();
}

Transport& Context::transport() {
    return engine_->main();
}

const Machine& Context::machine() {
    if (!machine_) measure();
    return *machine_;
}

void Context::use_machine(const Machine& machine) {
    const double crowd = machine_ ? machine_->ranks_per_core : 1;  // of these ranks, whoever was measured
    machine_ = machine;
    machine_->ranks_per_core = crowd;
    if (!tilewave::plans_only(*this)) {
        machine_->set_of = set_of_;
        machine_->set_cpus = set_cpus_;
    }
    ++machine_number_;
}

double Context::clock_offset_s() {
    if (!machine_) measure();
    return clock_offset_s_;
}

void Context::measure() {
    Machine known;
    known.ranks_per_core = most_crowded(transport(), ranks_per_core_);
    known.host_of = host_of_;
    known.set_of = set_of_;
    known.set_cpus = set_cpus_;
    ShortMeasurement found = measure_shortly(transport(), threads_ > 1 ? lanes_.get() : nullptr, std::move(known));
    machine_ = std::move(found.machine);
    clock_offset_s_ = found.clock_offset_s;
}

void throw_as(RankStatus::Kind kind, const std::string& text) {
    switch (kind) {
        case RankStatus::Kind::mpi: throw MpiError(text);
        case RankStatus::Kind::kernel: throw KernelError(text);
        case RankStatus::Kind::resources: throw OutOfResources(text);
        case RankStatus::Kind::internal: throw InternalError(text);
        case RankStatus::Kind::interrupt: throw Interrupted(text);
        default: throw ConfigError(text);
    }
}

void Context::on_where(std::function<std::string()> where) {
    engine_->where = std::move(where);
}

void Context::end() {
    if (size_ == 1 || engine_->ended >= 0 || !transport().connected()) return;
    engine_->ended = rank_;
    try {
        Agreement::end(engine_->borrowed_port(),
                       engine_->tag(static_cast<int>(engine_->started % ProgressEngine::call_tags)));
        engine_->move();
    } catch (const MpiError&) {  // of a transport that has failed: the others see that this rank has left
    }
    engine_->inner().mark_failed();  // others may send to it yet: it must not be taken down
}

int Context::ended() const {
    return engine_->ended;
}

const Caller& caller_of(Context& context) {
    return context.engine()->caller;
}

bool agree(Context& context, const RankStatus& status) {
    return agree(context, std::make_shared<const HashedStatus>(status));
}

bool agree(Context& context, std::shared_ptr<const HashedStatus> status) {
    auto& engine = *context.engine();
    if (status->kind == RankStatus::Kind::mpi && context.transport().failed()) throw MpiError(status->error);
    const auto number = take_number(context, [&] { return status->caller; });
    auto comparison = engine.take_comparison(status, {status->prepared, -status->prepared}, true);
    Agreement& agreement = comparison->agreement;
    engine.caller = status->caller;
    agreement.start(engine.tag(static_cast<int>(number % ProgressEngine::call_tags)), {}, status->caller.where,
                    &engine.where);
    try {
        const auto over = [&] {
            if (agreement.advance()) return true;
            if (engine.alarms->due(now_s())) (void)engine.alarms->heard();  // throws where a rank has left
            return false;
        };
        wait_until(context, over, [&] { return agreement.waits(); }, Backoff::Kind::idle);
    } catch (const MpiError&) {
        keep_until_exit(comparison.release());
        context.transport().mark_failed();
        throw;
    } catch (...) {
        keep_until_exit(comparison.release());
        throw;
    }
    if (agreement.ended() >= 0) {
        engine.ended = agreement.ended();
        agreement.raise();
    }
    const bool all_prepared = agreement.value(0) > 0 && agreement.value(0) == -agreement.value(1);
    const auto give_back = [&] { engine.give_back(std::move(comparison)); };
    try {
        agreement.raise();
    } catch (...) {
        give_back();  // the next call may have an error to report, and no memory for another one
        throw;
    }
    give_back();
    return all_prepared;
}

}  // namespace tilewave
