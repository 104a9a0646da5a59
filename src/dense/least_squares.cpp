#include "dense/least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <utility>

#include "arrays/matrix_move.hpp"
#include "context/plans_only.hpp"
#include "dense/elements.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

namespace {

// Diagonal elements of R, relative to the largest one, this many times above what counts as 0 are not looked at twice:
// without pivoting they show singular values to about a factor of the order of the matrix.
constexpr double safe = 1e3;
// Columns between looks for an interrupt, of factors without blocks.
constexpr std::int64_t columns_between_agreements = 64;

template <class T>
struct RealOf {
    using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
    using Type = T;
};
template <class T>
using Limits = std::numeric_limits<typename RealOf<T>::Type>;

template <class T>
T conjugate(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return x;
    else
        return std::conj(x);
}

// a b, without a look at whether it is infinite.
template <class T>
T times(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
        return a * b;
    else
        return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// The square of its magnitude, times that of `unit`.
template <class T>
double square(T x, double unit = 1) {
    const double real = unit * static_cast<double>(std::real(x)), imaginary = unit * static_cast<double>(std::imag(x));
    return real * real + imaginary * imaginary;
}

void times_power(MatrixStorage& m, int exponent) {
    each_column(m, [&](auto* items, std::int64_t) {
        using Real = typename RealOf<std::decay_t<decltype(*items)>>::Type;
        auto* const parts = reinterpret_cast<Real*>(items);
        const std::int64_t count = m.rows() * static_cast<std::int64_t>(sizeof *items / sizeof(Real));
        for (std::int64_t i = 0; i < count; ++i) parts[i] = std::ldexp(parts[i], exponent);
    });
}

// Where elements are so small or large that squares of them leave the range, as LAPACK's gels does: a copy times
// 2^exponent in place of the matrix. Gives the exponent. Collective.
int scale(MatrixStorage& m) {
    const double largest = plans_only(m.context()) ? 1 : norm_of(m, Norm::max);
    const double least = for_type(m.type(), [](auto zero) {
        using Type = Limits<decltype(zero)>;
        return static_cast<double>(Type::min()) / static_cast<double>(Type::epsilon());
    });
    if (!(largest > 0) || !std::isfinite(largest) || (largest >= least && largest <= 1 / least)) return 0;
    const int exponent = -std::ilogb(largest) - 1;
    agree_after(m.context(), "scaled", [&] { m = MatrixStorage(m); });
    times_power(m, exponent);
    return exponent;
}

// By right-hand side, on every rank: the sum of squares below the n-th row.
std::vector<double> residues_of(const MatrixStorage& sides, std::int64_t n) {
    std::vector<double> sums(static_cast<std::size_t>(sides.layout().columns.extent));
    each_column(sides, [&](const auto* items, std::int64_t column) {
        for (std::int64_t i = n; i < sides.rows(); ++i) sums[static_cast<std::size_t>(column)] += square(items[i]);
    });
    allreduce(sides.context().transport(), sums, [](auto& local, const auto& other) {
        std::transform(local.begin(), local.end(), other.begin(), local.begin(), std::plus<>());
    });
    return sums;
}

// What a rank has to offer as the next pivot; the first one of equals is taken.
struct Candidate {
    double size = -1;
    std::int64_t number = 0, rank = 0;
    bool before(const Candidate& other) const { return size != other.size ? size > other.size : number < other.number; }
};

// Turns t x = c into W x = d with as many independent rows as t has rank, which it gives: W and d are the first rows of
// both. The columns of W are in the order of t: R times the inverse permutation. Both by columns. A column counts where
// its part beyond the ones before it is more than `bound` times the largest column. Each step costs a message of a
// column and one pass over what is left of t: no blocks, unlike LAPACK's geqp3. Collective.
template <class T>
std::int64_t reflect_by_pivots(MatrixStorage& t, MatrixStorage& c, double bound) {
    using Real = typename RealOf<T>::Type;
    Context& context = t.context();
    Transport& transport = context.transport();
    const std::int64_t n = t.layout().rows.extent;
    auto* const items = reinterpret_cast<T*>(t.data());
    const double largest_item = norm_of(t, Norm::max);
    const double unit = largest_item > 0 ? std::ldexp(1.0, -std::ilogb(largest_item)) : 1;  // squares are in range
    std::vector<bool> used;
    std::vector<Candidate> best;
    std::string bytes;
    std::vector<T> v;
    double largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const auto ready = [&] {
            if (i > 0) return;
            used.resize(static_cast<std::size_t>(t.columns()));
            bytes.reserve(static_cast<std::size_t>(n) * sizeof(T));
            v.resize(static_cast<std::size_t>(n));
        };
        if (i % columns_between_agreements == 0) agree_after(context, "columns", ready);
        best.assign(1, {-1, 0, context.rank()});
        std::int64_t local = -1;
        for (std::int64_t j = 0; j < t.columns(); ++j) {
            if (used[static_cast<std::size_t>(j)]) continue;
            double sum = 0;
            for (std::int64_t k = i; k < n; ++k) sum += square(items[k + j * n], unit);
            const Candidate one{std::sqrt(sum), t.column({j}).at, context.rank()};
            if (one.before(best[0])) best[0] = one, local = j;
        }
        allreduce(transport, best, [](auto& here, const auto& other) {
            if (other[0].before(here[0])) here[0] = other[0];
        });
        if (i == 0) largest = best[0].size;
        if (!(best[0].size > bound * largest)) return i;
        const bool found = best[0].rank == context.rank();
        T* const column = items + i + local * n;
        if (found) bytes.assign(reinterpret_cast<const char*>(column), static_cast<std::size_t>(n - i) * sizeof(T));
        broadcast(transport, bytes, static_cast<int>(best[0].rank));
        std::copy_n(reinterpret_cast<const T*>(bytes.data()), n - i, v.begin());
        const auto size = static_cast<Real>(best[0].size / unit), beta = std::real(v[0]) >= 0 ? -size : size;
        const T tau = conjugate((T(beta) - v[0]) / T(beta)), scale = T(1) / (v[0] - T(beta));
        v[0] = T(1);
        for (std::int64_t k = 1; k < n - i; ++k)
            v[static_cast<std::size_t>(k)] = times(v[static_cast<std::size_t>(k)], scale);
        if (found) {  // its column is known, and reflected as the others would round it
            used[static_cast<std::size_t>(local)] = true;
            std::fill_n(column, n - i, T{});
            column[0] = beta;
        }
        const auto reflect = [&](T* x) {
            T sum{};
            for (std::int64_t k = 0; k < n - i; ++k) sum += times(conjugate(v[static_cast<std::size_t>(k)]), x[k]);
            sum = times(tau, sum);
            for (std::int64_t k = 0; k < n - i; ++k) x[k] -= times(sum, v[static_cast<std::size_t>(k)]);
        };
        for (std::int64_t j = 0; j < t.columns(); ++j)
            if (!used[static_cast<std::size_t>(j)]) reflect(items + i + j * n);
        for (std::int64_t j = 0; j < c.columns(); ++j) reflect(reinterpret_cast<T*>(c.data()) + i + j * n);
    }
    return n;
}

// The conjugate transposed becomes that of a matrix. Collective.
void take_adjoint(const MatrixStorage& a, MatrixStorage& made) {
    std::optional<ReadyMove> move;
    agree_after(a.context(), "adjoint", [&] {
        move.emplace(a.context(),
                     MatrixMove(a.layout().transposed(), made.layout(), item_bytes(a.type()), a.context().size()));
    });
    Binding from = a.binding();
    std::swap(from.stride_bytes[0], from.stride_bytes[1]);
    move->run(from, made.binding());
    each_column(made, [&](auto* items, std::int64_t) {
        std::transform(items, items + made.rows(), items, [](auto x) { return conjugate(x); });
    });
}

}  // namespace

