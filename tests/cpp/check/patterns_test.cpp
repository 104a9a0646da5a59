// The checker on communication patterns: right ones pass, mutants are refused with the reason, and
// whatever passes of many random mutants gives right results in the simulator, in any order.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <stdexcept>
#include <utility>

#include "schedule/lane_builder.hpp"
#include "support/pattern_schedules.hpp"
#include "support/schedule_simulator.hpp"
#include "tilewave/engine/check.hpp"

using namespace tilewave;
using namespace tilewave::testing;

namespace {

std::string checked(const Schedules& made) {
    const auto violation = check(made);
    return violation ? to_string(*violation) : "";
}

void refuse(const Schedules& made, std::initializer_list<const char*> words) {
    const std::string found = checked(made);
    EXPECT_NE(found, "") << "the mutant passed";
    for (const char* word : words)
        EXPECT_NE(found.find(word), std::string::npos) << "\"" << word << "\" is not in: " << found;
}

using Lane = std::vector<Step>;

std::size_t at(const Lane& lane, Op op, int nth = 0) {
    for (std::size_t i = 0; i < lane.size(); ++i)
        if (lane[i].op == op && nth-- == 0) return i;
    throw std::out_of_range("no such step");
}
Step take(Lane& lane, std::size_t i) {
    const Step step = lane[i];
    lane.erase(lane.begin() + static_cast<std::ptrdiff_t>(i));
    return step;
}
void put(Lane& lane, std::size_t i, const Step& step) {
    lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(i), step);
}
void move(Lane& lane, std::size_t from, std::size_t to) {
    const Step step = take(lane, from);
    put(lane, to, step);
}
void swap_lanes(Schedule& s) {
    std::swap(s.lanes[0], s.lanes[1]);
    for (Lane& lane : s.lanes)
        for (Step& step : lane)
            if (step.op == Op::await) step.item = 1 - step.item;
}
void cut(Message& m, const Box& region) {
    m.region = region;
    m.bytes = region.points() * item;
}

TEST(CheckPatterns, RightOnesPassAndGiveRightResults) {
    for (const auto& [name, made] : right_patterns()) {
        EXPECT_EQ(checked(made), "") << name;
        for (unsigned seed = 0; seed < 100; ++seed)
            EXPECT_EQ(Simulator(made, seed).run().value_or(""), "") << name << ", seed " << seed;
    }
}

TEST(CheckPatterns, Forwarding) {
    auto ring = ring_broadcast();
    auto* lane = &ring[1].lanes[0];
    move(*lane, at(*lane, Op::wait), at(*lane, Op::post_send));
    refuse(ring, {"rank 1", "still in use by message 0"});

    ring = ring_broadcast();  // the second column through the buffer of the first
    lane = &ring[1].lanes[0];
    for (int m : {2, 3}) ring[1].messages[m].buffer = ring[1].messages[0].buffer;
    move(*lane, at(*lane, Op::post_recv, 1), at(*lane, Op::unpack));
    refuse(ring, {"rank 1", "reused while message 1 is in flight"});

    ring = ring_broadcast();
    ring[1].messages[1].buffer = 1;  // where column 1 will arrive
    refuse(ring, {"rank 1", "still in use by message 2"});
    std::swap(ring[1].lanes[0][0].item, ring[1].lanes[0][1].item);
    move(ring[1].lanes[0], at(ring[1].lanes[0], Op::wait, 1), at(ring[1].lanes[0], Op::post_send));
    refuse(ring, {"rank 1",
                  "message 1 of region [0:2, 0:1] and 16 bytes is sent before it is packed: its buffer holds message 2 "
                  "of region [0:2, 1:2]"});

    auto tree = tree_broadcast();
    cut(tree[1].messages[1], {{0, 0}, {2, 2}});
    cut(tree[3].messages[0], {{0, 0}, {2, 2}});
    refuse(tree, {"rank 1",
                  "message 1 of region [0:2, 0:2] and 32 bytes is sent before it is packed: its buffer holds message 0 "
                  "of region [0:2, 0:3]"});

    tree = tree_broadcast();
    tree[1].arrays.push_back({2 * item, {{0, 0}, {2, 3}}, {{0, 0}, {0, 0}}});
    for (int r : {0, 2, 3}) tree[r].arrays.push_back(tree[1].arrays[2]);
    tree[1].buffers[0] *= 2;
    tree[1].messages[1].array = 2;
    tree[1].messages[1].bytes *= 2;
    refuse(tree,
           {"rank 1",
            "and 96 bytes is sent before it is packed: its buffer holds message 0 of region [0:2, 0:3] and 48 bytes"});
}

