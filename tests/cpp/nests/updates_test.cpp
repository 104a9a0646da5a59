// Updates in any order and batches in C++ programs, against plain loops on ranks as threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <map>
#include <tuple>
#include <vector>

#include "support/kinds.hpp"
#include "support/plain.hpp"

using namespace tilewave;

namespace {

Integer updated(Update op, Integer old, Integer value) {
    switch (op) {
        case Update::sum: return old + value;
        case Update::min: return std::min(old, value);
        case Update::max: return std::max(old, value);
        case Update::bit_and: return old & value;
        case Update::bit_or: return old | value;
        case Update::bit_xor: return old ^ value;
        case Update::last: break;
    }
    return value;
}

class Updates : public Kinds {
protected:
    Update any() { return static_cast<Update>(draw(0, 5)); }
};

constexpr auto before = reads({0, -1, 0}, {0, 0, -1});
constexpr auto here = reads({0, 0, 0});

}  // namespace

// With strides, bounds, loops that run downwards, a window and numbers that are reduced.
TEST_P(Updates, InAnyOrder) {
    each_turn(2, [&] {
        const Index shape{draw(6, 12), draw(4, 9), draw(4, 9)}, strides{draw(1, 2), draw(1, 3), draw(1, 2)};
        const Box over{{draw(0, 1), 1, draw(1, 2)}, {shape[0], shape[1], shape[2]}};
        const std::vector<int> reverse = draw(0, 1) ? std::vector<int>{0} : std::vector<int>{};
        const Update op = any();
        const int along_loop = static_cast<int>(draw(0, 2));
        const bool bounded = draw(0, 1) == 1;
        const auto begin_of_window = [](const Index& at) { return beginning({at[1], at[2]}); };
        Plain<Integer> u(shape), w(shape), x(shape), s({shape[1]}), z({shape[1]}), t({shape[2]}), l({shape[0]});
        Plain<std::int16_t> small({shape[2]});
        for (Index at{0, 0, 0}, go{1}; go[0]; go[0] = next_point(at, {{0, 0, 0}, shape})) w[at] = begin_of_window(at);
        Integer sum = 0;
        in_loops(over, strides, reverse, [&](const Index& at) {
            const auto [b, i, j] = std::tuple(at[0], at[1], at[2]);
            if (bounded && i + 1 < j) return;
            const auto value = [&](Plain<Integer>& y) {
                return x[at] + std::max(y[{b, i - 1, j}], y[{b, i, j - 1}]) % 64;
            };
            const Integer d = u[at] = value(u);
            sum += d;
            s[{i}] = updated(op, s[{i}], d);
            t[{j}] += d, l[{b}] = d;
            small[{j}] = static_cast<std::int16_t>(small[{j}] + 1000 * d);
            w[at] = value(w), z[{i}] = updated(op, z[{i}], w[at]);
        });
        NestLoops loops{.over = over, .strides = strides, .reverse = reverse};
        if (bounded) loops.bounds = {{{0, 1, -1}, 1}};
        run_on([&](Context& context) {
            Field<Integer> a = u.field(context), f = x.field(context), in_s = s.field(context), in_t = t.field(context),
                           in_l = l.field(context), in_z = z.field(context);
            Field<std::int16_t> in_small = small.field(context);
            const auto value = [](auto y, auto v) { return v(0, 0, 0) + std::max(y(0, -1, 0), y(0, 0, -1)) % 64; };
            const Report report =
                run(context, loops, along(along_loop, 3),
                    reducing<Integer>({Reduction::sum},
                                      [=](auto y, auto, auto, auto, auto, auto v) {
                                          const Integer d = value(y, v);
                                          return std::tuple(d, d, d, d, 1000 * d, d);
                                      }),
                    writes<before>(a), updates(op, indexed_by<1>(in_s)), updates(Update::sum, indexed_by<2>(in_t)),
                    updates(Update::last, indexed_by<0>(in_l)), updates(Update::sum, indexed_by<2>(in_small)),
                    only_reads<here>(f));
            expect_equal(a, u, "what is written");
            expect_equal(in_s, s, to_string(op));
            expect_equal(in_t, t, "sums");
            expect_equal(in_l, l, "last values");
            expect_equal(in_small, small, "sums that wrap");
            EXPECT_EQ(report.reduced[0].value<Integer>(), sum);
            const Window<Integer> window(shape, begin_of_window);
            BoundNest nest = bind(
                context, loops, along(along_loop, 3),
                [=](auto y, auto, auto v) {
                    const Integer d = value(y, v);
                    return std::tuple(d, d);
                },
                writes<before>(window), updates(op, indexed_by<1>(in_z)), only_reads<here>(f));
            nest.run();
            expect_equal(in_z, z, "of a window");
        });
    });
}

