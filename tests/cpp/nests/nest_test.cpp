// Nests of C++ programs: bounds, directions, time steps, several written arrays, against plain loops on ranks as
// threads.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <random>

#include "support/grid.hpp"
#include "support/ranks.hpp"
#include "tilewave/tilewave.hpp"

using namespace tilewave;

namespace {

constexpr auto before = reads({-1, 0}, {0, -1}, {1, 1});
constexpr auto after = reads({1, 0}, {0, 1});
constexpr auto heat = reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0}, {-1, 0, -1}, {-1, 0, 1});
constexpr auto relax = reads({-1, 0, 0}, {0, -1, 0}, {0, 0, -1}, {-1, 1, 0}, {-1, 0, 1});

class Nests : public ::testing::TestWithParam<std::pair<int, int>> {};

}  // namespace

TEST_P(Nests, BoundsAndDirections) {
    const auto [ranks, threads] = GetParam();
    std::mt19937 random(20261124);
    for (int turn = 0; turn < 3; ++turn) {
        const std::int64_t rows = 9 + static_cast<std::int64_t>(random() % 20),
                           columns = 9 + static_cast<std::int64_t>(random() % 20);
        const Box over{{2, 1 + static_cast<std::int64_t>(random() % 4)}, {rows - 1, columns - 2}};
        Grid plain(rows, columns), down(rows, columns);
        for (std::int64_t i = over.lo[0]; i < over.hi[0]; ++i)
            for (std::int64_t j = over.lo[1]; j < over.hi[1]; ++j)
                plain(i, j) = 0.5 * plain(i - 1, j) + plain(i, j - 1) - plain(i + 1, j + 1);
        for (std::int64_t i = over.hi[0] - 1; i >= over.lo[0]; --i)
            for (std::int64_t j = over.lo[1]; j < over.hi[1]; ++j)
                down(i, j) = 0.5 * down(i + 1, j) + 0.25 * down(i, j + 1);
        const std::string what =
            std::to_string(rows) + " x " + std::to_string(columns) + ", " + std::to_string(ranks) + " ranks";
        on_ranks(ranks, threads, [&](Context& context) {
            Field<double> a = field(context, rows, columns), b = field(context, rows, columns);
            run(
                context, {.over = over}, {}, [](auto x) { return 0.5 * x(-1, 0) + x(0, -1) - x(1, 1); },
                writes<before>(a));
            run(
                context, {.over = over, .reverse = {0}}, {}, [](auto x) { return 0.5 * x(1, 0) + 0.25 * x(0, 1); },
                writes<after>(b));
            expect_equal(context, a, plain, what);
            expect_equal(context, b, down, what + ", downwards");
        });
    }
}

TEST_P(Nests, StepsOfTime) {
    const auto [ranks, threads] = GetParam();
    for (const std::int64_t steps : {0, 1, 7, 150}) {
        const std::int64_t rows = 21, columns = 17;
        Grid jacobi(rows, columns), sor(rows, columns);
        for (std::int64_t t = 0; t < steps; ++t) {
            Grid old = jacobi;
            for (std::int64_t i = 1; i < rows - 1; ++i)
                for (std::int64_t j = 1; j < columns - 1; ++j) {
                    jacobi(i, j) =
                        0.5 * old(i, j) + 0.125 * (old(i - 1, j) + old(i + 1, j) + old(i, j - 1) + old(i, j + 1));
                    sor(i, j) =
                        0.25 * sor(i, j) + 0.2 * (sor(i - 1, j) + sor(i, j - 1) + sor(i + 1, j) + sor(i, j + 1));
                }
        }
        on_ranks(ranks, threads, [&](Context& context) {
            Field<double> u = field(context, rows, columns), v = field(context, rows, columns);
            for (const bool whole : {true, false}) {  // the second call takes the plan of the first
                if (!whole) u = field(context, rows, columns), v = field(context, rows, columns);
                run(
                    context, {.steps = steps}, {},
                    [](auto x) {
                        return 0.5 * x(-1, 0, 0) + 0.125 * (x(-1, -1, 0) + x(-1, 1, 0) + x(-1, 0, -1) + x(-1, 0, 1));
                    },
                    writes<heat>(u));
                const Report report = run(
                    context, {.steps = steps}, {},
                    [](auto x) {
                        return 0.25 * x(-1, 0, 0) + 0.2 * (x(0, -1, 0) + x(0, 0, -1) + x(-1, 1, 0) + x(-1, 0, 1));
                    },
                    writes<relax>(v));
                EXPECT_EQ(report.points, steps * (rows - 2) * (columns - 2));
                expect_equal(context, u, jacobi, "jacobi");
                expect_equal(context, v, sor, "over-relaxation");
            }
        });
    }
}

