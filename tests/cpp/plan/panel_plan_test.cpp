// What factors are predicted to take from some of their steps: against simulating all of them.
#include "plan/panels/panel_plan.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "schedule/operations.hpp"
#include "support/dice.hpp"

namespace tilewave {
namespace {

Machine four_ranks_a_host(int ranks) {
    Machine machine;
    for (int rank = 0; rank < ranks; ++rank) machine.host_of.push_back(rank / 4);
    return machine;
}

std::vector<OperationRate> rates_of(double amount_s) {
    return std::vector<OperationRate>(factor_task_count, {1e-6, amount_s});
}

double whole_s(const PanelProblem& p, const FactorPlan& plan, const std::vector<OperationRate>& rates) {
    return panels_prediction(p, plan, four_ranks_a_host(p.ranks), rates, false, 1e12).time_s;
}

}  // namespace

TEST(PanelPlans, SomeStepsSayWhatAllTake) {
    int sampled = 0;
    std::vector<double> apart;
    for (std::uint64_t seed = 1; seed <= 15; ++seed) {
        SCOPED_TRACE(seed);
        Dice dice(seed);
        const auto work = static_cast<PanelWork>(dice(0, 2));
        const Index grids[] = {{1, 64}, {2, 32}, {4, 16}, {8, 8}, {4, 32}, {8, 16}, {8, 4}};
        FactorPlan plan;
        plan.grid = grids[dice(0, 6)];
        plan.block = dice(0, 1) ? 32 : 64;
        plan.lookahead = static_cast<int>(dice(1, 3));
        if (dice(0, 1)) plan.tree = BroadcastTree::least_rounds;
        if (plan.grid[0] == 1 && plan.tree == BroadcastTree::ring && dice(0, 1))
            plan.algorithm = FactorAlgorithm::wavefront;
        const std::int64_t n = plan.block * dice(64, 128);
        const int ranks = static_cast<int>(plan.grid[0] * plan.grid[1]);
        const PanelProblem p{work, {{n, ranks, n / ranks}, {n, 1, n}}, 8, ranks, 1};
        const PanelSample sample = sample_of(p, plan, 1e5);
        EXPECT_EQ(sample.text(plan).empty(), sample.first.empty());
        if (sample.first.empty()) continue;
        ++sampled;
        const std::vector<OperationRate> rates = rates_of(dice(0, 1) ? 3e-11 : 3e-10);
        const double some = sampled_s(p, plan, sample, four_ranks_a_host(ranks), rates), all = whole_s(p, plan, rates);
        apart.push_back(std::abs(std::log(some / all)));
        EXPECT_LT(apart.back(), std::log(1.15)) << plan.text() << ": " << sample.text(plan);
    }
    EXPECT_GT(sampled, 7);
    std::ranges::sort(apart);
    EXPECT_LT(apart[apart.size() / 2], std::log(1.05));
}

TEST(PanelPlans, TheGridThatIsTakenIsAboutTheFastest) {
    for (const PanelWork work : {PanelWork::cholesky, PanelWork::lu, PanelWork::qr}) {
        SCOPED_TRACE(static_cast<int>(work));
        const std::int64_t n = 2048;
        const PanelProblem p{work, {{n, 64, n / 64}, {n, 1, n}}, 8, 64, 1};
        const std::vector<OperationRate> rates = rates_of(1e-10);
        const auto plans = played_panels(p, panel_plans("factor", p, {}), four_ranks_a_host(64),
                                         [&](const FactorPlan&) { return rates; });
        double best = 1e9;
        std::vector<Index> grids;
        for (const FactorPlan& plan : plans) {
            if (std::ranges::count(grids, plan.grid) > 0) continue;  // of each grid the best by prediction
            grids.push_back(plan.grid);
            best = std::min(best, whole_s(p, plan, rates));
        }
        EXPECT_EQ(grids.size(), 4U);  // 1 x 64, 2 x 32, 4 x 16, 8 x 8
        EXPECT_LE(whole_s(p, plans.front(), rates), 1.1 * best) << plans.front().text();
    }
}

TEST(PanelPlans, AMatrixThatLiesOnAGridStaysWhereMovingTakesLonger) {
    const std::int64_t n = 1024;
    PanelProblem p{PanelWork::cholesky, {{n, 4, 64}, {n, 2, 64}}, 8, 8, 1};
    Machine slow = four_ranks_a_host(8);
    slow.other_host.byte_s = slow.same_host.byte_s = 1e-6;
    const auto played = [&] {
        return played_panels(p, panel_plans("factor", p, {}), slow, [](const FactorPlan&) { return rates_of(1e-12); });
    };
    EXPECT_EQ(played().front().grid, (Index{4, 2}));
    EXPECT_EQ(played().front().moving_s, 0);
    EXPECT_GT(played().back().moving_s, 0);
}

}  // namespace tilewave
