// Spaces, tilings, groupings and schedules: the worked examples of athanasaki2002.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "polyhedral/cost.hpp"
#include "polyhedral/grouping.hpp"
#include "polyhedral/linear_schedule.hpp"
#include "polyhedral/rational.hpp"
#include "polyhedral/space.hpp"
#include "polyhedral/tiling.hpp"

namespace tilewave {
namespace {

using Ints = std::vector<std::int64_t>;
using Kind = GroupingKind;

const IntMatrix unit_2d = {{1, 0}, {0, 1}};

RationalMatrix of(const std::vector<std::vector<Rational>>& rows) {
    return RationalMatrix(rows);
}

TEST(Rational, is_exact_and_in_lowest_terms) {
    EXPECT_EQ(Rational(6, -4), Rational(-3, 2));
    EXPECT_EQ(Rational(1, 3) + Rational(1, 6), Rational(1, 2));
    EXPECT_EQ(Rational(1, 2) / Rational(-3, 4), Rational(-2, 3));
    EXPECT_EQ(Rational(-1, 2).floor(), -1);
    EXPECT_LT(Rational(1, 3), Rational(334, 1000));
    EXPECT_EQ(to_string(Rational(-1, 2)), "-1/2");
}

TEST(Rational, refuses_what_64_bits_do_not_hold) {
    const Rational large = std::numeric_limits<std::int64_t>::max();
    EXPECT_THROW(large * 2, ConfigError);
    EXPECT_THROW(large + 1, ConfigError);
}

TEST(Rational, refuses_a_zero_denominator) {
    EXPECT_THROW(Rational(1, 0), ConfigError);
    EXPECT_THROW(Rational(1) / Rational(0), ConfigError);
}

TEST(RationalMatrix, inverse_and_determinant) {
    const RationalMatrix m = of({{0, 2, 1}, {1, 0, 0}, {0, Rational(1, 2), 3}});
    EXPECT_EQ(det(m), Rational(-11, 2));
    EXPECT_EQ(m * inverse(m), RationalMatrix::identity(3));
    EXPECT_EQ(inverse(m) * m, RationalMatrix::identity(3));
    EXPECT_EQ(det(of({{1, 2}, {2, 4}})), 0);
    EXPECT_THROW(inverse(of({{1, 2}, {2, 4}})), ConfigError);
    EXPECT_THROW(inverse(of({{1, 2}})), ConfigError);
    EXPECT_THROW(of({{1, 2}, {3}}), ConfigError);
}

TEST(Space, triangle) {
    // 0 <= j0 <= 3, 0 <= j1 <= j0
    const Space s = Space::loops({{{{}, 0}}, {{{0}, 0}}}, {{{{}, 3}}, {{{1}, 0}}});
    std::vector<Ints> expected;
    for (std::int64_t i = 0; i <= 3; ++i)
        for (std::int64_t j = 0; j <= i; ++j) expected.push_back({i, j});
    EXPECT_EQ(s.points(), expected);
    EXPECT_EQ(s.count(), 10);
    EXPECT_EQ(s.bounds(1, Ints{2}), (std::pair<std::int64_t, std::int64_t>(0, 2)));
    EXPECT_FALSE(s.is_box());
    EXPECT_EQ(s.project(1).points(), (std::vector<Ints>{{0}, {1}, {2}, {3}}));
}

TEST(Space, integer_gaps_make_the_projection_a_superset) {
    // 2 j1 = j0: only the even values of j0 have a point.
    const Space s(2, {{{1, -2}, 0}, {{-1, 2}, 0}, {{1, 0}, 0}, {{-1, 0}, 5}});
    EXPECT_EQ(s.project(1).count(), 6);
    std::vector<Ints> exact;
    s.for_each_prefix(1, [&](auto j) { exact.emplace_back(j.begin(), j.end()); });
    EXPECT_EQ(exact, (std::vector<Ints>{{0}, {2}, {4}}));
}

TEST(Space, refuses_what_has_no_bound) {
    EXPECT_THROW(Space(1, {{{1}, 0}}), ConfigError);
    EXPECT_THROW(Space(2, {{{1}, 0}}), ConfigError);
    EXPECT_THROW(Space(0, {}), ConfigError);
    EXPECT_TRUE(Space::box(Ints{1}, Ints{0}).empty());
}

TEST(Tiling, skewed_tiles_cover_a_box_once) {
    const Tiling tiling = Tiling::from_p(of({{3, 0}, {-1, 2}}));
    const Space space = Space::box(Ints{0, 0}, Ints{10, 7});
    EXPECT_TRUE(tiling.legal(unit_2d));
    std::set<Ints> seen;
    for (const Ints& tile : tiling.tiles(space)) {
        const auto points = tiling.points_of(tile, space).points();
        EXPECT_FALSE(points.empty());
        for (const Ints& j : points) {
            EXPECT_EQ(tiling.tile_of(j), tile);
            EXPECT_TRUE(seen.insert(j).second);
        }
    }
    EXPECT_EQ(seen.size(), 88U);
}

TEST(Tiling, dependences_that_fit_reach_only_neighbours) {
    const Tiling tiling = Tiling::rectangular(Ints{4, 3});
    EXPECT_TRUE(tiling.dependences_fit(unit_2d));
    EXPECT_EQ(tiling.tile_dependences(unit_2d), (IntMatrix{{0, 1}, {1, 0}}));
    EXPECT_EQ(tiling.tile_dependences({{1}, {1}}), (IntMatrix{{0, 1, 1}, {1, 0, 1}}));
    EXPECT_FALSE(tiling.dependences_fit({{4}, {0}}));
    EXPECT_FALSE(tiling.legal({{-1}, {1}}));
}

TEST(Tiling, residues_that_no_point_leaves_make_no_dependence) {
    // H = [[1/2, 1/2], [1/2, -1/2]]: both residues are equal for every integer point.
    const Rational half(1, 2);
    const Tiling tiling(of({{half, half}, {half, -half}}));
    EXPECT_EQ(tiling.tile_dependences({{1}, {0}}), (IntMatrix{{1}, {1}}));
}

TEST(Tiling, refuses_singular_matrices_and_wrong_shapes) {
    EXPECT_THROW(Tiling(of({{1, 2}, {2, 4}})), ConfigError);
    EXPECT_THROW(Tiling(of({{1, 2}})), ConfigError);
    EXPECT_THROW(Tiling::rectangular(Ints{2, 0}), ConfigError);
    EXPECT_THROW(Tiling::rectangular(Ints{2}).legal(unit_2d), ConfigError);
}

TEST(Grouping, worked_example_2d) {
    const Grouping g(Kind::hyperplane, 0, {1, 2});
    EXPECT_EQ(g.p(), of({{1, -2}, {0, 2}}));
    EXPECT_EQ(g.h(), of({{1, 1}, {0, Rational(1, 2)}}));
    EXPECT_EQ(g.h(), inverse(g.p()));
    EXPECT_EQ(det(g.p()), g.cpus());
    EXPECT_EQ(g.group_of(Ints{1, 0}), (Ints{1, 0}));
    EXPECT_EQ(g.group_of(Ints{0, 1}), (Ints{1, 0}));
    EXPECT_EQ(g.group_of(Ints{2, 0}), (Ints{2, 0}));
    EXPECT_EQ(g.group_of(Ints{1, 1}), (Ints{2, 0}));
    EXPECT_EQ(g.group_dependences(unit_2d), (IntMatrix{{1, 1}, {0, 1}}));
}

TEST(Grouping, step_table_2d) {
    const Grouping g(Kind::hyperplane, 0, {1, 2});
    const auto schedule = LinearSchedule::for_groups(ScheduleKind::overlapping, g);
    struct Row {
        std::int64_t step, node, cpu;
        Ints tile, group;
    };
    for (const Row& row : std::vector<Row>{{0, 0, 0, {0, 0}, {0, 0}},
                                           {1, 0, 0, {1, 0}, {1, 0}},
                                           {1, 0, 1, {0, 1}, {1, 0}},
                                           {2, 0, 0, {2, 0}, {2, 0}},
                                           {2, 0, 1, {1, 1}, {2, 0}},
                                           {3, 0, 0, {3, 0}, {3, 0}},
                                           {3, 0, 1, {2, 1}, {3, 0}},
                                           {3, 1, 0, {0, 2}, {2, 1}},
                                           {4, 0, 0, {4, 0}, {4, 0}},
                                           {4, 0, 1, {3, 1}, {4, 0}},
                                           {4, 1, 0, {1, 2}, {3, 1}},
                                           {4, 1, 1, {0, 3}, {3, 1}}}) {
        EXPECT_EQ(schedule.wave_of(g, row.tile), row.step);
        EXPECT_EQ(g.node_of(row.tile), Ints{row.node});
        EXPECT_EQ(g.cpu_of(row.tile), row.cpu);
        EXPECT_EQ(g.group_of(row.tile), row.group);
    }
}

TEST(Grouping, worked_example_3d) {
    const Grouping g(Kind::hyperplane, 2, {2, 1, 1});
    EXPECT_EQ(g.p(), of({{2, 0, 0}, {0, 1, 0}, {-2, -1, 1}}));
    EXPECT_EQ(g.h(), of({{Rational(1, 2), 0, 0}, {0, 1, 0}, {1, 1, 1}}));
    const auto schedule = LinearSchedule::for_groups(ScheduleKind::overlapping, g);
    EXPECT_EQ(schedule.pi(), (Ints{1, 1, 1}));
    const Space tiles = Space::box(Ints{0, 0, 0}, Ints{7, 4, 30});  // 8 × 5 × 31 tiles
    EXPECT_EQ(schedule.waves(g, tiles), 3 * 8 / 2 + 2 * 5 + 31 - 4);
    EXPECT_EQ(schedule.waves(g, tiles.points()), schedule.waves(g, tiles));
    EXPECT_EQ(pipeline_steps(ScheduleKind::overlapping, Kind::hyperplane, {{2, 1, 31}, {4, 5, 1}, {2, 1, 1}, 2}),
              schedule.waves(g, tiles));
}

TEST(Grouping, negative_tiles_round_down) {
    const Grouping g(Kind::vertical, 1, {3, 1, 2});
    EXPECT_EQ(g.node_of(Ints{-1, 7, -2}), (Ints{-1, -1}));
    EXPECT_EQ(g.cpu_of(Ints{-1, 7, -2}), 2 * 2 + 0);
    EXPECT_EQ(g.group_of(Ints{-1, 7, -2}), (Ints{-1, 7, -1}));
}

TEST(Grouping, refuses_factors_along_the_mapping_dimension) {
    EXPECT_THROW(Grouping(Kind::vertical, 0, {2, 1}), ConfigError);
    EXPECT_THROW(Grouping(Kind::vertical, 2, {1, 1}), ConfigError);
    EXPECT_THROW(Grouping(Kind::vertical, 0, {1, 0}), ConfigError);
    EXPECT_THROW(Grouping(Kind::vertical, 0, {}), ConfigError);
    EXPECT_THROW(Grouping(Kind::vertical, 0, {1, 2}).cpu_of(Ints{1}), ConfigError);
}

TEST(LinearSchedule, vectors) {
    const Grouping hyperplane(Kind::hyperplane, 0, {1, 2}), vertical(Kind::vertical, 0, {1, 2});
    const auto pi = [](ScheduleKind kind, const Grouping& g) { return LinearSchedule::for_groups(kind, g).pi(); };
    EXPECT_EQ(pi(ScheduleKind::blocking, vertical), (Ints{1, 1}));
    EXPECT_EQ(pi(ScheduleKind::overlapping, vertical), (Ints{1, 2}));
    EXPECT_EQ(pi(ScheduleKind::blocking, hyperplane), (Ints{1, 0}));
    EXPECT_EQ(pi(ScheduleKind::overlapping, hyperplane), (Ints{1, 1}));
    EXPECT_EQ(LinearSchedule::for_tiles(ScheduleKind::overlapping, 3, 0).pi(), (Ints{1, 2, 2}));
    EXPECT_EQ(LinearSchedule::for_tiles(ScheduleKind::blocking, 3, 0).pi(), (Ints{1, 1, 1}));
}

TEST(Cost, steps_are_those_of_the_schedules) {
    const Space tiles = Space::box(Ints{0, 0}, Ints{19, 5});
    for (Kind kind : {Kind::hyperplane, Kind::vertical})
        for (ScheduleKind schedule : {ScheduleKind::blocking, ScheduleKind::overlapping}) {
            const Grouping g(kind, 0, {1, 2});
            const auto steps = LinearSchedule::for_groups(schedule, g).waves(g, tiles);
            EXPECT_EQ(pipeline_steps(schedule, kind, {{20, 2}, {1, 3}, {1, 2}, 0}), steps);
        }
}

TEST(Cost, best_slices_of_the_experiment) {
    EXPECT_EQ(std::lround(best_slices(69e-3, 11e-6)), 79);
    const double least = least_vertical_group_s(69e-3, 11e-6);
    EXPECT_NEAR(vertical_group_s(69e-3, 11e-6, best_slices(69e-3, 11e-6)), least, 1e-15);
    EXPECT_GT(vertical_group_s(69e-3, 11e-6, 70), least);
    EXPECT_GT(vertical_group_s(69e-3, 11e-6, 90), least);
}

}  // namespace
}  // namespace tilewave
