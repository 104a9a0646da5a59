// Nests of C++ programs: their problem, and a plan as Python programs get it.
#include "tilewave/nest.hpp"

#include <dlfcn.h>

#include <algorithm>

#include "context/agreement.hpp"
#include "measure/build_id.hpp"
#include "nests/bound_nest.hpp"
#include "nests/choose_together.hpp"
#include "nests/nest_arrays.hpp"
#include "nests/prepared_sweep.hpp"
#include "nests/tuning.hpp"
#include "nests/visited_elements.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// By what must be equal on all ranks.
using PlannedNests = Recent<std::string, PlannedNest, most_prepared_nests>;

// A body that is compiled: one kernel for all plans.
class LambdaNest final : public SampledNest {
public:
    LambdaNest(Context& context, const Alternative& alternative, const Plan& plan, std::span<const ArrayReads> arrays,
               std::span<const NestOperandPart> operands, const NestKernel& kernel)
        : sweep_(context, alternative.problem, plan), arrays_(context, arrays, operands, sweep_), kernel_(kernel) {}
    const Plan& plan() const override { return sweep_.plan(); }
    std::vector<RateSample> sample(double budget_s) override {
        return sweep_.sample(arrays_.all(), kernel_.get(), budget_s);
    }
    std::string digest() const override { return code_digest(reinterpret_cast<const void*>(kernel_.body().row)); }

private:
    PreparedSweep sweep_;
    NestArrays arrays_;
    const NestKernel& kernel_;
};

class LambdaMaker final : public KernelMaker {
public:
    LambdaMaker(Context& context, std::span<const ArrayReads> arrays, std::span<const NestOperandPart> operands,
                const NestKernel& kernel)
        : context_(context), arrays_(arrays), operands_(operands), kernel_(kernel) {}
    bool vectors_across(const SweepProblem&) override { return true; }
    std::shared_ptr<SampledNest> prepare(const Alternative& alternative, const Plan& plan, SampledNest*) override {
        return std::make_shared<LambdaNest>(context_, alternative, plan, arrays_, operands_, kernel_);
    }

private:
    Context& context_;
    std::span<const ArrayReads> arrays_;
    std::span<const NestOperandPart> operands_;
    const NestKernel& kernel_;
};

// What a body does with arrays.
std::string accesses_of(const SweepProblem& p) {
    std::string text;
    for (const NestArray& a : p.arrays) {
        text += ", array of " + std::to_string(a.item_bytes) + " bytes";
        if (a.aligned || a.replicated) text += ", shape " + to_string(a.shape);
        if (a.replicated) text += " on every rank";
        if (a.axes.n < p.dims() - (a.time_buffers > 0) || !std::ranges::is_sorted(a.axes))
            text += ", shape " + to_string(a.shape) + " along " + to_string(a.axes);
        if (a.window) text += ", a window";
        if (a.scale.n)
            text += ", every " + to_string(a.scale) + " from " + to_string(a.residue) + " of array " +
                    std::to_string(a.field) + " of " + to_string(a.field_shape);
    }
    for (std::size_t q = 0; q < p.accesses.size(); ++q) {
        const Access& a = p.accesses[q];
        text += (a.writes ? ", writes " : ", reads ") + std::to_string(a.array) + to_string(a.offset);
        if (q < p.wholes.size() && p.wholes[q]) text += " and all along";
        if (!p.pivots.empty()) text += " as pivot " + std::to_string(static_cast<int>(p.pivots[q]));
    }
    return text;
}

std::string updates_of(const NestProblem& nest, std::span<const ArrayReads> arrays) {
    std::string text;
    for (const UpdatedArray& u : nest.updates) {
        const ArrayReads& a = arrays[static_cast<std::size_t>(u.array)];
        text += std::string(", updates by ") + to_string(*a.update) + " items of " + std::to_string(a.item_bytes) +
                " bytes" + (a.type ? std::string(", ") + to_string(*a.type) : "") + ", along " + to_string(a.axes);
        if (a.scale.n) text += ", every " + to_string(a.scale) + " from " + to_string(a.residue);
    }
    return text;
}

std::string bound_text(const Bound& b) {
    return ", bound " + to_string(b.coefficients) + " " + std::to_string(b.constant);
}

