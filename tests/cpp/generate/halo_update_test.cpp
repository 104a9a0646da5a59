// Updates of halos as schedules: the checker proves random ones, and refuses those that are changed.
#include "generate/halo/update.hpp"

#include <gtest/gtest.h>

#include "support/dice.hpp"
#include "tilewave/engine/check.hpp"

namespace tilewave {
namespace {

Index random_index(Dice& dice, int n, std::int64_t least, std::int64_t most) {
    Index index = Index::filled(n, 0);
    for (int k = 0; k < n; ++k) index[k] = dice(least, most);
    return index;
}

struct Made {
    std::vector<HaloArray> arrays;
    int ranks = 1, axes = 0;
    std::int64_t piece_bytes = 32 << 10;
};

std::vector<Schedule> update(const Made& made) {
    std::vector<Schedule> all;
    for (int rank = 0; rank < made.ranks; ++rank)
        all.push_back(halo_update(made.arrays, rank, made.ranks, made.axes, 8, made.piece_bytes));
    return all;
}

Made random_arrays(Dice& dice) {
    Made made;
    const int n = static_cast<int>(dice(1, 3));
    const Index grid = random_index(dice, n, 1, n == 1 ? 6 : n == 2 ? 3 : 2);
    for (const auto g : grid) made.ranks *= static_cast<int>(g);
    for (std::int64_t fields = dice(1, 3); fields > 0; --fields) {
        Layout layout(random_index(dice, n, 1,
                                   n == 1   ? 12
                                   : n == 2 ? 6
                                            : 4),
                      grid, random_index(dice, n, 0, 2), random_index(dice, n, 0, 2));
        layout.wraps = random_index(dice, n, 0, 1);
        made.arrays.push_back({layout, dice(0, 1) ? 8 : 4});
    }
    made.axes = static_cast<int>(dice(1, n));
    if (dice(0, 1)) made.piece_bytes = dice(1, 64);
    return made;
}

TEST(HaloUpdate, TheCheckerProvesRandomOnes) {
    for (std::uint64_t seed = 0; seed < 150 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Dice dice(seed);
        const Made made = random_arrays(dice);
        const auto violation = check(update(made));
        EXPECT_FALSE(violation) << to_string(*violation);
    }
}

// Each point of a halo that is to be updated stands in one result, from the rank that owns it.
TEST(HaloUpdate, ResultsAreThePieces) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Dice dice(seed);
        const Made made = random_arrays(dice);
        for (const Schedule& s : update(made)) {
            std::size_t pieces = 0;
            for (const HaloArray& a : made.arrays) {
                const HaloPieces p = halo_pieces(a.layout, s.rank, made.axes);
                pieces += p.receives.size() + p.copies.size();
            }
            EXPECT_EQ(s.results.size(), pieces) << "seed " << seed;
            for (const Result& r : s.results) {
                const Array &source = s.arrays[static_cast<std::size_t>(r.source)],
                            &target = s.arrays[static_cast<std::size_t>(r.array)];
                EXPECT_EQ(source.view.memory, target.view.memory);
                EXPECT_TRUE(target.storage.contains(r.region));
            }
        }
    }
}

// Whatever one step fewer leaves behind is found, and so is a message of the wrong points.
TEST(HaloUpdate, TheCheckerRefusesMutants) {
    Layout layout({5, 4}, {2, 2}, {1, 2}, {1, 0});
    layout.wraps = {1, 0};
    const std::vector<HaloArray> arrays{{layout, 8}, {layout, 4}};
    for (const std::int64_t piece_bytes : {8, 32, 4096}) {
        const std::vector<Schedule> right = update({arrays, 4, 2, piece_bytes});
        ASSERT_FALSE(check(right));
        for (std::size_t rank = 0; rank < right.size(); ++rank) {
            for (std::size_t i = 0; i < right[rank].lanes[0].size(); ++i) {
                std::vector<Schedule> mutant = right;
                mutant[rank].lanes[0].erase(mutant[rank].lanes[0].begin() + static_cast<std::ptrdiff_t>(i));
                EXPECT_TRUE(check(mutant)) << describe(right[rank], 0, i);
            }
            for (std::size_t m = 0; m < right[rank].messages.size(); ++m) {
                std::vector<Schedule> mutant = right;
                Message& message = mutant[rank].messages[m];
                if (message.region.dims() == 0) continue;  // an aggregate
                message.region = message.region.shifted({1, 0});
                EXPECT_TRUE(check(mutant)) << "message " << m << " of rank " << rank;
            }
        }
    }
}

TEST(HaloUpdate, ContiguousFacesGoInPlace) {
    const Layout layout({8, 6}, {2, 1}, {1, 0}, {1, 0});
    const Schedule s = halo_update(std::vector<HaloArray>{{layout, 8}}, 0, 2);
    EXPECT_TRUE(s.buffers.empty());
    EXPECT_EQ(s.messages.size(), 2u);
    const Schedule two = halo_update(std::vector<HaloArray>{{layout, 8}, {layout, 8}}, 0, 2);
    EXPECT_EQ(two.messages.size(), 6u);  // two messages of two pieces
    EXPECT_EQ(two.buffers.size(), 2u);
    const Schedule large = halo_update(std::vector<HaloArray>{{layout, 8}, {layout, 8}}, 0, 2, 2, 8, 16);
    EXPECT_TRUE(large.buffers.empty());
    EXPECT_EQ(large.messages.size(), 4u);
}

// However large a strided face is, what is staged of it is a few chunks.
TEST(HaloUpdate, StagingIsBounded) {
    const Layout layout({1000, 8}, {1, 2}, {0, 1}, {0, 1});
    const Schedule s = halo_update(std::vector<HaloArray>{{layout, 8}}, 0, 2, 2, 8, 256);
    EXPECT_EQ(s.messages.size(), 2u * 32);
    EXPECT_LE(s.buffer_bytes(), 10 * 256);
}

TEST(HaloUpdate, NoMessageToItself) {
    Layout layout({3, 2}, {1, 1}, {2, 1}, {1, 1});
    layout.wraps = {1, 1};
    const Schedule s = halo_update(std::vector<HaloArray>{{layout, 8}}, 0, 1);
    for (const Step& step : s.lanes[0]) EXPECT_TRUE(step.op == Op::pack || step.op == Op::unpack);
    EXPECT_FALSE(check(std::vector<Schedule>{s}));
}

TEST(HaloUpdate, RefusesWhatDoesNotFit) {
    const std::vector<HaloArray> arrays{{Layout({4}, {4}), 8}};
    EXPECT_THROW(halo_update(arrays, 0, 3), ConfigError);
    EXPECT_THROW(halo_update(arrays, 4, 4), ConfigError);
    EXPECT_THROW(halo_update(std::vector<HaloArray>{{Layout({4}, {4}), 0}}, 0, 4), ConfigError);
}

}  // namespace
}  // namespace tilewave
