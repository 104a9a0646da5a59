// Several nests of a time step, tables by index, and what is said of wrong calls, in C++ programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "support/kinds.hpp"

using namespace tilewave;

namespace {

constexpr auto point = reads({0, 0});
constexpr auto west = reads({0, -1});

class SeveralNests : public Kinds {};

}  // namespace

// Several nests of a time step, each bound with one step: what one nest can, with tables by index.
TEST_P(SeveralNests, InATimeStep) {
    static constexpr auto heat = reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0});
    static constexpr auto here = reads({0, 0, 0});
    static constexpr auto earlier = reads({-1, 0, 0}, {-2, 0, -1});
    each_turn(2, [&] {
        const std::int64_t rows = draw(7, 18), columns = draw(5, 12), steps = draw(2, 9), most = draw(2, steps);
        std::vector<double> table, added, heard, norms;
        for (std::int64_t k = 0; k < rows + columns; ++k) table.push_back(start(k, 2));
        for (std::int64_t k = 0; k < steps; ++k) added.push_back(0.5 * static_cast<double>(k % 3) - 0.5);
        Grid u(rows, columns), v(rows, columns), w(rows, columns), past(rows, columns);
        std::int64_t times = 0;
        double of_strides = 0;
        for (bool ended = false; times < steps && !ended;) {
            Grid old = u, now = v;
            double sum = 0;
            of_strides = -1e9;
            each_point({{0, 0}, {rows, columns}}, {1, 1}, {false, false}, [&](auto i, auto j) {
                u(i, j) = 0.5 * old(i, j) + 0.25 * (old((i + rows - 1) % rows, j) + old((i + 1) % rows, j));
                sum += std::floor(u(i, j));
            });
            each_point({{0, 1}, {rows, columns}}, {2, 1}, {false, false}, [&](auto i, auto j) {
                v(i, j) = now(i, j) - 0.5 * past(i, j - 1) + u(i, j) * table[static_cast<std::size_t>(i + j)];
                of_strides = std::max(of_strides, v(i, j));
            });
            past = now;
            each_point({{0, 1}, {rows, columns}}, {1, 1}, {true, false}, [&](auto i, auto j) {
                if (j <= i + 2) w(i, j) = w(i, j - 1) + v(i, j);
            });
            u(rows - 1, 1) += added[static_cast<std::size_t>(times)];
            heard.push_back(w(rows / 2, 2));
            norms.push_back(sum);
            ended = ++times >= most && times % 2 == 0;
        }
        heard.resize(static_cast<std::size_t>(steps));
        run_on([&](Context& context) {
            for (const bool points : {true, false}) {
                Field<double> a = field(context, rows, columns), b = field(context, rows, columns),
                              c = field(context, rows, columns);
                b.keep_history(1);
                BoundNest first = bind(context, {.steps = 1, .periodic = {1}}, along(1, 3),
                                       reducing<std::int64_t>({Reduction::sum},
                                                              [](auto x) {
                                                                  const double y = 0.5 * x(-1, 0, 0) +
                                                                                   0.25 * (x(-1, -1, 0) + x(-1, 1, 0));
                                                                  return std::tuple(y, std::floor(y));
                                                              }),
                                       writes<heat>(a));
                BoundNest second = bind(
                    context, {.over = Box{{0, 1}, {rows, columns}}, .strides = {2, 1}, .steps = 1}, along(1, 3),
                    reducing<double>({Reduction::max},
                                     [&table](auto y, auto x, auto at) {
                                         const double z = y(-1, 0, 0) - 0.5 * y(-2, 0, -1) +
                                                          x(0, 0, 0) * table[static_cast<std::size_t>(at(1) + at(2))];
                                         return std::tuple(z, z);
                                     }),
                    writes<earlier>(b), only_reads<here>(a), indices());
                BoundNest third = bind(
                    context, {.reverse = {0}, .bounds = {{{1, -1}, 2}}}, along(0, 2),
                    [](auto x, auto y) { return x(0, -1) + y(0, 0); }, writes<west>(c), only_reads<point>(b));
                NestChain step = chain(context, {&first, &second, &third});
                std::vector<double> given = added, seen(heard.size(), 3), found;
                ChainRun how{.times = steps, .until = [&](const ChainReport& so_far) {
                                 found.push_back(so_far.reduced[0][0].value<double>());
                                 return so_far.times >= most && so_far.times % 2 == 0;
                             }};
                how.elements = {adds(a, {{rows - 1, 1}}, std::span(given)),
                                records(c, {{rows / 2, 2}}, std::span(seen))};
                if (!points) how.until = {}, how.elements.clear(), how.times = 1;
                const ChainReport report = step.run(how);
                if (!points) {
                    EXPECT_EQ(report.times, 1);
                    EXPECT_EQ(static_cast<double>(report.reduced[0][0].value<std::int64_t>()), norms[0]);
                    continue;
                }
                EXPECT_EQ(report.times, times);
                EXPECT_EQ(report.reduced[1][0].value<double>(), of_strides);
                EXPECT_EQ(seen, heard);
                expect_equal(context, a, u, "the first nest");
                expect_equal(context, b, v, "the second nest");
                expect_equal(context, c, w, "the third nest");
            }
        });
    });
}