// What must be equal on all ranks, and stands for a plan that was chosen.
std::string described(const SweepProblem& p, const LoopPoints& points, const NestLoops& loops,
                      const PlanRequest& request, const Kernel& kernel, std::span<const ArrayReads> arrays) {
    std::string text =
        "shape " + to_string(p.shape) + ", loops " + to_string(p.space.lo) + " to " + to_string(p.space.hi);
    for (const int k : loops.reverse) text += ", loop " + std::to_string(k) + " downwards";
    for (const int k : loops.periodic) text += ", loop " + std::to_string(k) + " periodic";
    for (const Bound& b : p.bounds) text += bound_text(b);
    for (const Bound& b : points.bounds) text += bound_text(b) + " in each step";
    if (points.strides.n)
        text += std::string(points.left_out ? ", of which every " : ", for every ") + to_string(points.strides) +
                " from " + to_string(points.first);
    if (loops.steps) text += ", " + std::to_string(*loops.steps) + " steps";
    for (const StepElements& e : loops.elements) {
        text += e.added ? ", adds to" : ", records";
        for (const Index& at : e.at) text += " " + to_string(at);
    }
    text += accesses_of(p);
    for (const PointReduction& r : kernel.reductions)
        text += std::string(", ") + to_string(r.op) + " of " + to_string(r.type);
    for (const ChainTurn& turn : turns_of(loops, arrays)) {
        text += ", from step " + std::to_string(turn.first_step) + " on rows";
        for (const auto& row : turn.rows) text += " " + std::to_string(row[0]);
    }
    return text + ", " + request.to_string();
}

}  // namespace

void NestKernel::take(const NestProblem& nest, std::span<const ArrayReads> arrays) {
    some_.reset();
    updated_.reset();
    made_ = all_;
    if (!nest.updates.empty()) {
        updated_ = std::make_unique<UpdatedFields>(all_, nest, arrays);
        made_ = updated_->kernel();
    }
    const LoopPoints& points = nest.points;
    if (!points.left_out && points.bounds.empty() && !(made_.uses_index && points.renumbered())) return;
    some_ = std::make_unique<SomePoints>(made_, nest);
    made_ = some_->kernel();
}

namespace {

// The problem of a block of the time steps, which are cut into blocks, and how many steps it has.
NestProblem block_of(const NestLoops& loops, std::span<const ArrayReads> arrays, PathsOff off,
                     std::optional<std::int64_t>& steps) {
    // Between steps the run looks after what no point writes, or elements.
    const std::vector<ChainTurn> turns = turns_of(loops, arrays);
    bool single = !loops.elements.empty() || (!turns.empty() && !loops.bounds.empty());
    NestProblem nest = nest_problem(loops, arrays, single, off);
    steps = loops.steps;
    if (!steps) return nest;
    if (!single && nest.problem.reads_history_of_neighbours()) nest = nest_problem(loops, arrays, single = true, off);
    const SweepProblem& p = nest.problem;
    std::int64_t points = 1;
    for (int k = 1; k < p.dims(); ++k) points *= std::max<std::int64_t>(p.space.extent(k), 1);
    if (single)
        steps = std::min<std::int64_t>(*steps, 1);
    else if (std::ranges::all_of(p.bounds, [](const Bound& b) { return b.coefficients[0] == 0; }))
        steps = std::min(*steps, std::clamp(block_points / points, fewest_block_steps, most_block_steps));
    std::int64_t longest = turns.empty() ? *steps : 0;
    for (const ChainTurn& turn : turns) longest = std::max(longest, turn.steps.value_or(0));
    steps = std::min(*steps, longest);
    if (*steps != *loops.steps) nest.problem = p.with_steps(*steps);
    return nest;
}

}  // namespace

