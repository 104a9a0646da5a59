// Kinds of nests of C++ programs (docs/guide/kinds.md), against plain loops on ranks as threads.
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
constexpr auto star = reads({-1, 0}, {1, 0}, {0, -1}, {0, 1});
constexpr auto west = reads({0, -1});

}  // namespace

TEST_P(Kinds, Strides) {
    static constexpr auto skewed = reads({-1, 2}, {0, -2});
    each_turn(3, [&] {
        const std::int64_t rows = draw(5, 20), columns = draw(8, 24);
        const Box over{{draw(1, 2), draw(1, 3)}, {rows - 1, columns - draw(1, 2)}}, aside{{1, 2}, {rows, columns - 2}};
        const Index strides{draw(1, 3), draw(2, 3)};
        const bool down = draw(0, 1) == 1;
        Grid u(rows, columns), v(rows, columns), w(rows, columns);
        double sum = 0, most = -1e9;
        each_point(over, strides, {down, false}, [&](auto i, auto j) {
            u(i, j) = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1)) - v(i, j);
            sum += v(i, j), most = std::max(most, v(i, j));
        });
        each_point(aside, {1, 2}, {false, false}, [&](auto i, auto j) { w(i, j) = w(i - 1, j + 2) - w(i, j - 2); });
        const auto body = [](auto x, auto f) {
            return std::tuple(0.25 * (x(-1, 0) + x(1, 0) + x(0, -1) + x(0, 1)) - f(0, 0), f(0, 0), f(0, 0));
        };
        run_on([&](Context& context) {
            Field<double> a = field(context, rows, columns), f = field(context, rows, columns),
                          b = field(context, rows, columns);
            const NestLoops loops{
                .over = over, .strides = strides, .reverse = down ? std::vector<int>{0} : std::vector<int>{}};
            const Report report =
                run(context, loops, along(0, 2), reducing<double, double>({Reduction::sum, Reduction::max}, body),
                    writes<star>(a), only_reads<point>(f));
            expect_equal(context, a, u, "every so many-th point");
            EXPECT_EQ(sum_of(report), sum);
            EXPECT_EQ(sum_of(report, 1), most);
            run(
                context, {.over = aside, .strides = {1, 2}}, along(0, 2), [](auto x) { return x(-1, 2) - x(0, -2); },
                writes<skewed>(b));
            expect_equal(context, b, w, "strides in skewed loops");
        });
    });
}

TEST_P(Kinds, StridesOfPartsAndWithBounds) {
    each_turn(3, [&] {
        const std::int64_t rows = draw(5, 12), columns = draw(8, 14);
        const Box over{{1, 1}, {rows - 1, columns - 1}};
        const Index strides{2, 3};
        Grid u(rows, columns), fine(2 * rows, 3 * columns);
        each_point(over, strides, {false, false}, [&](auto i, auto j) {
            if (i + j < rows) u(i, j) += fine(2 * i, 3 * j + 1) - fine(2 * (i - 1) + 1, 3 * j);
        });
        static constexpr auto before = reads({-1, 0});
        run_on([&](Context& context) {
            Field<double> a = field(context, rows, columns), f = field(context, 2 * rows, 3 * columns);
            BoundNest nest = bind(
                context, {.over = over, .strides = strides, .bounds = {{{-1, -1}, rows - 1}}}, along(1, 2),
                [](auto x, auto y, auto z) { return x(0, 0) + y(0, 0) - z(-1, 0); }, writes<point>(a),
                only_reads<point>(every(f, {2, 3}, {0, 1})), only_reads<before>(every(f, {2, 3}, {1, 0})));
            nest.run();
            expect_equal(context, a, u, "strides of parts of a field");
        });
    });
}

