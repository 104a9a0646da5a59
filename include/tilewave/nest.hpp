// Nests in C++: a generic lambda over relative offsets becomes a row kernel.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tilewave/context.hpp"
#include "tilewave/engine/lambda_kernel.hpp"
#include "tilewave/operand.hpp"
#include "tilewave/report.hpp"

namespace tilewave {

/// Options of the loops of a nest. Default: once, upwards, over the largest box.
struct NestLoops {
    std::optional<Box> over = {};  ///< of the loop indices, half-open; with time steps without time
    /// Of each range of `over`: every so many-th index from its beginning on; empty: every one.
    Index strides = {};
    /// Loop indices that run downwards. With steps the first may: time then runs from the last step to the first, and
    /// in offsets 1 is the step that was computed before.
    std::vector<int> reverse = {};
    std::optional<std::int64_t> steps = {};  ///< loop index 0 is time: so many steps of it
    std::vector<int> periodic = {};          ///< loop indices along which offsets wrap
    /// Which points of the box are computed: coefficients · indices + constant >= 0 for all, with time among the
    /// indices where there is one.
    std::vector<Bound> bounds = {};
    std::vector<StepElements> elements = {};  ///< of written fields, with steps; for run(), in the order of the run
};

/// How points of a problem are the given loops' points: index k is first[k] + strides[k] * x[k].
struct LoopPoints {
    Index first = {}, strides = {};  ///< empty: 0 and 1
    /// The problem has every point between, and those with other indices are left out, as those outside `bounds` are.
    bool left_out = false;
    std::vector<Bound> bounds = {};              ///< of the problem's indices
    std::optional<std::int64_t> last_step = {};  ///< time runs backwards: index 0 is last_step - x[0]
    Index given(Index x) const;
    /// Whether it has another meaning than x.
    bool renumbered() const { return last_step || (strides.n > 0 && !left_out); }
};

/// What an array of a problem is of the arrays that were given.
struct NestOperandPart {
    int array = 0;
    bool whole = false;              ///< each rank needs it whole: it is only read, and not as the loops are divided
    Index scale = {}, residue = {};  ///< of a part; empty: it is all of it
};

/// An array that points update.
struct UpdatedArray {
    int array = 0;    ///< of the arrays that were given, and of the values that the body gives
    int place = -1;   ///< of the problem, where points update it in the order of the loops; -1: in any order
    Index last = {};  ///< the last point, as the loops were given; empty: there is none
};

/// The problem that a nest stands for.
struct NestProblem {
    SweepProblem problem;
    std::vector<NestOperandPart> operands;  ///< by array of the problem
    LoopPoints points;
    std::vector<UpdatedArray> updates = {};
    std::vector<int> places = {};  ///< with updates, by place of the body: that of the problem; -1: a value of updates
};

/// Makes it; written arrays come first in `arrays`. Pure. `single_steps`: each time step runs by itself, so that
/// bounds with time leave points out of equal steps. `off`: without FastPath::order_free updates are in the order of
/// the loops, and refused with time steps.
/// @pre an array has the dimensions of its `axes`, each a loop, once; without axes all arrays have as many dimensions.
/// Offsets have a component for each dimension, with steps one for time before (ConfigError)
/// @pre each loop is a dimension of some array, or one of loops.over (ConfigError)
/// @pre with periodic loops the arrays have equal extents along each loop (ConfigError)
/// @pre parts of a field have one scale >= 1 and residues that differ, from 0 to scale - 1; neither periodic loops nor
/// dependences that skew loops; with time steps they are only read (ConfigError)
/// @pre loops.bounds have a coefficient for each loop (ConfigError)
/// @pre loops.over lies in the box for which every access stays inside the arrays; loops.strides come with it, one >= 1
/// for each of its ranges (ConfigError)
/// @pre loops.reverse names loop indices; loops.steps >= 0 (ConfigError)
/// @pre loops.periodic names loop indices, not time, and the points of a time step are independent of each other then
/// (ConfigError)
/// @pre with steps: written arrays are read at the step that is computed and up to max_history + 1 before it, the
/// others at the step that is computed (ConfigError)
/// @pre what is written beside pivots() is made by pivots(): matrices of one shape, in three loops, without steps and
/// periodic loops (ConfigError)
/// @pre a whole axis is read of fields that the nest writes, without periodic loops (ConfigError)
/// @pre updates are of numbers, but for `last`; of complex ones sums; with time steps of integers, or of what comes
/// last and has bounds of loops that the field lacks alone; time as a dimension has all steps (ConfigError)
/// @pre a Window has a dimension for each loop, without steps and periodic loops (ConfigError)
NestProblem nest_problem(const NestLoops& loops, std::span<const ArrayReads> arrays, bool single_steps = false,
                         PathsOff off = 0);

/// Plans, prepares and runs a nest with a given kernel; see run(). `body` identifies the kernel within the program.
Report run_nest(Context& context, const NestLoops& loops, PlanRequest request, std::span<const ArrayReads> arrays,
                const Kernel& kernel, const std::string& body,
                const std::function<std::string(const Failure&)>& explain);

class NestChain;

/// A nest with its fields, agreed on, planned and prepared once, to be run many times; made by bind(). The fields and
/// the context must live on.
class BoundNest {
public:
    struct State;
    explicit BoundNest(std::unique_ptr<State> state);
    BoundNest(BoundNest&&) noexcept;
    ~BoundNest();

