// The loop that chooses plans, with a front that makes up its rates.
#include "nests/choose_together.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/ranks.hpp"

using namespace tilewave;

namespace {

// What a test's front was asked for.
struct Asked {
    std::map<std::string, int> samples = {};  // by storage
    int prepared = 0;
};

class MadeUp final : public SampledNest {
public:
    MadeUp(const Plan& plan, Asked& asked, bool vectors) : plan_(plan), asked_(asked), vectors_(vectors) {}
    const Plan& plan() const override { return plan_; }
    std::vector<RateSample> sample(double) override {
        const bool skewed = plan_.storage == StorageKind::skewed;
        ++asked_.samples[skewed ? "skewed" : "plain"];
        std::vector<RateSample> all{{50, 20000, 0}, {500, 12000, 0}, {4, 8, 0}};
        for (RateSample& s : all) s.tile_s = (skewed ? 1e-9 : 2e-9) * s.points;
        return all;
    }
    double bringing_s() override { return 1; }
    bool vectors() const override { return vectors_; }
    std::string digest() const override { return "made up"; }

private:
    Plan plan_;
    Asked& asked_;
    bool vectors_;
};

class Maker final : public KernelMaker {
public:
    explicit Maker(bool vectors = false) : vectors_(vectors) {}
    bool vectors_across(const SweepProblem&) override { return true; }
    std::shared_ptr<SampledNest> prepare(const Alternative&, const Plan& plan, SampledNest*) override {
        if (fails) throw ConfigError("this rank alone");
        ++asked.prepared;
        return std::make_shared<MadeUp>(plan, asked, vectors_);
    }
    Asked asked;
    bool fails = false;

private:
    bool vectors_;
};

PlanCall call(std::int64_t n, bool in_place = false) {
    const std::vector<Index> offsets{{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}};
    const std::vector<ArrayReads> arrays{{nullptr, 4, Index{n, n, n}, true, offsets}};
    PlanCall c{nest_problem({}, arrays), {}};
    c.body = "three";
    c.memory = std::to_string(n);
    c.in_place = in_place;
    return c;
}

}  // namespace

TEST(ChooseTogether, AlternativesAreMeasuredUntilTheBestIs) {
    on_ranks(2, [](Context& context) {
        const PlanCall given = call(100);
        Maker maker;
        const auto chosen = choose_together(context, &given, maker);
        ASSERT_TRUE(chosen);
        EXPECT_TRUE(chosen->choice.measured);
        EXPECT_EQ(chosen->choice.ranked[0].plan.storage, StorageKind::skewed);
        EXPECT_EQ(chosen->times[chosen->at].time_s, chosen->choice.ranked[0].time_s);
        EXPECT_EQ(maker.asked.samples.count("plain"), 0u) << "arrays as they are, point by point, were measured";
        EXPECT_EQ(chosen->rate.note, "measured on 2 rank(s) at once");
        // What is known is not measured again.
        Maker again;
        const auto same = choose_together(context, &given, again);
        ASSERT_TRUE(same);
        EXPECT_TRUE(again.asked.samples.empty());
        EXPECT_EQ(same->choice.ranked[0].plan.to_string(), chosen->choice.ranked[0].plan.to_string());
    });
}

TEST(ChooseTogether, BringingArraysCounts) {
    on_ranks(1, [](Context& context) {
        const PlanCall given = call(100, true);
        Maker maker;
        const auto chosen = choose_together(context, &given, maker);
        ASSERT_TRUE(chosen);
        EXPECT_EQ(chosen->choice.ranked[0].plan.storage, StorageKind::plain);
        EXPECT_GT(chosen->times.size(), 1u);
        for (const ChosenPlan::Time& t : chosen->times)
            EXPECT_EQ(t.bringing_s, t.alternative.request.storage == StorageKind::skewed ? 1 : 0);
    });
}

TEST(ChooseTogether, ABriefRunTakesTheRatesOfOtherShapes) {
    on_ranks(1, [](Context& context) {
        for (const std::int64_t n : {40, 20, 10}) {
            PlanCall given = call(n);
            given.request.storage = StorageKind::plain;
            Maker maker;
            ASSERT_TRUE(choose_together(context, &given, maker));
            EXPECT_EQ(maker.asked.samples.empty(), n < 40) << n;
        }
    });
}

TEST(ChooseTogether, OfAPlanThatIsGivenItIsFoundOutWhatItTakes) {
    on_ranks(2, [](Context& context) {
        PlanCall given = call(60);
        given.plan = make_plan(given.problem, 2, {}, context.machine());
        given.plan->lookahead = 3;
        Maker maker;
        const auto chosen = choose_together(context, &given, maker);
        ASSERT_TRUE(chosen);
        EXPECT_EQ(chosen->choice.ranked.size(), 1u);
        EXPECT_EQ(chosen->choice.ranked[0].plan.to_string(), given.plan->to_string());
        EXPECT_GT(chosen->choice.ranked[0].time_s, 0);
        EXPECT_EQ(maker.asked.prepared, 1);
    });
}

TEST(ChooseTogether, ARankThatFailsAloneHoldsNobody) {
    on_ranks(3, [](Context& context) {
        const PlanCall given = call(30);
        for (int rank = 0; rank < 3; ++rank) {
            Maker maker;
            maker.fails = context.rank() == rank;
            if (maker.fails)
                EXPECT_THROW(choose_together(context, &given, maker), ConfigError);
            else
                EXPECT_FALSE(choose_together(context, &given, maker));
            EXPECT_FALSE(choose_together(context, context.rank() == rank ? nullptr : &given, maker));
        }
    });
}