TEST_P(Kinds, StridesInTime) {
    static constexpr auto heat = reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0});
    static constexpr auto earlier = reads({-1, 0, 0}, {-2, 0, -1});
    each_turn(2, [&] {
        const std::int64_t rows = draw(7, 20), columns = draw(5, 12), steps = draw(1, 6);
        Grid u(rows, columns), v(rows, columns), past(rows, columns);
        double sum = 0, least = 1e9;
        for (std::int64_t t = 0; t < steps; ++t) {
            Grid old = u, now = v;
            sum = 0, least = 1e9;
            each_point({{1, 0}, {rows - 1, columns}}, {2, 1}, {false, false}, [&](auto i, auto j) {
                u(i, j) = 0.5 * old(i, j) + 0.25 * (old(i - 1, j) + old((i + 1) % rows, j));
            });
            each_point({{0, 1}, {rows, columns}}, {1, 2}, {false, false}, [&](auto i, auto j) {
                if (j <= t) return;
                v(i, j) = now(i, j) - 0.5 * past(i, j - 1);
            });
            past = now;
        }
        Grid periodic(rows, columns);
        for (std::int64_t t = 0; t < steps; ++t) {
            Grid old = periodic;
            each_point({{0, 1}, {rows, columns}}, {1, 2}, {false, false}, [&](auto i, auto j) {
                periodic(i, j) = 0.5 * old(i, j) + 0.25 * (old((i + rows - 1) % rows, j) + old((i + 1) % rows, j));
                if (t + 1 == steps) sum += periodic(i, j), least = std::min(least, periodic(i, j));
            });
        }
        run_on([&](Context& context) {
            Field<double> a = field(context, rows, columns), b = field(context, rows, columns),
                          c = field(context, rows, columns);
            const auto body = [](auto x) { return 0.5 * x(-1, 0, 0) + 0.25 * (x(-1, -1, 0) + x(-1, 1, 0)); };
            run(context, {.over = Box{{1, 0}, {rows - 1, columns}}, .strides = {2, 1}, .steps = steps}, along(1, 3),
                body, writes<heat>(a));
            expect_equal(context, a, u, "strides in time");
            b.keep_history(1);
            run(
                context,
                {.over = Box{{0, 1}, {rows, columns}}, .strides = {1, 2}, .steps = steps, .bounds = {{{-1, 0, 1}, -1}}},
                along(1, 3), [](auto x) { return x(-1, 0, 0) - 0.5 * x(-2, 0, -1); }, writes<earlier>(b));
            expect_equal(context, b, v, "strides, bounds with time and earlier steps");
            BoundNest last =
                bind(context, {.over = Box{{0, 1}, {rows, columns}}, .strides = {1, 2}, .steps = 1, .periodic = {1}},
                     along(1, 3),
                     reducing<double, double>({Reduction::sum, Reduction::min},
                                              [&](auto x) {
                                                  const double y = body(x);
                                                  return std::tuple(y, y, y);
                                              }),
                     writes<heat>(c));
            const ChainReport report = chain(context, {&last}).run(steps);
            expect_equal(context, c, periodic, "strides beside periodic loops");
            EXPECT_EQ(report.reduced[0][0].value<double>(), sum);
            EXPECT_EQ(report.reduced[0][1].value<double>(), least);
        });
    });
}