TEST_P(Nests, SeveralWrittenArrays) {
    const auto [ranks, threads] = GetParam();
    static constexpr auto west = reads({0, -1});
    static constexpr auto north = reads({-1, 0});
    static constexpr auto here = reads({0, 0}, {1, 0});
    const std::int64_t rows = 23, columns = 31;
    Grid a(rows, columns), b(rows, columns), c(rows, columns);
    for (std::int64_t i = 1; i < rows - 1; ++i)
        for (std::int64_t j = 1; j < columns; ++j) {
            const double x = 0.5 * a(i, j - 1) + b(i - 1, j) + c(i + 1, j),
                         y = a(i, j - 1) - 0.25 * b(i - 1, j) * c(i, j);
            a(i, j) = x;
            b(i, j) = y;
        }
    on_ranks(ranks, threads, [&](Context& context) {
        Field<double> p = field(context, rows, columns), q = field(context, rows, columns),
                      r = field(context, rows, columns);
        run(
            context, {},
            [](auto x, auto y, auto z) {
                return std::tuple{0.5 * x(0, -1) + y(-1, 0) + z(1, 0), x(0, -1) - 0.25 * y(-1, 0) * z(0, 0)};
            },
            writes<west>(p), writes<north>(q), only_reads<here>(r));
        expect_equal(context, p, a, "first");
        expect_equal(context, q, b, "second");
    });
}

TEST_P(Nests, ReducedValues) {
    const auto [ranks, threads] = GetParam();
    std::mt19937 random(20261125);
    for (int turn = 0; turn < 3; ++turn) {
        const std::int64_t rows = 3 + static_cast<std::int64_t>(random() % 30),
                           columns = 3 + static_cast<std::int64_t>(random() % 30);
        Grid plain(rows, columns);
        Grid other(rows, columns);
        double squares = 0, product = 0;  // quarters of small numbers: exact in any order
        std::int64_t least = 1 << 30, count = 0;
        for (std::int64_t i = 1; i < rows; ++i)
            for (std::int64_t j = 1; j < columns; ++j) {
                const double d = other(i - 1, j) - other(i, j - 1);
                plain(i, j) = d + 1;
                squares += d * d;
                least = std::min(least, static_cast<std::int64_t>(d));
                ++count;
            }
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j) product += plain(i, j) * other(i, j);
        constexpr auto west_north = reads({-1, 0}, {0, -1});
        constexpr auto point = reads({0, 0});
        on_ranks(ranks, threads, [&](Context& context) {
            Field<double> a = field(context, rows, columns), b = field(context, rows, columns);
            auto body = [](auto, auto v) {
                const double d = v(-1, 0) - v(0, -1);
                return std::tuple(d + 1, d * d, d, 1);
            };
            const Report report = run(
                context, {},
                reducing<double, std::int64_t, std::int32_t>({Reduction::sum, Reduction::min, Reduction::sum}, body),
                writes<point>(a), only_reads<west_north>(b));
            EXPECT_EQ(report.reduced[0].value<double>(), squares);
            EXPECT_EQ(report.reduced[1].value<std::int64_t>(), least);
            EXPECT_EQ(report.reduced[2].value<std::int64_t>(), count);
            expect_equal(context, a, plain, "reduced values beside what is written");
            const Report only =
                run(context, {}, reducing<double>({Reduction::sum}, [](auto u, auto v) { return u(0, 0) * v(0, 0); }),
                    only_reads<point>(a), only_reads<point>(b));
            EXPECT_EQ(only.reduced[0].value<double>(), product);
            EXPECT_EQ(a.dot(b), product);
            EXPECT_EQ(a.norm(), std::sqrt(a.dot(a)));
            EXPECT_EQ(b.sum(), b.dot(*std::make_unique<Field<double>>(context, Index{rows, columns},
                                                                      [](const Index&) { return 1.0; })));
        });
    }
}

