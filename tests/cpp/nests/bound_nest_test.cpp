// Bound nests of C++ programs against run(), on ranks as threads.
#include <gtest/gtest.h>

#include <stdexcept>
#include <tuple>

#include "support/ranks.hpp"
#include "tilewave/tilewave.hpp"

using namespace tilewave;

namespace {

Field<double> field(Context& context, std::int64_t rows, std::int64_t columns) {
    return Field<double>(context, {rows, columns},
                         [](const Index& at) { return static_cast<double>((7 * at[0] + 13 * at[1]) % 11) - 3.5; });
}

template <class F>
std::string text_of_error(F call) {
    try {
        call();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "nothing was thrown";
}

constexpr auto before = reads({-1, 0}, {0, -1}, {1, 1});
constexpr auto ahead = reads({0, 1}, {1, 0});
constexpr auto star = reads({-1, 0}, {1, 0}, {0, -1}, {0, 1});
constexpr auto heat = reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0}, {-1, 0, -1}, {-1, 0, 1});

class BoundNests : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(BoundNests, AlternateAndTakeNewNumbers) {
    const auto [ranks, threads] = GetParam();
    on_ranks(ranks, threads, [](Context& context) {
        Field<double> a = field(context, 41, 27), b = field(context, 41, 27);
        double weight = 0.5;
        const auto down = [&weight](auto x) { return weight * (x(-1, 0) + x(0, -1)) - 0.25 * x(1, 1); };
        const auto up = [](auto x) { return 0.5 * x(0, 1) - 0.125 * x(1, 0); };
        BoundNest first = bind(context, {}, {}, down, writes<before>(a));
        BoundNest second = bind(context, {.reverse = {0, 1}}, {}, up, writes<ahead>(a));
        for (const double w : {0.5, 0.25, 0.125, 0.5}) {
            weight = w;
            EXPECT_EQ(first.run().points, 39 * 25);
            second.run();
            run(context, {}, {}, down, writes<before>(b));
            run(context, {.reverse = {0, 1}}, {}, up, writes<ahead>(b));
            EXPECT_EQ(a.gather(), b.gather());
        }
    });
}

// Whatever the plans that the nests have by themselves.
TEST_P(BoundNests, AreAChain) {
    const auto [ranks, threads] = GetParam();
    on_ranks(ranks, threads, [](Context& context) {
        Field<double> a = field(context, 41, 27), b = field(context, 41, 27);
        double weight = 0.5;
        const auto down = [&weight](auto x) {
            return weight * (x(-1, 0) + x(0, -1)) - 0.25 * x(1, 0) + 0.125 * x(0, 1);
        };
        const auto up = [](auto x) { return 0.5 * x(0, 1) - 0.125 * x(1, 0) + 0.25 * x(-1, 0) - 0.5 * x(0, -1); };
        const auto sum = reducing<double>({Reduction::sum}, [](auto x) {
            const double value = 0.5 * x(0, 1) - 0.25 * x(-1, 0);
            return std::tuple{value, value * value};
        });
        PlanRequest plain;
        plain.grid = Index{context.size(), 1};
        plain.storage = StorageKind::plain;
        for (const PlanRequest& request : {plain, PlanRequest{}}) {
            BoundNest first = bind(context, {}, request, down, writes<star>(a));
            BoundNest second = bind(context, {.reverse = {0, 1}}, request, up, writes<star>(a));
            BoundNest third = bind(context, {}, request, sum, writes<star>(a));
            BoundNest first_alone = bind(context, {}, {}, down, writes<star>(b));
            BoundNest second_alone = bind(context, {.reverse = {0, 1}}, {}, up, writes<star>(b));
            BoundNest third_alone = bind(context, {}, {}, sum, writes<star>(b));
            for (const bool reduces : {false, true}) {
                std::vector<BoundNest*> nests{&first, &second};
                if (reduces) nests.push_back(&third);
                NestChain both = chain(context, nests);
                EXPECT_EQ(both.separate(), "");
                for (const auto& [w, times] : {std::pair{0.5, 1},
                                               {0.25, 5},
                                               {0.125, reduces              ? 3
                                                       : context.size() < 3 ? 258
                                                                            : 9}}) {
                    weight = w;
                    const ChainReport report = both.run(times);
                    ASSERT_EQ(report.reduced.size(), nests.size());
                    EXPECT_EQ(report.points, times * (reduces ? 3 : 2) * 39 * 25);
                    Report last;
                    for (int k = 0; k < times; ++k) {
                        first_alone.run();
                        second_alone.run();
                        if (reduces) last = third_alone.run();
                    }
                    EXPECT_EQ(a.gather(), b.gather());
                    if (reduces) EXPECT_EQ(report.reduced[2].at(0).value<double>(), last.reduced.at(0).value<double>());
                }
            }
        }
    });
}

