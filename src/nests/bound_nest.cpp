// Nests of C++ programs that are run many times.
#include "nests/bound_nest.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "nests/bound_sweep.hpp"
#include "nests/chained_sweep.hpp"
#include "nests/nest_arrays.hpp"
#include "nests/tuning.hpp"
#include "nests/visited_elements.hpp"

namespace tilewave {

namespace {

// Those of a context are numbered; the same on all ranks.
struct BoundNests {
    std::int64_t made = 0;
};

// A nest with a plan, for a number of time steps or for blocks of them.
struct Variant : ChainNest {
    Variant(Context& context, ReadyNest ready, std::optional<std::int64_t> given,
            std::span<const ArrayReads> given_arrays, NestKernel made,
            const std::function<std::string(const Failure&)>& explain, std::vector<ChainTurn> given_turns)
        : steps(given),
          blocks(ready.block_steps.value_or(0) > 0),
          fewest(std::max<std::int64_t>(ready.planned.plan.temporal_block, 1)),
          sweep(context, std::move(ready.planned.problem), std::move(ready.planned.plan)),
          kernel(std::move(made)),
          operands(ready.operands),
          arrays(context, given_arrays, operands, sweep),
          bound(context, sweep, arrays.all(), kernel.get(), ready.explained(explain), arrays.whole()),
          turns(std::move(given_turns)) {
        time_s = ready.planned.time_s;
        if (turns.empty()) return;
        std::vector<std::int32_t> memories(operands.size());
        std::iota(memories.begin(), memories.end(), 0);
        in_turn = std::make_unique<ChainedSweep>(context, std::vector<BoundSweep*>{&bound},
                                                 std::vector<std::vector<std::int32_t>>{memories}, false, turns,
                                                 arrays.rows());
    }
    bool serves(std::optional<std::int64_t> wanted) const {
        return wanted == steps || (blocks && turns.empty() && !kernel.updated() && wanted && *wanted >= fewest);
    }
    Report run(const std::shared_ptr<const HashedStatus>& said, std::optional<std::int64_t> wanted,
               std::span<const StepPoints> points = {}) {
        if (kernel.updated()) kernel.updated()->begin();
        Report report = run_sweeps(said, wanted, points);
        if (kernel.updated()) kernel.updated()->end();
        return report;
    }
    Report run_sweeps(const std::shared_ptr<const HashedStatus>& said, std::optional<std::int64_t> wanted,
                      std::span<const StepPoints> points) {
        if (!in_turn) return bound.report(bound.run(said, blocks ? wanted : std::nullopt, kernel.get().env));
        const std::uintptr_t env[] = {reinterpret_cast<std::uintptr_t>(kernel.get().env)};
        const std::vector<StepPoints> visited[] = {{points.begin(), points.end()}};
        return bound.report(in_turn->run(said, 1, env, 0, visited));
    }
    std::optional<std::int64_t> steps;
    bool blocks;
    std::int64_t fewest;
    PreparedSweep sweep;
    NestKernel kernel;
    std::vector<NestOperandPart> operands;
    NestArrays arrays;
    BoundSweep bound;
    std::vector<ChainTurn> turns;  // of a nest that writes rows for several time steps
    std::unique_ptr<ChainedSweep> in_turn = nullptr;
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
    std::deque<std::shared_ptr<Variant>> variants = {};  // the first: of the bound number of steps
    std::shared_ptr<const HashedStatus> said = nullptr;  // in the last run
    std::optional<std::int64_t> said_steps = {};

