// Parts of matrices, and least squares of any rank, by their definitions, on ranks as threads.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "support/blas.hpp"
#include "support/dice.hpp"
#include "support/ranks.hpp"
#include "tilewave/linalg.hpp"

namespace tilewave {
namespace {

std::uint64_t new_seed(const char* what) {
    const std::uint64_t seed = std::random_device{}();
    std::printf("%s: seed %llu\n", what, static_cast<unsigned long long>(seed));
    return seed;
}

BlockCyclic layout_of(Dice& dice, std::int64_t rows, std::int64_t columns, int ranks) {
    switch (dice(0, 2)) {
        case 0: return by_block_rows(rows, columns, ranks, dice(0, 3));
        case 1: return by_block_columns(rows, columns, ranks, dice(0, 3));
        default: {
            const int high = ranks % 2 == 0 ? 2 : 1;
            return {{rows, high, dice(1, 4)}, {columns, ranks / high, dice(1, 4)}, dice(0, 1) == 1};
        }
    }
}

Slice slice_of(Dice& dice, std::int64_t extent) {
    const std::int64_t first = dice(0, extent - 1), step = dice(1, 3);
    return dice(0, 1) ? Slice{first, dice(first, extent), step} : Slice{first, dice(-1, first), -step};
}

// A dense matrix, column by column.
template <class T>
struct Dense {
    std::int64_t rows, columns;
    std::vector<T> items = std::vector<T>(static_cast<std::size_t>(rows * columns));

