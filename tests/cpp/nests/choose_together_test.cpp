// The loop that chooses plans, with a front that makes up its rates.
#include "nests/choose_together.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>

#include "support/ranks.hpp"

using namespace tilewave;

namespace {

// What a test's front was asked for, with a clock of its own.
struct Asked {
    std::map<std::string, int> samples = {};  // by storage
    std::vector<double> budgets = {};
    int prepared = 0;
    double now_s = 0;
    double more_s = 0;  // that a sample takes beyond its budget
    double preparing_s = 0;
    double tick_s = 0;  // that all else takes
    double spread = 0;
};

class MadeUp final : public SampledNest {
public:
    MadeUp(const Plan& plan, Asked& asked) : plan_(plan), asked_(asked) {}
    const Plan& plan() const override { return plan_; }
    std::vector<RateSample> sample(double budget_s) override {
        const bool skewed = plan_.storage == StorageKind::skewed;
        asked_.budgets.push_back(budget_s);
        asked_.now_s += budget_s + asked_.more_s;
        ++asked_.samples[skewed ? "skewed" : "plain"];
        std::vector<RateSample> all{{50, 20000, 0}, {500, 12000, 0}, {4, 8, 0}};
        for (RateSample& s : all) s.tile_s = (skewed ? 1e-9 : 2e-9) * s.points, s.spread = asked_.spread;
        return all;
    }
    double bringing_s() override { return 1; }
    bool vectors() const override { return false; }
    std::string digest() const override { return "made up"; }

private:
    Plan plan_;
    Asked& asked_;
};

class Maker final : public KernelMaker {
public:
    // Planning goes by the time that samples take, whatever else this machine does.
    explicit Maker(Context& context) {
        context.component<PlanningClock>() = {[this] { return asked.now_s += asked.tick_s; }, [] { return 0.0; }};
    }
    bool vectors_across(const SweepProblem&) override { return true; }
    std::shared_ptr<SampledNest> prepare(const Alternative&, const Plan& plan, SampledNest*) override {
        if (fails) throw ConfigError("this rank alone");
        ++asked.prepared;
        asked.now_s += asked.preparing_s;
        return std::make_shared<MadeUp>(plan, asked);
    }
    double sampled_s() const { return std::accumulate(asked.budgets.begin(), asked.budgets.end(), 0.0); }
    Asked asked;
    bool fails = false;
};

// Links have default numbers: they are not measured, so that plans follow from what the samples say.
template <class Body>
void on_planning_ranks(int ranks, Body body) {
    on_ranks(ranks, [&](Context& context) {
        context.use_machine(Machine());
        body(context);
    });
}

PlanCall call(std::int64_t n, bool in_place = false) {
    const std::vector<Index> offsets{{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}};
    const std::vector<ArrayReads> arrays{{nullptr, 4, Index{n, n, n}, true, offsets}};
    PlanCall c{nest_problem({}, arrays).problem, {}};
    c.body = "three";
    c.memory = std::to_string(n);
    c.in_place = in_place;
    return c;
}

}  // namespace

TEST(ChooseTogether, AlternativesAreMeasuredUntilTheBestIs) {
    on_planning_ranks(2, [](Context& context) {
        const PlanCall given = call(100);
        Maker maker(context);
        const auto chosen = choose_together(context, &given, maker);
        ASSERT_TRUE(chosen);
        EXPECT_TRUE(chosen->choice.measured);
        EXPECT_EQ(chosen->choice.ranked[0].plan.storage, StorageKind::skewed);
        EXPECT_EQ(chosen->times[chosen->at].time_s, chosen->choice.ranked[0].time_s);
        EXPECT_EQ(maker.asked.samples.count("plain"), 0u) << "arrays as they are, point by point, were measured";
        EXPECT_EQ(chosen->rate.note, "measured on 2 ranks at once");
        // What is known is not measured again.
        Maker again(context);
        const auto same = choose_together(context, &given, again);
        ASSERT_TRUE(same);
        EXPECT_TRUE(again.asked.samples.empty());
        EXPECT_EQ(same->choice.ranked[0].plan.to_string(), chosen->choice.ranked[0].plan.to_string());
    });
}