TEST_P(Nests, PeriodicLoops) {
    const auto [ranks, threads] = GetParam();
    constexpr std::int64_t rows = 7, columns = 10, steps = 5;
    Grid plain(rows, columns);
    for (std::int64_t t = 0; t < steps; ++t) {
        Grid old = plain;
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
                plain(i, j) = old(i, j) + 0.125 * (old((i + rows - 1) % rows, j) + old((i + 1) % rows, j)) +
                              0.25 * (old(i, (j + columns - 1) % columns) - old(i, (j + 1) % columns));
    }
    on_ranks(ranks, threads, [&](Context& context) {
        Field<double> u = field(context, rows, columns);
        run(
            context, {.steps = steps, .periodic = {1, 2}}, {},
            [](auto x) {
                return x(-1, 0, 0) + 0.125 * (x(-1, -1, 0) + x(-1, 1, 0)) + 0.25 * (x(-1, 0, -1) - x(-1, 0, 1));
            },
            writes<heat>(u));
        expect_equal(context, u, plain, "periodic");
    });
}

TEST_P(Nests, PartsOfFieldsAndOtherExtents) {
    const auto [ranks, threads] = GetParam();
    static constexpr auto point = reads({0, 0});
    static constexpr auto west = reads({0, -1}, {0, 0});
    std::mt19937 random(20261128);
    for (int turn = 0; turn < 3; ++turn) {
        const std::int64_t rows = 3 + static_cast<std::int64_t>(random() % 12),
                           columns = 3 + static_cast<std::int64_t>(random() % 12);
        const std::int64_t high = 2 * rows + static_cast<std::int64_t>(random() % 2),
                           wide = 3 * columns - static_cast<std::int64_t>(random() % 2);
        // A coarse grid takes from a finer one at (2 i, 3 j - 1) and (2 i + 1, 3 j), and gives to two others.
        Grid coarse(rows, columns), fine(high, wide);
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 1; j < columns; ++j) {
                coarse(i, j) += fine(2 * i, 3 * j - 1) - 0.5 * fine(2 * i + 1, 3 * j);
            }
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; 3 * j + 1 < wide && j < columns; ++j) {
                fine(2 * i, 3 * j) += coarse(i, j);
                fine(2 * i + 1, 3 * j + 1) -= coarse(i, j);
            }
        on_ranks(ranks, threads, [&](Context& context) {
            Field<double> c = field(context, rows, columns), f = field(context, high, wide);
            run(
                context, {}, [](auto x, auto a, auto b) { return x(0, 0) + a(0, -1) - 0.5 * b(0, 0); },
                writes<point>(c), only_reads<west>(every(f, {2, 3}, {0, 2})),
                only_reads<point>(every(f, {2, 3}, {1, 0})));
            expect_equal(context, c, coarse, "from parts of a field");
            BoundNest nest = bind(
                context, {}, {},
                [](auto a, auto b, auto x) { return std::tuple(a(0, 0) + x(0, 0), b(0, 0) - x(0, 0)); },
                writes<point>(every(f, {2, 3}, {0, 0})), writes<point>(every(f, {2, 3}, {1, 1})), only_reads<point>(c));
            nest.run();
            expect_equal(context, f, fine, "into parts of a field");
        });
    }
}

