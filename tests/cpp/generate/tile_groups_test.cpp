// The waves and lanes of tiles; the tables are those of athanasaki2002.
#include <gtest/gtest.h>

#include "generate/sweep/groups.hpp"

using namespace tilewave;

namespace {

Plan plan_of(GroupingKind grouping, ScheduleKind schedule, int mapping_dim, const Index& factors) {
    Plan plan;
    plan.grouping = grouping;
    plan.schedule = schedule;
    plan.mapping_dim = mapping_dim;
    plan.factors = factors;
    return plan;
}

TEST(TileGroups, step_table_2d) {
    const Plan plan = plan_of(GroupingKind::hyperplane, ScheduleKind::overlapping, 0, {1, 2});
    const std::vector<std::vector<Index>> waves = {
        {{0, 0}}, {{1, 0}, {0, 1}}, {{2, 0}, {1, 1}}, {{3, 0}, {2, 1}, {0, 2}}, {{4, 0}, {3, 1}, {1, 2}, {0, 3}}};
    for (std::size_t wave = 0; wave < waves.size(); ++wave)
        for (const Index& tile : waves[wave]) {
            EXPECT_EQ(group_wave(plan, tile), static_cast<std::int64_t>(wave));
            EXPECT_EQ(lane_of(plan, tile), tile[1] % 2);
        }
}

TEST(TileGroups, weights_of_each_scheme) {
    const auto wave = [](GroupingKind grouping, ScheduleKind schedule) {
        return group_wave(plan_of(grouping, schedule, 1, {2, 1, 2}), {100, 10, 1});  // groups 50, 10, 0
    };
    EXPECT_EQ(wave(GroupingKind::vertical, ScheduleKind::blocking), 50 + 10);
    EXPECT_EQ(wave(GroupingKind::vertical, ScheduleKind::overlapping), 2 * 50 + 10);
    EXPECT_EQ(wave(GroupingKind::hyperplane, ScheduleKind::blocking), 111);
    EXPECT_EQ(wave(GroupingKind::hyperplane, ScheduleKind::overlapping), 111 + 50);
}

TEST(TileGroups, negative_tiles_round_down) {
    const Plan plan = plan_of(GroupingKind::vertical, ScheduleKind::blocking, 1, {3, 1, 2});
    EXPECT_EQ(group_wave(plan, {-1, 5, -1}), -1 + 5 - 1);
    EXPECT_EQ(lane_of(plan, {-1, 5, -1}), 2 * 2 + 1);
}

}  // namespace
