// Nests with a pivot, and nests that read along whole axes, in C++ programs against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "support/kinds.hpp"

using namespace tilewave;

namespace {

constexpr auto point = reads({0, 0});
class TaskNests : public Kinds {};

}  // namespace

TEST_P(TaskNests, Pivots) {
    each_turn(2, [&] {
        const std::int64_t n = draw(4, 22), wide = n + draw(0, 3);
        const std::int64_t first = draw(0, 2);
        for (const int way : {0, 1, 2, 3}) {  // all, from the last step on, within bounds, with strides
            Grid d(n, wide), weight(n, wide);
            double sum = 0;
            for (std::int64_t step = first; step < n; step += way == 3 ? 2 : 1)
                for (std::int64_t i = 0; i < n; ++i)
                    for (std::int64_t j = 0; j < wide; j += way == 3 ? 3 : 1) {
                        const std::int64_t k = way == 1 ? n - 1 - (step - first) : step;
                        if (way == 2 && (i <= k || j <= k)) continue;
                        d(i, j) = std::min(d(i, j) + 0.25 * d(k, k), d(i, k) - d(k, j) + 0.5 * weight(i, j));
                        sum += d(i, j) > 0;
                    }
            run_on([&](Context& context) {
                Field<double> a = field(context, n, wide), w = field(context, n, wide);
                NestLoops loops{.over = Box{{first, 0, 0}, {n, n, wide}}};
                if (way == 1) loops.reverse = {0}, loops.over = Box{{0, 0, 0}, {n - first, n, wide}};
                if (way == 1) loops.over->lo[0] = first, loops.over->hi[0] = n;
                if (way == 2) loops.bounds = {{{-1, 1, 0}, -1}, {{-1, 0, 1}, -1}};
                if (way == 3) loops.strides = {2, 1, 3};
                BoundNest nest = bind(context, loops, along(1, 3),
                                      reducing<std::int64_t>({Reduction::sum},
                                                             [](auto x, auto y) {
                                                                 const double v =
                                                                     std::min(x.point() + 0.25 * x.corner(),
                                                                              x.column() - x.row() + 0.5 * y(0, 0));
                                                                 return std::tuple(v, v > 0);
                                                             }),
                                      pivots(a), only_reads<point>(indexed_by<1, 2>(w)));
                const Report report = nest.run();
                expect_equal(context, a, d, "a pivot, way " + std::to_string(way));
                EXPECT_EQ(static_cast<double>(report.reduced[0].value<std::int64_t>()), sum) << way;
            });
        }
    });
}

TEST_P(TaskNests, WholeAxes) {
    static constexpr auto lines = reads({-1, all}, {-1, 0});
    static constexpr auto two = reads({-1, all}, {-2, all});
    each_turn(2, [&] {
        const std::int64_t steps = draw(2, 12), states = draw(3, 20);
        std::vector<double> costs;
        for (std::int64_t k = 0; k < states * states; ++k) costs.push_back(start(k, k / states));
        Grid best(steps, states), seen(steps, states), now(1, states), before(1, states), strided(1, states);
        std::int64_t most = -1000;
        for (std::int64_t t = 1; t < steps; ++t)
            for (std::int64_t s = 0; s < states; ++s) {
                double found = best(t - 1, 0) + costs[static_cast<std::size_t>(s)];
                for (std::int64_t q = 1; q < states; ++q)
                    found = std::max(found, best(t - 1, q) + costs[static_cast<std::size_t>(q * states + s)]);
                best(t, s) = found - seen(t, s) + 0.5 * best(t - 1, s);
                most = std::max(most, static_cast<std::int64_t>(found));
            }
        for (std::int64_t t = 0; t < steps; ++t) {
            const Grid old = now, earlier = before, coarse = strided;
            for (std::int64_t s = 0; s < states; ++s)
                now(0, s) = Grid(old)(0, states - 1) - 0.5 * Grid(earlier)(0, (s + t) % states);
            for (std::int64_t s = 1; s < states; s += 2)
                strided(0, s) = Grid(coarse)(0, 0) + 0.5 * Grid(coarse)(0, states - s);
            before = old;
        }
        run_on([&](Context& context) {
            Field<double> v = field(context, steps, states), o = field(context, steps, states);
            const auto line = [&] {
                return Field<double>(context, {states}, [](const Index& at) { return start(0, at[0]); });
            };
            Field<double> x = line(), y = line();
            const Report report = run(
                context, {}, along(1, 2),
                reducing<std::int64_t>({Reduction::max},
                                       [&](auto a, auto b, auto at) {
                                           const auto row = a(-1, all);
                                           double found = row[0] + costs[static_cast<std::size_t>(at(1))];
                                           for (std::int64_t q = 1; q < states; ++q)
                                               found = std::max(
                                                   found, row[q] + costs[static_cast<std::size_t>(q * states + at(1))]);
                                           return std::tuple(found - b(0, 0) + 0.5 * a(-1, 0), found);
                                       }),
                writes<lines>(v), only_reads<point>(o), indices());
            expect_equal(context, v, best, "a row of the step before");
            EXPECT_EQ(report.reduced[0].value<std::int64_t>(), most);
            x.keep_history(1);
            BoundNest nest = bind(
                context, {.steps = steps}, along(1, 2),
                [&](auto a, auto at) { return a(-1, all)[states - 1] - 0.5 * a(-2, all)[(at(1) + at(0)) % states]; },
                writes<two>(x), indices());
            nest.run();
            const std::vector<double> found = x.gather();
            run(
                context, {.over = Box{{1}, {states}}, .strides = {2}, .steps = steps}, along(1, 2),
                [&](auto a, auto at) { return a(-1, all)[0] + 0.5 * a(-1, all)[states - at(1)]; }, writes<two>(y),
                indices());
            const std::vector<double> coarse = y.gather();
            if (context.rank() == 0) {
                EXPECT_EQ(found, now.values);
                EXPECT_EQ(coarse, strided.values);
            }
        });
    });
}

