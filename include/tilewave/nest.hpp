// Nests in C++: a generic lambda over relative offsets becomes a row kernel.
#pragma once
#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "tilewave/run.hpp"

namespace tilewave {

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

/// One array of a nest with its reads.
template <auto Table, class T>
struct NestOperand {
    Field<T>* field;
};
/// The array a nest writes (at offset 0), read at `Table` and, before it is written, at offset 0.
template <auto Table, class T>
NestOperand<Table, T> writes(Field<T>& field) {
    return {&field};
}
/// An array a nest only reads, at `Table`.
template <auto Table, class T>
NestOperand<Table, T> only_reads(Field<T>& field) {
    return {&field};
}

/// What the body is given for one array: a(-1, 0) is the value at that offset from the point.
/// Offsets that are not in the table throw; with constant arguments the look-up is free.
template <auto Table, class T>
struct PointView {
    char* const* ptr;          // of the row, by read
    const std::int64_t* step;  // bytes from point to point, by read
    const char* own;           // offset 0 of the written array, or null
    std::int64_t q, own_step;

    template <class... I>
    T operator()(I... offset) const {
        constexpr std::size_t dims = Table[0].size();
        static_assert(sizeof...(I) == dims, "an offset has one component for each dimension");
        const std::array<int, dims> want{static_cast<int>(offset)...};
        for (std::size_t r = 0; r < Table.size(); ++r)
            if (Table[r] == want) return *reinterpret_cast<const T*>(ptr[r] + q * step[r]);
        if (own && want == std::array<int, dims>{}) return *reinterpret_cast<const T*>(own + q * own_step);
        throw ConfigError("the body reads an offset that its table does not declare");
    }
};

namespace detail {

template <class Body, class... Operands>
class LambdaKernel;

template <class Body, auto... Tables, class... T>
class LambdaKernel<Body, NestOperand<Tables, T>...> {
public:
    explicit LambdaKernel(Body body) : body_(std::move(body)) {}
    Kernel kernel() const { return {&row, this, false, {}}; }
    std::string error() const {
        std::scoped_lock guard(lock_);
        return error_;
    }

private:
    using Out = std::tuple_element_t<0, std::tuple<T...>>;

    static std::int64_t row(char* const* ptr, const std::int64_t* step, std::int64_t n, const std::int64_t*, const std::int64_t*, const void* env) {
        const auto* self = static_cast<const LambdaKernel*>(env);
        // Unit steps are known when compiling, so that the loop can become vectors.
        constexpr std::array<std::int64_t, sizeof...(T)> size{sizeof(T)...};
        constexpr std::array<std::size_t, sizeof...(T)> counts{Tables.size()...};
        bool unit = step[0] == size[0];
        std::size_t p = 1;
        for (std::size_t a = 0; a < size.size(); ++a)
            for (std::size_t r = 0; r < counts[a]; ++r) unit = unit && step[p++] == size[a];
        if (!unit) return self->run(ptr, step, n, std::index_sequence_for<T...>{});
        std::array<std::int64_t, 1 + (Tables.size() + ... + 0)> known{size[0]};
        p = 1;
        for (std::size_t a = 0; a < size.size(); ++a)
            for (std::size_t r = 0; r < counts[a]; ++r) known[p++] = size[a];
        return self->run(ptr, known.data(), n, std::index_sequence_for<T...>{});
    }
    template <std::size_t... A>
    [[gnu::always_inline]] inline std::int64_t run(char* const* ptr, const std::int64_t* step, std::int64_t n, std::index_sequence<A...>) const {
        constexpr std::array<std::size_t, sizeof...(T)> counts{Tables.size()...};
        std::array<std::size_t, sizeof...(T)> first{};
        for (std::size_t a = 1; a < first.size(); ++a) first[a] = first[a - 1] + counts[a - 1];
        std::int64_t q = 0;
        try {
            for (; q < n; ++q)
                *reinterpret_cast<Out*>(ptr[0] + q * step[0]) = static_cast<Out>(
                    body_(PointView<Tables, T>{ptr + 1 + first[A], step + 1 + first[A], A == 0 ? ptr[0] : nullptr, q, step[0]}...));
        } catch (const std::exception& e) {
            return note(e.what(), q);
        } catch (...) {
            return note("an exception that is no std::exception", q);
        }
        return 0;
    }
    std::int64_t note(const char* what, std::int64_t q) const {
        std::scoped_lock guard(lock_);
        if (error_.empty()) error_ = what;
        return q * 4096 + 1;
    }

