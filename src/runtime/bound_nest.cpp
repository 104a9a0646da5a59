// Nests of C++ programs that are run many times.
#include "runtime/bound_nest.hpp"

#include <algorithm>
#include <deque>

#include "runtime/bound_sweep.hpp"
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
    State& s = *state_;
    const std::optional<std::int64_t> steps = given ? given : s.loops.steps;
    const std::shared_ptr<const Said> said = s.say(steps);
    const auto found = std::find_if(s.ways.begin(), s.ways.end(), [&](const auto& w) { return w->serves(steps); });
    s.renew();
    if (found != s.ways.end() && said->statement.kind == Statement::Kind::fine)
        return (*found)->run(said, steps, s.kernel);
    agree(s.context, said);  // throws where these steps are refused
    return s.add_way(steps, "BoundNest::run").run(said, steps, s.kernel);
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

}  // namespace tilewave
