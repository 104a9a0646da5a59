// Rolling windows: how tiles are cut into pieces, where rows lie in a ring of planes, and which elements no point
// computes.
#include "problem/rolling_window.hpp"

#include <gtest/gtest.h>

#include <set>

#include "execute/window/window_rows.hpp"
#include "generate/sweep/sweep.hpp"
#include "support/dice.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {
namespace {

// A[x] from neighbours before it, of which only a rolling window is kept.
SweepProblem table(const Index& shape, const std::vector<Index>& reads, std::int64_t item_bytes) {
    SweepProblem problem;
    const int n = shape.n;
    problem.shape = shape;
    problem.space = {Index::filled(n, 0), shape};
    for (const Index& r : reads)
        for (int k = 0; k < n; ++k) problem.space.lo[k] = std::max(problem.space.lo[k], -r[k]);
    NestArray array;
    array.item_bytes = item_bytes;
    array.window = true;
    problem.arrays = {array};
    problem.accesses = {{0, Index::filled(n, 0), true}};
    for (const Index& r : reads) problem.accesses.push_back({0, r});
    problem.normalize_loops(std::vector<bool>(static_cast<std::size_t>(n), false));
    return problem;
}

struct WindowDice : Dice {
    using Dice::Dice;
    SweepProblem problem() {
        const std::int64_t item_bytes[] = {1, 2, 4, 8};
        const Index shape{(*this)(4, 60), (*this)(4, 3000)};
        std::vector<Index> reads{{-1, 0}};
        if ((*this)(0, 1)) reads.push_back({0, -1});
        if ((*this)(0, 1)) reads.push_back({-(*this)(1, 2), -(*this)(0, 2)});
        return table(shape, reads, item_bytes[(*this)(0, 3)]);
    }
};

Schedule some_rank(const SweepProblem& problem, Dice& dice, int ranks, int& rank) {
    PlanRequest request;
    request.threads = static_cast<int>(dice(1, 3));
    const Plan plan = make_plan(problem, ranks, request, Machine{});
    rank = static_cast<int>(dice(0, ranks - 1));
    return sweep(problem, plan, rank, ranks);
}

}  // namespace

TEST(RollingWindow, PiecesCoverATileOnceAndInOrder) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        Dice dice(seed);
        const int slant = static_cast<int>(dice(0, 1)), along = static_cast<int>(dice(0, 1)), across = 1 - along;
        const PieceCut cut{8 * dice(1, 6), 8};
        Box tile{{dice(-9, 9), dice(-9, 9)}, {0, 0}};
        for (int k = 0; k < 2; ++k) tile.hi[k] = tile.lo[k] + dice(1, 200);
        const std::vector<Box> pieces = cut_into_pieces(along, across, slant, cut, tile);
        const bool across_rows = slant && tile.extent(across) <= tile.extent(along);
        const int k = across_rows ? across : along;
        std::int64_t at = tile.lo[k];
        for (const Box& piece : pieces) {
            EXPECT_EQ(piece.lo[k], at);
            EXPECT_EQ(piece.lo[1 - k], tile.lo[1 - k]);
            EXPECT_EQ(piece.hi[1 - k], tile.hi[1 - k]);
            EXPECT_LE(piece.extent(k), cut.width);
            EXPECT_GT(piece.extent(k), 0);
            at = piece.hi[k];
        }
        EXPECT_EQ(at, tile.hi[k]);
    }
}

