// Nests of C++ programs: their problem, and a plan as Python programs get it.
#include "tilewave/nest.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "context/agreement.hpp"
#include "measure/build_id.hpp"
#include "nests/bound_nest.hpp"
#include "nests/choose_together.hpp"
#include "nests/prepared_sweep.hpp"
#include "nests/tuning.hpp"
#include "problem/stencil.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// By what must be equal on all ranks.
using PlannedNests = Recent<std::string, PlannedNest, most_prepared_nests>;

bool lexicographically_ahead(const Index& offset, const std::vector<int>& signs) {
    for (int k = 1; k < offset.n; ++k)
        if (offset[k] != 0) return signs[k] * offset[k] > 0;
    return false;
}

bool zero(const Index& offset) {
    return offset == Index::filled(offset.n, 0);
}

// The largest box of points for which every read stays inside the arrays; of the loops without time.
Box largest_space(std::span<const ArrayReads> arrays, int first, int dims) {
    Box space{Index::filled(dims, 0), Index::filled(dims, 0)};
    for (int k = first; k < dims; ++k) space.hi[k] = arrays[0].shape[k - first];
    for (const ArrayReads& a : arrays)
        for (int k = first; k < dims; ++k) {
            if (a.written) space.hi[k] = std::min(space.hi[k], a.shape[k - first]);
            for (const Index& o : a.offsets) {
                space.lo[k] = std::max(space.lo[k], -o[k]);
                space.hi[k] = std::min(space.hi[k], a.shape[k - first] - o[k]);
            }
        }
    for (int k = first; k < dims; ++k)
        space.hi[k] = std::max(space.hi[k], space.lo[k] = std::min(space.lo[k], arrays[0].shape[k - first]));
    return space;
}

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
    if (loops.steps) text += ", " + std::to_string(*loops.steps) + " steps";
    text += accesses_of(p);
    for (const PointReduction& r : kernel.reductions)
        text += std::string(", ") + to_string(r.op) + " of " + to_string(r.type);
    return text + ", " + request.to_string() + ", body " + body;
}

}  // namespace