TEST(CheckPatterns, TwoSendsFromOneBuffer) {
    auto tree = tree_broadcast();
    auto& lane = tree[0].lanes[0];
    for (int still : {1, 0}) {  // one of them waited for is not both
        auto mutant = tree;
        auto& steps = mutant[0].lanes[0];
        if (still == 0) std::swap(steps[at(steps, Op::wait)], steps[at(steps, Op::wait, 1)]);
        move(steps, at(steps, Op::wait, 1), at(steps, Op::pack, 1));
        refuse(mutant, {"rank 0", "step 4",
                        still ? "reused while message 1 is in flight" : "reused while message 0 is in flight"});
    }
    take(lane, at(lane, Op::wait));
    refuse(tree, {"rank 0", "reused while message 0 is in flight"});
}

TEST(CheckPatterns, Combining) {
    auto refuse_chain = [](auto mutate, std::initializer_list<const char*> words) {
        auto made = chain_reduce(combine_array_right);
        mutate(made, made[1].lanes[0]);
        refuse(made, words);
    };
    refuse_chain([](auto&, Lane& l) { move(l, at(l, Op::combine), at(l, Op::wait)); },
                 {"rank 1", "combined before it has arrived"});
    refuse_chain([](auto&, Lane& l) { put(l, at(l, Op::combine), l[at(l, Op::combine)]); },
                 {"rank 2, lane 0, step 4: at the end [0:2, 0:3] of array 1 should hold the values of array 0 of ranks "
                  "0, 1, 2 combined; "
                  "from (0, 0) on it holds the values of array 0 of ranks 0, 1, 1, 2 combined"});
    refuse_chain([](auto&, Lane& l) { l[at(l, Op::combine)].count = combine_array_left; },
                 {"holds", "of ranks 1, 0, 2 combined"});
    refuse_chain([](auto&, Lane& l) { take(l, at(l, Op::combine)); }, {"holds", "of ranks 0, 2 combined"});
    refuse_chain([](auto&, Lane& l) { move(l, at(l, Op::combine), at(l, Op::post_send)); },
                 {"reused while message 1 is in flight"});
    refuse_chain([](auto& made, Lane&) { made[1].arrays[0].owned = column(0); },
                 {"rank 1", "it combines with", "before anything is there"});
    refuse_chain([](auto& made, Lane&) { std::swap(made[2].lanes[0][2], made[2].lanes[0][3]); },
                 {"rank 2", "holds", "of ranks 0, 1 combined"});
    refuse_chain([](auto&, Lane& l) { l[at(l, Op::combine)].item = 1; },
                 {"rank 1", "message 1 is combined, but it is a send"});
    refuse_chain([](auto&, Lane& l) { l[at(l, Op::combine)].count = -3; }, {"rank 1", "has count -3"});
    refuse_chain([](auto&, Lane& l) { l[at(l, Op::combine)].count = 2; }, {"rank 1", "has count 2"});
    refuse_chain([](auto&, Lane& l) { l[at(l, Op::combine)].count = 0; }, {"rank 1", "with itself"});
    refuse_chain([](auto&, Lane& l) { l[at(l, Op::combine)].count = 1; }, {"rank 1", "whose buffer holds message 0"});
    refuse_chain([](auto& made, Lane&) { made[1].messages[0].array = 1, made[1].messages[0].buffer = -1; },
                 {"rank 1", "has no buffer"});
    refuse_chain([](auto& made, Lane&) { made[0].messages[0].array = 1; },
                 {"rank 0", "it packs", "before anything is there"});
    refuse_chain([](auto& made, Lane&) { take(made[2].lanes[0], 3); }, {"rank 2", "it holds nothing"});
}

