// Planner and estimate in C++: what is picked, what is obeyed, and what the predictor says of what was not picked.
#include "plan/nests/planner.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/dice.hpp"

namespace tilewave {
namespace {

// A[x] from its neighbour before along each dimension, and perhaps one along a diagonal.
SweepProblem recurrence(const Index& shape, bool diagonal) {
    SweepProblem problem;
    const int n = shape.n;
    problem.shape = shape;
    problem.space = {Index::filled(n, 1), shape};
    problem.arrays = {{8}};
    problem.accesses = {{0, Index::filled(n, 0), true}};
    for (int k = 0; k < n; ++k) {
        Index before = Index::filled(n, 0);
        before[k] = -1;
        problem.accesses.push_back({0, before});
    }
    if (diagonal) problem.accesses.push_back({0, Index::filled(n, -1)});
    problem.complete();
    return problem;
}

struct PlannerDice : Dice {
    using Dice::Dice;
    SweepProblem problem() {
        const int n = static_cast<int>((*this)(2, 3));
        Index shape = Index::filled(n, 0);
        for (int k = 0; k < n; ++k) shape[k] = (*this)(3, n == 2 ? 400 : 60);
        return recurrence(shape, (*this)(0, 1));
    }
    KernelRate rate() {
        KernelRate rate;
        rate.point_s = 1e-10 * static_cast<double>((*this)(3, 100));
        rate.row_s = 1e-9 * static_cast<double>((*this)(5, 100));
        rate.tile_s = 1e-8 * static_cast<double>((*this)(5, 100));
        return rate;
    }
};

}  // namespace

TEST(Planner, NoOtherTileIsPredictedMuchFasterThanTheOneItTakes) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE(seed);
        PlannerDice dice(seed);
        const SweepProblem problem = dice.problem();
        const KernelRate rate = dice.rate();
        const int ranks = static_cast<int>(dice(1, 4));
        PlanRequest request;
        request.threads = static_cast<int>(dice(1, 2));
        const Choice choice = choose_plan(problem, ranks, request, Machine(), rate);
        const Candidate& best = choice.ranked.front();
        EXPECT_DOUBLE_EQ(evaluate(problem, best.plan, Machine(), rate).time_s, best.time_s);
        for (const Candidate& other : choice.ranked) {
            // Plans for fewer ranks, and those whose slices cut rows, must each be a tenth better; more lanes 15 %, and
            // more blocks along a later loop 20 %.
            const bool handicapped = other.plan.ranks() < best.plan.ranks() || other.plan.slices > 1;
            const double lanes = other.plan.lanes() > best.plan.lanes() ? 0.85 : 1;
            const bool turned = std::ranges::is_permutation(other.plan.grid, best.plan.grid) &&
                                std::ranges::lexicographical_compare(other.plan.grid, best.plan.grid);
            EXPECT_LE((handicapped ? 0.8 : 0.98) * (turned ? 0.8 : 1) * lanes * best.time_s, other.time_s)
                << best.plan.to_string() << "; " << other.plan.to_string() << "; " << other.reason;
        }
        for (int tries = 0; tries < 20; ++tries) {  // the same plan with another tile extent
            Plan other = best.plan;
            const auto k = static_cast<int>(dice(0, problem.dims() - 1));
            other.tile[k] = dice(1, std::max<std::int64_t>(largest_block(problem, other.grid, k), 1));
            try {
                other.validate(problem, ranks);
            } catch (const ConfigError&) {
                continue;
            }
            EXPECT_GT(1.05 * evaluate(problem, other, Machine(), rate).time_s, best.time_s)
                << best.plan.to_string() << "; " << other.to_string();
        }
    }
}

