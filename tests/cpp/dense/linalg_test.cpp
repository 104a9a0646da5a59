// Products, factors and solutions in C++ programs, by their definitions, on ranks as threads. TILEWAVE_BLAS names the
// library; tools/test.sh sets it.
#include "tilewave/linalg.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "support/blas.hpp"
#include "support/ranks.hpp"

namespace tilewave {
namespace {

template <class T>
T value(std::int64_t i, std::int64_t j) {
    return static_cast<T>(std::cos(static_cast<double>(3 * i + j * j)) + (i == j ? 8 : 0));
}

// The largest difference of two wholes, on rank 0.
template <class T>
double difference(const std::vector<T>& a, const std::vector<T>& b) {
    EXPECT_EQ(a.size(), b.size());
    double most = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
    return most;
}

template <class T>
std::vector<T> product(const std::vector<T>& a, const std::vector<T>& b, std::int64_t m, std::int64_t k,
                       std::int64_t n) {
    std::vector<T> c(static_cast<std::size_t>(a.empty() ? 0 : m * n));
    if (!c.empty())
        for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t l = 0; l < k; ++l)
                for (std::int64_t i = 0; i < m; ++i) c[i + j * m] += a[i + l * m] * b[l + j * k];
    return c;
}

template <class T>
void products_and_factors(Context& context, double bound) {
    const int ranks = context.size();
    const auto init = [](std::int64_t i, std::int64_t j) { return value<T>(i, j); };
    const Matrix<T> a(context, by_block_rows(20, 13, ranks), init), b(context, by_block_columns(13, 9, ranks, 2), init);
    for (const std::optional<ProductAlgorithm> algorithm :
         {std::optional<ProductAlgorithm>{}, {ProductAlgorithm::wavefront}, {ProductAlgorithm::summa}}) {
        Matrix<T> c(context, by_block_rows(20, 9, ranks), init);
        const auto before = c.gather();
        const ProductReport report =
            multiply(a, b, c, {.alpha = 2.0, .beta = -1.0, .algorithm = algorithm, .panel = 3});
        EXPECT_EQ(report.plan.panel, 3);
        EXPECT_EQ(report.plan.algorithm, algorithm.value_or(report.plan.algorithm));
        auto wanted = product(a.gather(), b.gather(), 20, 13, 9);
        for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = T(2) * wanted[i] - before[i];
        EXPECT_LT(difference(c.gather(), wanted), bound);
    }
    // B^T A^T by columns, in layouts that no algorithm takes as they are.
    Matrix<T> turned(context, by_block_columns(9, 20, ranks, 3), init);
    const Matrix<T> other = a.redistributed(by_block_columns(20, 13, ranks, 2));
    multiply(b, other, turned, {.op_a = Transpose::adjoint, .op_b = Transpose::transposed});
    auto wanted = product(a.gather(), b.gather(), 20, 13, 9), conjugate = turned.gather(), found = wanted;
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = conjugate[i / 20 + 9 * (i % 20)];
    EXPECT_LT(difference(found, wanted), bound);  // the values are real
    const Matrix<T> whole(context, by_block_rows(17, 17, ranks), init),
        sides(context, by_block_rows(17, 3, ranks), init);
    for (const FactorOptions& options :
         {FactorOptions{}, {.block = 4}, {.block = 3, .algorithm = FactorAlgorithm::wavefront}}) {
        const LuFactor<T> factors = lu(whole, options);
        EXPECT_EQ(factors.info(), 0);
        EXPECT_LT(difference(product(whole.gather(), factors.solve(sides).gather(), 17, 17, 3), sides.gather()), bound);
    }
    // In the memory of a matrix that lies as its factor.
    Matrix<T> own = whole.redistributed(by_block_columns(17, 17, ranks, 4));
    const T* const memory = own.local();
    LuFactor<T> taken = lu(std::move(own), {.block = 4});
    EXPECT_TRUE(taken.factor.matrix.data() == reinterpret_cast<const std::byte*>(memory));
    EXPECT_EQ(difference(taken.solve(sides).gather(), lu(whole, {.block = 4}).solve(sides).gather()), 0);
    const Matrix<T> definite(context, by_block_columns(17, 17, ranks), [](std::int64_t i, std::int64_t j) {
        return static_cast<T>(1.0 / static_cast<double>(1 + std::abs(i - j)) + (i == j ? 4 : 0));
    });
    const CholeskyFactor<T> lower = cholesky(
        definite, {.block = 5, .algorithm = ranks > 1 ? FactorAlgorithm::wavefront : FactorAlgorithm::broadcast});
    EXPECT_LT(difference(product(definite.gather(), lower.solve(sides).gather(), 17, 17, 3), sides.gather()), bound);
    // Q^H A is R, and Q R is A.
    const Matrix<T> tall(context, by_block_rows(19, 7, ranks), init);
    const QrFactor<T> reflectors = qr(tall, {.block = 2, .lookahead = 2, .tree = BroadcastTree::least_rounds});
    const Matrix<T> upper = reflectors.apply(tall, true);
    const auto r = upper.gather();
    for (std::int64_t j = 0; j < 7 && !r.empty(); ++j)
        for (std::int64_t i = j + 1; i < 19; ++i) EXPECT_LT(std::abs(r[static_cast<std::size_t>(i + 19 * j)]), bound);
    EXPECT_LT(difference(reflectors.apply(upper).gather(), tall.gather()), bound);
    // The inverse, a determinant by its definition, a triangle, and least squares whose solution is known.
    EXPECT_LT(difference(product(whole.gather(), inv(whole).gather(), 17, 17, 17),
                         Matrix<T>(context, by_block_rows(17, 17, ranks),
                                   [](std::int64_t i, std::int64_t j) { return i == j ? 1.0 : 0.0; })
                             .gather()),
              bound);
    const Matrix<T> small(context, by_block_columns(3, 3, ranks), [](std::int64_t i, std::int64_t j) {
        return i == j ? 0.0 : i + 2.0 * static_cast<double>(j);
    });
    EXPECT_LT(std::abs(lu(small, {.block = 1}).det() - T(2 * 5 * 2 + 4 * 1 * 4)), bound);
    const Matrix<T> triangle(context, by_block_rows(17, 17, ranks), [](std::int64_t i, std::int64_t j) {
        return i < j ? 0.0 : i == j ? 3.0 : 0.1 * static_cast<double>(i - j);
    });
    const Matrix<T> x = solve_triangular(triangle, sides, {.upper = false});
    EXPECT_LT(difference(product(triangle.gather(), x.gather(), 17, 17, 3), sides.gather()), bound);
    const Matrix<T> known(context, by_block_rows(7, 4, ranks), init);
    Matrix<T> image(context, by_block_rows(19, 4, ranks));
    multiply(tall, known, image);
    EXPECT_LT(difference(lstsq(tall, image).gather(), known.gather()), bound);
    EXPECT_EQ(difference(tall.redistributed(by_block_columns(19, 7, ranks, 3)).gather(), tall.gather()), 0);
}

// What is computed without blocks, by its definition.
template <class T>
void arithmetic(Context& context, double bound) {
    const int ranks = context.size();
    const auto init = [](std::int64_t i, std::int64_t j) { return value<T>(i, j); };
    const Matrix<T> a(context, by_block_rows(9, 13, ranks), init), b(context, by_block_columns(9, 13, ranks, 2), init),
        c(context, by_block_columns(13, 9, ranks, 2), init);
    const Matrix<T> sum = T(2) * a + b - b * T(0.5);  // in the layout of a
    EXPECT_TRUE(sum.storage().layout().same(a.storage().layout()));
    auto wanted = a.gather();
    for (T& each : wanted) each *= T(2.5);
    EXPECT_LT(difference(sum.gather(), wanted), bound);
    EXPECT_LT(difference((-(a * c)).gather(), product((-a).gather(), c.gather(), 9, 13, 9)), bound);
    for (const std::int64_t offset : {-9, -8, -2, 0, 3, 12, 13}) {
        const std::int64_t below = std::max<std::int64_t>(0, -offset), right = std::max<std::int64_t>(0, offset);
        std::vector<T> expected;
        for (std::int64_t k = 0; k + below < 9 && k + right < 13; ++k) expected.push_back(init(k + below, k + right));
        EXPECT_EQ(a.diagonal(offset), expected) << offset;
        EXPECT_EQ(b.diagonal(offset), expected) << offset;
    }
    T trace{};
    for (std::int64_t k = 0; k < 9; ++k) trace += init(k, k);
    EXPECT_LT(std::abs(b.trace() - trace), bound);
    double squares = 0, most = 0, columns = 0, rows = 0;
    for (std::int64_t j = 0; j < 13; ++j) {
        double column = 0;
        for (std::int64_t i = 0; i < 9; ++i) {
            column += std::abs(init(i, j));
            squares += std::pow(std::abs(init(i, j)), 2);
            most = std::max<double>(most, std::abs(init(i, j)));
        }
        columns = std::max(columns, column);
    }
    for (std::int64_t i = 0; i < 9; ++i) {
        double row = 0;
        for (std::int64_t j = 0; j < 13; ++j) row += std::abs(init(i, j));
        rows = std::max(rows, row);
    }
    for (const Matrix<T>* each : {&a, &b}) {
        EXPECT_NEAR(norm(*each), std::sqrt(squares), bound);
        EXPECT_NEAR(norm(*each, Norm::one), columns, bound);
        EXPECT_NEAR(norm(*each, Norm::infinity), rows, bound);
        EXPECT_EQ(norm(*each, Norm::max), most);
    }
    EXPECT_TRUE(std::isnan(norm(Matrix<T>(context, by_block_rows(5, 3, ranks), [](std::int64_t i, std::int64_t j) {
        return i == 4 && j == 1 ? std::nan("") : 1.0;
    }))));
}

// Determinants and conditions of matrices whose inverses are known: triangles of ones, times a number.
template <class T>
void determinants(Context& context, double bound) {
    const int ranks = context.size();
    const Matrix<T> triangle(context, by_block_rows(400, 400, ranks), [](std::int64_t i, std::int64_t j) {
        return i == j ? -8.0 : i == j + 1 ? 8.0 : 0.0;
    });
    const auto [sign, log] = lu(triangle).slogdet();  // the determinant is 2^1200
    EXPECT_LT(std::abs(sign - T(1)), bound);
    EXPECT_NEAR(log, 1200 * std::log(2.0), bound);
    // The inverse is a lower triangle of -1/8: 400/8 is its largest column, and row.
    EXPECT_NEAR(cond(triangle), 16.0 * 50, 1e3 * bound);
    EXPECT_NEAR(cond(triangle, Norm::infinity), 16.0 * 50, 1e3 * bound);
    const Matrix<T> definite(context, by_block_columns(50, 50, ranks), [](std::int64_t i, std::int64_t j) {
        return 100.0 * static_cast<double>(1 + std::min(i, j));  // L of 10s: the determinant is 100^50
    });
    EXPECT_NEAR(cholesky(definite).logdet(), 50 * std::log(100.0), 10 * bound);
    EXPECT_NEAR(lu(definite).slogdet().second, 50 * std::log(100.0), 10 * bound);
    const Matrix<T> b(context, by_block_rows(50, 2, ranks),
                      [](std::int64_t i, std::int64_t j) { return value<double>(i, j); });
    EXPECT_LT(difference((definite * solve(definite, b)).gather(), b.gather()), 10 * bound);
    const Matrix<T> sides = triangle.redistributed(by_block_columns(400, 400, ranks));
    Matrix<T> turned(context, by_block_rows(400, 400, ranks));
    multiply(triangle, lu(triangle).solve(sides, Transpose::transposed), turned, {.op_a = Transpose::transposed});
    EXPECT_LT(difference(turned.gather(), triangle.gather()), bound);
}

}  // namespace

