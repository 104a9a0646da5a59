// Nests of C++ programs that are run many times.
#include "runtime/bound_nest.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include "runtime/bound_sweep.hpp"
#include "runtime/chained_sweep.hpp"
#include "runtime/tuning.hpp"

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
        std::vector<RunArray> operands;
        for (const ArrayReads& a : arrays) operands.push_back({a.field, {}});
        ReadyNest ready = plan_nest(context, these, request, arrays, kernel, body, call);
        ways.push_back(std::make_unique<Way>(context, std::move(ready), steps, std::move(operands), kernel, explain));
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

struct NestChain::State {
    Context& context;
    std::vector<BoundNest::State*> nests;
    std::unique_ptr<ChainedSweep> sweeps;  // null: one after another
    std::string apart, description;
    std::shared_ptr<const Said> said = nullptr;  // in the last run
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
    // Where the nests are one schedule makes it; else says why not, the same on all ranks.
    void join() {
        std::vector<BoundSweep*> all;
        std::vector<std::vector<std::int32_t>> memories;
        std::map<const FieldStorage*, std::int32_t> numbers;
        for (BoundNest::State* nest : nests) {
            if (nest->loops.steps) {
                apart = "a nest has time steps";
                return;
            }
            all.push_back(&nest->ways.front()->bound);
            auto& of = memories.emplace_back();
            for (const ArrayReads& a : nest->arrays)
                of.push_back(numbers.try_emplace(a.field, static_cast<std::int32_t>(numbers.size())).first->second);
        }
        try {
            sweeps = std::make_unique<ChainedSweep>(context, std::move(all), std::move(memories));
        } catch (const ConfigError& e) {
            apart = e.what();
        }
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
    auto state = std::make_unique<NestChain::State>(NestChain::State{context, {}, nullptr, "", ""});
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
