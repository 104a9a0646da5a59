// Poisson problems in C++ programs: against solutions by formula, and by elimination of small problems.
#include "tilewave/multigrid.hpp"

#include <gtest/gtest.h>

#include <numbers>
#include <random>

#include "support/dice.hpp"
#include "support/ranks.hpp"

namespace tilewave {
namespace {

// x of A x = b; A by rows. Where A has no inverse, what is free is 0.
std::vector<double> solved(std::vector<std::vector<double>> a, std::vector<double> b) {
    const std::size_t n = b.size();
    for (std::size_t k = 0; k < n; ++k) {  // symmetric and not negative: without pivots
        if (std::abs(a[k][k]) < 1e-9) continue;
        for (std::size_t i = 0; i < n; ++i) {
            const double factor = i == k ? 0 : a[i][k] / a[k][k];
            for (std::size_t j = k; j < n && factor != 0; ++j) a[i][j] -= factor * a[k][j];
            b[i] -= factor * b[k];
        }
    }
    for (std::size_t k = 0; k < n; ++k) b[k] = std::abs(a[k][k]) < 1e-9 ? 0 : b[k] / a[k][k];
    return b;
}

template <int D>
void random_problem(Context& context, Dice dice) {
    Index shape = Index::filled(D, 1);
    for (int d = 0; d < D; ++d) shape[d] = dice(1, D == 1 ? 40 : D == 2 ? 11 : 5);
    PoissonOptions<D> options;
    options.sweeps = static_cast<int>(dice(1, 2));
    for (int d = 0; d < D; ++d) {
        options.boundary[d] = dice(0, 2) == 0 ? std::array{Boundary::periodic, Boundary::periodic}
                                              : std::array{Boundary(dice(0, 1)), Boundary(dice(0, 1))};
        options.spacing[d] = 0.5 + 0.25 * static_cast<double>(dice(0, 3));
    }
    const Box all{Index::filled(D, 0), shape};
    const std::int64_t cells = all.points();
    std::vector<double> k, sigma, f;
    const bool varies = dice(0, 1), without = dice(0, 2) > 0;
    for (std::int64_t i = 0; i < cells; ++i) {
        k.push_back(varies ? std::pow(10.0, static_cast<double>(dice(-1, 1))) : 2.0);
        sigma.push_back(without ? 0 : 0.125 * static_cast<double>(dice(0, 8)));
        f.push_back(static_cast<double>(dice(-8, 8)));
    }
    const auto number = [shape](const Index& at) {
        std::int64_t found = 0;
        for (int d = 0; d < D; ++d) found = found * shape[d] + at[d];
        return static_cast<std::size_t>(found);
    };
    options.k = [&](const Index& at) { return k[number(at)]; };
    options.sigma = [&](const Index& at) { return sigma[number(at)]; };
    std::vector<std::vector<double>> matrix(f.size(), std::vector<double>(f.size()));
    Index at = all.lo;
    do {
        std::vector<double>& row = matrix[number(at)];
        row[number(at)] += options.sigma(at);
        for (int d = 0; d < D; ++d)
            for (const int side : {0, 1}) {
                const double unit = 1 / (options.spacing[d] * options.spacing[d]);
                Index other = at;
                other[d] += 2 * side - 1;
                if (options.boundary[d][0] == Boundary::periodic) other[d] = (other[d] + shape[d]) % shape[d];
                if (all.contains(other)) {
                    const double face =
                        2 * unit * options.k(at) * options.k(other) / (options.k(at) + options.k(other));
                    row[number(at)] += face;
                    row[number(other)] -= face;
                } else if (options.boundary[d][side] == Boundary::dirichlet) {
                    row[number(at)] += 2 * unit * options.k(at);
                }
            }
    } while (next_point(at, all));
    const auto zero_mean = [&](std::vector<double>& values) {
        const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(cells);
        for (double& each : values) each -= mean;
    };
    bool singular = std::all_of(sigma.begin(), sigma.end(), [](double s) { return s == 0; });
    for (int d = 0; d < D; ++d)
        for (const Boundary side : options.boundary[d]) singular = singular && side != Boundary::dirichlet;
    if (singular) zero_mean(f);
    std::vector<double> wanted = solved(matrix, f);
    if (singular) zero_mean(wanted);
    Poisson<D> solver(context, shape, options);
    Field<double> given(context, shape, [&](const Index& cell) { return f[number(cell)]; });
    for (int turn = 0; turn < 2; ++turn) {
        const std::vector<double> found = solver.solve(given, 1e-10).gather();
        const std::string what = to_string(shape) + " on " + std::to_string(context.size()) + " ranks, " +
                                 std::to_string(solver.iterations()) + " iterations";
        EXPECT_LE(solver.norms().back(), 1e-10 * solver.norms().front()) << what;
        EXPECT_LE(solver.iterations(), 60) << what;
        const double size = std::abs(*std::max_element(wanted.begin(), wanted.end(),
                                                       [](double a, double b) { return std::abs(a) < std::abs(b); }));
        for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6 * (1 + size)) << what;
    }
}

}  // namespace