double least_cond(const MatrixStorage& a) {
    const std::int64_t most = std::max(a.layout().rows.extent, a.layout().columns.extent);
    return for_type(a.type(), [](auto zero) { return static_cast<double>(Limits<decltype(zero)>::epsilon()); }) *
           static_cast<double>(std::max<std::int64_t>(1, most));
}

LeastSquaresRun::LeastSquaresRun(const std::string& name, const FactorStorage& f, const MatrixStorage& b,
                                 const BlockCyclic& layout_of_x, double cond, bool wide, std::int64_t held_bytes,
                                 const std::shared_ptr<const Blas>& library)
    : factor_(f),
      cond_(cond),
      wide_(wide),
      held_bytes_(held_bytes),
      made_(b.context(), layout_of_x, b.type()),
      run_(f, &b, made_.shared(), library) {
    require_sides(name, f, b, wide ? f.matrix.layout().columns.extent : f.matrix.layout().rows.extent);
    if (!wide) run_.apply({true, false});
    run_.solve({true, wide ? Transpose::adjoint : Transpose::none, false});
    if (wide) run_.apply({false, false});
}

LeastSquaresFound LeastSquaresRun::run() {
    const std::int64_t m = factor_.matrix.layout().rows.extent, n = factor_.matrix.layout().columns.extent;
    LeastSquaresFound found{{made_.shared(), n, {}, {}}, first_dependent(factor_.matrix, cond_)};
    if (found.info != 0) return found;
    found.reports = run_.run("", held_bytes_).reports;
    if (m > n && !wide_) found.residues = residues_of(run_.sides(), n);
    return found;
}

LeastSquaresCall::LeastSquaresCall(const std::string& name, const MatrixStorage& a, const MatrixStorage& b,
                                   const BlockCyclic& layout_of_x, double cond, const FactorOptions& options,
                                   std::shared_ptr<const Blas> library, bool known)
    : name_(name),
      given_(a.shared()),
      b_(b.shared()),
      layout_(layout_of_x),
      cond_(cond),
      options_(options),
      library_(std::move(library)),
      wide_(a.layout().rows.extent < a.layout().columns.extent),
      known_(known),
      works_(wide_ ? MatrixStorage(a.context(),
                                   even_columns(a.layout().columns.extent, a.layout().rows.extent, a.context().size()),
                                   a.type())
                   : a.shared()),
      call_(name, FactorKind::qr, works_, options, library_) {
    require(&b.context() == &a.context() && b.type() == a.type() && b.layout().rows.extent == a.layout().rows.extent,
            name + ": b is " + b.text() + ", a " + a.text() + "; allowed: as many rows, one type and context");
}

