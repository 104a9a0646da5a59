// Which lane touches which page first: recorded as data, and in memory that lanes mark.
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "arrays/first_touch.hpp"
#include "execute/lanes/lanes.hpp"

namespace tilewave {
namespace {

// An array of rows x columns with a halo of a point, and time buffers; lanes compute the given boxes of each step.
struct Case {
    Schedule schedule;
    Binding memory;
    std::int64_t bytes = 0, columns = 0;

    Case(std::int64_t rows, std::int64_t columns_, const std::vector<std::vector<Box>>& boxes, int time_buffers) {
        columns = columns_ + 2;
        Array a;
        a.item_bytes = 8;
        a.storage = {{0, -1, -1}, {8, rows + 1, columns_ + 1}};
        a.time_buffers = time_buffers;
        schedule.arrays = {a};
        for (const auto& lane : boxes) {
            auto& steps = schedule.lanes.emplace_back();
            for (const Box& box : lane) {
                Tile tile;
                tile.box = box;
                steps.push_back({Op::compute, static_cast<std::int32_t>(schedule.tiles.size()), 0});
                schedule.tiles.push_back(tile);
            }
        }
        bytes = (rows + 2) * columns * 8;
        memory.stride_bytes = {bytes, columns * 8, 8};
    }
    FirstTouch touch(std::int64_t page) const {
        return FirstTouch::by_tiles(schedule, 0, memory, nullptr, bytes, page);
    }
};

TEST(FirstTouch, pages_go_to_the_lane_that_computes_most_of_them) {
    // 62 x 62 points: a row has 512 bytes, a page of 4,096 has 8 rows. Later steps, which skew the parts, do not count.
    const Case rows(62, 62, {{{{0, 0, 0}, {1, 30, 62}}, {{1, 0, 0}, {2, 8, 62}}}, {{{0, 30, 0}, {1, 62, 62}}}}, 2);
    EXPECT_EQ(rows.touch(4096).lanes, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
    // Of pages of a quarter of a row, lane 0 computes two of each row; the rows of the halo go with what is before.
    const Case columns(2, 62, {{{{0, 0, 0}, {1, 2, 31}}}, {{{0, 0, 31}, {1, 2, 62}}}}, 2);
    EXPECT_EQ(columns.touch(128).lanes, (std::vector<int>{0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1}));
}

TEST(FirstTouch, of_an_array_without_time) {
    Case whole(8, 6, {{{{0, 0, 0}, {4, 4, 6}}}, {{{0, 4, 0}, {4, 8, 6}}}}, 0);
    whole.schedule.arrays[0].lacks = 1;
    whole.schedule.arrays[0].storage.lo[0] = 0;
    whole.schedule.arrays[0].storage.hi[0] = 1;
    EXPECT_EQ(whole.touch(64).lanes, (std::vector<int>{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}));
}

TEST(FirstTouch, random_parts_against_counted_points) {
    const auto seed = std::random_device{}();
    std::cout << "seed " << seed << "\n";
    std::mt19937 random(seed);
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
    for (int round = 0; round < 200; ++round) {
        const int rows = draw(2, 20), columns = draw(1, 40), cut = draw(1, rows - 1), page = 8 * draw(1, 64);
        const bool swapped = draw(0, 1);
        const Box first{{0, 0, 0}, {1, cut, columns}}, second{{0, cut, 0}, {1, rows, columns}};
        const Case c(rows, columns, {{swapped ? second : first}, {swapped ? first : second}}, 2);
        const FirstTouch found = c.touch(page);
        ASSERT_EQ(static_cast<std::int64_t>(found.lanes.size()), ceil_div(c.bytes, page));
        for (std::size_t p = 0; p < found.lanes.size(); ++p) {
            std::array<int, 2> points{};
            for (std::int64_t at = static_cast<std::int64_t>(p) * page;
                 at < std::min<std::int64_t>((p + 1) * page, c.bytes); at += 8) {
                const std::int64_t i = at / 8 / c.columns - 1, j = at / 8 % c.columns - 1;
                if (i >= 0 && i < rows && j >= 0 && j < columns) ++points[(i >= cut) != swapped];
            }
            if (points[0] != points[1]) {
                ASSERT_EQ(found.lanes[p], points[1] > points[0]);
            } else if (points[0] == 0) {
                ASSERT_EQ(found.lanes[p], p > 0 ? found.lanes[p - 1] : 0);
            }
        }
    }
}

TEST(FirstTouch, every_page_is_touched_in_every_buffer) {
    Lanes lanes;
    const std::int64_t bytes = 10 * 4096 + 100;
    const FirstTouch even = FirstTouch::evenly(3, bytes, 4096);
    EXPECT_EQ(even.lanes, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2}));
    std::vector<std::byte> memory(2 * bytes, std::byte{1});
    even.make(lanes, memory.data(), 2);
    std::int64_t touched = 0;
    for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t at = 0; at < bytes; at += 4096) touched += memory[b * bytes + at] == std::byte{0};
    EXPECT_EQ(touched, 22);
    FirstTouch{}.make(lanes, nullptr, 1);
    EXPECT_EQ(page_of(1 << 20), 4096);
    EXPECT_EQ(page_of(1 << 30), 2 << 20);
}

}  // namespace
}  // namespace tilewave
