// Nests in C++: a generic lambda over relative offsets becomes a row kernel.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tilewave/context.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/field.hpp"
#include "tilewave/report.hpp"

namespace tilewave {

/// Elements of a field that a run changes, or records, after each time step; made by adds() and records().
struct StepElements {
    FieldStorage* field;
    std::vector<Index> at;
    Dtype type;
    bool added;
    std::span<std::byte> values;  ///< a row for each time step, a value for each element
};

/// Options of the loops of a nest. Default: once, upwards, over the largest box.
struct NestLoops {
    std::optional<Box> over = {};            ///< of the loop indices, half-open; with time steps without time
    std::vector<int> reverse = {};           ///< loop indices that run downwards
    std::optional<std::int64_t> steps = {};  ///< loop index 0 is time: so many steps of it
    std::vector<int> periodic = {};          ///< loop indices along which offsets wrap
    /// Which points of the box are computed: coefficients · indices + constant >= 0 for all, with time among the
    /// indices where there is one.
    std::vector<Bound> bounds = {};
    std::vector<StepElements> elements = {};  ///< of written fields, with steps; for run()
};

/// One array of a nest as plain data: the offsets at which points read it.
struct ArrayReads {
    FieldStorage* field;
    std::int64_t item_bytes;
    Index shape;
    bool written;
    std::vector<Index> offsets;
    Index scale = {}, residue = {};  ///< of a part of a field, whose shape is above; empty: it is all of it
};

/// The problem that a nest stands for. Written arrays come first in `arrays`. Pure.
/// @pre all arrays have as many dimensions, with periodic loops one shape; offsets as many components as there are
/// loops (ConfigError)
/// @pre parts of a field have one scale >= 1 and residues that differ, from 0 to scale - 1; neither periodic loops nor
/// dependences that skew loops; with time steps they are only read (ConfigError)
/// @pre loops.bounds have a coefficient for each loop (ConfigError)
/// @pre loops.over lies in the box for which every access stays inside the arrays (ConfigError)
/// @pre loops.reverse names loop indices, not time; loops.steps >= 0 (ConfigError)
/// @pre loops.periodic names loop indices, not time, and the points of a time step are independent of each other then
/// (ConfigError)
/// @pre with steps: written arrays are read at the step that is computed and up to max_history + 1 before it, the
/// others at the step that is computed (ConfigError)
SweepProblem nest_problem(const NestLoops& loops, std::span<const ArrayReads> arrays);

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
    std::vector<std::vector<Reduced>> reduced;  ///< by nest and reduction: of the last repetition, of all ranks' points
};

/// Bound nests that run one after another, again and again; made by chain(). The nests must live on.
class NestChain {
public:
    struct State;
    explicit NestChain(std::unique_ptr<State> state);
    NestChain(NestChain&&) noexcept;
    ~NestChain();