// Nests that write nothing else, of periodic loops; parts of fields; no array but the one that is updated.
TEST_P(Updates, AloneInANest) {
    static constexpr auto around = reads({-1, 0, 0}, {0, 0, 1});
    each_turn(2, [&] {
        const Index shape{draw(6, 10), draw(2, 6), draw(3, 6)};
        const Update op = any();
        Plain<Integer> x(shape), s({shape[2]}), part({2 * shape[2] + 1}), q({shape[0]});
        in_loops({{0, 0, 0}, shape}, {1, 1, 1}, {}, [&](const Index& at) {
            s[{at[2]}] = updated(
                op, s[{at[2]}],
                x[{(at[0] + shape[0] - 1) % shape[0], at[1], at[2]}] - x[{at[0], at[1], (at[2] + 1) % shape[2]}]);
            part[{2 * at[2] + 1}] = updated(op, part[{2 * at[2] + 1}], x[at]);
            q[{at[0]}] += at[0] * at[1] + at[2];
        });
        run_on([&](Context& context) {
            Field<Integer> f = x.field(context), in_s = s.field(context), in_part = part.field(context),
                           in_q = q.field(context);
            run(
                context, {.periodic = {0, 2}}, along(0, 3), [](auto, auto v) { return v(-1, 0, 0) - v(0, 0, 1); },
                updates(op, indexed_by<2>(in_s)), only_reads<around>(f));
            expect_equal(in_s, s, to_string(op));
            run(
                context, {}, along(0, 3), [](auto, auto v) { return v(0, 0, 0); },
                updates(op, indexed_by<2>(every(in_part, {2}, {1}))), only_reads<here>(f));
            expect_equal(in_part, part, "every second element");
            run(
                context, {.over = Box{{0, 0, 0}, shape}}, {}, [](auto, auto at) { return at(0) * at(1) + at(2); },
                updates(Update::sum, indexed_by<0>(in_q)), indices());
            expect_equal(in_q, q, "of indices");
        });
    });
}