TEST(Linalg, Arithmetic) {
    if (!have_blas()) GTEST_SKIP() << "no BLAS; TILEWAVE_BLAS names one";
    for (const int ranks : {1, 2, 3, 4, 6}) {
        const auto errors = errors_on_ranks(ranks, [](Context& context) {
            arithmetic<double>(context, 1e-11);
            arithmetic<float>(context, 2e-4);
            arithmetic<std::complex<double>>(context, 1e-11);
            arithmetic<std::complex<float>>(context, 2e-4);
        });
        EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
    }
}

TEST(Linalg, DeterminantsAndConditions) {
    if (!have_blas()) GTEST_SKIP() << "no BLAS; TILEWAVE_BLAS names one";
    for (const int ranks : {1, 3}) {
        const auto errors = errors_on_ranks(ranks, [](Context& context) {
            determinants<double>(context, 1e-9);
            determinants<float>(context, 1e-2);
            determinants<std::complex<double>>(context, 1e-9);
        });
        EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
    }
}

TEST(Linalg, ProductsAndFactors) {
    if (!have_blas()) GTEST_SKIP() << "no BLAS; TILEWAVE_BLAS names one";
    for (const int ranks : {1, 2, 3}) {
        const auto errors = errors_on_ranks(ranks, [](Context& context) {
            products_and_factors<double>(context, 1e-11);
            products_and_factors<float>(context, 2e-3);
            products_and_factors<std::complex<double>>(context, 1e-11);
            products_and_factors<std::complex<float>>(context, 2e-3);
        });
        EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
    }
}