TEST(Multigrid, SolutionsByElimination) {
    const std::uint64_t seed = std::random_device{}();
    std::printf("multigrid: seed %llu\n", static_cast<unsigned long long>(seed));
    const std::array problems{&random_problem<1>, &random_problem<2>, &random_problem<3>};
    std::uint64_t number = seed;
    for (const int ranks : {1, 1, 1, 2, 2, 3, 4, 6})
        on_ranks(ranks, [&, number = ++number](Context& context) { problems[number % 3](context, Dice(number)); });
}

TEST(Multigrid, ErrorsOfSecondOrderInAsManyIterationsAndTheSameBits) {
    constexpr double pi = std::numbers::pi;
    std::vector<std::vector<double>> all;  // by number of ranks
    for (const int ranks : {1, 3}) {
        on_ranks(ranks, [&](Context& context) {
            double before = 0;
            for (const std::int64_t n : {16, 32, 64}) {
                const auto exact = [&](const Index& at) {
                    const auto x = [&](int d) { return (static_cast<double>(at[d]) + 0.5) / static_cast<double>(n); };
                    return std::sin(pi * x(0)) * std::sin(2 * pi * x(1));
                };
                Poisson<2> solver(context, {n, n});
                Field<double> f(context, {n, n}, [&](const Index& at) { return 5 * pi * pi * exact(at); });
                const std::vector<double> u = solver.solve(f).gather();
                EXPECT_LE(solver.iterations(), 10) << n;
                if (u.empty()) continue;
                double worst = 0;
                for (std::int64_t i = 0; i < n * n; ++i)
                    worst = std::max(worst, std::abs(u[static_cast<std::size_t>(i)] - exact({i / n, i % n})));
                if (n > 16) {
                    EXPECT_NEAR(before / worst, 4, 0.3) << n;
                }
                before = worst;
                if (n == 64) all.push_back(u);
            }
        });
    }
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0], all[1]);
}

TEST(Multigrid, WhatIsWrongIsRefusedOnAllRanks) {
    const auto errors = errors_on_ranks(2, [](Context& context) {
        PoissonOptions<1> mixed, negative, free;
        mixed.boundary[0] = {Boundary::periodic, Boundary::neumann};
        EXPECT_THROW(Poisson<1>(context, {9}, mixed), ConfigError);
        negative.k = [&](const Index& at) { return at[0] == 8 ? -1.0 : 1.0; };
        EXPECT_THROW(Poisson<1>(context, {9}, negative), ConfigError);
        EXPECT_THROW(Poisson<1>(context, {9 + context.rank()}), ConfigError);
        free.boundary[0] = {Boundary::neumann, Boundary::neumann};
        Poisson<1> solver(context, {9}, free);
        Field<double> ones(context, {9}, [](const Index&) { return 1.0; }),
            few(context, {8}, [](const Index&) { return 0.0; });
        EXPECT_THROW(solver.solve(ones), ConfigError);
        EXPECT_THROW(solver.solve(few), ConfigError);
    });
    EXPECT_EQ(errors, std::vector<std::string>(2));
}

}  // namespace tilewave
