// Poisson problems in C++ programs: against solutions by formula, and by elimination of small problems.
#include "cpp/multigrid.hpp"

#include <gtest/gtest.h>

#include <numbers>
#include <random>

#include "support/dice.hpp"
#include "support/ranks.hpp"

namespace multigrid {
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
    const bool varies = dice(0, 1), without = dice(0, 2) > 0, walls = dice(0, 1);
    for (std::int64_t i = 0; i < cells; ++i) {
        k.push_back(walls && dice(0, 2) == 0 ? 0.0 : varies ? std::pow(10.0, static_cast<double>(dice(-1, 1))) : 2.0);
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
    std::vector<bool> fixed(f.size());
    do {
        const std::size_t i = number(at);
        if (k[i] == 0) continue;
        matrix[i][i] += options.sigma(at);
        fixed[i] = fixed[i] || options.sigma(at) > 0;
        for (int d = 0; d < D; ++d)
            for (const int side : {0, 1}) {
                const double unit = 1 / (options.spacing[d] * options.spacing[d]);
                Index other = at;
                other[d] += 2 * side - 1;
                if (options.boundary[d][0] == Boundary::periodic) other[d] = (other[d] + shape[d]) % shape[d];
                if (all.contains(other)) {
                    const double face = 2 * unit * k[i] * options.k(other) / (k[i] + options.k(other));
                    matrix[i][i] += face;
                    matrix[i][number(other)] -= face;
                } else if (options.boundary[d][side] == Boundary::dirichlet) {
                    matrix[i][i] += 2 * unit * k[i];
                    fixed[i] = true;
                }
            }
    } while (next_point(at, all));
    // Cells that are connected have one label; where nothing fixes values, f and u have mean 0.
    std::vector<std::size_t> label(f.size());
    std::iota(label.begin(), label.end(), std::size_t{0});
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < f.size(); ++i)
            for (std::size_t j = 0; j < f.size(); ++j)
                if (matrix[i][j] != 0 && label[j] < label[i]) label[i] = label[j], changed = true;
    }
    const auto zero_mean = [&](std::vector<double>& values) {
        for (std::size_t region = 0; region < values.size(); ++region) {
            double sum = 0, count = 0;
            bool free = true;
            for (std::size_t i = 0; i < values.size(); ++i)
                if (label[i] == region) sum += values[i], count += 1, free = free && !fixed[i];
            for (std::size_t i = 0; i < values.size(); ++i)
                if (label[i] == region && free) values[i] -= sum / count;
        }
    };
    zero_mean(f);
    std::vector<double> wanted = solved(matrix, f);
    zero_mean(wanted);
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
    const char* given = std::getenv("TILEWAVE_SEED");
    const std::uint64_t seed = given ? std::stoull(given) : std::random_device{}();
    std::printf("multigrid: seed %llu\n", static_cast<unsigned long long>(seed));
    const std::array problems{&random_problem<1>, &random_problem<2>, &random_problem<3>};
    std::uint64_t number = seed;
    for (const int ranks : {1, 1, 2, 3, 6})
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

// A room of 4 x 4 cells in the middle, closed by cells without material, in a box whose boundary is 0.
TEST(Multigrid, ClosedRoomsHaveMean0OrAreRefused) {
    PoissonOptions<2> closed;
    closed.k = [](const Index& cell) {
        const auto low = std::min(cell[0], cell[1]), high = std::max(cell[0], cell[1]);
        return low >= 2 && high <= 7 && (low == 2 || high == 7) ? 0.0 : 1.0;
    };
    const auto in_room = [](const Index& cell) {
        return std::min(cell[0], cell[1]) > 2 && std::max(cell[0], cell[1]) < 7;
    };
    on_ranks(3, [&](Context& context) {
        PoissonOptions<2> options = closed;
        Poisson<2> solver(context, {10, 10}, options);
        Field<double> ones(context, {10, 10}, [](const Index&) { return 1.0; });
        std::string error;
        try {
            solver.solve(ones);
        } catch (const ConfigError& refused) {
            error = refused.what();
        }
        EXPECT_NE(error.find("the mean of f is 1.000000 in the 16 cells around (3, 3) "), std::string::npos) << error;
        Field<double> sides(context, {10, 10}, [&](const Index& cell) {
            return !in_room(cell) ? 1.0 : cell[0] < 5 ? 2.0 : -2.0;
        });
        const std::vector<double> u = solver.solve(sides, 1e-10).gather();
        EXPECT_LE(solver.norms().back(), 1e-10 * solver.norms().front());
        const std::array right{0.04, 0.02, -0.02, -0.04};
        for (std::size_t i = 0; i < 4 && !u.empty(); ++i) EXPECT_NEAR(u[(i + 3) * 10 + 4], right[i], 1e-8) << i;
        options.sigma = [&](const Index& cell) { return in_room(cell) ? 1.0 : 0.0; };
        Poisson<2> with_sigma(context, {10, 10}, options);
        const std::vector<double> fixed = with_sigma.solve(ones, 1e-10).gather();
        if (!fixed.empty()) {
            EXPECT_NEAR(fixed[44], 1, 1e-8);
        }
        options.sigma = [&](const Index& cell) { return in_room(cell) ? 1e-13 : 0.0; };
        EXPECT_THROW(Poisson<2>(context, {10, 10}, options), ConfigError);
    });
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

}  // namespace multigrid