TEST_P(SeveralNests, Backwards) {
    static constexpr auto adjoint = reads({1, 0, 0}, {1, -1, 0}, {2, 0, 1});
    static constexpr auto here = reads({0, 0, 0});
    static constexpr auto there = reads({1, 0, 0}, {0, 0, -1});
    const std::int64_t rows = draw(7, 18), columns = draw(5, 12), steps = draw(2, 7);
    Grid u(rows, columns), v(rows, columns), past(rows, columns);
    double most = 0;
    for (std::int64_t t = 0; t < steps; ++t) {
        Grid old = u;
        most = -1e9;
        each_point({{1, 0}, {rows, columns - 1}}, {1, 1}, {false, false}, [&](auto i, auto j) {
            u(i, j) = old(i, j) - 0.5 * old(i - 1, j) + past(i, j + 1);
            most = std::max(most, u(i, j));
        });
        past = old;
        each_point({{0, 1}, {rows, columns}}, {1, 1}, {false, false},
                   [&](auto i, auto j) { v(i, j) = v(i, j) + v(i, j - 1) - u(i, j); });
    }
    run_on([&](Context& context) {
        Field<double> a = field(context, rows, columns), b = field(context, rows, columns);
        a.keep_history(1);
        BoundNest first = bind(context, {.reverse = {0}, .steps = 1}, along(1, 3),
                               reducing<double>({Reduction::max},
                                                [](auto x) {
                                                    const double y = x(1, 0, 0) - 0.5 * x(1, -1, 0) + x(2, 0, 1);
                                                    return std::tuple(y, y);
                                                }),
                               writes<adjoint>(a));
        BoundNest second = bind(
            context, {.reverse = {0}, .steps = 1}, along(1, 3),
            [](auto x, auto y) { return x(1, 0, 0) + x(0, 0, -1) - y(0, 0, 0); }, writes<there>(b),
            only_reads<here>(a));
        const ChainReport report = chain(context, {&first, &second}).run(steps);
        EXPECT_EQ(report.reduced[0][0].value<double>(), most);
        expect_equal(context, a, u, "the first nest backwards");
        expect_equal(context, b, v, "the second nest backwards");
    });
}

TEST_P(SeveralNests, TablesByIndex) {
    static constexpr auto heat = reads({-1, 0, 0}, {-1, -1, 0}, {-2, 0, 1});
    static constexpr auto before = reads({-1, -1, 0});
    static constexpr auto later = reads({1, 0, -1});
    each_turn(2, [&] {
        const std::int64_t rows = draw(5, 18), columns = draw(5, 12), steps = draw(2, 9);
        std::vector<double> table, added;
        for (std::int64_t k = 0; k < rows + columns + steps; ++k) table.push_back(start(k, 2));
        for (std::int64_t k = 0; k < steps; ++k) added.push_back(0.5 * static_cast<double>(k % 3) - 0.5);
        Grid u(rows, columns), past(rows, columns), p(rows, columns);
        Grid turned(rows, columns);
        double most = -1e9, least = 1e9;
        for (std::int64_t t = steps - 1; t >= 0; --t) {
            Grid old = turned;
            each_point({{0, 1}, {rows, columns}}, {1, 3}, {false, false}, [&](auto i, auto j) {
                if (j > i + 2) return;
                turned(i, j) = old(i, j - 1) - table[static_cast<std::size_t>(t + j)];
                least = std::min(least, turned(i, j));
            });
        }
        for (std::int64_t t = 0; t < steps; ++t) {
            Grid old = u, plain = p;
            each_point({{1, 0}, {rows, columns - 1}}, {1, 1}, {false, false}, [&](auto i, auto j) {
                u(i, j) = old(i - 1, j) - 0.5 * past(i, j + 1) + table[static_cast<std::size_t>(i + j + t)];
                most = std::max(most, u(i, j));
            });
            past = old;
            u(rows - 1, 0) += added[static_cast<std::size_t>(t)];
            each_point({{0, 0}, {rows, columns}}, {1, 1}, {false, false}, [&](auto i, auto j) {
                p(i, j) = plain((i + rows - 1) % rows, j) + table[static_cast<std::size_t>(rows - 1 - i)];
            });
        }
        run_on([&](Context& context) {
            Field<double> a = field(context, rows, columns), b = field(context, rows, columns);
            std::vector<double> given = added;
            a.keep_history(1);
            const Report report =
                run(context, {.steps = steps, .elements = {adds(a, {{rows - 1, 0}}, std::span(given))}}, along(1, 3),
                    reducing<double>({Reduction::max},
                                     [&](auto x, auto at) {
                                         const double y = x(-1, -1, 0) - 0.5 * x(-2, 0, 1) +
                                                          table[static_cast<std::size_t>(at(1) + at(2) + at(0))];
                                         return std::tuple(y, y);
                                     }),
                    writes<heat>(a), indices());
            expect_equal(context, a, u, "a table by index");
            EXPECT_EQ(sum_of(report), most);
            run(
                context, {.steps = steps, .periodic = {1}}, along(1, 3),
                [&](auto x, auto at) { return x(-1, -1, 0) + table[static_cast<std::size_t>(rows - 1 - at(1))]; },
                writes<before>(b), indices());
            expect_equal(context, b, p, "a table in a periodic nest");
            Field<double> c = field(context, rows, columns);
            const Report back =
                run(context,
                    {.over = Box{{0, 1}, {rows, columns}},
                     .strides = {1, 3},
                     .reverse = {0},
                     .steps = steps,
                     .bounds = {{{0, 1, -1}, 2}}},
                    along(1, 3),
                    reducing<double>({Reduction::min},
                                     [&](auto x, auto at) {
                                         const double y = x(1, 0, -1) - table[static_cast<std::size_t>(at(0) + at(2))];
                                         return std::tuple(y, y);
                                     }),
                    writes<later>(c), indices());
            expect_equal(context, c, turned, "a table backwards");
            EXPECT_EQ(sum_of(back), least);
        });
    });
}