TEST(RollingWindow, ARowOfALaterPlaneReplacesTheOldestOne) {
    int windows = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        WindowDice dice(seed);
        const SweepProblem problem = dice.problem();
        int rank = 0;
        const Schedule s = some_rank(problem, dice, static_cast<int>(dice(1, 3)), rank);
        if (only_nest(s).window.along < 0 || s.tiles.empty()) continue;
        ++windows;
        const RollingWindow window(s);
        ASSERT_NE(window.ring(0), nullptr);
        const RollingWindow::Ring& ring = *window.ring(0);
        EXPECT_EQ(ring.planes, problem.window_planes(0));
        const WindowMemory memory(window, {{nullptr, true}});
        const Tile& tile = s.tiles[static_cast<std::size_t>(dice(0, static_cast<std::int64_t>(s.tiles.size()) - 1))];
        const std::vector<RollingWindow::Piece> pieces = window.pieces(tile.box);
        ASSERT_FALSE(pieces.empty());
        const RollingWindow::Piece& piece =
            pieces[static_cast<std::size_t>(dice(0, static_cast<std::int64_t>(pieces.size()) - 1))];
        const std::int64_t plane = window.plane(tile.box.lo);
        PlaneRows rows = rows_in_window(memory, 0, piece, plane, Index::filled(2, 0));
        const Index row = Index::filled(2, 0);
        std::set<char*> seen;
        char* first = nullptr;
        for (int p = 0; p < ring.planes; ++p) {
            char* const at = rows.element(window.others(), row, piece.origin(plane + p));
            if (p == 0) first = at;
            EXPECT_TRUE(seen.insert(at).second) << "two of the planes that are kept share memory";
            rows.advance(1);
        }
        EXPECT_EQ(rows.element(window.others(), row, piece.origin(plane + ring.planes)), first);
    }
    EXPECT_GT(windows, 100);
}

TEST(RollingWindow, ElementsThatNoPointComputesAreThoseBeforeTheSpace) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        WindowDice dice(seed);
        const SweepProblem problem = dice.problem();
        int rank = 0;
        const Schedule s = some_rank(problem, dice, 1, rank);
        if (only_nest(s).window.along < 0) continue;
        std::set<std::vector<std::int64_t>> expected;  // what points read and no point computes
        for (std::int64_t i = problem.space.lo[0]; i < problem.space.hi[0]; ++i)
            for (std::int64_t j = problem.space.lo[1]; j < problem.space.hi[1]; ++j)
                for (const Access& a : problem.accesses) {
                    const Index at{i + a.offset[0], j + a.offset[1]};
                    if (!problem.space.contains(at)) expected.insert({at[0], at[1]});
                }
        const RollingWindow window(s);
        const std::vector<std::int64_t> found = window.elements(0);
        ASSERT_EQ(found.size(), 2 * expected.size());
        for (std::size_t i = 0; i < found.size(); i += 2) EXPECT_TRUE(expected.contains({found[i], found[i + 1]}));
    }
}

TEST(RollingWindow, MemoryGrowsByAFaceNotByARow) {
    const auto bytes = [](std::int64_t height) {
        const SweepProblem problem = table({height, 400}, {{-1, 0}, {0, -1}, {-1, -1}}, 4);
        PlanRequest request;
        request.tile = Index{20, 399};
        Dice dice(1);
        const Plan plan = make_plan(problem, 1, request, Machine{});
        return RollingWindow(sweep(problem, plan, 0)).bytes();
    };
    const std::int64_t face_bytes = 2 * 4;  // of each row: what the columns of tiles before and after it read
    EXPECT_LE(bytes(4000) - bytes(400), 3600 * face_bytes);
}

TEST(RollingWindow, StepsOfRingsWithSeveralLengthsLeadToTheSameRowsAsAdvancing) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        SCOPED_TRACE(seed);
        Dice dice(seed);
        const std::size_t count = static_cast<std::size_t>(dice(1, 4));
        std::vector<PlaneRows> rows(count);
        for (PlaneRows& r : rows) {
            r.at = dice(1000, 100000);
            r.step = 4;
            r.plane_bytes = 64 * dice(1, 9);
            r.planes = static_cast<std::int32_t>(dice(0, 3));
            r.ring_bytes = r.planes * r.plane_bytes;
            r.plane = r.planes ? static_cast<std::int32_t>(dice(0, r.planes - 1)) : 0;
        }
        const std::int64_t along = dice(0, 1);
        const RingSteps steps(rows.data(), count, along);
        ASSERT_TRUE(steps.usable());
        std::vector<std::intptr_t> at(count);
        for (std::size_t p = 0; p < count; ++p) at[p] = rows[p].at;
        for (int plane = 0; plane < 20; ++plane)
            for (std::size_t p = 0; p < count; ++p) {
                at[p] += steps.by(plane % steps.phases())[p];
                rows[p].advance(1);
                EXPECT_EQ(at[p], rows[p].at + (plane + 1) * along * rows[p].step);
            }
    }
}

}  // namespace tilewave