    /// What running the nests in their order would compute, `times` times. Collective.
    /// @throws ConfigError on every rank where the ranks run different chains or times, or times < 1; KernelError on
    ///   every rank when a body threw on any
    ChainReport run(std::int64_t times = 1);
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

/// The offsets a body reads one array at, known when compiling: reads({-1, 0}, {0, -1}).
template <std::size_t... D>
consteval auto reads(const int (&... offset)[D]) {
    constexpr std::size_t dims = std::max({D...});
    static_assert(((D == dims) && ...), "offsets of one array have equal dimensions");
    std::array<std::array<int, dims>, sizeof...(D)> table{};
    std::size_t row = 0;
    auto fill = [&](const auto& o) {
        for (std::size_t k = 0; k < dims; ++k) table[row][k] = o[k];
        ++row;
    };
    (fill(offset), ...);
    return table;
}

/// Every so many elements of a field; made by every().
template <class T>
struct FieldPart {
    Field<T>* field;
    Index scale, residue;
};
/// Every scale-th element along each dimension, from `residue` on, as an array of a nest. Nests over a coarse grid read
/// and write the field of a finer one so: at the point (i, j) a(0, -1) of every(u, {2, 2}, {1, 0}) is u's element
/// (2 i + 1, 2 j - 2). A nest may have several parts of a field.
template <class T>
FieldPart<T> every(Field<T>& field, const Index& scale, const Index& residue) {
    return {&field, scale, residue};
}

/// Adds values to elements of a field after each time step, as a source does: `values[step * at.size() + k]` to the
/// k-th one. The same on every rank.
template <class T>
StepElements adds(Field<T>& field, std::vector<Index> at, std::span<T> values) {
    return {&field.storage(), std::move(at), dtype_of<T>(), true, std::as_writable_bytes(values)};
}
/// Records elements of a field after each time step, as a receiver does, in `values` of every rank; numbered as adds()
/// has them.
template <class T>
StepElements records(Field<T>& field, std::vector<Index> at, std::span<T> values) {
    return {&field.storage(), std::move(at), dtype_of<T>(), false, std::as_writable_bytes(values)};
}

/// One array of a nest with its reads.
template <auto Table, class T, bool Written>
struct NestOperand {
    Field<T>* field;
    Index scale = {}, residue = {};  // of a part of the field
};
/// An array that a nest writes at offset 0. It is read at the offsets of `Table` and, before the write, at offset 0. In
/// a nest, written arrays come before arrays that are only read.
template <auto Table, class T>
NestOperand<Table, T, true> writes(Field<T>& field) {
    return {&field};
}
template <auto Table, class T>
NestOperand<Table, T, true> writes(const FieldPart<T>& part) {
    return {part.field, part.scale, part.residue};
}
/// An array a nest only reads, at `Table`.
template <auto Table, class T>
NestOperand<Table, T, false> only_reads(Field<T>& field) {
    return {&field};
}
template <auto Table, class T>
NestOperand<Table, T, false> only_reads(const FieldPart<T>& part) {
    return {part.field, part.scale, part.residue};
}

/// What the body is given for one array: a(-1, 0) is the value at that offset from the point.
/// Offsets that are not in the table throw; with constant arguments the look-up is free, from -O1 on.
template <auto Table, class T>
struct PointView {
    char* const* ptr;          // of the row, by read
    const std::int64_t* step;  // bytes from point to point, by read
    const char* written;       // offset 0 of the written array, or null
    std::int64_t q, written_step;

