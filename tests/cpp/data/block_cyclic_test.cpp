#include "tilewave/engine/block_cyclic.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "tilewave/error.hpp"

namespace tilewave {
namespace {

// 1, 3, 2, 1, 3, 2, ...
Weights unequal(int parts) {
    Weights weights;
    for (int p = 0; p < parts; ++p) weights.push_back(1 + p * 2 % 3);
    return weights;
}

TEST(BlockCyclic, EachElementHasOnePlace) {
    for (const std::int64_t extent : {0, 1, 5, 12, 13})
        for (const int parts : {1, 2, 3, 6})
            for (const std::int64_t block : {0, 1, 2, 3, 20, -1, -2}) {  // below 0: so many in unequal numbers
                const Weights weights = block >= 0 || parts == 1 ? Weights() : unequal(parts);
                const Axis axis(extent, parts, std::abs(block), weights);
                std::int64_t first = 0;
                for (int p = 0; p < parts; ++p) {
                    EXPECT_EQ(axis.first(p), first);
                    first += axis.count(p);
                }
                EXPECT_EQ(first, extent);
                std::set<std::pair<int, std::int64_t>> seen;
                for (GlobalElement g; g.at < extent; ++g.at) {
                    const int part = axis.part_of(g);
                    const LocalElement l = axis.local_of(g);
                    EXPECT_LT(l.at, axis.count(part));
                    EXPECT_EQ(axis.global_of(part, l), g);
                    EXPECT_TRUE(seen.emplace(part, l.at).second);
                    const GlobalElement end = axis.block_end(g);
                    EXPECT_GT(end, g);
                    EXPECT_EQ(axis.block_of(g), axis.block_of({end.at - 1}));
                    EXPECT_TRUE(end.at == extent || axis.block_of(end) > axis.block_of(g));
                }
            }
}

TEST(BlockCyclic, PartsHaveBlocksInProportion) {
    const Axis axis(1000, 3, 1, {1, 2, 3});
    EXPECT_EQ(axis.weights(), (Weights{1, 2, 3}));
    for (std::int64_t end = 0; end <= 1000; ++end)  // and nearly so anywhere in the matrix
        for (int p = 0; p < 3; ++p)
            EXPECT_LE(std::abs(static_cast<double>(axis.before(p, {end})) - static_cast<double>(end * (p + 1)) / 6), 1);
    // Equal weights are none; and weights of which no period has so many blocks are nearly met.
    EXPECT_TRUE(Axis(12, 3, 2, {4, 4, 4}).same(Axis(12, 3, 2)) && Axis(12, 3, 2, {4, 4, 4}).weights().empty());
    const Axis many(100000, 2, 1, {999983, 499979});
    EXPECT_NEAR(static_cast<double>(many.count(0)), 100000 * 999983.0 / 1499962, 100);
    EXPECT_FALSE(Axis(12, 3, 2, {1, 2, 3}).same(Axis(12, 3, 2)));
    EXPECT_TRUE(Axis(12, 3, 2, {1, 2, 3}).same(Axis(12, 3, 2, {2, 4, 6})));
    EXPECT_EQ(Axis(12, 3, 2, {1, 2, 3}).resized(7).weights(), (Weights{1, 2, 3}));
}

TEST(BlockCyclic, RowsAndColumnsOfAGridHaveTheSumsOfTheirRanks) {
    const BlockCyclic turns{{60, 2, 1}, {60, 3, 1}}, dealt = turns.in_proportion({1, 2, 3, 4, 5, 6});
    EXPECT_EQ(dealt.rows.weights(), (Weights{2, 5}));  // 6 : 15
    EXPECT_EQ(dealt.columns.weights(), (Weights{5, 7, 9}));
    EXPECT_TRUE(turns.in_proportion(dealt.weights()).same(dealt));
    EXPECT_TRUE(dealt.in_proportion({}).same(turns) && turns.weights().empty());
    EXPECT_TRUE(turns.transposed().in_proportion({1, 2, 3, 4, 5, 6}).same(dealt.transposed()));
    EXPECT_THROW(static_cast<void>(turns.in_proportion({1, 2, 3})), ConfigError);
    // Sums beyond the largest weight.
    const BlockCyclic large = turns.in_proportion({1000000, 999999, 1, 1000000, 999983, 2});
    for (const std::int64_t weight : large.columns.weights()) EXPECT_LE(weight, most_weight);
    EXPECT_TRUE(turns.in_proportion(large.weights()).same(large));
}

TEST(BlockCyclic, SameElementsOnTheSameRanks) {
    // One block a part, said in two ways; and one part alone, whatever its blocks.
    EXPECT_TRUE(Axis(12, 3, 4).same(Axis(12, 3, 0)));
    EXPECT_FALSE(Axis(13, 3, 4).same(Axis(13, 3, 0)));
    EXPECT_FALSE(Axis(10, 4, 3).same(Axis(10, 4, 0)));
    EXPECT_FALSE(Axis(12, 3, 2).same(Axis(12, 3, 4)));
    EXPECT_TRUE(Axis(12, 1, 2).same(Axis(12, 1, 5)));
    const BlockCyclic by_rows{Axis(6, 2, 1), Axis(8, 3, 2)};
    EXPECT_FALSE(by_rows.same(by_rows.transposed()));
    EXPECT_TRUE(by_rows.same(by_rows.transposed().transposed()));
    for (int rank = 0; rank < 7; ++rank) {
        const Box mine = by_rows.owned(rank), turned = by_rows.transposed().owned(rank);
        EXPECT_EQ(mine.extent(0), turned.extent(1));
        EXPECT_EQ(mine.extent(1), turned.extent(0));
        EXPECT_EQ(mine.empty(), rank == 6);
        if (rank < 6) {
            EXPECT_EQ(by_rows.rank_of(by_rows.row_of(rank), by_rows.column_of(rank)), rank);
        }
    }
}

TEST(BlockCyclic, RefusesWhatIsNone) {
    EXPECT_THROW(Axis(-1, 1, 1), ConfigError);
    EXPECT_THROW(Axis(1, 0, 1), ConfigError);
    EXPECT_THROW(Axis(1, 1, -1), ConfigError);
    EXPECT_THROW(Axis(3, 4, std::int64_t{1} << 62), ConfigError);
    EXPECT_THROW(Axis(3, 2, std::int64_t{1} << 62, {1, 2}), ConfigError);
    EXPECT_THROW(Axis(3, 2, 0, {1, 2}), ConfigError);
    EXPECT_THROW(Axis(3, 2, 1, {1, 2, 3}), ConfigError);
    EXPECT_THROW(Axis(3, 2, 1, {0, 1}), ConfigError);
    EXPECT_THROW(Axis(3, 2, 1, {1, most_weight + 1}), ConfigError);
}

}  // namespace
}  // namespace tilewave