TEST_P(Kinds, TimeThatRunsBackwards) {
    static constexpr auto adjoint = reads({1, 0, 0}, {1, -1, 0}, {1, 1, 0});
    static constexpr auto later = reads({1, 0, 0}, {2, 0, 1}, {0, -1, 0});
    each_turn(2, [&] {
        const std::int64_t rows = draw(7, 20), columns = draw(4, 9), steps = draw(2, 9);
        std::vector<double> added, heard;
        for (std::int64_t k = 0; k < steps; ++k) added.push_back(0.25 * static_cast<double>(k % 5) - 0.5);
        Grid u(rows, columns), v(rows, columns), before(rows, columns), strided(rows, columns);
        for (double& value : before.values) value *= 0.5;
        double sum = 0;
        for (std::int64_t t = steps - 1; t >= 0; --t) {
            Grid old = u, now = v, coarse = strided;
            for (std::int64_t i = 1; i < rows - 1; ++i)
                for (std::int64_t j = 0; j < columns; ++j)
                    if (i > t) u(i, j) = 0.5 * old(i, j) + 0.25 * (old(i - 1, j) + old(i + 1, j));
            u(rows / 2, 1) += added[static_cast<std::size_t>(steps - 1 - t)];
            heard.push_back(u(1, 0));
            for (std::int64_t i = 1; i < rows; ++i)
                for (std::int64_t j = 0; j < columns - 1; ++j)
                    v(i, j) = now(i, j) - 0.5 * before(i, j + 1) + v(i - 1, j);
            before = now;
            for (std::int64_t i = 1; i < rows - 1; i += 3)
                for (std::int64_t j = 0; j < columns; ++j)
                    sum += strided(i, j) = coarse(i - 1, j) + 0.5 * coarse(i, j) + static_cast<double>(t);
        }
        run_on([&](Context& context) {
            Field<double> a = field(context, rows, columns), b = field(context, rows, columns),
                          c = field(context, rows, columns);
            std::vector<double> given = added, seen(heard.size());
            run(
                context,
                {.reverse = {0},
                 .steps = steps,
                 .bounds = {{{-1, 1, 0}, -1}},
                 .elements = {adds(a, {{rows / 2, 1}}, std::span(given)), records(a, {{1, 0}}, std::span(seen))}},
                along(1, 3), [](auto x) { return 0.5 * x(1, 0, 0) + 0.25 * (x(1, -1, 0) + x(1, 1, 0)); },
                writes<adjoint>(a));
            expect_equal(context, a, u, "backwards, with bounds and elements");
            EXPECT_EQ(seen, heard);
            b.keep_history(1);
            b.for_each_owned([](const Index& at, double& value) { value = 0.5 * start(at[0], at[1]); }, 1);
            BoundNest nest = bind(
                context, {.reverse = {0}, .steps = 1}, along(1, 3),
                [](auto x) { return x(1, 0, 0) - 0.5 * x(2, 0, 1) + x(0, -1, 0); }, writes<later>(b));
            nest.run(steps);
            expect_equal(context, b, v, "backwards with history");
            const Report report = run(
                context, {.over = Box{{1, 0}, {rows - 1, columns}}, .strides = {3, 1}, .reverse = {0}, .steps = steps},
                along(1, 3),
                reducing<double>({Reduction::sum},
                                 [](auto x, auto at) {
                                     const double y = x(1, -1, 0) + 0.5 * x(1, 0, 0) + static_cast<double>(at(0));
                                     return std::tuple(y, y);
                                 }),
                writes<adjoint>(c), indices());
            expect_equal(context, c, strided, "backwards with strides");
            EXPECT_EQ(sum_of(report), sum);
        });
    });
}

TEST_P(Kinds, DimensionsOfSomeLoopsAndIndices) {
    static constexpr auto one = reads({0}), before = reads({-1});
    static constexpr auto across = reads({0, 1});
    each_turn(3, [&] {
        const std::int64_t rows = draw(4, 20), columns = draw(4, 20);
        std::vector<double> table;
        for (std::int64_t k = 0; k < rows + 2 * columns; ++k) table.push_back(start(k, 3));
        Grid u(rows, columns), turned(columns + 1, rows), row(1, rows), column(1, columns);
        for (std::int64_t i = 0; i < rows - 1; ++i)
            for (std::int64_t j = 1; j < columns; ++j)
                u(i, j) = u(i, j - 1) + row(0, i) * column(0, j - 1) - turned(j, i + 1) +
                          table[static_cast<std::size_t>(i + 2 * j)];
        run_on([&](Context& context) {
            Field<double> a = field(context, rows, columns), t = field(context, columns + 1, rows);
            Field<double> r(context, {rows}, [](const Index& at) { return start(0, at[0]); }),
                c(context, {columns}, [](const Index& at) { return start(0, at[0]); });
            run(
                context, {}, along(0, 2),
                [&table](auto x, auto p, auto q, auto y, auto at) {
                    return x(0, -1) + p(0) * q(-1) - y(0, 1) + table[static_cast<std::size_t>(at(0) + 2 * at(1))];
                },
                writes<west>(a), only_reads<one>(indexed_by<0>(r)), only_reads<before>(indexed_by<1>(c)),
                only_reads<across>(indexed_by<1, 0>(t)), indices());
            expect_equal(context, a, u, "arrays of some loops");
        });
    });
}