    T& operator()(std::int64_t i, std::int64_t j) { return items[static_cast<std::size_t>(i + j * rows)]; }
    const T& operator()(std::int64_t i, std::int64_t j) const { return items[static_cast<std::size_t>(i + j * rows)]; }
};

double real_of(Dice& dice, double) {
    return static_cast<double>(dice(-1000, 1000)) / 1000;
}
std::complex<double> real_of(Dice& dice, std::complex<double>) {
    return {real_of(dice, 0.0), real_of(dice, 0.0)};
}
double conjugate(double x) {
    return x;
}
std::complex<double> conjugate(std::complex<double> x) {
    return std::conj(x);
}

template <class T>
Dense<T> drawn(Dice& dice, std::int64_t rows, std::int64_t columns) {
    Dense<T> made{rows, columns};
    for (T& each : made.items) each = real_of(dice, T{});
    for (std::int64_t i = 0; i < std::min(rows, columns); ++i) made(i, i) += T(3);
    return made;
}

template <class T>
Dense<T> product(const Dense<T>& a, const Dense<T>& b) {
    Dense<T> c{a.rows, b.columns};
    for (std::int64_t j = 0; j < b.columns; ++j)
        for (std::int64_t l = 0; l < a.columns; ++l)
            for (std::int64_t i = 0; i < a.rows; ++i) c(i, j) += a(i, l) * b(l, j);
    return c;
}

template <class T>
Dense<T> adjoint(const Dense<T>& a) {
    Dense<T> c{a.columns, a.rows};
    for (std::int64_t j = 0; j < a.columns; ++j)
        for (std::int64_t i = 0; i < a.rows; ++i) c(j, i) = conjugate(a(i, j));
    return c;
}

// x of A x = b, by elimination.
template <class T>
Dense<T> solved(Dense<T> a, Dense<T> b) {
    for (std::int64_t k = 0; k < a.rows; ++k) {
        std::int64_t best = k;
        for (std::int64_t i = k; i < a.rows; ++i)
            if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
        for (std::int64_t j = 0; j < a.columns; ++j) std::swap(a(k, j), a(best, j));
        for (std::int64_t j = 0; j < b.columns; ++j) std::swap(b(k, j), b(best, j));
        for (std::int64_t i = 0; i < a.rows; ++i) {
            if (i == k) continue;
            const T factor = a(i, k) / a(k, k);
            for (std::int64_t j = 0; j < a.columns; ++j) a(i, j) -= factor * a(k, j);
            for (std::int64_t j = 0; j < b.columns; ++j) b(i, j) -= factor * b(k, j);
        }
    }
    for (std::int64_t j = 0; j < b.columns; ++j)
        for (std::int64_t i = 0; i < b.rows; ++i) b(i, j) /= a(i, i);
    return b;
}

template <class T>
void parts(Context& context, Dice dice) {
    for (int trial = 0; trial < 12; ++trial) {
        const std::int64_t m = dice(1, 13), n = dice(1, 13);
        const Dense<T> whole = drawn<T>(dice, m, n);
        const Matrix<T> a(context, layout_of(dice, m, n, context.size()), [&](auto i, auto j) { return whole(i, j); });
        const Slice rows = slice_of(dice, m), columns = slice_of(dice, n);
        Dense<T> wanted{rows.count(), columns.count()};
        for (std::int64_t i = 0; i < wanted.rows; ++i)
            for (std::int64_t j = 0; j < wanted.columns; ++j)
                wanted(i, j) = whole(rows.first + i * rows.step, columns.first + j * columns.step);
        const Matrix<T> part = a.part(rows, columns);
        EXPECT_EQ(part.storage().layout().columns.parts, a.storage().layout().columns.parts);
        EXPECT_EQ(part.storage().layout().rows.extent, wanted.rows);
        if (const auto found = part.gather(); context.rank() == 0)
            EXPECT_EQ(found, wanted.items) << part.storage().text();
        EXPECT_EQ(a.elements(rows, columns), wanted.items);
    }
}

// Of A = U V, with U of full column rank and V of full row rank, the least x is V^H (V V^H)^-1 (U^H U)^-1 U^H b.
template <class T>
void least_squares_of_any_rank(Context& context, Dice dice) {
    for (int trial = 0; trial < 6; ++trial) {
        const std::int64_t m = dice(1, 12), n = dice(1, 12), count = dice(1, 4), rank = dice(0, std::min(m, n));
        const double size = std::array{1.0, 1e-300, 1e300}[static_cast<std::size_t>(dice(0, 2))];
        const Dense<T> u = drawn<T>(dice, m, rank), v = drawn<T>(dice, rank, n), b = drawn<T>(dice, m, count);
        const Dense<T> whole = product(u, v);
        const Matrix<T> a(context, layout_of(dice, m, n, context.size()),
                          [&](auto i, auto j) { return whole(i, j) * size; }),
            sides(context, layout_of(dice, m, count, context.size()), [&](auto i, auto j) { return b(i, j) * size; });
        const Dense<T> wanted =
            product(adjoint(v), solved(product(v, adjoint(v)), solved(product(adjoint(u), u), product(adjoint(u), b))));
        const auto x = lstsq(a, sides);
        EXPECT_EQ(x.rank, rank);
        const std::vector<T> found = x.elements({0, n}, {0, count});
        for (std::size_t i = 0; i < found.size(); ++i)
            EXPECT_LT(std::abs(found[i] - wanted.items[i]), 1e-6) << m << " x " << n << " of rank " << rank;
        const Dense<T> image = product(whole, wanted);
        if (m <= n || rank < n) {
            EXPECT_TRUE(x.residues.empty());
            continue;
        }
        for (std::int64_t j = 0; j < count; ++j) {
            double squares = 0;
            for (std::int64_t i = 0; i < m; ++i) squares += std::norm(image(i, j) - b(i, j));
            if (size == 1) EXPECT_NEAR(x.residues[static_cast<std::size_t>(j)], squares, 1e-6 * (1 + squares));
        }
    }
}

}  // namespace

TEST(Linalg, PartsOfMatrices) {
    const std::uint64_t seed = new_seed("parts");
    for (const int ranks : {1, 2, 3, 4, 6}) {
        on_ranks(ranks, [&](Context& context) { parts<double>(context, Dice(seed)); });
        on_ranks(ranks, [&](Context& context) { parts<std::complex<double>>(context, Dice(seed + 1)); });
    }
    on_ranks(2, [](Context& context) {
        const Matrix<float> a(context, by_block_rows(5, 4, 2));
        EXPECT_THROW(a.part({0, 6}, {0, 4}), ConfigError);
        EXPECT_THROW(a.part({0, 5}, {-1, 2}), ConfigError);
        EXPECT_THROW(a.part({0, 5, 0}, {0, 4}), ConfigError);
        EXPECT_THROW(a.elements({0, 5}, {0, 4 - context.rank()}), ConfigError);
        EXPECT_EQ(a.part({3, 3}, {0, 4}).storage().layout().rows.extent, 0);
    });
}

TEST(Linalg, LeastSquaresOfAnyRank) {
    if (!have_blas()) GTEST_SKIP() << "no BLAS; TILEWAVE_BLAS names one";
    const std::uint64_t seed = new_seed("least squares");
    for (const int ranks : {1, 2, 3, 4, 6}) {
        on_ranks(ranks, [&](Context& context) { least_squares_of_any_rank<double>(context, Dice(seed)); });
        on_ranks(ranks,
                 [&](Context& context) { least_squares_of_any_rank<std::complex<double>>(context, Dice(seed + 1)); });
    }
    on_ranks(2, [](Context& context) {
        const Matrix<double> a(context, by_block_rows(5, 4, 2), [](auto i, auto j) { return 1.0 + (i == j); });
        const Matrix<double> b(context, by_block_rows(5, 1, 2));
        EXPECT_THROW(lstsq(a, b, {}, -1.0), ConfigError);
        EXPECT_THROW(lstsq(a, b, {}, 0.1 * (1 + context.rank())), ConfigError);
        EXPECT_EQ(lstsq(a, b, {}, 1.0).rank, 0);
    });
}

}  // namespace tilewave