// In time, forwards and backwards: fields with time as a dimension, and without.
TEST_P(Updates, InTime) {
    static constexpr auto forwards = reads({-1, 0, 0}, {-1, -1, 0}, {-2, 0, 0});
    static constexpr auto backwards = reads({1, 0, 0}, {1, -1, 0}, {2, 0, 0});
    each_turn(2, [&] {
        const Integer rows = draw(7, 14), columns = draw(4, 9), steps = draw(2, 7);
        const bool back = draw(0, 1) == 1, wraps = draw(0, 1) == 1, bounded = draw(0, 1) == 1;
        const Update op = any();
        const Box over{{wraps ? 0 : 1, 1}, {rows, columns}};
        const Index strides{1, draw(1, 2)};
        Plain<Integer> u({rows, columns}), s({steps + 1, rows}), r({columns}), l({rows}), c({columns, rows});
        Plain<Integer> past = u;
        std::vector<Integer> added, heard;
        Integer most = -1000000;
        for (Integer k = 0; k < steps; ++k) {
            const Integer time = back ? steps - 1 - k : k;
            Plain<Integer> old = u;
            in_loops(over, strides, {}, [&](const Index& at) {
                const Integer i = at[0], j = at[1];
                if (bounded && j > time + 2) return;
                const Integer d = u[at] = old[at] + 3 * old[{(i + rows - 1) % rows, j}] % 5 - past[at] % 7;
                s[{time, i}] = updated(op, s[{time, i}], d);
                r[{j}] = r[{j}] ^ d, l[{i}] = d, c[{j, i}] += d * time;
                most = std::max(most, d);
            });
            past = old;
            added.push_back(k % 3 - 1);
            u[{rows - 1, 0}] += added.back();
            heard.push_back(u[{rows / 2, 1}]);
        }
        NestLoops loops{.over = over, .strides = strides, .steps = steps};
        if (back) loops.reverse = {0};
        if (wraps) loops.periodic = {1};
        if (bounded) loops.bounds = {{{1, 0, -1}, 2}};
        run_on([&](Context& context) {
            Field<Integer> a = u.field(context), in_s = s.field(context), in_r = r.field(context),
                           in_l = l.field(context), in_c = c.field(context);
            a.keep_history(1);
            std::vector<Integer> given = added, seen(heard.size());
            NestLoops here = loops;
            here.elements = {adds(a, {{rows - 1, 0}}, std::span(given)), records(a, {{rows / 2, 1}}, std::span(seen))};
            const auto all = [](Integer one, Integer two, Integer three, Integer time) {
                const Integer d = one + 3 * two % 5 - three % 7;
                return std::tuple(d, d, d, d, d * time, d);
            };
            const auto updated_fields = [&](auto run_with) {
                return run_with(updates(op, indexed_by<0, 1>(in_s)), updates(Update::bit_xor, indexed_by<2>(in_r)),
                                updates(Update::last, indexed_by<1>(in_l)),
                                updates(Update::sum, indexed_by<2, 1>(in_c)), indices());
            };
            const Report report = updated_fields([&](const auto&... more) {
                if (back)
                    return run(context, here, along(1, 3),
                               reducing<Integer>({Reduction::max},
                                                 [=](auto y, auto, auto, auto, auto, auto at) {
                                                     return all(y(1, 0, 0), y(1, -1, 0), y(2, 0, 0), at(0));
                                                 }),
                               writes<backwards>(a), more...);
                return run(context, here, along(1, 3),
                           reducing<Integer>({Reduction::max},
                                             [=](auto y, auto, auto, auto, auto, auto at) {
                                                 return all(y(-1, 0, 0), y(-1, -1, 0), y(-2, 0, 0), at(0));
                                             }),
                           writes<forwards>(a), more...);
            });
            expect_equal(a, u, "in time");
            expect_equal(in_s, s, to_string(op));
            expect_equal(in_r, r, "of all steps");
            expect_equal(in_l, l, "of the last step");
            expect_equal(in_c, c, "by the step");
            EXPECT_EQ(seen, heard);
            EXPECT_EQ(report.reduced[0].value<Integer>(), most);
        });
    });
}