TEST(ChooseTogether, BringingArraysCounts) {
    on_planning_ranks(1, [](Context& context) {
        const PlanCall given = call(100, true);
        Maker maker(context);
        const auto chosen = choose_together(context, &given, maker);
        ASSERT_TRUE(chosen);
        EXPECT_EQ(chosen->choice.ranked[0].plan.storage, StorageKind::plain);
        EXPECT_GT(chosen->times.size(), 1u);
        for (const ChosenPlan::Time& t : chosen->times)
            EXPECT_EQ(t.bringing_s, t.alternative.request.storage == StorageKind::skewed ? 1 : 0);
    });
}

TEST(ChooseTogether, ABriefRunTakesTheRatesOfOtherShapes) {
    on_planning_ranks(1, [](Context& context) {
        for (const std::int64_t n : {40, 20, 10}) {
            PlanCall given = call(n);
            given.request.storage = StorageKind::plain;
            Maker maker(context);
            ASSERT_TRUE(choose_together(context, &given, maker));
            EXPECT_EQ(maker.asked.samples.empty(), n < 40) << n;
        }
    });
}

TEST(ChooseTogether, OfAPlanThatIsGivenItIsFoundOutWhatItTakes) {
    on_planning_ranks(2, [](Context& context) {
        PlanCall given = call(60);
        given.plan = make_plan(given.problem, 2, {}, context.machine());
        given.plan->lookahead = 3;
        Maker maker(context);
        const auto chosen = choose_together(context, &given, maker);
        ASSERT_TRUE(chosen);
        EXPECT_EQ(chosen->choice.ranked.size(), 1u);
        EXPECT_EQ(chosen->choice.ranked[0].plan.to_string(), given.plan->to_string());
        EXPECT_GT(chosen->choice.ranked[0].time_s, 0);
        EXPECT_EQ(maker.asked.prepared, 1);
    });
}

TEST(ChooseTogether, ARankThatFailsAloneHoldsNobody) {
    on_planning_ranks(3, [](Context& context) {
        const PlanCall given = call(30);
        for (int rank = 0; rank < 3; ++rank) {
            Maker maker(context);
            maker.fails = context.rank() == rank;
            if (maker.fails)
                EXPECT_THROW(choose_together(context, &given, maker), ConfigError);
            else
                EXPECT_FALSE(choose_together(context, &given, maker));
            EXPECT_FALSE(choose_together(context, context.rank() == rank ? nullptr : &given, maker));
        }
    });
}

TEST(ChooseTogether, TheBudgetIsNotExceeded) {
    for (const std::int64_t n : {20, 100, 300})
        for (const double more_s : {0.0, 0.004}) {
            on_planning_ranks(2, [&](Context& context) {
                const PlanCall given = call(n);
                Maker maker(context);
                maker.asked.more_s = more_s;
                maker.asked.preparing_s = 0.1;  // compiling does not count
                const auto chosen = choose_together(context, &given, maker);
                ASSERT_TRUE(chosen);
                const double run_s = chosen->choice.ranked[0].time_s;
                EXPECT_LE(maker.sampled_s() + more_s * static_cast<double>(maker.asked.budgets.size()),
                          std::max(0.05, 1.2 * run_s))
                    << n << ", " << more_s;
                EXPECT_GT(maker.sampled_s(), 0);
                EXPECT_NEAR(chosen->spending.budget_s, std::max(0.05, run_s), 1e-12);
                EXPECT_EQ(chosen->spending.samples > 0, chosen->spending.spent_s > 0);
            });
        }
}

TEST(ChooseTogether, QuickPlanningMeasuresOnlyWhatNothingIsKnownOf) {
    on_planning_ranks(2, [](Context& context) {
        PlanCall given = call(100);
        given.request.planning = Planning::quick;
        Maker first(context);
        ASSERT_TRUE(choose_together(context, &given, first));
        EXPECT_GT(first.asked.budgets.size(), 0u);
        EXPECT_LE(first.sampled_s(), 0.01);
        PlanCall larger = call(400);
        larger.request.planning = Planning::quick;
        Maker second(context);
        const auto chosen = choose_together(context, &larger, second);
        ASSERT_TRUE(chosen);
        EXPECT_TRUE(second.asked.budgets.empty());
        EXPECT_FALSE(chosen->choice.measured);
        EXPECT_FALSE(chosen->spending.settled);
    });
}