    // Collective.
    std::shared_ptr<Variant> prepare(std::optional<std::int64_t> steps, const std::string& call,
                                     const PlanRequest& given, const LeastHalos& halos = {},
                                     const Plan* plan = nullptr) const {
        NestLoops these = loops;
        these.steps = steps;
        NestKernel of_points(kernel);
        ReadyNest ready = plan_nest(context, these, given, arrays, of_points, body, call, halos, plan);
        std::shared_ptr<Variant> made;
        RankStatus statement;
        statement.caller = {call, ""};
        agree_after(context, statement, [&] {
            made = std::make_shared<Variant>(context, std::move(ready), steps, arrays, std::move(of_points), explain,
                                             turns_of(these, arrays));
        });
        return made;
    }
    Variant& add(std::shared_ptr<Variant> variant) {
        variants.push_back(std::move(variant));
        if (variants.size() > tuning::most_kept_rests) variants.erase(variants.begin() + 1);
        return *variants.back();
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
        const std::shared_ptr<const HashedStatus> mine = say(steps);
        const auto serves = [&](const auto& v) { return v->serves(steps); };
        const auto found = std::ranges::find_if(variants, serves);
        renew();
        if (found != variants.end() && mine->kind == RankStatus::Kind::fine) return (*found)->run(mine, steps);
        agree(context, mine);  // throws where these steps are refused
        return add(prepare(steps, "BoundNest::run", request)).run(mine, steps);
    }
    std::shared_ptr<const HashedStatus> say(std::optional<std::int64_t> steps) {
        if (said && steps == said_steps) return said;
        RankStatus mine;
        mine.caller = {"BoundNest::run", ""};
        mine.description = "bound nest " + std::to_string(number) + " of body " + body +
                           (steps ? ", " + std::to_string(*steps) + " steps" : "");
        mine.error = refused(steps);
        if (!mine.error.empty()) mine.kind = RankStatus::Kind::config;
        said_steps = steps;
        return said = std::make_shared<const HashedStatus>(std::move(mine));
    }
};

BoundNest::BoundNest(std::unique_ptr<State> state) : state_(std::move(state)) {}
BoundNest::BoundNest(BoundNest&&) noexcept = default;
BoundNest::~BoundNest() = default;

const Plan& BoundNest::plan() const {
    return state_->variants.front()->sweep.plan();
}

Report BoundNest::run(std::optional<std::int64_t> given) {
    return state_->run(given ? given : state_->loops.steps);
}

std::vector<ChainTurn> turns_of(const NestLoops& loops, std::span<const ArrayReads> arrays) {
    std::vector<ChainTurn> turns;
    const bool any = std::ranges::any_of(arrays, [](const ArrayReads& a) { return static_cast<bool>(a.row); });
    const std::int64_t steps = any ? loops.steps.value_or(0) : 0;
    const bool back = std::ranges::find(loops.reverse, 0) != loops.reverse.end();
    for (std::int64_t step = 0; step < steps; ++step) {
        std::vector<std::vector<std::int64_t>> rows;
        for (const ArrayReads& a : arrays) {
            if (!a.row) continue;
            const std::int64_t row = a.row(back ? steps - 1 - step : step), all = a.field->layout().shape[0];
            if (row < 0 || row >= all)
                throw ConfigError("rows_of: row " + std::to_string(row) + " was given for time step " +
                                  std::to_string(step) + "; allowed: 0 to " + std::to_string(all - 1));
            rows.push_back({row});
        }
        if (!turns.empty() && turns.back().rows == rows)
            ++*turns.back().steps;
        else
            turns.push_back({0, step, 1, step > 0, std::move(rows)});
    }
    return turns;
}

Report run_rows(Context& context, const NestLoops& loops, const PlanRequest& request,
                std::span<const ArrayReads> arrays, const Kernel& kernel, const std::string& body,
                const std::function<std::string(const Failure&)>& explain, std::span<const StepPoints> points) {
    const BoundNest::State nest{context, loops, request, {arrays.begin(), arrays.end()}, kernel, body, explain, {}};
    return nest.prepare(loops.steps, "run", request)->run(nullptr, loops.steps, points);
}

BoundNest bind_nest(Context& context, const NestLoops& loops, const PlanRequest& request,
                    std::span<const ArrayReads> arrays, const Kernel& kernel, const std::string& body,
                    std::function<std::string(const Failure&)> explain, std::function<void()> renew) {
    auto state = std::make_unique<BoundNest::State>(BoundNest::State{
        context, loops, request, {arrays.begin(), arrays.end()}, kernel, body, std::move(explain), std::move(renew)});
    if (!loops.elements.empty())
        agree_after(context, "bind", [] { throw ConfigError("elements: given to bind(); allowed: to run()"); });
    (void)state->add(state->prepare(loops.steps, "bind", request));
    state->number = ++context.component<BoundNests>().made;
    return BoundNest(std::move(state));
}

namespace {

// The turns of a nest in a chain, where it has this number, and the rows that they take.
void add_turns(const Variant& nest, std::size_t number, std::vector<ChainTurn>& turns, std::vector<StepRow>& rows) {
    const std::size_t before = rows.size();
    rows.insert(rows.end(), nest.arrays.rows().begin(), nest.arrays.rows().end());
    if (nest.turns.empty()) turns.push_back({number});
    for (ChainTurn turn : nest.turns) {
        turn.sweep = number;
        turn.rows.insert(turn.rows.begin(), before, {});
        turns.push_back(std::move(turn));
    }
}

}  // namespace

struct NestChain::State final : ChainMaker {
    State(Context& given, std::vector<BoundNest::State*> members, std::string text)
        : context(given), nests(std::move(members)), description(std::move(text)) {}

