// Nests of C++ programs that are run many times.
#include "nests/bound_nest.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include "nests/bound_sweep.hpp"
#include "nests/chained_sweep.hpp"
#include "nests/tuning.hpp"

namespace tilewave {

namespace {

// Those of a context are numbered; the same on all ranks.
struct BoundNests {
    std::int64_t made = 0;
};

// A schedule, and the numbers of steps that it serves.
struct Way {
    Way(Context& context, ReadyNest ready, std::optional<std::int64_t> given, std::vector<RunArray> arrays,
        const Kernel& kernel, std::function<std::string(const Failure&)> explain)
        : steps(given),
          blocks(ready.block_steps.value_or(0) > 0),
          fewest(std::max<std::int64_t>(ready.planned.plan.temporal_block, 1)),
          sweep(context, std::move(ready.planned.problem), std::move(ready.planned.plan)),
          bound(context, sweep, std::move(arrays), kernel, std::move(explain)) {}
    bool serves(std::optional<std::int64_t> wanted) const {
        return wanted == steps || (blocks && wanted && *wanted >= fewest);
    }
    Report run(const std::shared_ptr<const Said>& said, std::optional<std::int64_t> wanted, const Kernel& kernel) {
        return bound.report(bound.run(said, blocks ? wanted : std::nullopt, kernel.env));
    }
    std::optional<std::int64_t> steps;
    bool blocks;
    std::int64_t fewest;
    PreparedSweep sweep;
    BoundSweep bound;
};

}  // namespace

struct BoundNest::State {
    Context& context;
    NestLoops loops;
    PlanRequest request;
    std::vector<ArrayReads> arrays;
    Kernel kernel;
    std::string body;
    std::function<std::string(const Failure&)> explain;
    std::function<void()> renew;
    std::int64_t number = 0;
    std::deque<std::unique_ptr<Way>> ways = {};  // the first: of the bound number of steps
    std::shared_ptr<const Said> said = nullptr;  // in the last run
    std::optional<std::int64_t> said_steps = {};

    // Collective.
    Way& add_way(std::optional<std::int64_t> steps, const std::string& call) {
        NestLoops these = loops;
        these.steps = steps;
        ReadyNest ready = plan_nest(context, these, request, arrays, kernel, body, call);
        Statement mine;
        mine.caller = {call, ""};
        agree_after(context, mine, [&] {
            std::vector<RunArray> operands;
            for (const ArrayReads& a : arrays) operands.push_back({a.field, {}});
            ways.push_back(
                std::make_unique<Way>(context, std::move(ready), steps, std::move(operands), kernel, explain));
        });
        if (ways.size() > tuning::most_kept_rests) ways.erase(ways.begin() + 1);
        return *ways.back();
    }
    // What is wrong with so many steps; empty: nothing.
    std::string refused(std::optional<std::int64_t> steps) const {
        if (!steps) return "";
        if (!loops.steps)
            return "steps: " + std::to_string(*steps) + " was given, and the nest was bound without steps";
        if (*steps < 0) return "steps: " + std::to_string(*steps) + " was given; allowed: 0 and more";
        return "";
    }
    Report run(std::optional<std::int64_t> steps) {
        const std::shared_ptr<const Said> mine = say(steps);
        const auto found = std::find_if(ways.begin(), ways.end(), [&](const auto& w) { return w->serves(steps); });
        renew();
        if (found != ways.end() && mine->statement.kind == Statement::Kind::fine)
            return (*found)->run(mine, steps, kernel);
        agree(context, mine);  // throws where these steps are refused
        return add_way(steps, "BoundNest::run").run(mine, steps, kernel);
    }
    std::shared_ptr<const Said> say(std::optional<std::int64_t> steps) {
        if (said && steps == said_steps) return said;
        Statement mine;
        mine.caller = {"BoundNest::run", ""};
        mine.description = "bound nest " + std::to_string(number) + " of body " + body +
                           (steps ? ", " + std::to_string(*steps) + " steps" : "");
        mine.error = refused(steps);
        if (!mine.error.empty()) mine.kind = Statement::Kind::config;
        said_steps = steps;
        return said = std::make_shared<const Said>(std::move(mine));
    }
};

BoundNest::BoundNest(std::unique_ptr<State> state) : state_(std::move(state)) {}
BoundNest::BoundNest(BoundNest&&) noexcept = default;
BoundNest::~BoundNest() = default;

const Plan& BoundNest::plan() const {
    return state_->ways.front()->sweep.plan();
}

Report BoundNest::run(std::optional<std::int64_t> given) {
    return state_->run(given ? given : state_->loops.steps);
}

BoundNest bind_nest(Context& context, const NestLoops& loops, const PlanRequest& request,
                    std::span<const ArrayReads> arrays, const Kernel& kernel, const std::string& body,
                    std::function<std::string(const Failure&)> explain, std::function<void()> renew) {
    auto state = std::make_unique<BoundNest::State>(BoundNest::State{
        context, loops, request, {arrays.begin(), arrays.end()}, kernel, body, std::move(explain), std::move(renew)});
    (void)state->add_way(loops.steps, "bind");
    state->number = ++context.own<BoundNests>().made;
    return BoundNest(std::move(state));
}

// Layouts that are planned for, at most, where the nests' own plans have none in common.
constexpr std::size_t most_layouts = 3;

struct NestChain::State {
    Context& context;
    std::vector<BoundNest::State*> nests;
    std::string apart, description;
    std::vector<std::vector<std::int32_t>> memories = {};
    std::vector<std::unique_ptr<Way>> ways = {};     // of the chain alone, where plans of its own are needed
    std::unique_ptr<ChainedSweep> sweeps = nullptr;  // null: one after another
    std::shared_ptr<const Said> said = nullptr;      // in the last run
    std::int64_t said_times = 0;