// Sums and last values: arrays that are written and lack loops. With two loops fewer points have no vectors.
TEST_P(Kinds, WrittenArraysOfSomeLoops) {
    static constexpr auto one = reads({0}), before = reads({-1});
    each_turn(2, [&] {
        const std::int64_t rows = draw(4, 20), columns = draw(4, 20);
        Grid d(rows, columns), by_row(1, rows), last(1, 1), shifted(1, rows);
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j) by_row(0, i) += d(i, j);
        last(0, 0) = d(rows - 1, columns - 1);
        for (std::int64_t i = 1; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j) shifted(0, i) = shifted(0, i - 1) + 0.5 * d(i, j);
        run_on([&](Context& context) {
            const auto line = [&] {
                return Field<double>(context, {rows}, [](const Index& at) { return start(0, at[0]); });
            };
            Field<double> a = field(context, rows, columns), s = line(), t = line(),
                          cube(context, {2, rows, columns}, [](const Index& at) { return start(at[1], at[2]); });
            Field<double> x(context, {2}, [](const Index&) { return 0.0; });
            run(
                context, {}, along(0, 2), [](auto y, auto v) { return y(0) + v(0, 0); }, writes<one>(indexed_by<0>(s)),
                only_reads<point>(a));
            run(
                context, {}, [](auto y, auto v) { return y(-1) + 0.5 * v(0, 0); }, writes<before>(indexed_by<0>(t)),
                only_reads<point>(a));
            static constexpr auto here = reads({0, 0, 0});
            run(
                context, {}, [](auto, auto v) { return v(0, 0, 0); }, writes<one>(indexed_by<0>(x)),
                only_reads<here>(cube));
            const std::vector<double> sums = s.gather(), after = t.gather(), values = x.gather();
            if (context.rank() == 0) {
                EXPECT_EQ(sums, by_row.values);
                EXPECT_EQ(after, shifted.values);
                EXPECT_EQ(values, std::vector<double>(2, last(0, 0)));
            }
        });
    });
}