TEST_P(Nests, BoundsOfOtherIndicesAndOfTime) {
    const auto [ranks, threads] = GetParam();
    static constexpr auto star = reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0});
    std::mt19937 random(20261129);
    for (int turn = 0; turn < 3; ++turn) {
        const std::int64_t n = 9 + static_cast<std::int64_t>(random() % 20), steps = 1 + turn * 5;
        const std::int64_t apart = static_cast<std::int64_t>(random() % 5);
        Grid plain(n, n), moved(n, n);
        for (std::int64_t i = 1; i < n - 1; ++i)  // j >= i - apart, i + j < 3 n / 2
            for (std::int64_t j = 1; j < n - 1; ++j)
                if (j >= i - apart && i + j < 3 * n / 2)
                    plain(i, j) = 0.5 * plain(i - 1, j) + plain(i, j - 1) - plain(i + 1, j + 1);
        for (std::int64_t t = 0; t < steps; ++t) {  // i > t
            const Grid old = moved;
            for (std::int64_t i = std::max<std::int64_t>(1, t + 1); i < n - 1; ++i)
                for (std::int64_t j = 0; j < n; ++j)
                    moved(i, j) = 0.5 * Grid(old)(i, j) + 0.25 * (Grid(old)(i - 1, j) + Grid(old)(i + 1, j));
        }
        on_ranks(ranks, threads, [&](Context& context) {
            Field<double> a = field(context, n, n), u = field(context, n, n);
            run(
                context, {.bounds = {{{-1, 1}, apart}, {{-1, -1}, 3 * n / 2 - 1}}}, {},
                [](auto x) { return 0.5 * x(-1, 0) + x(0, -1) - x(1, 1); }, writes<before>(a));
            expect_equal(context, a, plain, "bounds of j by i");
            run(
                context, {.steps = steps, .bounds = {{{-1, 1, 0}, -1}}}, {},
                [](auto x) { return 0.5 * x(-1, 0, 0) + 0.25 * (x(-1, -1, 0) + x(-1, 1, 0)); }, writes<star>(u));
            expect_equal(context, u, moved, "bounds of i by time");
        });
    }
}

TEST_P(Nests, EarlierTimeSteps) {
    const auto [ranks, threads] = GetParam();
    static constexpr auto wave = reads({-1, 0, 0}, {-2, 0, 0}, {-1, -1, 0}, {-1, 1, 0}, {-1, 0, -1}, {-1, 0, 1});
    static constexpr auto aside = reads({-3, -1, 1}, {-1, 0, 0});
    const std::int64_t rows = 21, columns = 17;
    for (const std::int64_t steps : {1, 2, 9}) {
        Grid now(rows, columns), before_now(rows, columns);
        for (double& value : before_now.values) value *= 0.5;
        std::array<Grid, 3> all{now, before_now, now};  // of the other nest: the latest first
        for (std::int64_t t = 0; t < steps; ++t) {
            Grid next = now;
            for (std::int64_t i = 1; i < rows - 1; ++i)
                for (std::int64_t j = 1; j < columns - 1; ++j)
                    next(i, j) = 2 * now(i, j) - before_now(i, j) +
                                 0.2 * (now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1) - 4 * now(i, j));
            before_now = std::exchange(now, next);
            Grid later = all[0];
            for (std::int64_t i = 1; i < rows; ++i)
                for (std::int64_t j = 0; j < columns - 1; ++j) later(i, j) = all[0](i, j) - 0.5 * all[2](i - 1, j + 1);
            all = {later, all[0], all[1]};
        }
        on_ranks(ranks, threads, [&](Context& context) {
            const auto half = [](const Index& at, double& value) { value = 0.5 * start(at[0], at[1]); };
            Field<double> u = field(context, rows, columns), v = field(context, rows, columns);
            u.keep_history(1);
            u.for_each_owned(half, 1);
            v.keep_history(2);
            v.for_each_owned(half, 1);
            const auto body = [](auto x) {
                return 2 * x(-1, 0, 0) - x(-2, 0, 0) +
                       0.2 * (x(-1, -1, 0) + x(-1, 1, 0) + x(-1, 0, -1) + x(-1, 0, 1) - 4 * x(-1, 0, 0));
            };
            run(context, {.steps = steps}, {}, body, writes<wave>(u));
            expect_equal(context, u, now, "a wave");
            const std::vector<double> earlier = u.gather(1);
            if (context.rank() == 0) {
                EXPECT_EQ(earlier, before_now.values);
            }
            BoundNest nest = bind(
                context, {.steps = steps}, {}, [](auto x) { return x(-1, 0, 0) - 0.5 * x(-3, -1, 1); },
                writes<aside>(v));
            nest.run();
            expect_equal(context, v, all[0], "neighbours of earlier steps");
        });
    }
}