    static constexpr std::size_t reads = Table.size();
    /// The place of an offset in the table; `reads` for the point itself, beyond where it is not there. Comparisons of
    /// single numbers, inlined: for constant offsets all of them fold, and loops over points become vectors.
    template <class... I>
    [[gnu::always_inline]] static constexpr std::size_t place_of(I... offset) {
        static_assert(sizeof...(I) == Table[0].size(), "an offset has one component for each dimension");
        std::size_t found = ((offset == 0) && ...) ? reads : reads + 1;
        [&]<std::size_t... R>(std::index_sequence<R...>) {
            ((found = is_row<R>(std::index_sequence_for<I...>{}, offset...) ? R : found), ...);
        }(std::make_index_sequence<reads>());
        return found;
    }
    template <class... I>
    [[gnu::always_inline]] T operator()(I... offset) const {
        const std::size_t place = place_of(offset...);
        if (place < reads) return *reinterpret_cast<const T*>(ptr[place] + q * step[place]);
        if (place == reads && written) return *reinterpret_cast<const T*>(written + q * written_step);
        throw ConfigError("the body reads an offset that its table does not declare");
    }

private:
    template <std::size_t R, std::size_t... K, class... I>
    [[gnu::always_inline]] static constexpr bool is_row(std::index_sequence<K...>, I... offset) {
        return ((Table[R][K] == static_cast<int>(offset)) && ...);
    }
};

/// A body whose last results are values of the point that are reduced and stored nowhere; see reducing().
template <class Body, class... Values>
struct ReducingBody {
    Body body;
    std::array<Reduction, sizeof...(Values)> ops;
    template <class... Views>
    [[gnu::always_inline]] auto operator()(const Views&... views) const {
        return body(views...);
    }
};
/// A body that also gives a value of each of these types, after those of the arrays that it writes; of all points one
/// number is made by sum, max or min, in Report::reduced. With such a body a nest need not write any array:
///
///     auto report = tilewave::run(context, {}, tilewave::reducing<double>({tilewave::Reduction::sum}, [](auto u) {
///         const double d = u(0, 0) - u(-1, 0);
///         return d * d;
///     }), tilewave::only_reads<two>(u));
///     const double norm = std::sqrt(report.reduced[0].value<double>());
///
/// Sums of floats are exact, rounded once to double; of integers they are int64, modulo 2^64.
template <class... Values, class Body>
ReducingBody<Body, Values...> reducing(const std::array<Reduction, sizeof...(Values)>& ops, Body body) {
    return {std::move(body), ops};
}

namespace detail {

template <class Body>
struct RowValues {
    using Types = std::tuple<>;
    static std::array<Reduction, 0> ops(const Body&) { return {}; }
};
template <class Body, class... Values>
struct RowValues<ReducingBody<Body, Values...>> {
    using Types = std::tuple<Values...>;
    static std::array<Reduction, sizeof...(Values)> ops(const ReducingBody<Body, Values...>& b) { return b.ops; }
};

template <class Body, class... Operands>
class LambdaKernel;

template <class Body, auto... Tables, class... T, bool... Written>
class LambdaKernel<Body, NestOperand<Tables, T, Written>...> {
public:
    explicit LambdaKernel(Body body) : body_(std::move(body)) {}
    Kernel kernel() const {
        Kernel k;
        k.row = &row;
        k.env = this;
        k.uses_index = false;
        [&]<std::size_t... V>(std::index_sequence<V...>) {
            (k.values.push_back(sizeof(std::tuple_element_t<V, Values>)), ...);
            (k.reductions.push_back(
                 reduction(RowValues<Body>::ops(body_)[V], V, dtype_of<std::tuple_element_t<V, Values>>())),
             ...);
        }(std::make_index_sequence<values>());
        return k;
    }
    std::string error() const {
        std::scoped_lock guard(lock_);
        return error_;
    }
    void forget_error() {
        std::scoped_lock guard(lock_);
        error_.clear();
    }

private:
    using Values = typename RowValues<Body>::Types;
    static constexpr std::size_t values = std::tuple_size_v<Values>;
    static constexpr std::size_t written = (std::size_t{Written} + ...);
    static constexpr std::array<bool, sizeof...(T)> writes_it{Written...};
    static constexpr std::array<std::int64_t, sizeof...(T)> size{sizeof(T)...};
    static constexpr std::array<std::size_t, sizeof...(T)> counts{Tables.size()...};
    static constexpr std::size_t places = written + (Tables.size() + ... + 0);
    static_assert(written + values > 0, "a nest writes an array, or its body is made by reducing()");
    static_assert(std::is_sorted(writes_it.begin(), writes_it.end(), std::greater<>()),
                  "arrays that are written come first");