TEST(Linalg, WhatOneRankGetsWrongAllRanksThrow) {
    if (!have_blas()) GTEST_SKIP() << "no BLAS; TILEWAVE_BLAS names one";
    const auto none = [](std::int64_t, std::int64_t) { return 0.0; };
    const auto errors = errors_on_ranks(2, [&](Context& context) {
        const Matrix<double> zero(context, by_block_rows(4, 4, 2), none), tall(context, by_block_rows(5, 4, 2), none);
        EXPECT_THROW(lu(zero, {.block = context.rank() == 1 ? 0 : 3}), ConfigError);
        EXPECT_THROW(lu(zero, {.memory_bytes = 7}), ConfigError);
        EXPECT_LE(lu(zero, {.memory_bytes = 200}).factor.plan.memory_bytes, 200);
        EXPECT_THROW(cholesky(tall), ConfigError);
        const auto factors = lu(zero, {.block = 3});
        EXPECT_EQ(factors.info(), 1);
        EXPECT_THROW(factors.solve(zero), ConfigError);
        EXPECT_EQ(cholesky(zero).info(), 1);
        Matrix<double> c(context, by_block_rows(4, 4, 2));
        EXPECT_THROW(multiply(zero, tall, c), ConfigError);
        EXPECT_THROW(multiply(zero, zero, c, {.panel = context.rank()}), ConfigError);
        EXPECT_THROW(multiply(zero, zero, c, {.memory_bytes = 1}), ConfigError);
        EXPECT_THROW(multiply(zero, zero, c, {.alpha = {0, 1}}), ConfigError);  // of real numbers
        EXPECT_THROW(multiply(zero, zero, c, {.alpha = 1e-9 * (1 + context.rank())}), ConfigError);
        EXPECT_THROW(multiply(zero, zero, c, {.task_flops = 0}), ConfigError);
        EXPECT_THROW(multiply(zero, zero, c, {.algorithm = ProductAlgorithm::summa, .pending = true}), ConfigError);
        EXPECT_THROW(qr(tall).apply(zero), ConfigError);
        EXPECT_THROW(solve_triangular(zero, zero), ConfigError);
        EXPECT_THROW(lstsq(tall.redistributed(by_block_rows(5, 4, 2, 1)), zero), ConfigError);
        EXPECT_EQ(lstsq(zero, zero).rank, 0);
        EXPECT_THROW(qr(zero).solve(zero), ConfigError);
        EXPECT_THROW(inv(zero), ConfigError);
        EXPECT_EQ(factors.det(), 0);
        EXPECT_EQ(factors.slogdet(), (std::pair{0.0, -std::numeric_limits<double>::infinity()}));
        EXPECT_TRUE(std::isinf(cond(zero)));
        EXPECT_THROW(cond(zero, Norm::max), ConfigError);
        EXPECT_THROW(cond(tall), ConfigError);
        EXPECT_THROW(solve(zero, zero), ConfigError);
        EXPECT_THROW(zero + tall, ConfigError);
        EXPECT_THROW(zero * tall, ConfigError);
        EXPECT_THROW(norm(zero, context.rank() ? Norm::max : Norm::one), ConfigError);
        EXPECT_THROW(zero.diagonal(context.rank()), ConfigError);
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
}

TEST(Linalg, MatricesThatNoMemoryHoldsAreRefused) {
    const auto errors = errors_on_ranks(1, [](Context& context) {
        constexpr std::int64_t large = std::int64_t{1} << 40;
        EXPECT_THROW(Matrix<double>(context, by_block_rows(large, large, 1)), ConfigError);
        EXPECT_THROW(Matrix<float>(context, by_block_columns(large, 1 << 22, 1)), ConfigError);
        EXPECT_EQ(Matrix<float>(context, by_block_rows(large, 0, 1)).storage().columns(), 0);
    });
    EXPECT_EQ(errors, std::vector<std::string>(1));
}

}  // namespace tilewave