    Context& context;
    std::vector<BoundNest::State*> nests;
    std::string separate, description;
    std::vector<std::vector<std::int32_t>> memories = {};
    std::vector<std::shared_ptr<ChainNest>> variants = {};  // of the schedule
    std::unique_ptr<ChainedSweep> sweeps = nullptr;         // null: one after another
    std::shared_ptr<const HashedStatus> said = nullptr;     // in the last run
    std::int64_t said_times = 0;

    // What the ranks compare before some repetitions.
    std::shared_ptr<const HashedStatus> say(std::int64_t times) {
        if (said && times == said_times) return said;
        RankStatus statement;
        statement.caller = {"NestChain::run", ""};
        statement.description = description + ", " + std::to_string(times) + " times";
        said_times = times;
        return said = std::make_shared<const HashedStatus>(std::move(statement));
    }
    // Makes one schedule of the nests, or notes why not. Collective.
    void make() {
        std::map<const void*, std::int32_t> numbers;
        std::vector<ChainMember> members;
        for (const BoundNest::State* nest : nests) {
            const std::shared_ptr<Variant>& variant = nest->variants.front();
            ChainMember& m = members.emplace_back();
            m.name = "nest " + std::to_string(members.size());
            for (std::size_t a = 0; a < variant->operands.size(); ++a) {
                const NestOperandPart& operand = variant->operands[a];
                m.arrays.push_back("array " + std::to_string(a));
                // Windows, rows and what ranks have whole are memory of their nest.
                const auto next = static_cast<std::int32_t>(numbers.size());
                const ArrayReads& given = nest->arrays[static_cast<std::size_t>(operand.array)];
                const bool own = given.window || given.row || operand.whole;
                const void* const memory =
                    own ? static_cast<const void*>(&variant->operands[a]) : static_cast<const void*>(given.field);
                m.memories.push_back(numbers.try_emplace(memory, next).first->second);
            }
            m.problem = variant->sweep.problem();
            m.plan = variant->sweep.plan();
            m.fixed = nest->request;
            m.steps = nest->loops.steps;
            if (!variant->turns.empty()) m.steps = m.problem.space.extent(0);
            m.nest = variant;
            memories.push_back(m.memories);
        }
        if (updates_shared()) {
            separate = "a nest updates a field in any order, which another nest of the chain uses";
            return;
        }
        separate = choose_chain_layout(std::move(members), context.size(), context.paths_off(), *this);
    }
    // Whether a nest updates a field that another one uses, in any order: the field gets that after all repetitions.
    bool updates_shared() const {
        const auto updates = [](const BoundNest::State& nest, const FieldStorage* field) {
            const UpdatedFields* const updated = nest.variants.front()->kernel.updated();
            return updated && updated->has(field);
        };
        for (const BoundNest::State* one : nests)
            for (const BoundNest::State* other : nests)
                for (const ArrayReads& a : other->arrays)
                    if (one != other && a.field && updates(*one, a.field)) return true;
        return false;
    }
    std::shared_ptr<ChainNest> prepare(std::size_t n, const PlanRequest& request, const LeastHalos& halos,
                                       bool as_planned) override {
        const Plan* const plan = as_planned ? &nests[n]->variants.front()->sweep.plan() : nullptr;
        return nests[n]->prepare(nests[n]->loops.steps, "chain", request, halos, plan);
    }
    std::string join(std::span<const std::shared_ptr<ChainNest>> all) override {
        std::string why;
        std::unique_ptr<ChainedSweep> made;
        try {
            std::vector<BoundSweep*> bound;
            std::vector<ChainTurn> turns;
            std::vector<StepRow> rows;
            for (const auto& each : all) {
                add_turns(static_cast<Variant&>(*each), bound.size(), turns, rows);
                bound.push_back(&static_cast<Variant&>(*each).bound);
            }
            if (rows.empty()) turns.clear();
            made = std::make_unique<ChainedSweep>(context, bound, memories, false, turns, rows);
        } catch (const std::exception& e) {  // perhaps on this rank alone, as where memory ran out
            why = e.what();
        }
        std::vector<std::int64_t> all_have{made != nullptr};
        allreduce_min(context.transport(), all_have);
        if (all_have[0] == 0) return why.empty() ? "another rank refuses the schedule" : why;
        sweeps = std::move(made);
        variants.assign(all.begin(), all.end());
        return "";
    }
    // Whether every rank says that the repetitions end. Collective.
    bool ends(const ChainRun& given, const ChainReport& so_far) {
        std::vector<std::int64_t> says{0};
        agree_after(context, "NestChain::run", [&] { says[0] = given.until(so_far); });
        allreduce_min(context.transport(), says);
        return says[0] != 0;
    }
    ChainReport run_as_one(std::int64_t times) {
        std::vector<std::uintptr_t> env;
        for (std::size_t n = 0; n < nests.size(); ++n) {
            nests[n]->renew();
            if (UpdatedFields* const updated = static_cast<Variant&>(*variants[n]).kernel.updated()) updated->begin();
            env.push_back(reinterpret_cast<std::uintptr_t>(static_cast<Variant&>(*variants[n]).kernel.get().env));
        }
        BoundRun ran = sweeps->run(say(times), times, env);
        for (const auto& each : variants)
            if (UpdatedFields* const updated = static_cast<Variant&>(*each).kernel.updated()) updated->end();
        ChainReport report{ran.points, ran.time_s, ran.moving_s, ran.call_s, ran.interrupted};
        auto next = ran.reduced.begin();
        for (BoundNest::State* nest : nests) {
            auto& of = report.reduced.emplace_back();
            for (std::size_t r = 0; r < nest->kernel.reductions.size() && next != ran.reduced.end(); ++r)
                of.push_back(std::move(*next++));
        }
        return report;
    }
    ChainReport run_separately(std::int64_t times) {
        agree(context, say(times));
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

const std::string& NestChain::separate() const {
    return state_->separate;
}

ChainReport NestChain::run(const ChainRun& given) {
    State& s = *state_;
    std::vector<ArrayReads> arrays;
    for (const BoundNest::State* nest : s.nests) arrays.insert(arrays.end(), nest->arrays.begin(), nest->arrays.end());
    std::optional<VisitedElements> elements;
    RankStatus statement;
    statement.caller = {"NestChain::run", ""};
    statement.description = s.description + ", " + std::to_string(given.times) + " times, asked after every " +
                            std::to_string(given.every) + ", " + std::to_string(given.elements.size()) + " elements";
    if (given.times < 1 || given.every < 1 || given.until || !given.elements.empty())
        agree_after(s.context, statement, [&] {
            for (const auto& [name, number] : {std::pair("times", given.times), std::pair("every", given.every)})
                if (number < 1)
                    throw ConfigError(std::string(name) + ": " + std::to_string(number) +
                                      " was given; allowed: 1 and more");
            if (!given.elements.empty()) elements.emplace(given.elements, given.times, arrays, true);
        });
    ChainReport all;
    for (bool ended = false; all.times < given.times && !ended && !all.interrupted;) {
        const std::int64_t left = given.times - all.times, count = elements      ? 1
                                                                   : given.until ? std::min(given.every, left)
                                                                                 : left;
        ChainReport more = s.sweeps ? s.run_as_one(count) : s.run_separately(count);
        all.times += count;
        if (elements) elements->visit(all.times - 1);
        all.points += more.points, all.time_s += more.time_s, all.moving_s += more.moving_s;
        all.call_s += more.call_s, all.interrupted = more.interrupted, all.reduced = std::move(more.reduced);
        if (given.until && !all.interrupted && (all.times % given.every == 0 || all.times == given.times))
            ended = s.ends(given, all);
    }
    if (elements) elements->gather(s.context);
    return all;
}

ChainReport NestChain::run(std::int64_t times) {
    return run(ChainRun{.times = times});
}

NestChain chain(Context& context, const std::vector<BoundNest*>& nests) {
    RankStatus statement;
    statement.caller = {"chain", ""};
    statement.description = "a chain of bound nests";
    std::vector<BoundNest::State*> members;
    for (const BoundNest* nest : nests) {
        if (!nest || &nest->state_->context != &context) {
            statement.error = "nest " + std::to_string(members.size() + 1) + " was bound on another context";
            break;
        }
        members.push_back(nest->state_.get());
        statement.description += " " + std::to_string(nest->state_->number);
    }
    if (nests.empty()) statement.error = "no nests were given; allowed: one or more";
    if (!statement.error.empty()) statement.kind = RankStatus::Kind::config;
    auto state = std::make_unique<NestChain::State>(context, std::move(members), statement.description);
    agree(context, std::make_shared<const HashedStatus>(std::move(statement)));
    state->make();
    return NestChain(std::move(state));
}

}  // namespace tilewave