    // Element = point: the value belongs to no array.
    static PointReduction reduction(Reduction op, std::size_t value, Dtype type) {
        PointReduction r{op, type, static_cast<int>(places + value)};
        constexpr std::array<std::size_t, sizeof...(T)> dims{Tables[0].size()...};
        r.axes = r.shift = Index::filled(static_cast<int>(dims[0]), 0);
        for (int k = 0; k < r.axes.n; ++k) r.axes[k] = k;
        return r;
    }
    // Bytes from point to point where all of a row are neighbours, by place and then by value.
    static constexpr std::array<std::int64_t, places + values> unit_steps = [] {
        std::array<std::int64_t, places + values> steps{};
        std::size_t p = 0;
        for (std::size_t a = 0; a < written; ++a) steps[p++] = size[a];
        for (std::size_t a = 0; a < size.size(); ++a)
            for (std::size_t r = 0; r < counts[a]; ++r) steps[p++] = size[a];
        [&]<std::size_t... V>(std::index_sequence<V...>) {
            ((steps[p++] = sizeof(std::tuple_element_t<V, Values>)), ...);
        }(std::make_index_sequence<values>());
        return steps;
    }();
    // Flattened: a body that is not inlined looks up its offsets at every point.
    [[gnu::flatten]] static std::int64_t row(char* const* ptr, const std::int64_t* step, std::int64_t n,
                                             const std::int64_t*, const std::int64_t*, const void* env) {
        const auto* self = static_cast<const LambdaKernel*>(env);
        // Two loops: unit steps are known when compiling, so that the first one can become vectors.
        if (std::equal(unit_steps.begin(), unit_steps.end(), step))
            return self->run(ptr, unit_steps.data(), n, std::index_sequence_for<T...>{});
        return self->run(ptr, step, n, std::index_sequence_for<T...>{});
    }
    template <std::size_t... A>
    [[gnu::always_inline]] inline std::int64_t run(char* const* ptr, const std::int64_t* step, std::int64_t n,
                                                   std::index_sequence<A...>) const {
        std::array<std::size_t, sizeof...(T)> first{};
        first[0] = written;
        for (std::size_t a = 1; a < first.size(); ++a) first[a] = first[a - 1] + counts[a - 1];
        std::int64_t q = 0;
        try {
            for (; q < n; ++q)
                store(ptr, step, q,
                      body_(PointView<Tables, T>{ptr + first[A], step + first[A], Written ? ptr[A] : nullptr, q,
                                                 Written ? step[A] : 0}...));
        } catch (const std::exception& e) {
            return note(e.what(), q);
        } catch (...) {
            return note("an exception that is no std::exception", q);
        }
        return 0;
    }
    // One value, or a tuple of one for each array that is written and each that is reduced.
    template <class Value>
    [[gnu::always_inline]] static void store(char* const* ptr, const std::int64_t* step, std::int64_t q,
                                             const Value& value) {
        if constexpr (requires { std::tuple_size<Value>::value; }) {
            static_assert(std::tuple_size_v<Value> == written + values,
                          "the body gives a value for each array that is written, then one for each that is reduced");
            [&]<std::size_t... W>(std::index_sequence<W...>) {
                (store_one<W>(ptr, step, q, std::get<W>(value)), ...);
            }(std::make_index_sequence<written + values>());
        } else {
            static_assert(written + values == 1, "a body with several results gives a tuple of values");
            store_one<0>(ptr, step, q, value);
        }
    }
    template <std::size_t W, class Value>
    [[gnu::always_inline]] static void store_one(char* const* ptr, const std::int64_t* step, std::int64_t q,
                                                 const Value& value) {
        if constexpr (W < written) {
            using Out = std::tuple_element_t<W, std::tuple<T...>>;
            *reinterpret_cast<Out*>(ptr[W] + q * step[W]) = static_cast<Out>(value);
        } else {
            using Out = std::tuple_element_t<W - written, Values>;
            constexpr std::size_t p = places + W - written;
            *reinterpret_cast<Out*>(ptr[p] + q * step[p]) = static_cast<Out>(value);
        }
    }
    std::int64_t note(const char* what, std::int64_t q) const {
        std::scoped_lock guard(lock_);
        if (error_.empty()) error_ = what;
        return q * error_sites + 1;
    }

    Body body_;
    mutable std::mutex lock_;
    mutable std::string error_;
};

/// What stands for a body on all ranks of a program: its type's name alone does not, as lambdas of functions that two
/// files keep to themselves may share it. `place` lies in memory of that type's alone.
std::string body_name(const char* type, const void* place);
template <class Body>
std::string body_name() {
    static char place;
    return body_name(typeid(Body).name(), &place);
}

template <auto Table, class T, bool Written>
ArrayReads array_reads(const NestOperand<Table, T, Written>& operand) {
    ArrayReads a{
        &operand.field->storage(), sizeof(T), operand.field->shape(), Written, {}, operand.scale, operand.residue};
    for (const auto& row : Table) {
        Index o = Index::filled(static_cast<int>(row.size()), 0);
        for (int k = 0; k < o.n; ++k) o[k] = row[k];
        a.offsets.push_back(o);
    }
    return a;
}

}  // namespace detail

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
    const std::vector<ArrayReads> arrays{detail::array_reads(operands)...};
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
    const std::vector<ArrayReads> arrays{detail::array_reads(operands)...};
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
Report run(Context& context, const PlanRequest& request, Body body, const Operands&... operands) {
    return run(context, NestLoops{}, request, std::move(body), operands...);
}

}  // namespace tilewave