TEST(CheckPatterns, CombiningTwoBuffers) {
    auto tree = tree_reduce();
    auto& lane = tree[0].lanes[0];
    const std::size_t last = at(lane, Op::combine, 1);
    std::swap(lane[last].item, lane[last].count);  // into the other buffer
    refuse(tree, {"rank 0", "of ranks 2, 3 combined"});
    tree[0].messages[2].buffer = tree[0].messages[0].buffer;
    refuse(tree, {"rank 0", "of ranks 2, 3, 0, 1 combined"});

    tree = tree_reduce();
    move(tree[0].lanes[0], last, at(tree[0].lanes[0], Op::combine));  // before what it joins is joined
    refuse(tree, {"rank 0", "message 1 is combined before it has arrived"});

    tree = tree_reduce();
    move(tree[0].lanes[0], at(tree[0].lanes[0], Op::wait), last);
    refuse(tree, {"rank 0", "message 0 is combined before it has arrived"});

    tree = tree_reduce();
    cut(tree[0].messages[0], column(0));
    cut(tree[1].messages[0], column(0));
    refuse(tree, {"rank 0", "their regions are [0:2, 0:3] and [0:2, 0:1]"});
}

TEST(CheckPatterns, WhatABufferHolds) {
    auto made = chain_reduce(combine_array_right);
    auto* h = &made[1];
    Message other = h->messages[1];  // of this rank alone, through the same buffer
    other.peer = 1;
    h->messages.push_back(other);
    put(h->lanes[0], at(h->lanes[0], Op::combine), {Op::pack, 2});
    refuse(made, {"rank 1", "message 0 is combined in a buffer that holds message 2"});

    made = tree_broadcast();
    move(made[3].lanes[0], at(made[3].lanes[0], Op::unpack), at(made[3].lanes[0], Op::wait, 1));
    refuse(made,
           {"rank 3", "message 0 of region [0:2, 0:3] and 48 bytes is unpacked from a buffer that holds message 1"});

    made = tree_reduce();
    cut(made[0].messages[2], column(0));
    refuse(made, {"rank 0",
                  "message 2 of region [0:2, 0:1] and 16 bytes is unpacked from a buffer that holds message 1 of "
                  "region [0:2, 0:3]"});
}

TEST(CheckPatterns, LanesThatShareABuffer) {
    auto made = tree_reduce(2);
    take(made[0].lanes[1], at(made[0].lanes[1], Op::await));
    refuse(made, {"rank 0, lane 1", "left operand: its buffer was filled with no order"});

    // Without the await that lane 0 has for each turn, whichever lane this play takes first.
    for (int r : {0, 1})
        for (bool swapped : {false, true}) {
            made = ring_broadcast_on_two_lanes();
            if (swapped) swap_lanes(made[r]);
            EXPECT_EQ(checked(made), "");
            Lane& lane = made[r].lanes[swapped];
            take(lane, at(lane, Op::await));
            refuse(made, {r ? "rank 1" : "rank 0", "its buffer"});
        }

    // Rank 2 packs on one lane into the buffer that the other unpacks: this play takes the reader first.
    made = chain_reduce(combine_array_right, 2);
    made[2].messages.push_back(made[2].messages[1]);
    made[2].messages[2].array = 0;
    Lane& reader = made[2].lanes[0];
    reader.push_back({Op::unpack, 1});
    made[2].lanes[1] = {{Op::await, 0, 1}, {Op::pack, 2}};
    refuse(made, {"rank 2, lane 1, step 1", "its buffer may still be read by another lane"});
    move(reader, at(reader, Op::signal), at(reader, Op::unpack));
    EXPECT_EQ(checked(made), "");
}

TEST(CheckPatterns, TwoLanes) {
    auto made = chain_reduce(combine_array_right, 2);
    take(made[1].lanes[1], 0);
    refuse(made, {"rank 1, lane 1", "buffer"});
    made = chain_reduce(combine_array_right, 2);
    move(made[1].lanes[0], at(made[1].lanes[0], Op::signal), at(made[1].lanes[0], Op::combine));
    refuse(made, {"rank 1"});  // lane 1 may send while lane 0 combines
    made = chain_reduce(combine_array_right, 2);
    move(made[2].lanes[0], at(made[2].lanes[0], Op::signal), at(made[2].lanes[0], Op::combine));
    refuse(made, {"rank 2", "no order"});
}