TEST_P(Kinds, Windows) {
    static constexpr auto table = reads({-1, -1}, {-1, 0}, {0, -1});
    static constexpr auto around = reads({-1, 0}, {0, 1});
    each_turn(3, [&] {
        const std::int64_t rows = draw(3, 30), columns = draw(3, 30);
        const auto begin = [](const Index& at) { return static_cast<double>(at[0] + 2 * at[1]); };
        std::vector<double> table_of_rows;
        for (std::int64_t i = 0; i < rows; ++i) table_of_rows.push_back(start(i, 1));
        Grid plain(rows, columns), given(rows, columns), kept(2 * rows, columns);
        each_point({{0, 0}, {rows, columns}}, {1, 1}, {false, false},
                   [&](auto i, auto j) { plain(i, j) = begin({i, j}); });
        double most = -1e9;
        each_point({{1, 1}, {rows, columns}}, {1, 1}, {false, false}, [&](auto i, auto j) {
            plain(i, j) = std::max(plain(i - 1, j - 1) + given(i, j), std::max(plain(i - 1, j), plain(i, j - 1)) - 1) +
                          table_of_rows[static_cast<std::size_t>(i)];
            kept(2 * i + 1, j) = plain(i - 1, j);
            most = std::max(most, plain(i, j));
        });
        const auto score = [&](auto x, auto f, auto at) {
            const double y = std::max(x(-1, -1) + f(0, 0), std::max(x(-1, 0), x(0, -1)) - 1) +
                             table_of_rows[static_cast<std::size_t>(at(0))];
            return std::tuple(y, y);
        };
        run_on([&](Context& context) {
            Field<double> f = field(context, rows, columns), k = field(context, rows, columns);
            Field<double> e(context, {2 * rows, 2 * columns},
                            [](const Index& at) { return start(at[0] / 2, at[1] / 2); });
            Field<double> o = field(context, 2 * rows, columns);
            const Window<double> window({rows, columns}, begin);
            BoundNest nest = bind(context, {}, along(0, 2), reducing<double>({Reduction::max}, score),
                                  writes<table>(window), only_reads<point>(f), indices());
            for (int n = 0; n < 3; ++n) {
                EXPECT_EQ(nest.run().reduced[0].value<double>(), most);
                // From then on the field has the halo of another nest.
                run(context, {}, [](auto, auto y) { return y(-1, 0); }, writes<point>(k), only_reads<around>(f));
            }
            run(
                context, {}, along(1, 2),
                [&](auto x, auto, auto y, auto at) { return std::tuple(std::get<0>(score(x, y, at)), x(-1, 0)); },
                writes<table>(window), writes<point>(every(o, {2, 1}, {1, 0})),
                only_reads<point>(every(e, {2, 2}, {1, 0})), indices());
            expect_equal(context, o, kept, "beside a window");
            const Report last =
                run(context, {.over = Box{{1, 1}, {rows, columns}}, .strides = {2, 1}}, along(0, 2),
                    reducing<double>({Reduction::sum}, [](auto x) { return std::tuple(x(0, 0), x(0, 0)); }),
                    writes<point>(window));
            double sum = 0;
            each_point({{1, 1}, {rows, columns}}, {2, 1}, {false, false},
                       [&](auto i, auto j) { sum += begin({i, j}); });
            EXPECT_EQ(sum_of(last), sum);
            BoundNest other = bind(
                context, {}, {}, [](auto x, auto y) { return x(0, 0) + y(0, 0); }, writes<point>(k),
                only_reads<point>(f));
            NestChain both = chain(context, {&nest, &other});
            EXPECT_EQ(both.run(2).reduced[0][0].value<double>(), most);
        });
    });
}