    Body body_;
    mutable std::mutex lock_;
    mutable std::string error_;
};

template <auto Table, class T>
void add_operand(SweepProblem& problem, const NestOperand<Table, T>&, int array) {
    problem.arrays.push_back({sizeof(T)});
    for (const auto& row : Table) {
        Index o = Index::filled(static_cast<int>(row.size()), 0);
        for (int k = 0; k < o.n; ++k) o[k] = row[static_cast<std::size_t>(k)];
        problem.accesses.push_back({array, o});
    }
}

// The largest box of points for which every access stays inside the arrays.
inline Box largest_space(const SweepProblem& p) {
    Box space{Index::filled(p.shape.n, 0), p.shape};
    for (const Access& r : p.accesses)
        for (int k = 0; k < p.shape.n; ++k) {
            space.lo[k] = std::max(space.lo[k], -r.offset[k]);
            space.hi[k] = std::min(space.hi[k], p.shape[k] - r.offset[k]);
        }
    for (int k = 0; k < p.shape.n; ++k) space.hi[k] = std::max(space.hi[k], space.lo[k] = std::min(space.lo[k], p.shape[k]));
    return space;
}

}  // namespace detail

/// Runs `body` over the largest box of points for which every read stays inside the arrays, as
/// plain nested loops with the first index outermost would. The first operand is written; offsets may
/// have any sign, a read ahead in the loops gives the value from before the run:
///
///     constexpr auto west_north = tilewave::reads({-1, 0}, {0, -1});
///     tilewave::run(context, {}, [](auto a) { return a(-1, 0) + 0.5f * a(0, -1); },
///                   tilewave::writes<west_north>(A));
///
/// Collective. Costs making the schedule, then the work.
/// @pre all fields have one shape, and each is given once (ConfigError)
/// @throws ConfigError, KernelError (the body threw on some rank), MpiError; each on all ranks
template <class Body, class... Operands>
Report run(Context& context, PlanRequest request, Body body, const Operands&... operands) {
    SweepProblem problem;
    Statement mine;
    std::optional<PreparedSweep> prepared;
    problem.shape = std::get<0>(std::tie(operands...)).field->shape();
    if (request.threads == 1) request.threads = context.threads();
    const Machine machine = context.machine();
    try {
        problem.accesses.push_back({0, Index::filled(problem.shape.n, 0), true});
        int array = 0;
        ((operands.field->shape() == problem.shape
              ? detail::add_operand(problem, operands, array++)
              : throw ConfigError("the arrays of a nest have different shapes: " + to_string(problem.shape) + " and " +
                                  to_string(operands.field->shape()) + "; they must be equal")),
         ...);
        const FieldStorage* fields[] = {&operands.field->storage()...};
        std::sort(std::begin(fields), std::end(fields));
        if (std::adjacent_find(std::begin(fields), std::end(fields)) != std::end(fields))
            throw ConfigError("a field is given for two arrays of a nest; list all its reads at one of them");
        problem.space = detail::largest_space(problem);
        problem.complete();
        problem.loops = legal_skew(problem);
        const Plan plan = make_plan(problem, context.size(), request, machine);
        prepared.emplace(context, problem, plan);
        mine.description = "shape " + to_string(problem.shape) + ", " + plan.to_string();
    } catch (const ConfigError& e) {
        mine = {Statement::Kind::config, e.what(), ""};
    }
    agree(context.transport(), mine);
    const detail::LambdaKernel<Body, Operands...> kernel(std::move(body));
    const RunArray arrays[] = {{&operands.field->storage(), {}}...};
    return prepared->run(arrays, kernel.kernel(), [&](const Failure& f) {
        return "the body threw at " + to_string(f.point) + " on rank " + std::to_string(context.rank()) + ": " + kernel.error();
    });
}

}  // namespace tilewave