TEST(CheckPatterns, Results) {
    auto refuse_ring = [](auto mutate, std::initializer_list<const char*> words) {
        auto made = ring_broadcast();
        mutate(made);
        refuse(made, words);
    };
    refuse_ring([](auto& m) { m[2].results[0].ranks = {1}; },
                {"rank 2", "should hold the values of array 0 of rank 1", "holds the values of array 0 of rank 0"});
    refuse_ring([](auto& m) { m[2].results[0].source = 1; }, {"rank 2", "should hold the values of array 1 of rank 0"});
    refuse_ring([](auto& m) { m[2].results[0].region = whole; }, {"rank 2", "from (0, 2) on it holds nothing"});
    refuse_ring([](auto& m) { m[2].results[0].array = 1; }, {"rank 2, lane 0, step 6", "it holds nothing"});
    refuse_ring([](auto& m) { take(m[2].lanes[0], at(m[2].lanes[0], Op::unpack)); },
                {"rank 2", "[0:2, 0:1] of array 0", "it holds nothing"});
    refuse_ring([](auto& m) { m[1].results[0].array = 2; }, {"rank 1", "result 0 names array 2 of 2"});
    refuse_ring([](auto& m) { m[1].results[1].source = -1; }, {"rank 1", "result 1 names array -1 of 2"});
    refuse_ring([](auto& m) { m[1].results[0].ranks = {3}; }, {"rank 1", "result 0 names rank 3 of 3"});
    refuse_ring([](auto& m) { m[1].results[0].ranks = {}; }, {"rank 1", "result 0 names no rank"});
    refuse_ring([](auto& m) { m[1].results[0].region.hi[1] = 4; }, {"rank 1", "outside the storage"});
    refuse_ring([](auto& m) { m[0].lanes[0].pop_back(); }, {"rank 0", "never waited for"});

    auto made = ring_broadcast();
    made[1].results[0].ranks = {};
    made[1].results[0].region = {{1, 1}, {1, 1}};
    EXPECT_EQ(checked(made), "");

    made = ring_reduce_scatter();
    made[1].results[0].ranks = {0, 1, 2};
    refuse(made,
           {"rank 1", "should hold the values of array 0 of ranks 0, 1, 2 combined", "of ranks 2, 0, 1 combined"});

    made = transposed_blocks();
    made[0].results[0].ranks = {0, 1};
    refuse(made, {"array 0, which is not separate"});
    made = transposed_blocks();
    made[2].results[0].source = 1;
    refuse(made, {"rank 2", "should hold the values given in array 1", "it holds the values given in array 0"});
}

TEST(CheckPatterns, MemoryOfArrays) {
    auto made = direct_broadcast();
    for (Message& m : made[0].messages) m.array = 0;
    refuse(made, {"rank 0", "no single run of memory in [0:2, 0:3] of stride (4, 1)"});
    made = direct_broadcast();
    for (Message& m : made[0].messages) m.region = column(1), m.bytes = 2 * item;
    refuse(made, {"rank 0", "no single run of memory in [0:2, 0:3]"});
    const std::pair<Index, const char*> strides[] = {{{2, 1}, "its rows overlap"},
                                                     {{3, -1}, "may not be negative"},
                                                     {{3}, "(3) has 1 components; allowed: none or 2"},
                                                     {{6, 2}, "along the last dimension"}};
    for (const auto& [stride, why] : strides) {
        made = direct_broadcast();
        made[1].arrays[1].stride = stride;
        refuse(made, {"rank 1", stride.n == 2 ? "array 1" : "arrays[1].stride", why});
    }
    made = direct_broadcast();
    made[2].arrays[0].separate = false;
    refuse(made, {"rank 2", "its arrays", "differ from rank 0's"});
}

TEST(CheckPatterns, LanesAreBuiltWithBuffersForStridedRows) {
    Hand h(0, 2);
    LaneBuilder lane(h.s, 0);
    const int strided = lane.post_send(1, 0, 0, whole, false, -1),
              row = lane.post_send(1, 1, 0, {{0, 0}, {1, 3}}, false, -1);
    const int dense = lane.post_receive(1, 2, 1, whole, -1);
    EXPECT_GE(h.s.messages[strided].buffer, 0);
    EXPECT_EQ(h.s.messages[row].buffer, -1);
    EXPECT_EQ(h.s.messages[dense].buffer, -1);
}

TEST(CheckPatterns, AScheduleWithoutASpaceComputesNothing) {
    Schedules made(1);
    EXPECT_EQ(checked(made), "");
}