ReadyNest plan_nest(Context& context, const NestLoops& loops, PlanRequest request, std::span<const ArrayReads> arrays,
                    NestKernel& body_kernel, const std::string& body, const std::string& call, const LeastHalos& halos,
                    const Plan* whole) {
    RankStatus statement;
    if (request.threads == 1) request.threads = context.threads();
    const bool rows = std::ranges::any_of(arrays, [](const ArrayReads& a) { return static_cast<bool>(a.row); });
    if (rows && !request.temporal_block) request.temporal_block = 1;  // some rows may be of fewer steps
    const Kernel& kernel = body_kernel.get();
    std::optional<std::int64_t> steps;
    const PlannedNest* known = nullptr;
    PlanCall planned;
    NestProblem nest;
    statement.caller = {call, ""};
    const bool all_know = agree_after(context, statement, [&] {
        if (!arrays[0].written && kernel.reductions.empty())
            throw ConfigError(
                "a nest writes no array and reduces nothing; allowed: writes<...> of one or more, before those that "
                "are only read, or a body that is made by reducing()");
        nest = block_of(loops, arrays, context.paths_off(), steps);
        SweepProblem& problem = nest.problem;
        widen(problem, halos);
        problem.paths_off = context.paths_off();
        const std::string updates = updates_of(nest, arrays);
        statement.description = described(problem, nest.points, loops, request, kernel, arrays) + updates + ", body " +
                                body + ", machine " + std::to_string(context.machine_number());
        for (const UpdatedArray& u : nest.updates)
            statement.description +=
                ", shape " + to_string(arrays[static_cast<std::size_t>(u.array)].shape) + " until " + to_string(u.last);
        body_kernel.take(nest, arrays);
        for (const auto& [lo, hi, wraps] : halos)
            statement.description +=
                ", halos " + to_string(lo) + " and " + to_string(hi) + " around " + to_string(wraps);
        if (whole) statement.description += ", plan " + whole->to_string();
        known = context.component<PlannedNests>().find(statement.description);
        if (known) planned.ran_s = known->runs->ran_s;
        statement.prepared = known && !known->runs->enough();
        planned.body = body + accesses_of(problem) + updates +
                       (nest.points.left_out ? ", of which every " + to_string(nest.points.strides) : "");
        planned.memory = to_string(problem.shape);
        planned.problem = problem;
        planned.request = request;
        if (whole) planned.plan = *whole;
        planned.blocks =
            loops.steps && *steps > 0 ? static_cast<double>(*loops.steps) / static_cast<double>(*steps) : 1;
    });
    if (!all_know) {
        LambdaMaker maker(context, arrays, nest.operands, body_kernel);
        RateStore& store = context.component<RateStore>();
        if (!store.launch) store.launch = launch_text(context);
        agree_after(context, statement, [&] {
            const std::optional<ChosenPlan> chosen = choose_together(context, &planned, maker);
            if (!chosen) return;  // as a rank says
            const SweepProblem& best = chosen->times[chosen->at].alternative.problem;
            const Candidate& first = chosen->choice.ranked[0];
            PlannedNests& all = context.component<PlannedNests>();
            known = &all.store(statement.description, {best, first.plan, first.time_s,
                                                       std::make_shared<PreparedSweep>(context, best, first.plan),
                                                       std::make_shared<RunsOfPlan>(chosen->spending, planned.ran_s)});
            std::int64_t bytes = 0;
            std::erase_if(all, [&](const auto& one) {
                bytes += one.second.sweep->bytes();
                return bytes > most_prepared_bytes && &one.second != known;
            });
        });
        ensure(known != nullptr, "a nest has no plan");
    }
    return {*known, steps, std::move(nest.operands), std::move(nest.points)};
}

Report run_nest(Context& context, const NestLoops& loops, PlanRequest request, std::span<const ArrayReads> arrays,
                const Kernel& kernel, const std::string& body,
                const std::function<std::string(const Failure&)>& explain) {
    std::optional<VisitedElements> elements;
    if (!loops.elements.empty())
        agree_after(context, "run", [&] {
            if (!loops.steps) throw ConfigError("elements: given without steps; allowed: with steps");
            elements.emplace(loops.elements, *loops.steps, arrays);
        });
    if (std::ranges::any_of(arrays, [](const ArrayReads& a) { return static_cast<bool>(a.row); })) {
        const std::span<const StepPoints> points = elements ? elements->points() : std::span<const StepPoints>();
        Report report = run_rows(context, loops, request, arrays, kernel, body, explain, points);
        if (elements) elements->gather(context);
        return report;
    }
    NestKernel made(kernel);
    const ReadyNest ready = plan_nest(context, loops, request, arrays, made, body, "run");
    PreparedSweep& sweep = *ready.planned.sweep;
    const bool in_blocks = loops.steps && *loops.steps != *ready.block_steps;
    std::optional<NestArrays> operands;
    const auto prepare = [&] {
        if (in_blocks) sweep.prepare_steps(*loops.steps);
        operands.emplace(context, arrays, ready.operands, sweep);
    };
    const bool memory = std::ranges::any_of(ready.operands, [&](const NestOperandPart& part) {
        return part.whole || arrays[static_cast<std::size_t>(part.array)].window;
    });
    RankStatus statement;
    statement.caller = {"run", ""};
    if (in_blocks || memory)
        agree_after(context, statement, prepare);
    else
        prepare();
    if (made.updated()) made.updated()->begin();
    Report report =
        sweep.run(operands->all(), made.get(), ready.explained(explain), in_blocks ? loops.steps : std::nullopt, {}, 0,
                  elements ? elements->points() : std::span<const StepPoints>(), operands->whole());
    if (made.updated()) made.updated()->end();
    if (elements) elements->gather(context);
    ready.planned.runs->ran_s += report.time_s;
    return report;
}

std::string detail::body_name(const char* type, const void* place) {
    std::string name = type;
    Dl_info module;
    if (!dladdr(place, &module) || !module.dli_fbase || !module.dli_fname) return name;
    // Where modules are loaded differs between ranks.
    const std::string file = module.dli_fname;
    return name + " at " + std::to_string(static_cast<const char*>(place) - static_cast<char*>(module.dli_fbase)) +
           " in " + file.substr(file.rfind('/') + 1);
}

}  // namespace tilewave
