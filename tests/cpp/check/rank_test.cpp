// One entry at a time of a schedule that check_rank() takes is changed: it says what is wrong. And what append() and
// the functions that name steps refuse.
#include <gtest/gtest.h>

#include "schedule/compose.hpp"
#include "schedule/entries.hpp"
#include "tilewave/engine/check.hpp"
#include "tilewave/error.hpp"

using namespace tilewave;

namespace {

void refused(Schedule (*base)(), const std::vector<Change>& changes) {
    ASSERT_FALSE(check_rank(base())) << to_string(*check_rank(base()));
    for (const Change& change : changes) {
        Schedule s = base();
        change.make(s);
        const auto found = check_rank(s);
        ASSERT_TRUE(found) << change.why;
        EXPECT_NE(to_string(*found).find(change.why), std::string::npos) << to_string(*found);
    }
}

// Message 0 has message 1 as its one part.
Schedule of_parts() {
    Schedule s = of_tasks();
    s.messages[0].pieces = 1;
    s.messages[0].region = {};
    s.messages[1].aggregate = 0;
    s.messages[1].buffer = 0;
    s.lanes = {{{Op::post_recv, 0}, {Op::wait, 0}, {Op::unpack, 1}, {Op::compute, 0}}};
    return s;
}

Schedule sends() {
    Schedule s = of_tasks();
    s.messages[0].send = true;
    s.lanes = {{{Op::pack, 0}, {Op::post_send, 0}, {Op::wait, 0}, {Op::compute, 0}}};
    return s;
}

// A schedule of a task without messages, which may be appended to itself where its works get other numbers.
Schedule part() {
    Schedule s = of_tasks();
    s.messages.clear();
    s.results.clear();
    s.lanes = {{{Op::compute, 0}}};
    return s;
}

template <class F>
std::string error_of(F f) {
    try {
        f();
    } catch (const ConfigError& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST(CheckRank, Works) {
    refused(of_tasks,
            {
                {"", "which is only read", [](Schedule& s) { s.arrays[0].whole = true; }},
                {"", "writes an element twice", [](Schedule& s) { task(s, 0).writes.push_back({0, square(3, 5)}); }},
                {"", "it reads", [](Schedule& s) { task(s, 0).reads[1].box = square(8, 11); }},
                {"", "it writes", [](Schedule& s) { task(s, 0).writes[0].box = square(8, 11); }},
                {"", "its elements overlap", [](Schedule& s) { s.arrays[0].stride = {1, 1}; }},
                {"", "names no rank", [](Schedule& s) { s.results[0].ranks.clear(); }},
                {"", "which is not separate", [](Schedule& s) { s.arrays[1].separate = false; }},
                {"", "outside the storage", [](Schedule& s) { s.results[0].region = square(8, 11); }},
            });
    refused(of_a_nest, {
                           {"", "which is only read", [](Schedule& s) { s.arrays[0].whole = true; }},
                           {"", "only tasks may", [](Schedule& s) { s.arrays[0].separate = true; }},
                       });
}

TEST(CheckRank, Messages) {
    refused(of_tasks, {
                          {"", "as its peer", [](Schedule& s) { s.messages[0].peer = 0; }},
                          {"", "has 31 bytes, its region", [](Schedule& s) { s.messages[0].bytes = 31; }},
                          {"", "is smaller than message 0", [](Schedule& s) { s.messages[0].at = 33; }},
                          {"", "no single run of memory", [](Schedule& s) { s.messages[0].buffer = -1; }},
                          {"", "it receives",
                           [](Schedule& s) {
                               s.messages[0].buffer = -1;
                               s.messages[0].region = {{0, 9}, {1, 13}};
                               s.lanes[0].erase(s.lanes[0].begin() + 2);
                           }},
                          {"", "it combines", [](Schedule& s) { s.messages[0].region = square(9, 11); }},
                          {"", "which is a receive", [](Schedule& s) { s.lanes[0][0].op = Op::post_send; }},
                          {"", "is posted twice", [](Schedule& s) { s.lanes[0].push_back({Op::post_recv, 0}); }},
                          {"", "is waited for twice", [](Schedule& s) { s.lanes[0].push_back({Op::wait, 0}); }},
                          {"", "combined with itself", [](Schedule& s) { s.lanes[0][2].count = 0; }},
                          {"", "their regions are",
                           [](Schedule& s) {
                               s.lanes[0][2].count = 1;
                               s.messages[1].region = {{0, 0}, {4, 1}};
                           }},
                          {"", "which has no buffer",
                           [](Schedule& s) {
                               s.lanes[0][2].count = 1;
                               s.messages[1].buffer = -1;
                               s.messages[1].region = {{0, 0}, {1, 4}};
                           }},
                          {"", "of another item size",
                           [](Schedule& s) {
                               s.lanes[0][2].count = 1;
                               s.arrays.push_back({4, square(0, 10), square(0, 8)});
                               s.messages[1].array = 2;
                               s.messages[1].bytes = 16;
                           }},
                      });
    refused(sends,
            {
                {"", "which is a send", [](Schedule& s) { s.lanes[0][1].op = Op::post_recv; }},
                {"", "but it is a send", [](Schedule& s) { s.lanes[0][0] = {Op::combine, 0, combine_array_left}; }},
                {"", "it packs", [](Schedule& s) { s.messages[0].region = square(9, 11); }},
            });
    refused(of_parts, {
                          {"", "is a part itself or has no buffer", [](Schedule& s) { s.messages[0].buffer = -1; }},
                          {"", "which is none of them", [](Schedule& s) { s.messages[1].at = 8; }},
                          {"", "which is none of them", [](Schedule& s) { s.messages[1].send = true; }},
                          {"", "which is none of them", [](Schedule& s) { s.messages[1].buffer = 1; }},
                          {"", "which is none of them", [](Schedule& s) { s.messages[1].aggregate = -1; }},
                          {"", "its parts 32", [](Schedule& s) { s.messages[0].bytes = 40; }},
                          {"", "its parts 32", [](Schedule& s) { s.buffers[0] = 16; }},
                          {"", "which goes with another", [](Schedule& s) { s.lanes[0][1].item = 1; }},
                          {"", "which goes with another",
                           [](Schedule& s) { s.lanes[0][2] = {Op::combine, 1, combine_array_left}; }},
                          {"", "of which only parts are in memory", [](Schedule& s) { s.lanes[0][2].item = 0; }},
                          {"", "is no part of message 0",
                           [](Schedule& s) {
                               s.messages.push_back(s.messages[1]);
                               s.lanes[0][2].item = 2;
                           }},
                      });
}

TEST(Append, WhatItRefuses) {
    const auto refuses = [](const std::string& why, const std::function<void(Schedule&, Schedule&, Mapping&)>& change) {
        Schedule whole = part(), more = part();
        Mapping m{{0, 1}, {0}, 10};
        change(whole, more, m);
        const std::string text = error_of([&] { append(whole, more, m); });
        EXPECT_NE(text.find(why), std::string::npos) << why << ": " << text;
        EXPECT_EQ(text.empty(), why.empty()) << text;
    };
    refuses("", [](Schedule&, Schedule&, Mapping&) {});
    refuses("of rank 1 of 2", [](Schedule&, Schedule& more, Mapping&) { more.rank = 1; });
    refuses("of rank 0 of 3", [](Schedule&, Schedule& more, Mapping&) { more.ranks = 3; });
    refuses("repeated block", [](Schedule& whole, Schedule&, Mapping&) { whole.repeated = {{0, 1}}; });
    refuses("repeated block", [](Schedule&, Schedule& more, Mapping&) { more.repeated = {{0, 1}}; });
    refuses("1 numbers for 2 arrays", [](Schedule&, Schedule&, Mapping& m) { m.arrays = {0}; });
    refuses("array 1 is to be array 2 of 2", [](Schedule&, Schedule&, Mapping& m) { m.arrays[1] = 2; });
    refuses("array 0 is to be array -1 of 2", [](Schedule&, Schedule&, Mapping& m) { m.arrays[0] = -1; });
    refuses("2 different lanes for 1", [](Schedule&, Schedule&, Mapping& m) { m.lanes = {0, 1}; });
    refuses("1 different lanes for 1", [](Schedule&, Schedule&, Mapping& m) { m.lanes = {-1}; });
    refuses("work 3 is in both", [](Schedule&, Schedule&, Mapping& m) { m.first_number = 3; });
}

TEST(Append, WorksStandInTheOrderOfTheirNumbers) {
    Schedule whole = part();
    append(whole, part(), {{0, 1}, {0}, -10});
    ASSERT_EQ(whole.works.size(), 4u);
    for (std::size_t i = 1; i < whole.works.size(); ++i) EXPECT_LT(whole.works[i - 1].number, whole.works[i].number);
    EXPECT_EQ(whole.works[static_cast<std::size_t>(whole.tiles[0].work)].number, 0);
    EXPECT_EQ(whole.works[static_cast<std::size_t>(whole.tiles[2].work)].number, -10);
}

TEST(Describe, EachKindOfStep) {
    Schedule s = of_tasks();
    s.lanes[0].push_back({Op::signal, 0, 4});
    s.lanes[0].push_back({Op::await, 0, 4});
    const std::vector<std::string> texts = {"post_recv message 0 (receive of 32 bytes from rank 1, tag 0)",
                                            "wait message 0",
                                            "combine message 0",
                                            "task 0 (operation 0)",
                                            "signal 4",
                                            "counter 4 of lane 0",
                                            "(end of the lane)"};
    for (std::size_t i = 0; i < texts.size(); ++i)
        EXPECT_NE(describe(s, 0, i).find(texts[i]), std::string::npos) << describe(s, 0, i);
    EXPECT_NE(describe(of_a_nest(), 0, 3).find("tile"), std::string::npos);
    EXPECT_NE(error_of([&] { only_nest(s); }).find("2 works"), std::string::npos);
    s.works.pop_back();
    EXPECT_NE(error_of([&] { only_nest(s); }).find("1 works, a task"), std::string::npos);
    EXPECT_NE(error_of([&] { nest_of(s, s.tiles[1]); }).find("of work 1 of 1"), std::string::npos);
}