// Repetitions of a chain with elements, and an end; one nest reads what another one updates in any order.
TEST_P(Updates, InChains) {
    each_turn(2, [&] {
        const Index shape{draw(6, 10), draw(3, 8), draw(3, 8)};
        const Integer times = draw(2, 5), ends = draw(1, times);
        const bool shared = draw(0, 1) == 1;
        Plain<Integer> u(shape), x(shape), s({shape[1]}), l({shape[0]}), after(shape);
        std::vector<Integer> added, heard(static_cast<std::size_t>(times)), sums;
        for (Integer k = 0; k < times; ++k) added.push_back(2 * k - 3);
        for (Integer k = 0; k < ends; ++k) {
            Integer sum = 0;
            in_loops({{0, 1, 1}, shape}, {1, 1, 1}, {}, [&](const Index& at) {
                const auto [b, i, j] = std::tuple(at[0], at[1], at[2]);
                const Integer d = u[at] = x[at] + std::max(u[{b, i - 1, j}], u[{b, i, j - 1}]) % 64;
                sum += d, s[{i}] += d, l[{b}] = d;
            });
            in_loops({{0, 0, 0}, shape}, {1, 1, 1}, {},
                     [&](const Index& at) { after[at] += u[at] + (shared ? s[{at[1]}] : 0); });
            s[{1}] += added[static_cast<std::size_t>(k)];
            heard[static_cast<std::size_t>(k)] = l[{2}];
            sums.push_back(sum);
        }
        run_on([&](Context& context) {
            Field<Integer> a = u.field(context), f = x.field(context), in_s = s.field(context), in_l = l.field(context),
                           b = after.field(context), other = s.field(context);
            static constexpr auto one = reads({0});
            BoundNest first = bind(context, {}, along(0, 3),
                                   reducing<Integer>({Reduction::sum},
                                                     [](auto y, auto, auto, auto v) {
                                                         const Integer d =
                                                             v(0, 0, 0) + std::max(y(0, -1, 0), y(0, 0, -1)) % 64;
                                                         return std::tuple(d, d, d, d);
                                                     }),
                                   writes<before>(a), updates(Update::sum, indexed_by<1>(in_s)),
                                   updates(Update::last, indexed_by<0>(in_l)), only_reads<here>(f));
            BoundNest second = bind(
                context, {}, along(0, 3),
                [=](auto y, auto v, auto w) { return y(0, 0, 0) + v(0, 0, 0) + (shared ? w(0) : 0); }, writes<here>(b),
                only_reads<here>(a), only_reads<one>(indexed_by<1>(shared ? in_s : other)));
            NestChain both = chain(context, {&first, &second});
            EXPECT_EQ(both.separate().empty(), !shared) << both.separate();
            std::vector<Integer> given = added, seen(heard.size()), found;
            both.run({.times = times,
                      .until =
                          [&](const ChainReport& so_far) {
                              found.push_back(so_far.reduced[0][0].value<Integer>());
                              return so_far.times == ends;
                          },
                      .elements = {adds(in_s, {{1}}, std::span(given)), records(in_l, {{2}}, std::span(seen))}});
            EXPECT_EQ(found, sums);
            EXPECT_EQ(seen, heard);
            expect_equal(a, u, "the first nest");
            expect_equal(b, after, "the second nest");
            expect_equal(in_s, s, "sums of repetitions");
            expect_equal(in_l, l, "last values");
        });
    });
}

// Where the order matters: floats; and elements that have a last point each, or lack one loop.
TEST_P(Updates, InTheOrderOfTheLoops) {
    struct Pair {
        Integer one, two;
        bool operator==(const Pair&) const = default;
    };
    each_turn(2, [&] {
        const Index shape{draw(3, 6), draw(3, 8), draw(3, 8)};
        Plain<double> x(shape), s({shape[1]}), most({shape[0]});
        Plain<Integer> l({shape[1]}), one({shape[0], shape[2]});
        std::vector<std::complex<double>> z(static_cast<std::size_t>(shape[1]));
        std::vector<Pair> last(static_cast<std::size_t>(shape[0]));
        for (double& value : x.values) value = value / 7 + 0.1;
        in_loops({{0, 0, 0}, shape}, {1, 1, 1}, {1}, [&](const Index& at) {
            const auto [b, i, j] = std::tuple(at[0], at[1], at[2]);
            if (j < b) return;
            const double d = x[at];
            s[{i}] += d, most[{b}] = std::max(most[{b}], d);
            z[static_cast<std::size_t>(i)] += std::complex(d, -d);
            l[{i}] = 100 * b + 10 * i + j, one[{b, j}] += i;
            last[static_cast<std::size_t>(b)] = {i, j};
        });
        run_on([&](Context& context) {
            Field<double> f(context, shape, [&](const Index& at) { return beginning(at) / 7.0 + 0.1; });
            Field<double> in_s = s.field(context), in_most = most.field(context);
            Field<Integer> in_l = l.field(context), in_one = one.field(context);
            Field<std::complex<double>> in_z(context, {shape[1]}, [](const Index&) { return 0.0; });
            Field<Pair> in_last(context, {shape[0]}, [](const Index&) { return Pair{}; });
            const NestLoops loops{.reverse = {1}, .bounds = {{{-1, 0, 1}, 0}}};
            run(
                context, loops, {},
                [](auto, auto, auto, auto, auto, auto, auto v, auto at) {
                    const double d = v(0, 0, 0);
                    return std::tuple(d, d, std::complex(d, -d), 100 * at(0) + 10 * at(1) + at(2), at(1),
                                      Pair{at(1), at(2)});
                },
                updates(Update::sum, indexed_by<1>(in_s)), updates(Update::max, indexed_by<0>(in_most)),
                updates(Update::sum, indexed_by<1>(in_z)), updates(Update::last, indexed_by<1>(in_l)),
                updates(Update::sum, indexed_by<0, 2>(in_one)), updates(Update::last, indexed_by<0>(in_last)),
                only_reads<here>(f), indices());
            expect_equal(in_s, s, "sums of floats");
            expect_equal(in_most, most, "the largest");
            expect_equal(in_l, l, "last values with bounds");
            expect_equal(in_one, one, "of one loop");
            const auto complex = in_z.gather();
            const auto pairs = in_last.gather();
            if (context.rank() == 0) {
                EXPECT_EQ(complex, z);
                EXPECT_EQ(pairs, last);
            }
        });
    });
}