// Nests in time that read parts of a finer field, and nests that write parts.
TEST_P(Kinds, PartsWithAllElse) {
    static constexpr auto later = reads({1, 0, 0}, {2, -1, 0});
    static constexpr auto here = reads({0, 0, 0});
    static constexpr auto below = reads({0, 1, 0});
    each_turn(2, [&] {
        const std::int64_t rows = draw(6, 14), columns = draw(4, 9), steps = draw(2, 6);
        Grid u(rows, columns), past(rows, columns), fine(2 * rows + 1, columns), written(2 * rows, columns);
        std::vector<double> added, heard;
        double sum = 0, of_parts = 0;
        for (std::int64_t t = 0; t < steps; ++t) {
            Grid old = u;
            each_point({{1, 1}, {rows - 1, columns}}, {2, 1}, {false, false}, [&](auto i, auto j) {
                if (j > i + 1) return;
                sum += u(i, j) = old(i, j) - 0.5 * past(i - 1, j) + fine(2 * i, j) - 0.25 * fine(2 * i + 3, j);
            });
            past = old;
            added.push_back(0.25 * static_cast<double>(t));
            u(1, 1) += added.back();
            of_parts = 0;
            each_point({{1, 0}, {rows, columns}}, {2, 1}, {false, false}, [&](auto i, auto j) {
                if (i + j > rows) return;
                of_parts += written(2 * i + 1, j) = written(2 * i, j) - written(2 * i - 1, j);
            });
            written(3, 0) += added.back();
            heard.push_back(written(1, 1));
        }
        heard.resize(heard.size() + 2);
        run_on([&](Context& context) {
            Field<double> a = field(context, rows, columns), f = field(context, 2 * rows + 1, columns),
                          w = field(context, 2 * rows, columns);
            a.keep_history(1);
            std::vector<double> given = added, seen(heard.size());
            const NestLoops loops{.over = Box{{1, 1}, {rows - 1, columns}},
                                  .strides = {2, 1},
                                  .reverse = {0},
                                  .steps = steps,
                                  .bounds = {{{0, 1, -1}, 1}},
                                  .elements = {adds(a, {{1, 1}}, std::span(given))}};
            const Report report = run(context, loops, along(1, 3),
                                      reducing<double>({Reduction::sum},
                                                       [](auto x, auto even, auto odd) {
                                                           const double y = x(1, 0, 0) - 0.5 * x(2, -1, 0) +
                                                                            even(0, 0, 0) - 0.25 * odd(0, 1, 0);
                                                           return std::tuple(y, y);
                                                       }),
                                      writes<later>(a), only_reads<here>(every(f, {2, 1}, {0, 0})),
                                      only_reads<below>(every(f, {2, 1}, {1, 0})));
            expect_equal(context, a, u, "parts that are read");
            EXPECT_EQ(sum_of(report), sum);
            static constexpr auto before = reads({-1, 0});
            BoundNest nest =
                bind(context, {.over = Box{{1, 0}, {rows, columns}}, .strides = {2, 1}, .bounds = {{{-1, -1}, rows}}},
                     along(0, 2),
                     reducing<double>({Reduction::sum},
                                      [](auto odd, auto even) {
                                          const double y = even(0, 0) - odd(-1, 0);
                                          return std::tuple(y, y);
                                      }),
                     writes<before>(every(w, {2, 1}, {1, 0})), only_reads<point>(every(w, {2, 1}, {0, 0})));
            given.resize(added.size() + 2);
            const ChainReport ran =
                chain(context, {&nest})
                    .run({.times = steps + 2,
                          .until = [&](const ChainReport& so_far) { return so_far.times == steps; },
                          .elements = {adds(w, {{3, 0}}, std::span(given)), records(w, {{1, 1}}, std::span(seen))}});
            EXPECT_EQ(ran.times, steps);
            EXPECT_EQ(ran.reduced[0][0].value<double>(), of_parts);
            EXPECT_EQ(seen, heard);
            expect_equal(context, w, written, "parts that are written");
        });
    });
}