LeastSquaresFound LeastSquaresCall::run() {
    const int up = scale(given_), up_of_b = scale(b_);
    if (wide_)
        take_adjoint(given_, works_);
    else
        works_ = given_.shared();
    const auto ranked = call_.ranked();
    const FactorStorage factor = call_.run(*ranked, false);
    const auto deficient = [&] {
        double least = std::numeric_limits<double>::infinity(), most = 0;
        for (const auto& each : diagonal_of(factor.matrix, 0)) {
            if (std::isnan(std::abs(each))) return false;
            least = std::min(least, std::abs(each)), most = std::max(most, std::abs(each));
        }
        return least <= safe * cond_ * most;
    };
    std::optional<LeastSquaresFound> found;
    if (!known_ && !plans_only(given_.context()) && deficient()) {
        found = by_pivots(factor);
    } else {
        std::optional<LeastSquaresRun> ready;
        agree_after(given_.context(), "ready", [&] {
            const std::int64_t held = factor.matrix.bytes() + factor.triangles.bytes() + (wide_ ? works_.bytes() : 0);
            ready.emplace(name_, factor, b_, layout_, 0, wide_, held, library_);
        });
        found = ready->run();
    }
    found->reports.insert(found->reports.begin(), factor.report);
    found->ranked.insert(found->ranked.begin(), ranked);
    if (up != 0 || up_of_b != 0) {
        times_power(found->x, up - up_of_b);
        for (double& each : found->residues) each = std::ldexp(each, -2 * up_of_b);
    }
    return std::move(*found);
}

// The same of a matrix that may have any rank, by its factor R, or of a wide one that of its conjugate transposed.
LeastSquaresFound LeastSquaresCall::by_pivots(const FactorStorage& factor) const {
    Context& context = given_.context();
    const Dtype type = given_.type();
    const int ranks = context.size();
    const std::int64_t m = works_.layout().rows.extent, n = works_.layout().columns.extent,
                       count = b_.layout().columns.extent;
    const auto made = [&](const BlockCyclic& layout) {
        std::optional<MatrixStorage> storage;
        agree_after(context, "memory", [&] { storage.emplace(context, layout, type); });
        return std::move(*storage);
    };
    const auto applied = [&](const MatrixStorage& x, bool adjoint) {
        std::unique_ptr<SidesRun> ready;
        agree_after(context, "ready", [&] { ready = applying(factor, x, adjoint, library_); });
        return ready->run().x;
    };
    const Slice all{0, n}, sides{0, count};
    MatrixStorage t = made(by_block_columns(n, n, ranks, 1)), c = made(by_block_columns(n, count, ranks, 1));
    take_part(factor.matrix, all, all, t);
    each_column(t, [&](auto* items, std::int64_t column) { std::fill(items + column + 1, items + n, 0); });
    std::vector<double> residues;
    if (wide_) {
        MatrixStorage turned = made(t.layout());
        take_adjoint(t, turned);
        t = std::move(turned);
        take_part(b_, all, sides, c);
    } else {
        MatrixStorage turned = made(even_columns(m, count, ranks));
        take_part(applied(b_, true), {0, m}, sides, turned);
        take_part(turned, all, sides, c);
        if (m > n) residues = residues_of(turned, n);
    }
    const std::int64_t rank = for_type(type, [&](auto zero) { return reflect_by_pivots<decltype(zero)>(t, c, cond_); });
    MatrixStorage x = made(by_block_columns(wide_ ? m : n, count, ranks, 1));
    std::fill_n(x.data(), x.bytes(), std::byte{});
    LeastSquaresFound found{{made(layout_), rank, rank == n ? std::move(residues) : std::vector<double>(), {}}};
    if (rank > 0) {
        MatrixStorage w = made(by_block_columns(rank, n, ranks, 1)), d = made(by_block_columns(rank, count, ranks, 1));
        take_part(t, {0, rank}, all, w);
        take_part(c, {0, rank}, sides, d);
        std::optional<LeastSquaresCall> call;
        agree_after(context, "ready", [&] {
            call.emplace(name_, w, d, by_block_columns(n, count, ranks, 1), 0, options_, library_, true);
        });
        const LeastSquaresFound solved = call->run();
        found.reports = solved.reports, found.ranked = solved.ranked;
        for (std::int64_t j = 0; j < x.columns(); ++j)
            std::copy_n(solved.x.data() + j * n * item_bytes(type), n * item_bytes(type),
                        x.data() + j * x.rows() * item_bytes(type));
    }
    take_part(wide_ ? applied(x, false) : x, {0, wide_ ? m : n}, sides, found.x);
    return found;
}

}  // namespace tilewave
