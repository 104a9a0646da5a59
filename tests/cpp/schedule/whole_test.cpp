// One entry at a time of a whole schedule is changed: damage() names it and what is allowed.
#include "schedule/whole.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "schedule/entries.hpp"

using namespace tilewave;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 61;

void check(Schedule (*base)(), const std::vector<Change>& changes) {
    ASSERT_FALSE(damage(base())) << damage(base())->entry << ": " << damage(base())->why;
    for (const Change& change : changes) {
        Schedule s = base();
        change.make(s);
        const auto found = damage(s);
        ASSERT_TRUE(found) << change.entry << ": " << change.why;
        EXPECT_EQ(found->entry, change.entry);
        EXPECT_NE(found->why.find(change.why), std::string::npos) << found->entry << ": " << found->why;
    }
}

}  // namespace

TEST(Whole, SchedulesAndArrays) {
    check(of_a_nest,
          {
              {"ranks", "allowed: 1 to", [](Schedule& s) { s.ranks = 0; }},
              {"rank", "allowed: 0 to 1", [](Schedule& s) { s.rank = 2; }},
              {"lanes", "allowed: 0 to", [](Schedule& s) { s.lanes.resize(1 << 20); }},
              {"arrays[1].item_bytes", "it is 0", [](Schedule& s) { s.arrays[1].item_bytes = 0; }},
              {"arrays[1].storage", "components", [](Schedule& s) { s.arrays[1].storage.hi = {10}; }},
              {"arrays[1].storage", "it has a component", [](Schedule& s) { s.arrays[1].storage.hi[0] = huge; }},
              {"arrays[1].storage", "2^60 points", [](Schedule& s) { s.arrays[1].storage = square(0, 1LL << 40); }},
              {"arrays[1].storage", "2^60 bytes", [](Schedule& s) { s.arrays[1].storage = square(0, 1LL << 29); }},
              {"arrays[1].owned", "allowed: 2", [](Schedule& s) { s.arrays[1].owned = {{0}, {1}}; }},
              {"arrays[0].stride", "none or 2", [](Schedule& s) { s.arrays[0].stride = {1}; }},
              {"arrays[0].stride", "more than 2^60", [](Schedule& s) { s.arrays[0].stride[0] = 1LL << 59; }},
              {"arrays[0].period", "none or 2", [](Schedule& s) { s.arrays[0].period = {1}; }},
              {"arrays[0].period", "it has -1", [](Schedule& s) { s.arrays[0].period[1] = -1; }},
              {"arrays[0].period", "it has a component", [](Schedule& s) { s.arrays[0].period[1] = huge; }},
              {"arrays[1].reach", "none or 2", [](Schedule& s) { s.arrays[1].reach = {1}; }},
              {"arrays[1].reach", "it has a component", [](Schedule& s) { s.arrays[1].reach = {huge, 0}; }},
              {"arrays[1].reach", "has none", [](Schedule& s) { s.arrays[1].planes = 3; }},
              {"arrays[1].time_buffers", "it is -1", [](Schedule& s) { s.arrays[1].time_buffers = -1; }},
              {"arrays[1].planes", "it is -1", [](Schedule& s) { s.arrays[1].planes = -1; }},
              {"arrays[1].lacks", "allowed: 0 to", [](Schedule& s) { s.arrays[1].lacks = ~0u; }},
              {"arrays[1].storage", "no dimensions",
               [](Schedule& s) {
                   s.arrays[1].storage = s.arrays[1].owned = {};
                   s.arrays[1].time_buffers = 2;
               }},
              {"arrays[1].view.memory", "it is -2", [](Schedule& s) { s.arrays[1].view.memory = -2; }},
              {"arrays[1].view.buffers", "it is -1", [](Schedule& s) { s.arrays[1].view.buffers = -1; }},
              {"arrays[0].view", "without a memory", [](Schedule& s) { s.arrays[0].view.memory = -1; }},
              {"arrays[0].view", "a shift of 1", [](Schedule& s) { s.arrays[0].view.shift = {0}; }},
              {"arrays[0].view", "for storage", [](Schedule& s) { s.arrays[0].view.rows[1] = {1}; }},
              {"arrays[0].view.rows", "its constant", [](Schedule& s) { s.arrays[0].view.shift[1] = huge; }},
              {"arrays[1].view", "for another array", [](Schedule& s) { s.arrays[1].view = {0, {{1, 0}}, {0}, 0}; }},
          });
}