    /// What run() with the same arguments would compute; `steps`: time steps of this run, where the nest was bound with
    /// steps. Nothing is recorded: the report has no timeline. Fields that others have moved are brought back.
    /// Collective; beyond the work it costs about 2 us, and two rounds of ceil(log2 ranks) messages.
    /// @throws ConfigError on every rank where the ranks run different bound nests or steps, or cannot run so many;
    ///   KernelError on every rank when the body threw on any: it may be run again
    Report run(std::optional<std::int64_t> steps = {});
    /// That of the bound number of steps.
    const Plan& plan() const;

private:
    friend class NestChain;
    friend NestChain chain(Context& context, const std::vector<BoundNest*>& nests);
    std::unique_ptr<State> state_;
};

/// How a run of a chain went. Equal on all ranks.
struct ChainReport {
    std::int64_t points = 0;  ///< computed over all ranks, nests and repetitions
    double time_s = 0;        ///< slowest rank: from the first step to the last
    double moving_s = 0;      ///< slowest rank: bringing fields back
    double call_s = 0;        ///< slowest rank: the whole call
    bool interrupted = false;
    /// By nest and reduction: of the last repetition, of all ranks' points.
    std::vector<std::vector<Reduced>> reduced = {};
    std::int64_t times = 0;  ///< repetitions
};

/// How often a chain runs, and what happens between.
struct ChainRun {
    std::int64_t times = 1;  ///< at most
    /// Is given the run so far after every `every` repetitions and the last one. It ends where each rank says true.
    std::function<bool(const ChainReport&)> until = {};
    std::int64_t every = 1;
    /// Elements of fields that the nests write, visited after each repetition; values have a row for each of `times`.
    std::vector<StepElements> elements = {};
};

/// Bound nests that run one after another, again and again; made by chain(). The nests must live on.
class NestChain {
public:
    struct State;
    explicit NestChain(std::unique_ptr<State> state);
    NestChain(NestChain&&) noexcept;
    ~NestChain();

