// Nests of C++ programs that write a row for several time steps, against plain loops on ranks as threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "support/kinds.hpp"

using namespace tilewave;

namespace {

constexpr auto heat = reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0});
constexpr auto row = reads({0, 0, 0});

}  // namespace

// Time steps that write a row together, with all else.
TEST_P(Kinds, StepRows) {
    static constexpr auto back = reads({1, 0, 0}, {2, -1, 0}), older = reads({-1, 0, 0}, {-2, -1, 0});
    each_turn(3, [&] {
        const std::int64_t rows = draw(6, 14), columns = draw(4, 9), steps = draw(1, 9), together = draw(1, 4);
        const Box over{{1, 0}, {rows - 1, columns}};
        const auto of = [together](std::int64_t t) { return t / together; };
        // What a step makes of u and of the value before, w's row is the sum of them.
        const auto plain = [&](Grid& u, Grid& w, bool backwards, const Index& strides, const auto& value) {
            double most = -1e9;
            Grid past(rows, columns);
            for (std::int64_t step = 0; step < steps; ++step) {
                const std::int64_t t = backwards ? steps - 1 - step : step;
                const Grid old = u;
                each_point(over, strides, {false, false}, [&](auto i, auto j) {
                    if (!value(u, old, past, t, i, j)) return;
                    w(of(t) * rows + i, j) += u(i, j);
                    most = std::max(most, u(i, j));
                });
                past = old;
            }
            return most;
        };
        const auto mean = [&](Grid& u, Grid old, Grid&, std::int64_t, auto i, auto j) {
            u(i, j) = 0.5 * old(i, j) + 0.25 * (old(i - 1, j) + old((i + 1) % rows, j));
            return true;
        };
        Grid u(rows, columns), v(rows, columns), x(rows, columns), of_u(9 * rows, columns), of_v = of_u, of_x = of_u;
        for (int n = 0; n < 2; ++n) plain(u, of_u, false, {1, 1}, mean);
        const double most = plain(v, of_v, true, {2, 1}, [&](Grid& a, Grid old, Grid& past, auto, auto i, auto j) {
            a(i, j) = old(i, j) - 0.5 * past(i - 1, j);
            return true;
        });
        plain(x, of_x, false, {1, 2}, [&](Grid& a, Grid old, Grid& past, auto t, auto i, auto j) {
            if (j < t) return false;
            a(i, j) = old(i, j) - 0.5 * past(i - 1, j);
            return true;
        });
        const auto rows_like = [&](Context& context) {
            return Field<double>(context, {9, rows, columns},
                                 [&](const Index& at) { return start(at[0] * rows + at[1], at[2]); });
        };
        const auto body = [](auto a, auto b) {
            const double y = 0.5 * a(-1, 0, 0) + 0.25 * (a(-1, -1, 0) + a(-1, 1, 0));
            return std::tuple(y, b(0, 0, 0) + y);
        };
        const auto before = [](auto a, auto b) {
            const double y = a(-1, 0, 0) - 0.5 * a(-2, -1, 0);
            return std::tuple(y, b(0, 0, 0) + y);
        };
        run_on([&](Context& context) {
            Field<double> a = field(context, rows, columns), w = rows_like(context);
            BoundNest nest = bind(context, {.over = over, .steps = steps}, along(1, 3), body, writes<heat>(a),
                                  writes<row>(rows_of(w, of)));
            for (int n = 0; n < 2; ++n) nest.run();
            expect_equal(context, a, u, "beside rows");
            expect_equal(context, w, of_u, "rows of steps");
            Field<double> b = field(context, rows, columns), z = rows_like(context);
            b.keep_history(1);
            const Report report =
                run(context, {.over = over, .strides = {2, 1}, .reverse = {0}, .steps = steps}, along(1, 3),
                    reducing<double>({Reduction::max},
                                     [](auto f, auto g) {
                                         const double y = f(1, 0, 0) - 0.5 * f(2, -1, 0);
                                         return std::tuple(y, g(0, 0, 0) + y, y);
                                     }),
                    writes<back>(b), writes<row>(rows_of(z, of)));
            expect_equal(context, b, v, "backwards beside rows");
            expect_equal(context, z, of_v, "rows of steps backwards");
            EXPECT_EQ(sum_of(report), most);
            Field<double> c = field(context, rows, columns), y = rows_like(context);
            c.keep_history(1);
            run(context, {.over = over, .strides = {1, 2}, .steps = steps, .bounds = {{{-1, 0, 1}, 0}}}, along(1, 3),
                before, writes<older>(c), writes<row>(rows_of(y, of)));
            expect_equal(context, c, x, "bounds with time beside rows");
            expect_equal(context, y, of_x, "rows of steps with bounds");
            EXPECT_THROW(run(context, {.steps = 3}, {}, body, writes<heat>(a),
                             writes<row>(rows_of(w, [](std::int64_t t) { return t - 2; }))),
                         ConfigError);
        });
    });
}