TEST_P(Nests, PartsThatTimeStepsRead) {
    const auto [ranks, threads] = GetParam();
    static constexpr auto step = reads({-1, 0, 0}, {-1, -1, 0});
    static constexpr auto point = reads({0, 0, 0}), below = reads({0, 1, 0});
    const std::int64_t rows = 9, columns = 7, steps = 5;
    Grid u(rows, columns), fine(2 * rows, columns);
    for (std::int64_t t = 0; t < steps; ++t)
        for (std::int64_t i = rows - 2; i > 0; --i)  // so that u(i - 1, j) is that of the step before
            for (std::int64_t j = 0; j < columns; ++j)
                u(i, j) = 0.5 * (u(i, j) + u(i - 1, j)) + fine(2 * i, j) - fine(2 * i + 3, j);
    on_ranks(ranks, threads, [&](Context& context) {
        Field<double> a = field(context, rows, columns), f = field(context, 2 * rows, columns);
        run(
            context, {.steps = steps}, {},
            [](auto x, auto even, auto odd) {
                return 0.5 * (x(-1, 0, 0) + x(-1, -1, 0)) + even(0, 0, 0) - odd(0, 1, 0);
            },
            writes<step>(a), only_reads<point>(every(f, {2, 1}, {0, 0})), only_reads<below>(every(f, {2, 1}, {1, 0})));
        expect_equal(context, a, u, "parts of a field");
    });
}

TEST_P(Nests, SourcesAndReceivers) {
    const auto [ranks, threads] = GetParam();
    static constexpr auto star = reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0});
    const std::int64_t rows = 23, columns = 5;
    const std::vector<Index> sources{{0, 1}, {11, 3}, {22, 4}}, receivers{{12, 3}, {0, 1}, {22, 4}, {21, 4}};
    for (const std::int64_t steps : {1, 2, 9}) {
        std::vector<double> added, heard;
        for (std::int64_t k = 0; k < 3 * steps; ++k) added.push_back(0.5 * static_cast<double>(k % 7) - 1);
        Grid u(rows, columns);
        for (std::int64_t t = 0; t < steps; ++t) {
            Grid old = u;
            for (std::int64_t i = 1; i < rows - 1; ++i)
                for (std::int64_t j = 0; j < columns; ++j)
                    u(i, j) = 0.5 * old(i, j) + 0.25 * (old(i - 1, j) + old(i + 1, j));
            for (std::size_t k = 0; k < 3; ++k)
                u(sources[k][0], sources[k][1]) += added[static_cast<std::size_t>(t) * 3 + k];
            for (const Index& at : receivers) heard.push_back(u(at[0], at[1]));
        }
        on_ranks(ranks, threads, [&](Context& context) {
            Field<double> a = field(context, rows, columns), b = field(context, rows, columns);
            std::vector<double> given = added, seen(heard.size(), 7), alone(heard.size(), 7);
            const auto body = [](auto x) { return 0.5 * x(-1, 0, 0) + 0.25 * (x(-1, -1, 0) + x(-1, 1, 0)); };
            run(context,
                {.steps = steps,
                 .elements = {adds(a, sources, std::span(given)), records(a, receivers, std::span(seen))}},
                {}, body, writes<star>(a));
            expect_equal(context, a, u, "with sources");
            EXPECT_EQ(seen, heard);
            run(context, {.steps = steps, .elements = {records(b, receivers, std::span(alone))}}, {}, body,
                writes<star>(b));
            const std::vector<double> whole = b.gather();
            if (context.rank() == 0) {
                EXPECT_EQ(alone.back(), whole[22 * columns - 1]);
            }
        });
    }
    for (const auto& [message, at, count] :
         {std::tuple("values for 1 elements", Index{1, 1}, 5), std::tuple("(23, 0) was given", Index{23, 0}, 3)}) {
        for (const std::string& error : errors_on_ranks(2, [&](Context& context) {
                 Field<double> a = field(context, rows, columns);
                 std::vector<double> values(static_cast<std::size_t>(count));
                 run(
                     context, {.steps = 3, .elements = {adds(a, {at}, std::span(values))}}, {},
                     [](auto x) { return x(-1, 0, 0); }, writes<star>(a));
             }))
            EXPECT_NE(error.find(message), std::string::npos) << error;
    }
}