TEST(Whole, Nests) {
    check(
        of_a_nest,
        {
            {"works[0].number", "it is", [](Schedule& s) { s.works[0].number = huge; }},
            {"works[0].space", "components", [](Schedule& s) { nest(s).space.lo = {0}; }},
            {"works[0].kernel", "it is -1", [](Schedule& s) { nest(s).kernel = -1; }},
            {"works[0].places[1]", "names array 2 of 2", [](Schedule& s) { nest(s).places[1].array = 2; }},
            {"works[0].places[1]", "has offset", [](Schedule& s) { nest(s).places[1].offset = {0}; }},
            {"works[0].places[1]", "it has a component", [](Schedule& s) { nest(s).places[1].offset[0] = huge; }},
            {"works[0].bounds[0]", "was given for 2 loops", [](Schedule& s) { nest(s).bounds[0].coefficients = {1}; }},
            {"works[0].bounds[0]", "more than 2^60",
             [](Schedule& s) { nest(s).bounds[0].coefficients[0] = 1LL << 59; }},
            {"works[0].order", "no order", [](Schedule& s) { nest(s).order.row[1] = {1, 0}; }},
            {"works[0].order", "no order", [](Schedule& s) { nest(s).order.row[0] = {2, 0}; }},
            {"works[0].loops", "1 rows for 2 loops", [](Schedule& s) { nest(s).loops.n = 1; }},
            {"works[0].loops", "more than 2^60", [](Schedule& s) { nest(s).loops.row[0] = {1LL << 58, 0}; }},
            {"works[0].period", "none or 2", [](Schedule& s) { nest(s).period = {8}; }},
            {"works[0].period", "it has -8", [](Schedule& s) { nest(s).period[0] = -8; }},
            {"works[0].own", "allowed: 2", [](Schedule& s) { nest(s).own = {{0, 0, 0}, {8, 8, 8}}; }},
            {"works[0].window", "along 0, across 0", [](Schedule& s) { nest(s).window = {0, 0, 0}; }},
            {"works[0].window", "slant 2", [](Schedule& s) { nest(s).window = {0, 1, 2}; }},
            {"works[0].window", "in planes",
             [](Schedule& s) {
                 s.arrays[1].planes = 3;
                 s.arrays[1].reach = {1, 1};
             }},
            {"arrays[1].planes", "2^60 bytes",
             [](Schedule& s) {
                 nest(s).window = {1, 0, 1};
                 s.arrays[1].planes = 1 << 30;
                 s.arrays[1].reach = {1 << 20, 1 << 20};
             }},
            {"tiles[0].work", "names work 1 of 1", [](Schedule& s) { s.tiles[0].work = 1; }},
            {"tiles[0].box", "allowed: 2", [](Schedule& s) { s.tiles[0].box = {{0}, {1}}; }},
            {"advance", "components", [](Schedule& s) { s.advance = {1}; }},
            {"advance", "it has a component", [](Schedule& s) { s.advance = {huge, 0}; }},
            {"repeated", "there are 1", [](Schedule& s) { s.repeated.resize(2); }},
            {"repeated[0]", "of 4 steps", [](Schedule& s) { s.repeated[0].end = 5; }},
            {"repeated[0]", "steps -1", [](Schedule& s) { s.repeated[0].begin = -1; }},
            {"repeated[0]", "steps 3 to 2", [](Schedule& s) { s.repeated[0] = {3, 2}; }},
        });
}

