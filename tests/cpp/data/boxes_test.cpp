// Copies of boxes in transposed, skewed and reversed storage, against an item at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "data/memory.hpp"
#include "data/rows.hpp"
#include "support/dice.hpp"

namespace tilewave {
namespace {

using Bytes = std::vector<std::byte>;
using Int = std::int64_t;

// Where the items of a box lie: `first` is the item (0, ...), `bytes` what the box and its guards need.
struct Storage {
    Index stride;
    Int first = 0, bytes = 0;
};

// Dimension `row` is stored at the columns row * shear further (shear 0: not skewed).
struct Skew {
    int row = 0, column = 0;
    Int shear = 0;
};

Storage nested(const Index& extents, Int item, const std::vector<int>& inner_first, const Skew& skew, bool padded,
               Dice& dice) {
    Storage s{extents};
    Index wide = extents;
    wide[skew.column] += std::abs(skew.shear) * (extents[skew.row] - 1);
    Int step = item;
    for (int k : inner_first) {
        s.stride[k] = step;
        step *= wide[k] + (padded ? dice(0, 3) : 0);
        if (padded && dice(0, 2) == 0) step += dice(1, 40);
    }
    s.stride[skew.row] += skew.shear * s.stride[skew.column];
    for (int k = 0; k < extents.n; ++k) {
        if (dice(0, 3) == 0) s.stride[k] = -s.stride[k];
        s.first -= std::min<Int>(s.stride[k] * (extents[k] - 1), 0);
    }
    const Int guard = dice(64, 127);
    s.bytes = step + 2 * guard;
    s.first += guard;
    return s;
}

Storage random_storage(const Index& extents, Int item, Dice& dice) {
    std::vector<int> inner_first(extents.n);
    std::iota(inner_first.rbegin(), inner_first.rend(), 0);
    if (dice(0, 2) == 0) std::ranges::shuffle(inner_first, dice.engine);
    Skew skew;
    if (extents.n > 1 && dice(0, 2)) {  // items of a diagonal next to each other, or another pair of dimensions
        if (dice(0, 3)) std::swap(inner_first[0], inner_first[1]);
        const int at = dice(0, 3) ? 0 : int(dice(0, extents.n - 2));
        skew = {inner_first[at], inner_first[at + 1], dice(0, 3) ? 1 : dice(-3, 3)};
    }
    return nested(extents, item, inner_first, skew, dice(0, 1), dice);
}

Int address(const Storage& s, const Index& at) {
    Int a = s.first;
    for (int k = 0; k < at.n; ++k) a += at[k] * s.stride[k];
    return a;
}

// Every byte of the target's memory is compared, so that one beside the box is seen as well.
void expect_copied(const Storage& to, const Storage& from, const Index& extents, Int item, Dice& dice) {
    Bytes source = dice.bytes(from.bytes), got = dice.bytes(to.bytes);
    Bytes expected = got;
    Index at = Index::filled(extents.n, 0);
    for (int k = extents.n - 1; k >= 0;) {
        std::memcpy(expected.data() + address(to, at), source.data() + address(from, at), item);
        for (k = extents.n - 1; k >= 0 && ++at[k] == extents[k]; --k) at[k] = 0;
    }
    copy_box(got.data() + to.first, to.stride, source.data() + from.first, from.stride, extents, item);
    EXPECT_EQ(std::ranges::mismatch(got, expected).in1 - got.begin(), to.bytes)
        << to_string(extents) << " items of " << item << " bytes from strides " << to_string(from.stride) << " to "
        << to_string(to.stride);
}

constexpr Int item_sizes[] = {1, 2, 4, 8, 16, 3};

TEST(CopyBox, random_storage_on_both_sides) {
    for (std::uint64_t seed = 0; seed < 500 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Dice dice(seed);
        Index extents = Index::filled(int(dice(1, max_dims)), 1);
        Int points = 1;
        for (int k = 0; k < extents.n; ++k) {
            extents[k] = dice(0, 7) == 0 ? 1 : dice(2, std::clamp<Int>(20000 / points, 2, dice(0, 1) ? 150 : 20));
            points *= extents[k];
        }
        std::shuffle(extents.v.begin(), extents.v.begin() + extents.n, dice.engine);
        const Int item = item_sizes[dice(0, 5)];
        const Storage to = random_storage(extents, item, dice), from = random_storage(extents, item, dice);
        expect_copied(to, from, extents, item, dice);
    }
}

// Rows and columns around the sizes of blocks, strips, groups and windows, to skewed storage and back.
TEST(CopyBox, every_edge_of_a_skewed_plane) {
    Dice dice(1);
    for (Int item : item_sizes)
        for (Int rows : {1, 2, 4, 5, 8, 9, 16, 17, 31, 33, 64, 65, 100})
            for (Int columns : {1, 3, 9, 18, 33, 79, 110, 256, 300})
                for (Int shear : {-1, 0, 1}) {
                    SCOPED_TRACE("shear " + std::to_string(shear));
                    const Index extents{rows, columns};
                    const Storage plain = nested(extents, item, {1, 0}, {}, dice(0, 1), dice);
                    const Storage skewed = nested(extents, item, {0, 1}, {0, 1, shear}, dice(0, 1), dice);
                    expect_copied(skewed, plain, extents, item, dice);
                    expect_copied(plain, skewed, extents, item, dice);
                    if (testing::Test::HasFailure()) return;
                }
}

// Matrices whose rows are runs, or lie without gaps on one side or both: near and far, of any sign.
TEST(CopyBox, rows_of_matrices) {
    for (std::uint64_t seed = 0; seed < 3000 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Dice dice(seed);
        const Int item = item_sizes[dice(0, 5)], columns = dice(0, 3) ? dice(1, 20) : dice(1, 200);
        const Int rows = dice(0, 3) ? dice(1, 40) : dice(1, 20000 / columns);
        const bool matrix = dice(0, 4) != 0;
        const auto storage = [&] {
            Storage s{matrix ? Index{rows, columns} : Index{columns}};
            const Int row = columns * item + (dice(0, 1) ? 0 : dice(1, dice(0, 3) ? 200 : 3000)),
                      sign = dice(0, 3) ? 1 : -1;
            s.stride[matrix ? 1 : 0] = item;
            if (matrix) s.stride[0] = sign * row;
            if (!matrix && dice(0, 1)) s.stride[0] = sign * item * dice(1, 3);
            s.first = 70 + (sign < 0 ? (matrix ? rows * row : 3 * columns * item) : 0);
            s.bytes = 2 * s.first + rows * row + 3 * columns * item;
            return s;
        };
        const Storage to = storage(), from = storage();
        expect_copied(to, from, matrix ? Index{rows, columns} : Index{columns}, item, dice);
    }
}

// An item that lies still on the source's side is repeated.
// Long runs whose target begins up to a line and more further in its page than the source go another way.
TEST(CopyBox, long_runs_at_every_place_in_a_page) {
    Dice dice(7);
    constexpr Int longest = 9000;
    const auto source = staging_memory(longest + 2 * page_bytes), target = staging_memory(longest + 2 * page_bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(source.get()) % page_bytes, page_bytes / 2);
    const Int room = longest + 2 * page_bytes;
    for (Int ahead = -70; ahead <= 70; ++ahead) {
        const Int n = dice(2040, longest), at = page_bytes + dice(0, 300);
        const Bytes given = dice.bytes(room), before = dice.bytes(room);
        std::ranges::copy(given, source.get());
        std::ranges::copy(before, target.get());
        copy_box(target.get() + at + ahead, {1}, source.get() + at, {1}, {n}, 1);
        Bytes expected = before;
        std::copy_n(given.begin() + at, n, expected.begin() + at + ahead);
        ASSERT_TRUE(std::ranges::equal(expected, std::span(target.get(), static_cast<std::size_t>(room))))
            << "ahead by " << ahead << ", " << n << " bytes";
    }
}

TEST(CopyBox, stride_of_zero_repeats) {
    Dice dice(2);
    for (Int item : item_sizes)
        for (int still : {0, 1}) {
            const Index extents{70, 90};
            Storage from = nested(extents, item, {1, 0}, {}, false, dice);
            from.first = 8000;
            from.bytes = 1 << 17;
            from.stride[0] = std::abs(from.stride[0]);
            from.stride[1] = std::abs(from.stride[1]);
            from.stride[still] = 0;
            expect_copied(nested(extents, item, {0, 1}, {}, true, dice), from, extents, item, dice);
            expect_copied(nested(extents, item, {1, 0}, {}, true, dice), from, extents, item, dice);
        }
}

}  // namespace
}  // namespace tilewave