namespace {

bool of_one_field(const ArrayReads& a, const ArrayReads& b) {
    return &a == &b || (a.field && a.field == b.field);
}

// The arrays with the shapes of parts in place of their fields'.
std::vector<ArrayReads> checked_parts(std::span<const ArrayReads> given) {
    std::vector<ArrayReads> arrays(given.begin(), given.end());
    const int dims = given[0].shape.n;
    for (ArrayReads& a : arrays) {
        if (a.shape.n != dims)
            throw ConfigError("the arrays of a nest have different shapes: " + to_string(given[0].shape) + " and " +
                              to_string(a.shape) + "; allowed: as many dimensions");
        bool wrong = a.scale.n != 0 && (a.scale.n != dims || a.residue.n != dims);
        for (int k = 0; k < a.scale.n && !wrong; ++k) {
            wrong = a.scale[k] < 1 || a.residue[k] < 0 || a.residue[k] >= a.scale[k];
            if (!wrong) a.shape[k] = std::max<std::int64_t>(0, a.shape[k] - a.residue[k] + a.scale[k] - 1) / a.scale[k];
        }
        if (wrong)
            throw ConfigError("every: scale " + to_string(a.scale) + " and residue " + to_string(a.residue) +
                              " were given; allowed: for each of " + std::to_string(dims) +
                              " dimensions a scale >= 1, and a residue from 0 to scale - 1");
    }
    for (std::size_t i = 0; i < given.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (of_one_field(given[i], given[j]) &&
                (given[i].scale.n == 0 || given[i].scale != given[j].scale || given[i].residue == given[j].residue))
                throw ConfigError(
                    "a field is given for two arrays of a nest; list all its reads at one of them, or give parts of "
                    "it with one scale and residues that differ");
    return arrays;
}

// Ranks own the points of the shortest array that is no part of a field and has elements for all points, else those of
// the first that is written, so that only the others move.
Index extents_of_points(std::span<const ArrayReads> arrays, const SweepProblem& p) {
    const Access& first = p.accesses[0];
    Index extents = arrays[first.array].shape;
    for (int k = 0; k < extents.n; ++k) {
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        for (const ArrayReads& a : arrays)
            if (a.scale.n == 0 && p.space.lo[k] + first.offset[k] >= 0 && p.space.hi[k] + first.offset[k] <= a.shape[k])
                least = std::min(least, a.shape[k]);
        if (least < std::numeric_limits<std::int64_t>::max()) extents[k] = least;
    }
    return extents;
}

}  // namespace

SweepProblem nest_problem(const NestLoops& loops, std::span<const ArrayReads> given) {
    const std::vector<ArrayReads> arrays = checked_parts(given);
    SweepProblem p;
    const bool in_time = loops.steps.has_value();
    const int first = in_time, dims = arrays[0].shape.n + first;
    std::vector<int> signs(static_cast<std::size_t>(dims), 1);
    for (const int k : loops.reverse) {
        if (k < first || k >= dims)
            throw ConfigError("reverse: loop index " + std::to_string(k) +
                              " was given; allowed: " + std::to_string(first) + " to " + std::to_string(dims - 1) +
                              (in_time ? ", as time, index 0, runs forwards" : ""));
        signs[k] = -1;
    }
    for (const int k : loops.periodic) {
        if (k < first || k >= dims)
            throw ConfigError("periodic: loop index " + std::to_string(k) +
                              " was given; allowed: " + std::to_string(first) + " to " + std::to_string(dims - 1) +
                              (in_time ? ", as time, index 0, is not" : ""));
        if (p.periodic.n == 0) p.periodic = Index::filled(dims, 0);
        p.periodic[k] = 1;
    }
    if (in_time && *loops.steps < 0)
        throw ConfigError("steps: " + std::to_string(*loops.steps) + " was given; allowed: 0 and more");
    bool of_points = false;  // arrays of several shapes, or parts of fields
    for (const ArrayReads& a : arrays) {
        of_points = of_points || a.shape != arrays[0].shape || a.scale.n;
        if (of_points && (in_time || p.wraps()))
            throw ConfigError("the arrays of a nest have different shapes, or are parts of fields: " +
                              to_string(arrays[0].shape) + " and " + to_string(a.shape) +
                              "; with time steps or periodic loops they must be equal, and whole fields");
        for (const Index& o : a.offsets)
            if (o.n != dims)
                throw ConfigError("offset " + to_string(o) + " was given; allowed: " + std::to_string(dims) +
                                  " components, one for each loop" + (in_time ? " with time as the first" : ""));
    }
    // Written places first, then what is read, array by array.
    std::vector<int> time_buffers(arrays.size(), in_time);
    std::vector<Access> reads;
    int a = 0;
    for (const ArrayReads& array : arrays) {
        bool at_point = !in_time;
        for (Index o : array.offsets) {
            at_point = at_point || zero(o);
            if (in_time && array.written) {
                if (o[0] != 0 && o[0] != -1)
                    throw ConfigError("offset " + to_string(o) + " of an array that is written: time " +
                                      std::to_string(o[0]) + "; allowed: 0, the step that is computed, and -1");
                o[0] += 1;  // points write time t + 1
                const bool ahead = !p.wraps() && lexicographically_ahead(o, signs);
                if (o[0] == 1 && ahead) o[0] = 0;  // a step begins as a copy of the one before
                Index in_space = o;
                in_space[0] = 0;
                if (o[0] == 0 && !ahead && !zero(in_space)) time_buffers[a] = 2;
            } else if (in_time && o[0] != 0) {
                throw ConfigError("offset " + to_string(o) + " of an array that is only read: time " +
                                  std::to_string(o[0]) + "; allowed: 0, as it has no time");
            }
            reads.push_back({a, o});
        }
        if (array.written) {
            Access write{a, Index::filled(dims, 0), true};
            write.offset[0] = in_time;
            write.keeps = in_time && at_point;
            p.accesses.push_back(write);
        }
        ++a;
    }
    if (p.accesses.empty() && in_time)
        throw ConfigError("steps: a nest that writes no array has no time; allowed: without steps, or one that writes");
    p.accesses.insert(p.accesses.end(), reads.begin(), reads.end());
    p.space = largest_space(arrays, first, dims);
    p.shape = p.space.hi;
    for (int k = first; k < dims; ++k) p.shape[k] = arrays[0].shape[k - first];
    for (const int k : loops.periodic) {
        p.space.lo[k] = 0;
        p.space.hi[k] = p.shape[k];
    }
    if (in_time) p.shape[0] = p.space.hi[0] = *loops.steps;
    if (loops.over) {
        const Box& over = *loops.over;
        if (over.dims() != dims - first)
            throw ConfigError("over: " + std::to_string(over.dims()) + " ranges were given; allowed: " +
                              std::to_string(dims - first) + ", one for each loop" + (in_time ? " but time" : ""));
        for (int k = first; k < dims; ++k) {
            const std::int64_t lo = over.lo[k - first], hi = over.hi[k - first];
            if (lo < p.space.lo[k] || hi > p.space.hi[k] || lo > hi)
                throw ConfigError("over: " + std::to_string(lo) + " to " + std::to_string(hi) + " was given for loop " +
                                  std::to_string(k) + "; allowed: within " + std::to_string(p.space.lo[k]) + " to " +
                                  std::to_string(p.space.hi[k]) + ", where every access stays inside the arrays");
            p.space.lo[k] = lo;
            p.space.hi[k] = hi;
        }
    }
    if (of_points) p.shape = extents_of_points(arrays, p);
    const int most = *std::max_element(time_buffers.begin(), time_buffers.end());
    for (std::size_t b = 0; b < arrays.size(); ++b) {
        NestArray n{arrays[b].item_bytes};
        if (of_points) {
            n.shape = arrays[b].shape;
            n.aligned = true;
        }
        if (arrays[b].scale.n) {
            n.scale = arrays[b].scale, n.residue = arrays[b].residue, n.field_shape = given[b].shape;
            for (n.field = 0; !of_one_field(given[n.field], given[b]);) ++n.field;
        }
        if (in_time) {
            n.shape = arrays[b].shape;
            n.axes = Index::filled(dims - 1, 0);
            for (int k = 0; k < n.axes.n; ++k) n.axes[k] = k + 1;
            n.time_buffers = arrays[b].written ? most : 0;
        }
        p.arrays.push_back(n);
    }
    std::vector<bool> downwards;
    for (const int sign : signs) downwards.push_back(sign < 0);
    p.normalize_loops(downwards);
    for (int k = 0; k < dims && p.has_parts_of_fields(); ++k)
        if (!p.loops.keeps(k))
            throw ConfigError(
                "a part of a field was given for a nest whose dependences skew its loops; allowed: dependences with no "
                "component below 0");
    if (p.wraps())
        if (const std::string why = why_no_stencil(p); !why.empty())
            throw ConfigError("periodic was given for a nest of which " + why +
                              "; allowed: nests whose points of one time step are independent of each other");
    return p;
}

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
            block.steps =
                std::min(*loops.steps, std::clamp(block_points / points, fewest_block_steps, most_block_steps));
            problem = nest_problem(block, arrays);
        }
        widen(problem, halos);
        problem.once = !kernel.reductions.empty();
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
    const ReadyNest ready = plan_nest(context, loops, request, arrays, kernel, body, "run");
    PreparedSweep& sweep = *ready.planned.sweep;
    const bool in_blocks = loops.steps && *loops.steps != *ready.block_steps;
    RankStatus statement;
    statement.caller = {"run", ""};
    if (in_blocks) agree_after(context, statement, [&] { sweep.prepare_steps(*loops.steps); });
    Report report = sweep.run(operands, kernel, explain, in_blocks ? loops.steps : std::nullopt);
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
