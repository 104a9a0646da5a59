// Nests of C++ programs: their problem, and a plan as Python programs get it.
#include "tilewave/nest.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "context/agreement.hpp"
#include "measure/build_id.hpp"
#include "nests/bound_nest.hpp"
#include "nests/choose_together.hpp"
#include "nests/prepared_sweep.hpp"
#include "nests/tuning.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// By what must be equal on all ranks.
using PlannedNests = Recent<std::string, PlannedNest, most_prepared_nests>;

// A body that is compiled: one kernel for all plans.
class LambdaNest final : public SampledNest {
public:
    LambdaNest(Context& context, const Alternative& alternative, const Plan& plan, std::vector<RunArray> arrays,
               const Kernel& kernel)
        : sweep_(context, alternative.problem, plan), arrays_(std::move(arrays)), kernel_(kernel) {}
    const Plan& plan() const override { return sweep_.plan(); }
    std::vector<RateSample> sample(double budget_s) override { return sweep_.sample(arrays_, kernel_, budget_s); }
    std::string digest() const override { return code_digest(reinterpret_cast<const void*>(kernel_.row)); }

private:
    PreparedSweep sweep_;
    std::vector<RunArray> arrays_;
    const Kernel& kernel_;
};

class LambdaMaker final : public KernelMaker {
public:
    LambdaMaker(Context& context, std::span<const ArrayReads> arrays, const Kernel& kernel)
        : context_(context), arrays_(arrays), kernel_(kernel) {}
    bool vectors_across(const SweepProblem&) override { return true; }
    std::shared_ptr<SampledNest> prepare(const Alternative& alternative, const Plan& plan, SampledNest*) override {
        std::vector<RunArray> operands;
        for (const ArrayReads& a : arrays_) operands.push_back({a.field, {}});
        return std::make_shared<LambdaNest>(context_, alternative, plan, std::move(operands), kernel_);
    }

private:
    Context& context_;
    std::span<const ArrayReads> arrays_;
    const Kernel& kernel_;
};

// What a body does with arrays.
std::string accesses_of(const SweepProblem& p) {
    std::string text;
    for (const NestArray& a : p.arrays) {
        text += ", array of " + std::to_string(a.item_bytes) + " bytes";
        if (a.aligned) text += ", shape " + to_string(a.shape);
        if (a.scale.n)
            text += ", every " + to_string(a.scale) + " from " + to_string(a.residue) + " of array " +
                    std::to_string(a.field) + " of " + to_string(a.field_shape);
    }
    for (const Access& a : p.accesses)
        text += (a.writes ? ", writes " : ", reads ") + std::to_string(a.array) + to_string(a.offset);
    return text;
}

// What must be equal on all ranks, and stands for a plan that was chosen.
std::string described(const SweepProblem& p, const NestLoops& loops, const PlanRequest& request, const Kernel& kernel,
                      const std::string& body) {
    std::string text =
        "shape " + to_string(p.shape) + ", loops " + to_string(p.space.lo) + " to " + to_string(p.space.hi);
    for (const int k : loops.reverse) text += ", loop " + std::to_string(k) + " downwards";
    for (const int k : loops.periodic) text += ", loop " + std::to_string(k) + " periodic";
    for (const Bound& b : p.bounds) text += ", bound " + to_string(b.coefficients) + " " + std::to_string(b.constant);
    if (loops.steps) text += ", " + std::to_string(*loops.steps) + " steps";
    for (const StepElements& e : loops.elements) {
        text += e.added ? ", adds to" : ", records";
        for (const Index& at : e.at) text += " " + to_string(at);
    }
    text += accesses_of(p);
    for (const PointReduction& r : kernel.reductions)
        text += std::string(", ") + to_string(r.op) + " of " + to_string(r.type);
    return text + ", " + request.to_string() + ", body " + body;
}