TEST(NestErrors, WhatIsWrongIsRefusedOnEveryRank) {
    const auto refused = [](const std::string& words, const std::function<void(Context&)>& body) {
        for (const std::string& error : errors_on_ranks(2, body))
            EXPECT_NE(error.find(words), std::string::npos) << error;
    };
    const auto bound = [](Context& context, Field<double>& a) {
        return bind(context, {}, {}, [](auto x) { return x(0, -1); }, writes<west>(a));
    };
    refused("every: 0 was given; allowed: 1 and more", [&](Context& context) {
        Field<double> a = field(context, 5, 6);
        BoundNest nest = bound(context, a);
        chain(context, {&nest}).run({.times = 2, .every = 0});
    });
    refused("times: 0 was given", [&](Context& context) {
        Field<double> a = field(context, 5, 6);
        BoundNest nest = bound(context, a);
        chain(context, {&nest}).run(0);
    });
    refused("values for 1 elements and 3 steps", [&](Context& context) {
        Field<double> a = field(context, 5, 6);
        BoundNest nest = bound(context, a);
        std::vector<double> values(2);
        chain(context, {&nest}).run({.times = 3, .elements = {adds(a, {{1, 1}}, std::span(values))}});
    });
    refused("too much", [&](Context& context) {
        Field<double> a = field(context, 5, 6);
        BoundNest nest = bound(context, a);
        chain(context, {&nest}).run({.times = 3, .until = [&](const ChainReport&) -> bool {
                                         if (context.rank() == 1) throw ConfigError("too much");
                                         return false;
                                     }});
    });
    refused("elements: given without steps", [&](Context& context) {
        Field<double> a = field(context, 5, 6);
        std::vector<double> values(1);
        run(
            context, {.elements = {adds(a, {{1, 1}}, std::span(values))}}, {}, [](auto x) { return x(0, -1); },
            writes<west>(a));
    });
}

// Texts of failures have indices as the loops were given.
TEST_P(SeveralNests, FailuresAreWhereTheLoopsSay) {
    static constexpr auto back = reads({1, 0, 0});
    const auto [ranks, threads] = GetParam();
    const auto find = [&](const std::string& words, const std::function<void(Context&)>& body) {
        for (const std::string& error : errors_on_ranks(ranks, body, threads))
            EXPECT_NE(error.find(words), std::string::npos) << error;
    };
    const auto at_5_4 = [](double x, std::int64_t i, std::int64_t j) {
        if (i == 5 && j == 4) throw std::runtime_error("a bad point");
        return x;
    };
    find("the body threw at (5, 4)", [&](Context& context) {
        Field<double> a = field(context, 9, 8);
        run(
            context, {.over = Box{{1, 0}, {9, 8}}, .strides = {2, 2}}, {},
            [&](auto x, auto at) { return at_5_4(x(0, 0), at(0), at(1)); }, writes<point>(a), indices());
    });
    find("the body threw at (5, 4, ", [&](Context& context) {
        Field<double> a = field(context, 9, 8);
        run(
            context, {.over = Box{{0, 0}, {9, 8}}, .strides = {1, 2}, .reverse = {0}, .steps = 7}, {},
            [&](auto x, auto at) { return at_5_4(x(1, 0, 0), at(0), at(1)); }, writes<back>(a), indices());
    });
}

INSTANTIATE_TEST_SUITE_P(OnRanks, SeveralNests, ranks_and_threads);