// Several nests of a time step: a chain that runs once a step.
TEST_P(Nests, SeveralInATimeStepWithATable) {
    const auto [ranks, threads] = GetParam();
    static constexpr auto star = reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0});
    static constexpr auto point = reads({0, 0});
    const std::int64_t rows = 24, columns = 13, steps = 7;
    const std::vector<double> table{0.5, -0.25, 0.125};
    Grid u(rows, columns), v(rows, columns);
    for (std::int64_t t = 0; t < steps; ++t) {
        const Grid old = u;
        for (std::int64_t i = 1; i < rows - 1; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
                u(i, j) = 0.5 * Grid(old)(i, j) + 0.25 * (Grid(old)(i - 1, j) + Grid(old)(i + 1, j));
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
                v(i, j) += table[static_cast<std::size_t>(std::abs(u(i, j))) % 3] * u(i, j);
    }
    on_ranks(ranks, threads, [&](Context& context) {
        Field<double> a = field(context, rows, columns), b = field(context, rows, columns);
        BoundNest first = bind(
            context, {.steps = 1}, {}, [](auto x) { return 0.5 * x(-1, 0, 0) + 0.25 * (x(-1, -1, 0) + x(-1, 1, 0)); },
            writes<star>(a));
        BoundNest second = bind(
            context, {}, {},
            [&table](auto y, auto x) {
                return y(0, 0) + table[static_cast<std::size_t>(std::abs(x(0, 0))) % 3] * x(0, 0);
            },
            writes<point>(b), only_reads<point>(a));
        NestChain step = chain(context, {&first, &second});
        step.run(steps);
        expect_equal(context, a, u, "the first nest");
        expect_equal(context, b, v, "the second nest");
    });
}

INSTANTIATE_TEST_SUITE_P(OnRanks, Nests,
                         ::testing::Values(std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1}, std::pair{3, 2},
                                           std::pair{4, 1}));