// In periodic loops, in chains with a nest that reads the rows, with sources and receivers.
TEST_P(Kinds, StepRowsInChains) {
    each_turn(2, [&] {
        const std::int64_t rows = draw(6, 14), columns = draw(4, 9), steps = draw(1, 7);
        const auto of = [](std::int64_t t) { return t / 3; };
        const auto begin = [&](const Index& at) { return start(at[0] * rows + at[1], at[2]); };
        Grid u(rows, columns), w(3 * rows, columns), sums(3 * rows, columns);
        std::vector<double> added, heard;
        const auto step = [&](std::int64_t t) {
            const Grid old = u;
            for (std::int64_t i = 0; i < rows; ++i)
                for (std::int64_t j = 0; j < columns; ++j) {
                    Grid from = old;
                    u(i, j) = 0.5 * from(i, j) + 0.25 * (from((i + rows - 1) % rows, j) + from((i + 1) % rows, j));
                    w(of(t) * rows + i, j) += u(i, j);
                }
        };
        for (int n = 0; n < 2; ++n) {
            for (std::int64_t t = 0; t < steps; ++t) step(t);
            for (std::size_t k = 0; k < sums.values.size(); ++k) sums.values[k] += w.values[k];
        }
        Grid chained = u, of_chain = w;
        for (std::int64_t t = 0; t < steps; ++t) {
            step(t);
            added.push_back(0.25 * static_cast<double>(t + 1));
            u(1, 2) += added.back();
            heard.push_back(u(0, 1));
        }
        run_on([&](Context& context) {
            Field<double> a = field(context, rows, columns), z(context, {3, rows, columns}, begin),
                          s(context, {3, rows, columns}, begin);
            const auto body = [](auto x, auto y) {
                const double v = 0.5 * x(-1, 0, 0) + 0.25 * (x(-1, -1, 0) + x(-1, 1, 0));
                return std::tuple(v, y(0, 0, 0) + v);
            };
            NestLoops loops{.steps = steps, .periodic = {1}};
            BoundNest first = bind(context, loops, along(1, 3), body, writes<heat>(a), writes<row>(rows_of(z, of)));
            BoundNest second = bind(
                context, {}, along(1, 3), [](auto x, auto y) { return x(0, 0, 0) + y(0, 0, 0); }, writes<row>(s),
                only_reads<row>(z));
            NestChain both = chain(context, {&first, &second});
            EXPECT_EQ(both.separate(), "");
            both.run({.times = 9, .until = [](const ChainReport& so_far) { return so_far.times == 2; }});
            expect_equal(context, a, chained, "a chain beside rows");
            expect_equal(context, z, of_chain, "rows in a chain");
            expect_equal(context, s, sums, "a nest that reads the rows");
            std::vector<double> given = added, seen(heard.size());
            loops.elements = {adds(a, {{1, 2}}, std::span(given)), records(a, {{0, 1}}, std::span(seen))};
            run(context, loops, along(1, 3), body, writes<heat>(a), writes<row>(rows_of(z, of)));
            EXPECT_EQ(seen, heard);
            expect_equal(context, a, u, "with sources");
            expect_equal(context, z, w, "rows with sources");
        });
    });
}