TEST_P(TaskNests, WholeAxesBackwardsAndWithPoints) {
    static constexpr auto lines = reads({1, all}, {1, 0});
    static constexpr auto rows_of = reads({-1, all});
    each_turn(2, [&] {
        const std::int64_t steps = draw(2, 9), states = draw(4, 20);
        Grid u(1, states), v(steps, states);
        std::vector<double> added, heard;
        double sum = 0, most = -1e9;
        for (std::int64_t t = steps - 1; t >= 0; --t) {
            const Grid old = u;
            for (std::int64_t s = 1; s < states; s += 3)
                if (s > t) sum += u(0, s) = Grid(old)(0, states - 1) - 0.5 * Grid(old)(0, (s + t) % states);
            added.push_back(0.5 * static_cast<double>(t % 3));
            u(0, 1) += added.back();
            heard.push_back(u(0, states - 1));
        }
        for (std::int64_t t = 1; t < steps; ++t)
            for (std::int64_t s = t; s < states; ++s)
                most = std::max(most, v(t, s) = 0.5 * v(t - 1, states - 1 - s) + v(t - 1, 0));
        run_on([&](Context& context) {
            Field<double> x(context, {states}, [](const Index& at) { return start(0, at[0]); });
            std::vector<double> given = added, seen(heard.size());
            const auto body = [&](auto a, auto at) {
                const double y = a(1, all)[states - 1] - 0.5 * a(1, all)[(at(1) + at(0)) % states];
                return std::tuple(y, y);
            };
            const Report report =
                run(context,
                    {.over = Box{{1}, {states}},
                     .strides = {3},
                     .reverse = {0},
                     .steps = steps,
                     .bounds = {{{-1, 1}, -1}},
                     .elements = {adds(x, {{1}}, std::span(given)), records(x, {{states - 1}}, std::span(seen))}},
                    along(1, 2), reducing<double>({Reduction::sum}, body), writes<lines>(x), indices());
            EXPECT_EQ(sum_of(report), sum);
            EXPECT_EQ(seen, heard);
            const std::vector<double> found = x.gather();
            if (context.rank() == 0) {
                EXPECT_EQ(found, u.values);
            }
            // Rows of a window, which each run begins anew, in a chain.
            const Window<double> window({steps, states}, [](const Index& at) { return start(at[0], at[1]); });
            BoundNest nest = bind(context, {.bounds = {{{-1, 1}, 0}}}, along(1, 2),
                                  reducing<double>({Reduction::max},
                                                   [&](auto a, auto at) {
                                                       const auto row = a(-1, all);
                                                       const double y = 0.5 * row[states - 1 - at(1)] + row[0];
                                                       return std::tuple(y, y);
                                                   }),
                                  writes<rows_of>(window), indices());
            const ChainReport ran = chain(context, {&nest}).run({.times = 4, .until = [](const ChainReport& so_far) {
                                                                     return so_far.times == 3;
                                                                 }});
            EXPECT_EQ(ran.times, 3);
            EXPECT_EQ(ran.reduced[0][0].value<double>(), most);
        });
    });
}

INSTANTIATE_TEST_SUITE_P(OnRanks, TaskNests, ranks_and_threads);