// Adds and records what loops.elements say in a run of the nest.
class ElementsOfRun {
public:
    ElementsOfRun(const NestLoops& loops, std::span<const ArrayReads> arrays) : loops_(loops) {
        for (const StepElements& each : loops.elements) {
            const auto is_it = [&](const ArrayReads& a) {
                return a.written && a.field == each.field && a.scale.n == 0;
            };
            const auto array = std::ranges::find_if(arrays, is_it);
            const std::int64_t item = item_bytes(each.type), steps = loops.steps.value_or(0);
            if (!loops.steps || array == arrays.end())
                throw ConfigError(
                    "elements: a field was given that the nest does not write in time; allowed: with steps, fields "
                    "that "
                    "it writes as a whole");
            if (std::ssize(each.values) != steps * std::ssize(each.at) * item)
                throw ConfigError("elements: " + std::to_string(std::ssize(each.values) / item) + " values for " +
                                  std::to_string(each.at.size()) + " elements and " + std::to_string(steps) +
                                  " steps were given; allowed: one for each element and step");
            std::vector<std::int64_t>& subscripts = subscripts_.emplace_back();
            for (const Index& at : each.at) {
                const Box all{Index::filled(array->shape.n, 0), array->shape};
                if (at.n != array->shape.n || !all.contains(at))
                    throw ConfigError("elements: " + to_string(at) + " was given; allowed: inside a field of shape " +
                                      to_string(array->shape));
                subscripts.insert(subscripts.end(), at.begin(), at.end());
            }
            points_.push_back({static_cast<int>(array - arrays.begin()),
                               {},
                               each.values.data(),
                               item,
                               each.added ? add_item(each.type, each.type) : nullptr});
            if (!each.added) std::ranges::fill(each.values, std::byte{});
        }
        for (std::size_t k = 0; k < points_.size(); ++k) points_[k].subscripts = subscripts_[k];
    }
    std::span<const StepPoints> points() const { return points_; }
    // Each value is of one rank, and of the others nothing. Collective.
    void gather(Context& context) const {
        for (const StepElements& each : loops_.elements) {
            if (each.added) continue;
            std::vector<std::byte> other(each.values.size());
            allreduce(context.transport(), each.values, other,
                      [&] { std::ranges::transform(each.values, other, each.values.begin(), std::bit_or()); });
        }
    }

private:
    const NestLoops& loops_;
    std::vector<std::vector<std::int64_t>> subscripts_;
    std::vector<StepPoints> points_;
};

}  // namespace

ReadyNest plan_nest(Context& context, const NestLoops& loops, PlanRequest request, std::span<const ArrayReads> arrays,
                    const Kernel& kernel, const std::string& body, const std::string& call, const LeastHalos& halos,
                    const Plan* whole) {
    RankStatus statement;
    if (request.threads == 1) request.threads = context.threads();
    NestLoops block = loops;
    const PlannedNest* known = nullptr;
    PlanCall planned;
    statement.caller = {call, ""};
    const bool all_know = agree_after(context, statement, [&] {
        if (!arrays[0].written && kernel.reductions.empty())
            throw ConfigError(
                "a nest writes no array and reduces nothing; allowed: writes<...> of one or more, before those that "
                "are "
                "only read, or a body that is made by reducing()");
        SweepProblem problem = nest_problem(loops, arrays);
        if (loops.steps) {
            std::int64_t points = 1;
            for (int k = 1; k < problem.dims(); ++k) points *= std::max<std::int64_t>(problem.space.extent(k), 1);
            // Between steps the run looks after what no point writes, or elements.
            if (problem.reads_history_of_neighbours() || !loops.elements.empty())
                block.steps = std::min<std::int64_t>(*loops.steps, 1);
            else if (std::ranges::all_of(problem.bounds, [](const Bound& b) { return b.coefficients[0] == 0; }))
                block.steps =
                    std::min(*loops.steps, std::clamp(block_points / points, fewest_block_steps, most_block_steps));
            problem = nest_problem(block, arrays);
        }
        widen(problem, halos);
        problem.paths_off = context.paths_off();
        statement.description =
            described(problem, loops, request, kernel, body) + ", machine " + std::to_string(context.machine_number());
        for (const auto& [lo, hi, wraps] : halos)
            statement.description +=
                ", halos " + to_string(lo) + " and " + to_string(hi) + " around " + to_string(wraps);
        if (whole) statement.description += ", plan " + whole->to_string();
        known = context.component<PlannedNests>().find(statement.description);
        if (known) planned.ran_s = known->runs->ran_s;
        statement.prepared = known && !known->runs->enough();
        planned.body = body + accesses_of(problem);
        planned.memory = to_string(problem.shape);
        planned.problem = std::move(problem);
        planned.request = request;
        if (whole) planned.plan = *whole;
        planned.blocks =
            loops.steps && *block.steps > 0 ? static_cast<double>(*loops.steps) / static_cast<double>(*block.steps) : 1;
    });
    if (!all_know) {
        LambdaMaker maker(context, arrays, kernel);
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
    return {*known, block.steps};
}

Report run_nest(Context& context, const NestLoops& loops, PlanRequest request, std::span<const ArrayReads> arrays,
                const Kernel& kernel, const std::string& body,
                const std::function<std::string(const Failure&)>& explain) {
    std::vector<RunArray> operands;
    for (const ArrayReads& a : arrays) operands.push_back({a.field, {}});
    std::optional<ElementsOfRun> elements;
    if (!loops.elements.empty()) agree_after(context, "run", [&] { elements.emplace(loops, arrays); });
    const ReadyNest ready = plan_nest(context, loops, request, arrays, kernel, body, "run");
    PreparedSweep& sweep = *ready.planned.sweep;
    const bool in_blocks = loops.steps && *loops.steps != *ready.block_steps;
    RankStatus statement;
    statement.caller = {"run", ""};
    if (in_blocks) agree_after(context, statement, [&] { sweep.prepare_steps(*loops.steps); });
    Report report = sweep.run(operands, kernel, explain, in_blocks ? loops.steps : std::nullopt, {}, 0,
                              elements ? elements->points() : std::span<const StepPoints>());
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