// Many equal problems, whose tables are rolling windows: what is wanted of each is its last value.
TEST_P(Updates, Batches) {
    each_turn(2, [&] {
        const Index shape{draw(12, 24), draw(4, 8), draw(4, 9)};
        const auto begin_of_window = [](const Index& at) { return 0.25 * static_cast<double>(at[1] + at[2]); };
        Plain<double> d(shape), x({shape[0], shape[1]}), s({shape[0]});
        for (Index at{0, 0, 0}, go{1}; go[0]; go[0] = next_point(at, {{0, 0, 0}, shape})) d[at] = begin_of_window(at);
        const Box over{{draw(0, 1), 1, 1}, shape};
        const Index strides{draw(1, 2), 1, draw(1, 2)};
        double sum = 0, most = -1e9;
        in_loops(over, strides, {}, [&](const Index& at) {
            const auto [b, i, j] = std::tuple(at[0], at[1], at[2]);
            if (j < i) return;
            s[{b}] = d[at] = x[{b, i}] + std::min(d[{b, i - 1, j}], d[{b, i, j - 1}]);
            sum += d[at], most = std::max(most, d[at]);
        });
        const auto cost = [](auto table, auto, auto given) {
            const double value = given(0, 0) + std::min(table(0, -1, 0), table(0, 0, -1));
            return std::tuple(value, value, value, value);
        };
        run_on([&](Context& context) {
            static constexpr auto point = reads({0, 0});
            Field<double> f = x.field(context), in_s = s.field(context);
            const Window<double> table(shape, begin_of_window);
            BoundNest nest =
                bind(context, {.over = over, .strides = strides, .bounds = {{{0, -1, 1}, 0}}}, along(0, 3),
                     reducing<double, double>({Reduction::sum, Reduction::max}, cost), writes<before>(table),
                     updates(Update::last, indexed_by<0>(in_s)), only_reads<point>(indexed_by<0, 1>(f)));
            for (int k = 0; k < 2; ++k) {
                const Report report = nest.run();
                EXPECT_EQ(report.reduced[0].value<double>(), sum);
                EXPECT_EQ(report.reduced[1].value<double>(), most);
            }
            expect_equal(in_s, s, "the last value of each problem");
            std::vector<double> seen(9), ends(9);
            ends[0] = ends[1] = s[{1}];
            chain(context, {&nest})
                .run({.times = 9,
                      .until = [](const ChainReport& so_far) { return so_far.times == 2; },
                      .elements = {records(in_s, {{1}}, std::span(seen))}});
            EXPECT_EQ(seen, ends);
        });
    });
}