    std::shared_ptr<const Said> say(std::int64_t times) {
        if (said && times == said_times) return said;
        Statement mine;
        mine.caller = {"NestChain::run", ""};
        mine.description = description + ", " + std::to_string(times) + " times";
        if (times < 1) {
            mine.error = "times: " + std::to_string(times) + " was given; allowed: 1 and more";
            mine.kind = Statement::Kind::config;
        }
        said_times = times;
        return said = std::make_shared<const Said>(std::move(mine));
    }
    // Where the nests are one schedule makes it; else says why not. Collective.
    void join() {
        std::map<const FieldStorage*, std::int32_t> numbers;
        std::vector<Way*> own;
        for (BoundNest::State* nest : nests) {
            own.push_back(nest->ways.front().get());
            auto& of = memories.emplace_back();
            for (const ArrayReads& a : nest->arrays)
                of.push_back(numbers.try_emplace(a.field, static_cast<std::int32_t>(numbers.size())).first->second);
            if (nest->loops.steps && own.back()->sweep.problem().space.extent(0) != *nest->loops.steps) {
                apart = "a nest runs more time steps than a block has";
                return;
            }
        }
        if (made(own)) return;
        const std::string why = apart;
        for (const CommonLayout& layout : layouts())
            if (planned(layout)) return;
        apart = why;
    }
    // The same on all ranks. `all`: null where this rank has not all of them.
    bool made(const std::vector<Way*>& all) {
        std::vector<BoundSweep*> bound;
        for (Way* way : all) bound.push_back(&way->bound);
        try {
            apart.clear();
            if (bound.size() == nests.size()) sweeps = std::make_unique<ChainedSweep>(context, bound, memories);
        } catch (const std::exception& e) {  // perhaps on this rank alone, as where memory ran out
            apart = e.what();
        }
        std::vector<std::int64_t> all_have{sweeps != nullptr};
        allreduce_min(context.transport(), all_have);
        if (all_have[0] != 0) return true;
        sweeps.reset();
        if (apart.empty()) apart = "another rank refuses the schedule";
        return false;
    }
    // What the shared fields may have in common: a grid of the arrays, row by row or as each nest's own plan stores
    // them.
    struct CommonLayout {
        Index grid;
        bool own_storage = false;
    };
    Index grid_of(const BoundNest::State& nest) const {
        const Index& grid = nest.ways.front()->sweep.plan().grid;
        return Index(std::span(grid.begin(), grid.end()).subspan(nest.loops.steps.has_value()));
    }
    // Those of the nests with most points first.
    std::vector<CommonLayout> layouts() const {
        std::vector<BoundNest::State*> heaviest = nests;
        const auto points = [](const BoundNest::State* n) { return n->ways.front()->sweep.problem().space.points(); };
        std::stable_sort(heaviest.begin(), heaviest.end(), [&](auto* a, auto* b) { return points(a) > points(b); });
        const Index first = grid_of(*heaviest[0]);
        const auto alike = [&](const BoundNest::State* n) {
            return grid_of(*n) == first &&
                   n->ways.front()->sweep.plan().storage == nests[0]->ways.front()->sweep.plan().storage;
        };
        std::vector<CommonLayout> all;
        if (std::all_of(nests.begin(), nests.end(), alike)) all.push_back({first, true});
        if (without(context.paths_off(), FastPath::chain_layouts)) return all;
        for (const BoundNest::State* n : heaviest) {
            const Index grid = grid_of(*n);
            if (std::none_of(all.begin(), all.end(),
                             [&](const CommonLayout& l) { return l.grid == grid && !l.own_storage; }))
                all.push_back({grid, false});
        }
        if (all.size() > most_layouts) all.resize(most_layouts);
        return all;
    }
    // What a nest is asked for; nothing where its own request is another.
    std::optional<PlanRequest> request_for(const BoundNest::State& nest, const CommonLayout& layout) const {
        const Plan& plan = nest.ways.front()->sweep.plan();
        PlanRequest r = nest.request;
        std::vector<std::int64_t> ranks(nest.loops.steps.has_value(), 1);  // time is not cut
        ranks.insert(ranks.end(), layout.grid.begin(), layout.grid.end());
        const Index grid(ranks);
        const StorageKind storage = layout.own_storage ? plan.storage : StorageKind::plain;
        if (r.grid.value_or(grid) != grid || r.storage.value_or(storage) != storage) return std::nullopt;
        if (context.size() > 1 && r.temporal_block.value_or(1) != 1) return std::nullopt;
        r.grid = grid;
        r.storage = storage;
        if (storage == StorageKind::skewed) r.row = plan.row;
        if (context.size() > 1) r.temporal_block = 1;  // others keep no halo for several steps
        return r;
    }
    // Plans all nests anew for a layout, and makes the schedule of these plans. Collective.
    bool planned(const CommonLayout& layout) {
        std::vector<PlanRequest> requests;
        std::vector<SweepProblem> problems;
        std::vector<Index> grids;
        for (const BoundNest::State* nest : nests) {
            const std::optional<PlanRequest> r = request_for(*nest, layout);
            if (!r || r->grid->n != nest->ways.front()->sweep.plan().grid.n) return false;
            requests.push_back(*r);
            grids.push_back(*r->grid);
            problems.push_back(nest_problem(nest->loops, nest->arrays));
        }
        std::vector<ReadyNest> ready;
        try {
            const std::vector<LeastHalos> halos = common_halos(std::move(problems), grids, memories);
            for (std::size_t n = 0; n < nests.size(); ++n)
                ready.push_back(plan_nest(context, nests[n]->loops, requests[n], nests[n]->arrays, nests[n]->kernel,
                                          nests[n]->body, "chain", halos[n]));
        } catch (const ConfigError&) {  // on all ranks
            return false;
        }
        ways.clear();
        std::vector<Way*> all;
        try {
            for (std::size_t n = 0; n < nests.size(); ++n) {
                std::vector<RunArray> operands;
                for (const ArrayReads& a : nests[n]->arrays) operands.push_back({a.field, {}});
                ways.push_back(std::make_unique<Way>(context, std::move(ready[n]), nests[n]->loops.steps,
                                                     std::move(operands), nests[n]->kernel, nests[n]->explain));
                all.push_back(ways.back().get());
            }
        } catch (const std::exception&) {  // perhaps on this rank alone
        }
        return made(all);
    }
    ChainReport run_as_one(std::int64_t times) {
        std::vector<std::uintptr_t> env;
        for (BoundNest::State* nest : nests) {
            nest->renew();
            env.push_back(reinterpret_cast<std::uintptr_t>(nest->kernel.env));
        }
        BoundRun ran = sweeps->run(said, times, env);
        ChainReport report{ran.points, ran.time_s, ran.moving_s, ran.call_s, ran.interrupted, {}};
        auto next = ran.reduced.begin();
        for (BoundNest::State* nest : nests) {
            auto& of = report.reduced.emplace_back();
            for (std::size_t r = 0; r < nest->kernel.reductions.size() && next != ran.reduced.end(); ++r)
                of.push_back(std::move(*next++));
        }
        return report;
    }
    ChainReport run_apart(std::int64_t times) {
        agree(context, said);
        ChainReport report;
        for (std::int64_t k = 0; k < times && !report.interrupted; ++k) {
            report.reduced.clear();
            for (std::size_t n = 0; n < nests.size() && !report.interrupted; ++n) {
                BoundNest::State& nest = *nests[n];
                Report one = nest.run(nest.loops.steps);
                report.points += one.points;
                report.time_s += one.time_s;
                report.moving_s += one.moving_s;
                report.call_s += one.call_s;
                report.interrupted = one.interrupted;
                report.reduced.push_back(std::move(one.reduced));
            }
        }
        return report;
    }
};

NestChain::NestChain(std::unique_ptr<State> state) : state_(std::move(state)) {}
NestChain::NestChain(NestChain&&) noexcept = default;
NestChain::~NestChain() = default;

const std::string& NestChain::apart() const {
    return state_->apart;
}

ChainReport NestChain::run(std::int64_t times) {
    State& s = *state_;
    const std::shared_ptr<const Said> said = s.say(times);
    if (said->statement.kind != Statement::Kind::fine) agree(s.context, said);  // throws
    return s.sweeps ? s.run_as_one(times) : s.run_apart(times);
}

NestChain chain(Context& context, const std::vector<BoundNest*>& nests) {
    Statement mine;
    mine.caller = {"chain", ""};
    mine.description = "a chain of bound nests";
    auto state = std::make_unique<NestChain::State>(NestChain::State{context, {}, "", ""});
    for (const BoundNest* nest : nests) {
        if (!nest || &nest->state_->context != &context) {
            mine.error = "nest " + std::to_string(state->nests.size() + 1) + " was bound on another context";
            break;
        }
        state->nests.push_back(nest->state_.get());
        mine.description += " " + std::to_string(nest->state_->number);
    }
    if (nests.empty()) mine.error = "no nests were given; allowed: one or more";
    if (!mine.error.empty()) mine.kind = Statement::Kind::config;
    state->description = mine.description;
    agree(context, std::make_shared<const Said>(std::move(mine)));
    state->join();
    return NestChain(std::move(state));
}

}  // namespace tilewave