// A slip that doubles a value at every step must not cost memory or time that doubles.
TEST(CheckPatterns, TreesThatDouble) {
    Hand a(0, 2), b(1, 2);
    const int left = a.receive(1, a.buffer()), right = a.receive(1, a.buffer(), whole, 1), copy = a.local(0);
    a(Op::post_recv, left)(Op::post_recv, right)(Op::wait, left)(Op::wait, right);
    for (int i = 0; i < 60; ++i) a(Op::combine, left, right)(Op::combine, right, left);
    a(Op::unpack, copy).result({1, 1});
    const int out = b.send(0, b.buffer()), again = b.send(0, 0, whole, 1);
    b(Op::pack, out)(Op::post_send, out)(Op::post_send, again)(Op::wait, out)(Op::wait, again);
    refuse({a.s, b.s}, {"should hold the values of array 0 of ranks 1, 1 combined", "in all) combined"});
}

// One slip somewhere: a step dropped, two swapped, an item, a count or a buffer changed.
std::string mutate(Schedules& made, std::mt19937& random) {
    auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
    while (true) {
        const int rank = below(made.size());
        Schedule& s = made[rank];
        const int l = below(s.lanes.size()), kind = below(5);
        Lane& lane = s.lanes[l];
        if (lane.empty()) continue;
        const int i = below(kind < 4 ? lane.size() : s.messages.size());
        const std::string where =
            "rank " + std::to_string(rank) + ", lane " + std::to_string(l) + ", step " + std::to_string(i);
        if (kind == 0) {
            take(lane, i);
            return where + " dropped";
        }
        if (kind == 4) {
            const int buffer = below(s.buffers.size() + 1) - 1;
            if (std::exchange(s.messages[i].buffer, buffer) == buffer) continue;
            return "rank " + std::to_string(rank) + ", message " + std::to_string(i) + " gets buffer " +
                   std::to_string(buffer);
        }
        const Step old = lane[i];
        const bool counts = old.op == Op::combine || old.op == Op::signal || old.op == Op::await;
        if (kind == 1 && i + 1 < static_cast<int>(lane.size())) std::swap(lane[i], lane[i + 1]);
        if (kind == 2) lane[i].item = below(s.messages.size() + 1);
        if (kind == 3 && counts) lane[i].count = below(s.messages.size() + 4) - 3;
        if (lane[i] == old) continue;
        return where +
               (kind == 1 ? " swapped with the next"
                          : " gets item " + std::to_string(lane[i].item) + ", count " + std::to_string(lane[i].count));
    }
}

// TILEWAVE_MUTANTS: how many, TILEWAVE_MUTANT_SEED: from where, TILEWAVE_SLIPS: slips in each.
int setting(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text ? std::atoi(text) : otherwise;
}

TEST(CheckPatterns, MutantsThatPassGiveRightResults) {
    const int mutants = setting("TILEWAVE_MUTANTS", 2000), slips = setting("TILEWAVE_SLIPS", 1);
    const auto first = static_cast<unsigned>(setting("TILEWAVE_MUTANT_SEED", 20240501));
    std::printf("seeds from %u on\n", first);
    const auto patterns = right_patterns();
    int passed = 0, refused = 0, shown_wrong = 0;
    for (int n = 0; n < mutants; ++n) {
        std::mt19937 random(first + static_cast<unsigned>(n));
        const Named& pattern = patterns[random() % patterns.size()];
        Schedules made = pattern.made;
        std::string what = pattern.name;
        for (int i = 0; i < slips; ++i) what += "; " + mutate(made, random);
        const std::string found = checked(made);
        (found.empty() ? passed : refused) += 1;
        bool wrong = false;
        for (int order = 0; order < 20; ++order)
            if (const auto why = Simulator(made, random()).run()) {
                wrong = true;
                ASSERT_NE(found, "") << "seed " << first + static_cast<unsigned>(n) << ": " << what
                                     << ": passed, but: " << *why;
            }
        shown_wrong += wrong;
    }
    std::printf("%d mutants: %d pass and are right, %d are refused, %d of these shown wrong\n", mutants, passed,
                refused, shown_wrong);
    // Else the simulator shows little: most of what is refused must be seen to go wrong, too.
    EXPECT_GT(2 * shown_wrong, refused);
}

}  // namespace
