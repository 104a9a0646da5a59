// Pieces of halos against their definition, point by point.
#include "generate/halo/halo.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/dice.hpp"

namespace tilewave {
namespace {

using Point = std::vector<std::int64_t>;

Point point(const Index& at) {
    return {at.begin(), at.end()};
}

Layout with_wraps(Layout layout, const Index& wraps) {
    layout.wraps = wraps;
    return layout;
}

template <class F>
void for_points(const Box& box, F f) {
    if (box.empty()) return;
    Index at = box.lo;
    do f(at);
    while (next_point(at, box));
}

Index into_array(const Layout& layout, Index at) {
    for (int k = 0; k < at.n; ++k)
        if (layout.wraps.n > 0 && layout.wraps[k]) at[k] = floor_mod(at[k], layout.shape[k]);
    return at;
}

// By point of the rank's halo: its owner.
std::map<Point, int> definition(const Layout& layout, int rank, int axes) {
    std::map<Point, int> owners;
    const Box mine = layout.owned(rank);
    for_points(layout.storage(rank), [&](const Index& at) {
        int beside = 0;
        for (int k = 0; k < at.n; ++k) beside += at[k] < mine.lo[k] || at[k] >= mine.hi[k];
        if (beside == 0 || beside > axes) return;
        const Index there = into_array(layout, at);
        for (int other = 0; other < layout.ranks(); ++other)
            if (layout.owned(other).contains(there)) owners[point(at)] = other;
    });
    return owners;
}

void expect_definition(const Layout& layout, int ranks, int axes) {
    std::vector<HaloPieces> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(halo_pieces(layout, rank, axes));
    for (int rank = 0; rank < ranks; ++rank) {
        std::map<Point, int> found;
        const auto take = [&](const std::vector<HaloPiece>& pieces, bool own) {
            for (const HaloPiece& p : pieces) {
                EXPECT_EQ(p.peer == rank, own);
                EXPECT_FALSE(p.halo.empty());
                EXPECT_EQ(p.owned.hi - p.owned.lo, p.halo.hi - p.halo.lo);
                EXPECT_TRUE(layout.owned(p.peer).contains(p.owned));
                EXPECT_EQ(into_array(layout, p.halo.lo), p.owned.lo);
                for_points(p.halo, [&](const Index& at) { EXPECT_TRUE(found.emplace(point(at), p.peer).second); });
            }
        };
        take(all[rank].receives, false);
        take(all[rank].copies, true);
        EXPECT_EQ(found, definition(layout, rank, axes));
        // What a rank sends to another is what that one receives, in the same order.
        for (int other = 0; other < ranks; ++other) {
            std::vector<HaloPiece> sent, received;
            for (HaloPiece p : all[rank].sends)
                if (p.peer == other) {
                    p.peer = rank;
                    sent.push_back(p);
                }
            for (const HaloPiece& p : all[other].receives)
                if (p.peer == rank) received.push_back(p);
            EXPECT_EQ(sent, received);
        }
    }
}

TEST(Halo, PiecesAreThoseOfTheDefinition) {
    for (std::uint64_t seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Dice dice(seed);
        const int n = static_cast<int>(dice(1, 4));
        const std::int64_t most = n == 1 ? 20 : n == 2 ? 9 : n == 3 ? 6 : 3;
        Index shape = Index::filled(n, 0), grid = shape, lo = shape, hi = shape, wraps = shape;
        int ranks = 1;
        for (int k = 0; k < n; ++k) {
            shape[k] = dice(dice(0, 9) ? 1 : 0, most);
            grid[k] = ranks < 8 ? dice(1, n == 1 ? 8 : 3) : 1;
            ranks *= static_cast<int>(grid[k]);
            lo[k] = dice(0, n > 2 ? 2 : 4);
            hi[k] = dice(0, n > 2 ? 2 : 4);
            wraps[k] = dice(0, 1);
        }
        const Layout layout = with_wraps(Layout(shape, grid, lo, hi), wraps);
        expect_definition(layout, ranks + static_cast<int>(dice(0, 1)), static_cast<int>(dice(0, n)));
    }
}

// Two ranks, one axis that wraps: the neighbour is the same on both sides.
TEST(Halo, BothSidesOfTwoRanks) {
    const Layout layout = with_wraps(Layout({6}, {2}, {1}, {2}), {1});
    const HaloPieces p = halo_pieces(layout, 0);
    EXPECT_EQ(p.receives, (std::vector<HaloPiece>{{1, {{5}, {6}}, {{-1}, {0}}, 1}, {1, {{3}, {5}}, {{3}, {5}}, 1}}));
    EXPECT_EQ(p.sends, (std::vector<HaloPiece>{{1, {{2}, {3}}, {{2}, {3}}, 1}, {1, {{0}, {2}}, {{6}, {8}}, 1}}));
    EXPECT_TRUE(p.copies.empty());
}

TEST(Halo, OneRankCopies) {
    const HaloPieces p = halo_pieces(with_wraps(Layout({4, 1}, {1, 1}, {1, 0}, {0, 2}), {1, 1}), 0, 1);
    EXPECT_TRUE(p.sends.empty() && p.receives.empty());
    EXPECT_EQ(p.copies, (std::vector<HaloPiece>{{0, {{3, 0}, {4, 1}}, {{-1, 0}, {0, 1}}, 1},
                                                {0, {{0, 0}, {4, 1}}, {{0, 1}, {4, 2}}, 1},
                                                {0, {{0, 0}, {4, 1}}, {{0, 2}, {4, 3}}, 1}}));
}

// A million ranks: as fast as for one.
TEST(Halo, CostsAsMuchAsThePieces) {
    const Layout layout = with_wraps(Layout({100000, 1000, 1000}, {100, 100, 100}, {1, 1, 1}, {1, 1, 1}), {1, 1, 1});
    for (int rank = 0; rank < 1000; ++rank) {
        const HaloPieces p = halo_pieces(layout, rank * 1000);
        EXPECT_EQ(p.receives.size(), 26u);
        EXPECT_EQ(p.sends.size(), 26u);
    }
}

TEST(Halo, RefusesRanksAndAxesBelowZero) {
    const Layout layout({4}, {2});
    EXPECT_THROW(halo_pieces(layout, -1), ConfigError);
    EXPECT_THROW(halo_pieces(layout, 0, -1), ConfigError);
    EXPECT_TRUE(halo_pieces(layout, 0).empty());
    EXPECT_TRUE(halo_pieces(layout, 7).empty());
}

}  // namespace
}  // namespace tilewave