// Time steps that write parts of a field: forwards around periodic loops, and backwards.
TEST_P(Kinds, PartsThatTimeStepsWrite) {
    static constexpr auto odd = reads({-1, 0, 0}, {-2, 0, 1});
    static constexpr auto even = reads({-1, 0, 0}, {-1, 1, 0}, {-2, 0, 0});
    static constexpr auto side = reads({0, 0, -1}), later = reads({1, 0, 0});
    static constexpr auto below = reads({1, 1, 0}, {2, 0, 0});
    each_turn(3, [&] {
        const std::int64_t rows = draw(3, 12), columns = draw(3, 9), steps = draw(1, 6);
        Grid u(2 * rows, columns), w(2 * rows + 1, columns), c(rows, columns);
        Grid past(2 * rows, columns), before(2 * rows + 1, columns);
        std::vector<double> added(static_cast<std::size_t>(2 * steps), 0.5), heard;
        double sum = 0, backwards = 0;
        const Box all{{0, 0}, {rows, columns}};
        for (std::int64_t t = 0; t < steps; ++t) {
            Grid old = u, other = w;
            each_point(all, {1, 1}, {false, false}, [&](auto i, auto j) {
                sum += u(2 * i + 1, j) = 0.5 * (old(2 * i, j) + old((2 * i + 2) % (2 * rows), j)) -
                                         0.25 * past(2 * i, j) + 0.125 * past(2 * i + 1, (j + 1) % columns) +
                                         c(i, (j + columns - 1) % columns) - old(2 * i + 1, j);
                backwards += w(2 * i + 1, j) = 0.5 * (other(2 * i + 2, j) - before(2 * i, j)) - other(2 * i + 1, j);
            });
            past = old, before = other;
            for (const std::int64_t row : {1, 0}) u(row, 2) += 0.5;
            heard.push_back(u(1, 2));
            heard.push_back(u(2 * rows - 2, 0));
        }
        run_on([&](Context& context) {
            Field<double> f = field(context, 2 * rows, columns), b = field(context, 2 * rows + 1, columns),
                          given = field(context, rows, columns);
            std::vector<double> seen(heard.size()), sources = added;
            const Report report = run(context,
                                      {.steps = steps,
                                       .periodic = {1, 2},
                                       .elements = {adds(f, {{1, 2}, {0, 2}}, std::span(sources)),
                                                    records(f, {{1, 2}, {2 * rows - 2, 0}}, std::span(seen))}},
                                      along(1, 3),
                                      reducing<double>({Reduction::sum},
                                                       [](auto x, auto y, auto z) {
                                                           const double now = 0.5 * (y(-1, 0, 0) + y(-1, 1, 0)) -
                                                                              0.25 * y(-2, 0, 0) + 0.125 * x(-2, 0, 1) +
                                                                              z(0, 0, -1) - x(-1, 0, 0);
                                                           return std::tuple(now, now);
                                                       }),
                                      writes<odd>(every(f, {2, 1}, {1, 0})), only_reads<even>(every(f, {2, 1}, {0, 0})),
                                      only_reads<side>(given));
            expect_equal(context, f, u, "around periodic loops");
            EXPECT_EQ(sum_of(report), sum);
            EXPECT_EQ(seen, heard);
            BoundNest nest = bind(context, {.reverse = {0}, .steps = steps}, along(1, 3),
                                  reducing<double>({Reduction::sum},
                                                   [](auto x, auto y) {
                                                       const double now = 0.5 * (y(1, 1, 0) - y(2, 0, 0)) - x(1, 0, 0);
                                                       return std::tuple(now, now);
                                                   }),
                                  writes<later>(every(b, {2, 1}, {1, 0})), only_reads<below>(every(b, {2, 1}, {0, 0})));
            EXPECT_EQ(sum_of(nest.run()), backwards);
            expect_equal(context, b, w, "backwards");
        });
    });
}

TEST_P(Kinds, PartsAroundPeriodicLoops) {
    static constexpr auto below = reads({1, 1});
    each_turn(3, [&] {
        const std::int64_t rows = draw(2, 12), columns = draw(2, 9);
        Grid u(rows, columns), fine(2 * rows, 3 * columns);
        each_point({{0, 0}, {rows, columns}}, {1, 1}, {false, false}, [&](auto i, auto j) {
            u(i, j) += fine(2 * i, 3 * j) - fine((2 * i + 3) % (2 * rows), (3 * j + 5) % (3 * columns));
        });
        run_on([&](Context& context) {
            Field<double> c = field(context, rows, columns), f = field(context, 2 * rows, 3 * columns);
            run(
                context, {.periodic = {0, 1}}, along(0, 2),
                [](auto x, auto here, auto there) { return x(0, 0) + here(0, 0) - there(1, 1); }, writes<point>(c),
                only_reads<point>(every(f, {2, 3}, {0, 0})), only_reads<below>(every(f, {2, 3}, {1, 2})));
            expect_equal(context, c, u, "parts of a field");
            Field<double> longer = field(context, 2 * rows + 1, 3 * columns);
            const auto refused = [&] {
                run(
                    context, {.periodic = {0, 1}}, {}, [](auto x, auto y) { return x(0, 0) + y(0, 0); },
                    writes<point>(c), only_reads<point>(every(longer, {2, 3}, {1, 0})));
            };
            EXPECT_THROW(refused(), ConfigError);
        });
    });
}

INSTANTIATE_TEST_SUITE_P(OnRanks, Kinds, ranks_and_threads);