    /// What running the nests in their order would compute, `times` times. Where something happens between
    /// repetitions, they are schedules of their own. Collective.
    /// @pre times, every >= 1; elements as run()'s, with repetitions for steps (ConfigError)
    /// @throws ConfigError on every rank where the ranks run different chains or times; KernelError on every rank when
    ///   a body threw on any
    ChainReport run(std::int64_t times = 1);
    ChainReport run(const ChainRun& given);
    /// Why the nests run one after another, with an agreement for each; empty where they are one schedule.
    const std::string& separate() const;

private:
    std::unique_ptr<State> state_;
};

/// Makes one schedule of bound nests: nothing is agreed on between nests and repetitions, and a tile of the next nest
/// starts when what it reads is there. Nests that share a field get one layout for it: one grid and storage, and a halo
/// that is wide enough for all; where their plans differ they are planned once more. Nests that cannot have one, as
/// their PlanRequests are others, or that run more time steps than a block has, run one after another. Collective.
/// @pre at least one nest; all were bound on `context` (ConfigError)
NestChain chain(Context& context, const std::vector<BoundNest*>& nests);

/// Plans and prepares a nest; see bind(). `renew` is called before each run; what it, `kernel` and `explain` refer to
/// lives as long as they.
BoundNest bind_nest(Context& context, const NestLoops& loops, const PlanRequest& request,
                    std::span<const ArrayReads> arrays, const Kernel& kernel, const std::string& body,
                    std::function<std::string(const Failure&)> explain, std::function<void()> renew);

/// Runs `body` at every point of `loops`, as plain nested loops with the first index outermost would: once, upwards and
/// over the largest box of points for which every access stays inside the arrays, unless `loops` has other bounds.
/// The body is given a view of each operand and returns the value of the array that is written, or a tuple of one for
/// each; offsets may have any sign, a read ahead in the loops gives the value from before the run:
///
///     constexpr auto west_north = tilewave::reads({-1, 0}, {0, -1});
///     tilewave::run(context, {}, [](auto a) { return a(-1, 0) + 0.5f * a(0, -1); },
///                   tilewave::writes<west_north>(A));
///
/// With time steps, loop index 0 is time, which the fields have no dimension for; in offsets it comes first: 0 is
/// the step that is computed, -1 the one before it, -2 the one before that (Field::keep_history() has its first value).
///
///     constexpr auto star = tilewave::reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0});
///     tilewave::run(context, {.steps = 100}, {}, [](auto u) { return u(-1, 0, 0) + 0.1 * (u(-1, -1, 0) + u(-1, 1, 0));
///     },
///                   tilewave::writes<star>(u));
///
/// The plan is chosen as for a Python program: layouts of loops and arrays, tiles, lanes and schedules are
/// predicted with the body's rate, which is measured at the first call (about 0.1 s a rate); `request` is obeyed. Later
/// calls with the same body, shapes and loops take the plan as it is. Collective. Costs making the schedule, then the
/// work.
/// @pre each field, or part of one, is given once (ConfigError)
/// @pre loops.elements are of fields that the nest writes, with steps; inside them; as many values as steps times
/// elements (ConfigError)
/// @pre as nest_problem() and make_plan() (ConfigError)
/// @throws ConfigError, KernelError (the body threw on some rank), MpiError; each on all ranks
template <class Body, class... Operands>
Report run(Context& context, const NestLoops& loops, const PlanRequest& request, Body body,
           const Operands&... operands) {
    const std::vector<ArrayReads> arrays = detail::arrays_of(operands...);
    const detail::LambdaKernel<Body, Operands...> kernel(std::move(body));
    return run_nest(context, loops, request, arrays, kernel.kernel(), detail::body_name<Body>(), [&](const Failure& f) {
        return "the body threw at " + to_string(f.point) + " on rank " + std::to_string(context.rank()) + ": " +
               kernel.error();
    });
}

/// Agrees on a nest, plans and prepares it as run() does, to be run many times. Numbers that change between runs are
/// captured by reference. Collective.
/// @pre no loops.elements (ConfigError)
/// @throws as run()
template <class Body, class... Operands>
BoundNest bind(Context& context, const NestLoops& loops, const PlanRequest& request, Body body,
               const Operands&... operands) {
    const std::vector<ArrayReads> arrays = detail::arrays_of(operands...);
    const auto kernel = std::make_shared<detail::LambdaKernel<Body, Operands...>>(std::move(body));
    return bind_nest(
        context, loops, request, arrays, kernel->kernel(), detail::body_name<Body>(),
        [kernel, rank = context.rank()](const Failure& f) {
            return "the body threw at " + to_string(f.point) + " on rank " + std::to_string(rank) + ": " +
                   kernel->error();
        },
        [kernel] { kernel->forget_error(); });
}

/// The same once, upwards, over the largest box.
template <class Body, class... Operands>
    requires(!std::is_same_v<Body, PlanRequest>)
Report run(Context& context, const PlanRequest& request, Body body, const Operands&... operands) {
    return run(context, NestLoops{}, request, std::move(body), operands...);
}

}  // namespace tilewave