TEST_P(Updates, BatchesInTime) {
    static constexpr auto forwards = reads({0, 0, -1, 0}, {-1, 0, 0, -1}, {-2, 0, 0, 0});
    static constexpr auto backwards = reads({0, 0, -1, 0}, {1, 0, 0, -1}, {2, 0, 0, 0});
    each_turn(2, [&] {
        const Index shape{draw(9, 16), draw(4, 6), draw(4, 6)}, strides{1, 1, draw(1, 2)};
        const Integer steps = draw(1, 4);
        const bool back = draw(0, 1) == 1;
        Plain<double> d(shape), past = d, s({steps, shape[0]}), l({shape[0]});
        const Box over{{0, 1, 1}, shape};
        std::vector<double> added, heard;
        double sum = 0;
        for (Integer k = 0; k < steps; ++k) {
            const Integer time = back ? steps - 1 - k : k;
            Plain<double> old = d;
            in_loops(over, strides, {}, [&](const Index& at) {
                const auto [b, i, j] = std::tuple(at[0], at[1], at[2]);
                if (j < i) return;
                d[at] = 0.5 * past[at] + std::min(d[{b, i - 1, j}], old[{b, i, j - 1}]);
                s[{time, b}] = l[{b}] = d[at], sum += d[at];
            });
            past = old;
            added.push_back(0.5 * static_cast<double>(k));
            d[{2, 0, 1}] += added.back();
            heard.push_back(d[{1, 1, 1}]);
        }
        run_on([&](Context& context) {
            Field<double> a = d.field(context), in_s = s.field(context), in_l = l.field(context);
            a.keep_history(1);
            std::vector<double> given = added, seen(heard.size());
            NestLoops loops{.over = over, .strides = strides, .steps = steps, .bounds = {{{0, 0, -1, 1}, 0}}};
            loops.elements = {adds(a, {{2, 0, 1}}, std::span(given)), records(a, {{1, 1, 1}}, std::span(seen))};
            if (back) loops.reverse = {0};
            const auto all = [](double one, double two, double three) {
                const double value = 0.5 * three + std::min(one, two);
                return std::tuple(value, value, value, value);
            };
            const auto of_steps = updates(Update::last, indexed_by<0, 1>(in_s));
            const auto of_all = updates(Update::last, indexed_by<1>(in_l));
            const Report report =
                back ? run(context, loops, along(1, 4),
                           reducing<double>(
                               {Reduction::sum},
                               [=](auto y, auto, auto) { return all(y(0, 0, -1, 0), y(1, 0, 0, -1), y(2, 0, 0, 0)); }),
                           writes<backwards>(a), of_steps, of_all)
                     : run(context, loops, along(1, 4),
                           reducing<double>({Reduction::sum},
                                            [=](auto y, auto, auto) {
                                                return all(y(0, 0, -1, 0), y(-1, 0, 0, -1), y(-2, 0, 0, 0));
                                            }),
                           writes<forwards>(a), of_steps, of_all);
            expect_equal(a, d, "tables in time");
            expect_equal(in_s, s, "the last value of each problem and step");
            expect_equal(in_l, l, "the last value of each problem");
            EXPECT_EQ(seen, heard);
            EXPECT_EQ(report.reduced[0].value<double>(), sum);
        });
    });
}

TEST(UpdatesRefused, WhatHasNoMeaning) {
    on_ranks(2, [](Context& context) {
        const auto zero = [](const Index&) { return 0; };
        Field<double> u(context, {4, 5}, zero), s(context, {4}, zero), t(context, {3, 4}, zero);
        Field<Integer> n(context, {3, 4}, zero), line(context, {3}, zero), cube(context, {3, 4, 5}, zero);
        static constexpr auto step = reads({-1, 0, 0});
        const auto refused = [&](const NestLoops& loops, auto operand, const std::string& why) {
            try {
                run(
                    context, loops, {}, [](auto y, auto) { return std::tuple(y(-1, 0, 0), y(-1, 0, 0)); },
                    writes<step>(u), operand);
                ADD_FAILURE() << "nothing was refused";
            } catch (const ConfigError& e) {
                EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
            }
        };
        refused({.steps = 3}, updates(Update::sum, indexed_by<1>(s)),
                "sum was given for a field of loops (1) in time steps");
        refused({.steps = 4}, updates(Update::bit_or, indexed_by<0, 1>(n)), "at least 4 elements");
        const auto arrays = detail::arrays_of(updates(Update::sum, indexed_by<0>(line)), only_reads<here>(cube));
        EXPECT_EQ(nest_problem({}, arrays).updates[0].place, -1);
        EXPECT_EQ(nest_problem({}, arrays, false, paths_off("order_free")).updates[0].place, 0);
        refused({.steps = 3}, updates(Update::bit_or, indexed_by<0, 1>(t)), "of floats sum, min, max and last");
        refused({.steps = 3, .bounds = {{{0, 1, -1}, 0}}}, updates(Update::last, indexed_by<1>(s)),
                "bounds of loops that the field lacks");
    });
}

INSTANTIATE_TEST_SUITE_P(OnRanks, Updates, ranks_and_threads);