TEST(ChooseTogether, ThoroughPlanningEndsWithTheBestMeasured) {
    on_planning_ranks(2, [](Context& context) {
        for (const std::int64_t n : {100, 150, 250}) {  // fewer points take less than what is worth a measurement
            PlanCall given = call(n);
            given.request.planning = Planning::thorough;
            Maker maker(context);
            maker.asked.more_s = 1;
            const auto chosen = choose_together(context, &given, maker);
            ASSERT_TRUE(chosen);
            EXPECT_TRUE(chosen->choice.measured) << n;
            EXPECT_TRUE(chosen->spending.settled) << n;
        }
    });
}

TEST(ChooseTogether, PlansOfAllRanksAreEqualHoweverLongTheyMeasure) {
    std::vector<std::string> plans(3);
    std::vector<double> spent(3);
    on_planning_ranks(3, [&](Context& context) {
        const auto rank = static_cast<std::size_t>(context.rank());
        for (const std::int64_t n : {150, 200, 210, 60, 300}) {
            const PlanCall given = call(n);
            Maker maker(context);
            maker.asked.more_s = 0.003 * context.rank();
            const auto chosen = choose_together(context, &given, maker);
            ASSERT_TRUE(chosen);
            plans[rank] += chosen->choice.ranked[0].plan.to_string() + "\n";
            spent[rank] += chosen->spending.spent_s;
        }
    });
    EXPECT_EQ(plans[0], plans[1]);
    EXPECT_EQ(plans[0], plans[2]);
    EXPECT_EQ(spent[0], spent[1]);
    EXPECT_EQ(spent[0], spent[2]);
}

TEST(ChooseTogether, RunsThatAddUpPayForMore) {
    on_planning_ranks(2, [](Context& context) {
        PlanCall given = call(250);
        Maker maker(context);
        maker.asked.tick_s = 0.1;  // so that the first sample and the search spend it all
        auto chosen = choose_together(context, &given, maker);
        ASSERT_TRUE(chosen);
        ASSERT_FALSE(chosen->spending.settled);
        maker.asked.tick_s = 0;
        RunsOfPlan runs(chosen->spending, 0);
        EXPECT_GE(*runs.enough_s, 10 * chosen->spending.spent_s);
        EXPECT_FALSE(runs.enough());
        // An equal call measures nothing as long as they have not.
        const std::size_t before = maker.asked.budgets.size();
        chosen = choose_together(context, &given, maker);
        ASSERT_TRUE(chosen);
        EXPECT_EQ(maker.asked.budgets.size(), before);
        runs.ran_s = *runs.enough_s;
        EXPECT_TRUE(runs.enough());
        given.ran_s = 100;
        chosen = choose_together(context, &given, maker);
        ASSERT_TRUE(chosen);
        EXPECT_GT(maker.asked.budgets.size(), before);
        EXPECT_TRUE(chosen->spending.settled);
        EXPECT_FALSE(RunsOfPlan(chosen->spending, given.ran_s).enough_s);
    });
}

TEST(ChooseTogether, WhatIsStoredWithALargeSpreadIsUsedAndMeasuredOnceMore) {
    char folder[] = "/tmp/tilewave-planning-XXXXXX";
    setenv("TILEWAVE_CACHE_DIR", mkdtemp(folder), 1);
    std::vector<std::size_t> samples;
    for (const double spread : {2.0, 0.0, 0.0})
        on_planning_ranks(1, [&](Context& context) {
            context.component<RateStore>().launch = "this one";
            context.component<RateStore>().renewed_spread = 1;
            const PlanCall given = call(100);
            Maker maker(context);
            maker.asked.spread = spread;
            const auto chosen = choose_together(context, &given, maker);
            ASSERT_TRUE(chosen);
            samples.push_back(maker.asked.budgets.size());
            if (samples.size() == 1) EXPECT_EQ(chosen->rate.spread, 2);
        });
    EXPECT_GE(samples[0], 1u);
    EXPECT_EQ(samples[1], 1u) << "what was disturbed is measured once more";
    EXPECT_EQ(samples[2], 0u) << "nothing is measured by the next process";
    std::filesystem::remove_all(folder);
    setenv("TILEWAVE_CACHE_DIR", "", 1);
}