// Nests that reach unequally far, and one that steps in time, an odd and an even number of steps.
TEST_P(BoundNests, ShareALayoutInAChain) {
    const auto [ranks, threads] = GetParam();
    on_ranks(ranks, threads, [](Context& context) {
        Field<double> a = field(context, 41, 27), b = field(context, 41, 27);
        Field<double> c = field(context, 41, 27), d = field(context, 41, 27);
        const auto down = [](auto x) { return 0.5 * (x(-1, 0) + x(0, -1)) - 0.25 * x(1, 1); };
        const auto up = [](auto x) { return 0.5 * x(0, 1) - 0.125 * x(1, 0); };
        const auto spread = [](auto x) { return x(-1, 0, 0) + 0.125 * (x(-1, -1, 0) - x(-1, 1, 0)); };
        for (const std::int64_t steps : {1, 2, 3}) {
            BoundNest first = bind(context, {}, {}, down, writes<before>(a));
            BoundNest second = bind(context, {.reverse = {0, 1}}, {}, up, writes<ahead>(a));
            BoundNest third = bind(context, {.steps = steps}, {}, spread, writes<heat>(a));
            BoundNest fourth = bind(context, {.reverse = {0, 1}}, {}, up, writes<ahead>(c));
            NestChain all = chain(context, {&first, &third, &second, &fourth});
            EXPECT_EQ(all.separate(), "");
            all.run(3);
            for (int k = 0; k < 3; ++k) {
                run(context, {}, {}, down, writes<before>(b));
                run(context, {.steps = steps}, {}, spread, writes<heat>(b));
                run(context, {.reverse = {0, 1}}, {}, up, writes<ahead>(b));
                run(context, {.reverse = {0, 1}}, {}, up, writes<ahead>(d));
            }
            EXPECT_EQ(a.gather(), b.gather());
            EXPECT_EQ(c.gather(), d.gather());
        }
    });
}

TEST_P(BoundNests, ThatCannotBeAChainAreToldOnEveryRank) {
    const auto [ranks, threads] = GetParam();
    on_ranks(ranks, threads, [](Context& context) {
        Field<double> a(context, {20, 20}, [](const Index&) { return 1e308; });
        Field<double> b = field(context, 20, 20), c = field(context, 20, 20);
        const auto up = [](auto x) { return 0.5 * x(0, 1) - 0.125 * x(1, 0); };
        const auto fails = [](auto x) -> double {
            if (x(0, 0) > 1e300) throw std::runtime_error("too much");
            return x(-1, 0) + x(0, -1) + x(1, 1);
        };
        EXPECT_NE(text_of_error([&] { chain(context, {}); }).find("no nests"), std::string::npos);
        BoundNest first = bind(context, {.reverse = {0, 1}}, {}, up, writes<ahead>(a));
        BoundNest second = bind(context, {}, {}, fails, writes<before>(a));
        NestChain both = chain(context, {&first, &second});
        EXPECT_NE(text_of_error([&] { both.run(0); }).find("times: 0"), std::string::npos);
        EXPECT_NE(text_of_error([&] { both.run(3); }).find("too much"), std::string::npos);
        BoundNest third = bind(context, {.reverse = {0, 1}}, {}, up, writes<ahead>(b));
        chain(context, {&third}).run(2);
        for (int k = 0; k < 2; ++k) run(context, {.reverse = {0, 1}}, {}, up, writes<ahead>(c));
        EXPECT_EQ(b.gather(), c.gather());
    });
}