TEST(Whole, Tasks) {
    const double infinite = std::numeric_limits<double>::infinity();
    check(of_tasks,
          {
              {"works[1].number", "numbers only grow", [](Schedule& s) { s.works[1].number = 0; }},
              {"works[1].operation", "it is -1", [](Schedule& s) { task(s, 1).operation = -1; }},
              {"works[1].amount", "allowed: 0 to 1e30", [=](Schedule& s) { task(s, 1).amount = infinite; }},
              {"works[1].amount", "allowed: 0 to 1e30", [](Schedule& s) { task(s, 1).amount = -1; }},
              {"works[1].amount", "allowed: 0 to 1e30", [](Schedule& s) { task(s, 1).amount = 1e31; }},
              {"works[1].reads[0]", "names array 2 of 2", [](Schedule& s) { task(s, 1).reads[0].array = 2; }},
              {"works[1].writes[0]", "the storage of array 1",
               [](Schedule& s) { task(s, 1).writes[0].box = {{0}, {1}}; }},
              {"works[1].writes[0]", "it has a component", [](Schedule& s) { task(s, 1).writes[0].box.hi[1] = huge; }},
              {"arrays[1].planes", "one nest",
               [](Schedule& s) {
                   s.arrays[1].planes = 3;
                   s.arrays[1].reach = {1, 1};
               }},
              {"advance", "which are nests", [](Schedule& s) { s.advance = {1, 0}; }},
              {"results[0]", "names array 2 of 2", [](Schedule& s) { s.results[0].source = 2; }},
              {"results[0].ranks", "names rank 2 of 2", [](Schedule& s) { s.results[0].ranks[1] = 2; }},
              {"results[0].source", "other dimensions",
               [](Schedule& s) {
                   s.arrays.push_back({8, {{0}, {1}}, {{0}, {1}}});
                   s.results[0].source = 2;
               }},
              {"results[0].region", "allowed: 2", [](Schedule& s) { s.results[0].region = {{0}, {1}}; }},
          });
}

TEST(Whole, MessagesAndSteps) {
    check(
        of_a_nest,
        {
            {"buffers[1]", "it has -1", [](Schedule& s) { s.buffers[1] = -1; }},
            {"buffers[1]", "it has", [](Schedule& s) { s.buffers[1] = 1LL << 60; }},
            {"messages[1].array", "names array 2 of 2", [](Schedule& s) { s.messages[1].array = 2; }},
            {"messages[1].buffer", "names buffer 2 of 2", [](Schedule& s) { s.messages[1].buffer = 2; }},
            {"messages[1].tile", "names tile 1 of 1", [](Schedule& s) { s.messages[1].tile = 1; }},
            {"messages[1].peer", "has peer 2 of 2 ranks", [](Schedule& s) { s.messages[1].peer = 2; }},
            {"messages[1].peer", "has peer -1", [](Schedule& s) { s.messages[1].peer = -1; }},
            {"messages[1].tag", "has tag -1", [](Schedule& s) { s.messages[1].tag = -1; }},
            {"messages[1].bytes", "it has", [](Schedule& s) { s.messages[1].bytes = huge; }},
            {"messages[1].at", "it is -1", [](Schedule& s) { s.messages[1].at = -1; }},
            {"messages[1].aggregate", "names aggregate 1 of 1", [](Schedule& s) { s.messages[1].aggregate = 1; }},
            {"messages[1].pieces", "has not so many", [](Schedule& s) { s.messages[1].pieces = 1; }},
            {"messages[1].pieces", "has not so many", [](Schedule& s) { s.messages[1].pieces = -1; }},
            {"messages[1].region", "the storage of its array", [](Schedule& s) { s.messages[1].region = {{0}, {1}}; }},
            {"messages[1].region", "it has a component", [](Schedule& s) { s.messages[1].region.lo[1] = -huge; }},
            {"lanes[0][3]", "compute names item 1 of 1", [](Schedule& s) { s.lanes[0][3].item = 1; }},
            {"lanes[0][1]", "await names item 1 of 1", [](Schedule& s) { s.lanes[0][1] = {Op::await, 1}; }},
            {"lanes[0][1]", "wait names item -1 of 2", [](Schedule& s) { s.lanes[0][1].item = -1; }},
            {"lanes[0][2]", "has count 2", [](Schedule& s) { s.lanes[0][2].count = 2; }},
            {"lanes[0][2]", "has count -3", [](Schedule& s) { s.lanes[0][2].count = -3; }},
        });
    Schedule s = of_a_nest();
    s.lanes[0][1].item = 7;
    EXPECT_EQ(damage(s)->lane, 0);
    EXPECT_EQ(damage(s)->step, 1u);
}