TEST(NestProblem, WhatIsWrongIsRefused) {
    const ArrayReads u{nullptr, 8, {10, 12}, true, {{-1, 0, 0}, {0, -1, 0}}},
        f{nullptr, 8, {10, 12}, false, {{0, 0, 0}}};
    auto refused = [](const NestLoops& loops, std::vector<ArrayReads> arrays, const std::string& words) {
        try {
            (void)nest_problem(loops, arrays);
            ADD_FAILURE() << "not refused: " << words;
        } catch (const ConfigError& e) {
            EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
        }
    };
    refused({.reverse = {0}, .steps = 3}, {u, f}, "written: time -1; allowed: 0, the step that is computed, to 7");
    refused({.reverse = {3}, .steps = 3}, {u, f}, "reverse: loop index 3 was given; allowed: 0 to 2");
    refused({.strides = {2, 1}, .steps = 3}, {u, f}, "strides: (2, 1) was given; allowed: beside over");
    refused({.over = Box{{1, 0}, {9, 10}}, .strides = {2}, .steps = 3}, {u, f}, "for each of its ranges");
    refused({.over = Box{{1, 0}, {9, 10}}, .strides = {2, 0}, .steps = 3}, {u, f}, "a number >= 1");
    refused({.steps = -1}, {u, f}, "steps: -1 was given");
    refused({.steps = 3, .periodic = {0}}, {u, f}, "periodic: loop index 0 was given; allowed: 1 to 2");
    refused({.steps = 3, .periodic = {1}}, {u, f}, "points of one time step depend on each other");
    refused({.over = Box{{0, 0}, {10, 12}}, .steps = 3}, {u, f}, "over: 0 to 10 was given for loop 1");
    refused({.over = Box{{1}, {10}}, .steps = 3}, {u, f}, "over: 1 ranges were given");
    refused({}, {u, f}, "components, one for each loop");
    ArrayReads late = f, early = u;
    late.offsets = {{-1, 0, 0}};
    refused({.steps = 3}, {u, late}, "of an array that is only read");
    early.offsets = {{-8, 0, 0}};
    refused({.steps = 3}, {early},
            "of an array that is written: time -8; allowed: 0, the step that is computed, to -7");
    ArrayReads other = f;
    other.shape = {10, 11};
    refused({.steps = 3, .periodic = {1}}, {u, other}, "different shapes");
    refused({.steps = 3, .bounds = {{{1, 1}, 0}}}, {u, f}, "bounds: coefficients (1, 1) were given; allowed: 3");
    ArrayReads skews{nullptr, 8, {10, 12}, true, {{-1, 1}}}, plain{nullptr, 8, {10, 12}, false, {{0, 0}}};
    plain.scale = {2, 2}, plain.residue = {0, 1};
    refused({}, {skews, plain}, "skew its loops");
    plain.residue = {0, 2};
    refused({}, {skews, plain}, "a residue from 0 to scale - 1");
    plain.shape = {10};
    refused({}, {skews, plain}, "as many dimensions");
    ArrayReads turned = f, twice = f, along = f, matrix{nullptr, 8, {10, 12}, true, {}}, window = u;
    turned.axes = {0, 2};
    refused({.steps = 3}, {u, turned}, "indexed_by: loops (0, 2) were given");
    twice.axes = {1, 1};
    refused({.steps = 3}, {u, twice}, "a loop for each dimension, each once, from 1");
    along.offsets = {{0, 0, All::mark}};
    refused({.steps = 3}, {u, along}, "a whole axis was to be read, by `all`");
    ArrayReads line{nullptr, 8, {10}, true, {{0}}, {}, {}, {1}};
    refused({}, {line}, "no array has a dimension of loop 0, and over was not given");
    line.offsets = {{0, 0}}, line.axes = {2};
    refused({.steps = 3}, {line, f}, "is written in time steps, and lacks a loop");
    matrix.offsets = {{0, 0}, {0, 0}, {0, 0}, {0, 0}}, matrix.axes = {1, 2}, matrix.pivots = true;
    ArrayReads smaller = matrix;
    smaller.shape = {10, 10};
    refused({}, {matrix, smaller}, "are written by a nest with pivots");
    matrix.offsets.assign(4, {0, 0, 0});
    refused({.steps = 3}, {matrix}, "given 3 loops, or steps");
    const WindowArray of_window{{10, 12}, 8, {}};
    window.field = nullptr, window.window = &of_window;
    refused({.steps = 3}, {window, f}, "a Window was given for a nest with time steps");
    ArrayReads unwritten = u;
    unwritten.written = false;
    unwritten.offsets = {{0, 0, 0}};
    refused({.steps = 3}, {unwritten}, "writes no array");
}

TEST(PointView, AnOffsetIsLookedUpWhenCompiling) {
    using View = PointView<before, double>;
    static_assert(View::place_of(-1, 0) == 0 && View::place_of(0, -1) == 1 && View::place_of(1, 1) == 2);
    static_assert(View::place_of(0, 0) == View::reads && View::place_of(2, 0) > View::reads);
#ifdef __OPTIMIZE__
    // As bodies call it; a look-up that is left for the run keeps loops over points from being vectors.
    volatile int zero = 0;
    EXPECT_TRUE(__builtin_constant_p(View::place_of(0, -1)));
    EXPECT_FALSE(__builtin_constant_p(View::place_of(0, -1 + zero)));
#endif
}
