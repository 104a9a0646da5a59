// Lanes: what a body throws on any of them reaches the caller, and the lanes go on.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "execute/lanes/lanes.hpp"

using namespace tilewave;

TEST(Lanes, WhatALaneThrowsReachesTheCallerWhenAllHaveReturned) {
    Lanes lanes;
    for (int failing = 0; failing < 4; ++failing) {
        std::atomic<int> returned{0};
        const auto body = [&](int lane) {
            if (lane == failing) throw std::runtime_error("lane " + std::to_string(lane));
            ++returned;
        };
        try {
            lanes.run(4, body);
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& e) {
            EXPECT_EQ(e.what(), "lane " + std::to_string(failing));
        }
        EXPECT_EQ(returned, 3);
        std::atomic<int> sum{0};
        lanes.run(4, [&](int lane) { sum += lane; });
        EXPECT_EQ(sum, 6);
    }
}

TEST(Lanes, OneErrorWhereAllFail) {
    Lanes lanes;
    for (int turn = 0; turn < 50; ++turn)
        EXPECT_THROW(lanes.run(3, [](int) { throw std::bad_alloc(); }), std::bad_alloc);
    int runs = 0;
    lanes.run(1, [&](int) { ++runs; });
    EXPECT_EQ(runs, 1);
}