// A nest that has no messages where the second loop is cut.
TEST(Planner, NestsInTurnWantOneGrid) {
    for (const Index shape : {Index{300, 200}, Index{200, 300}, Index{1000, 1000}}) {
        SweepProblem problem;
        problem.shape = shape;
        problem.space = {{1, 0}, shape};
        problem.arrays = {{8}, {8}};
        problem.accesses = {{0, {0, 0}, true}, {0, {0, 0}}, {1, {0, 0}}, {1, {-1, 0}}};
        problem.complete();
        KernelRate rate;
        rate.point_s = 1e-9;
        EXPECT_EQ(choose_plan(problem, 2, {}, Machine(), rate).ranked.front().plan.grid, (Index{2, 1}));
    }
}

TEST(Planner, WhatIsFixedIsObeyed) {
    const SweepProblem problem = recurrence(Index{90, 80, 70}, false);
    PlanRequest request;
    request.tile = Index{7, 9, 69};
    request.grid = Index{1, 2, 1};
    request.schedule = ScheduleKind::blocking;
    request.lookahead = 3;
    for (const Candidate& one : choose_plan(problem, 2, request, Machine(), KernelRate()).ranked) {
        EXPECT_EQ(one.plan.tile, *request.tile);
        EXPECT_EQ(one.plan.grid, *request.grid);
        EXPECT_EQ(one.plan.schedule, ScheduleKind::blocking);
        EXPECT_EQ(one.plan.lookahead, 3);
    }
    request.grid = Index{1, 5, 1};
    EXPECT_THROW(choose_plan(problem, 2, request, Machine(), KernelRate()), ConfigError);
}

// The closed form prunes candidates, so it may be off, but not by so much that good plans are lost.
TEST(Estimate, IsNearWhatThePredictorPlays) {
    double worst = 1;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        PlannerDice dice(seed);
        const SweepProblem problem = dice.problem();
        const KernelRate rate = dice.rate();
        const int ranks = static_cast<int>(dice(1, 4));
        const Plan plan = make_plan(problem, ranks, {}, Machine());
        const double estimated = estimate_s(problem, plan, Machine(), rate);
        const double played = evaluate(problem, plan, Machine(), rate).time_s;
        worst = std::max(worst, std::max(estimated / played, played / estimated));
        EXPECT_LT(std::abs(std::log(estimated / played)), std::log(2.5))
            << "seed " << seed << ": " << estimated << " and " << played << ", " << plan.to_string();
    }
    RecordProperty("worst_ratio", std::to_string(worst));
}

TEST(Choices, AreCheckedAndSaidByTheirNames) {
    const SweepProblem problem = recurrence(Index{9, 8}, false);
    PlanRequest request;
    const Plan plan = make_plan(problem, 1, request, Machine());
    for (const auto& [spoil, says] : std::vector<std::pair<void (*)(Plan&), std::string>>{
             {[](Plan& p) { p.lookahead = 0; }, "lookahead 0 was given; allowed: an integer >= 1"},
             {[](Plan& p) { p.chunk_bytes = -4; }, "chunk_bytes -4 was given; allowed: an integer >= 1"},
             {[](Plan& p) { p.poll_period_s = -1; }, "poll_period_s -1 was given; allowed: a number >= 0"},
             {[](Plan& p) { p.poll_period_s = std::nan(""); }, "poll_period_s nan was given"}}) {
        Plan bad = plan;
        spoil(bad);
        try {
            bad.validate(problem, 1);
            ADD_FAILURE() << "nothing was thrown: " << says;
        } catch (const ConfigError& e) {
            EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
        }
    }
    request.slices = 5;
    request.helper = true;
    const Plan fixed = request.apply(plan);
    EXPECT_EQ(fixed.slices, 5);
    EXPECT_TRUE(fixed.helper);
    EXPECT_EQ(fixed.tile, plan.tile);
    EXPECT_NE(fixed.to_string().find("slices 5"), std::string::npos) << fixed.to_string();
    EXPECT_NE(fixed.to_string().find("helper true"), std::string::npos) << fixed.to_string();
    EXPECT_EQ(plan.to_string().find("slices"), std::string::npos) << plan.to_string();  // as by default
}

}  // namespace tilewave
