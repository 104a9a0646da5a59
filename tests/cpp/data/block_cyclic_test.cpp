#include "tilewave/engine/block_cyclic.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tilewave/error.hpp"

namespace tilewave {
namespace {

TEST(BlockCyclic, EachElementHasOnePlace) {
    for (const std::int64_t extent : {0, 1, 5, 12, 13})
        for (const int parts : {1, 2, 3, 6})
            for (const std::int64_t block : {0, 1, 2, 3, 20}) {
                const Axis axis(extent, parts, block);
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
}

}  // namespace
}  // namespace tilewave