TEST_P(BoundNests, StepsMayChange) {
    const auto [ranks, threads] = GetParam();
    const auto body = [](auto x) {
        return 0.5 * x(-1, 0, 0) + 0.125 * (x(-1, -1, 0) + x(-1, 1, 0) + x(-1, 0, -1) + x(-1, 0, 1));
    };
    for (const std::int64_t bound : {0, 2, 60})
        on_ranks(ranks, threads, [&](Context& context) {
            Field<double> a = field(context, 19, 23), b = field(context, 19, 23);
            BoundNest nest = bind(context, {.steps = bound}, {}, body, writes<heat>(a));
            for (const std::optional<std::int64_t> steps : {std::optional<std::int64_t>(), {7}, {0}, {300}, {1}, {7}}) {
                const Report report = nest.run(steps);
                EXPECT_EQ(report.points, steps.value_or(bound) * 17 * 21);
                run(context, {.steps = steps.value_or(bound)}, {}, body, writes<heat>(b));
                EXPECT_EQ(a.gather(), b.gather()) << bound << " " << steps.value_or(-1);
            }
            EXPECT_NE(text_of_error([&] { nest.run(-1); }).find("allowed: 0 and more"), std::string::npos);
        });
}

TEST_P(BoundNests, AFieldThatAnotherPlanMovesIsBroughtBack) {
    const auto [ranks, threads] = GetParam();
    on_ranks(ranks, threads, [](Context& context) {
        Field<double> a = field(context, 41, 27), b = field(context, 41, 27);
        const auto body = [](auto x) { return 0.5 * (x(-1, 0) + x(0, -1)) - 0.25 * x(1, 1); };
        BoundNest nest = bind(context, {}, {}, body, writes<before>(a));
        for (int k = 0; k < 3; ++k) {
            Index grid = default_grid(a.shape(), context.size(), -1);
            std::swap(grid[0], grid[1]);
            a.storage().relayout(Layout(a.shape(), grid));
            nest.run();
            run(context, {}, {}, body, writes<before>(b));
            EXPECT_EQ(a.gather(), b.gather());
        }
    });
}

TEST_P(BoundNests, ABodyThatThrows) {
    const auto [ranks, threads] = GetParam();
    on_ranks(ranks, threads, [](Context& context) {
        Field<double> a = field(context, 30, 30), b = field(context, 30, 30);
        int fail = 0;  // the number of the failure
        const auto body = [&](auto x) {
            if (fail > 0 && context.rank() == 0)  // which computes for all where others have nothing to do
                throw std::runtime_error("failure " + std::to_string(fail));
            return 0.5 * (x(-1, 0) + x(0, -1)) - 0.25 * x(1, 1);
        };
        BoundNest nest = bind(context, {}, {}, body, writes<before>(a));
        for (int k = 1; k <= 3; ++k) {
            fail = k;
            const std::string text = text_of_error([&] { nest.run(); });
            EXPECT_NE(text.find(": failure " + std::to_string(k)), std::string::npos) << text;
            fail = 0;
            for (Field<double>* f : {&a, &b}) f->for_each_owned([](const Index& at, double& v) { v = at[0] - at[1]; });
            nest.run();
            run(context, {}, {}, body, writes<before>(b));
            EXPECT_EQ(a.gather(), b.gather());
        }
    });
}

TEST_P(BoundNests, RanksThatRunDifferentOnes) {
    const auto [ranks, threads] = GetParam();
    if (ranks == 1) return;
    on_ranks(ranks, threads, [](Context& context) {
        Field<double> a = field(context, 30, 30), b = field(context, 30, 30);
        const auto body = [](auto x) { return 0.5 * (x(-1, 0) + x(0, -1)) - 0.25 * x(1, 1); };
        BoundNest one = bind(context, {}, {}, body, writes<before>(a));
        BoundNest two = bind(context, {}, {}, body, writes<before>(b));
        const std::string text = text_of_error([&] { (context.rank() == 0 ? one : two).run(); });
        EXPECT_NE(text.find("bound nest 1 of body"), std::string::npos) << text;
        EXPECT_NE(text.find("bound nest 2 of body"), std::string::npos) << text;
        EXPECT_NE(text_of_error([&] {
                      one.run(context.rank() ? std::optional<std::int64_t>(3) : std::nullopt);
                  }).find("bound without steps"),
                  std::string::npos);
        one.run();
        two.run();
        EXPECT_EQ(a.gather(), b.gather());
    });
}

INSTANTIATE_TEST_SUITE_P(OnRanks, BoundNests,
                         ::testing::Values(std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1}, std::pair{3, 2}));

}  // namespace
