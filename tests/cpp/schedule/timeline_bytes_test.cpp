// Timelines as ranks send them at the end of a run.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <tuple>

#include "schedule/timeline_bytes.hpp"
#include "tilewave/error.hpp"

namespace tilewave {
namespace {

// Steps of lanes that follow each other, some of them messages; now and then what no stride foretells.
Timeline any_timeline(std::mt19937& dice, int events) {
    auto any = [&](std::int64_t lo, std::int64_t hi) {
        return std::uniform_int_distribution<std::int64_t>(lo, hi)(dice);
    };
    Timeline t;
    const double zero = static_cast<double>(any(0, 1'000'000'000)) * 1e-3;
    const auto rank = static_cast<std::int32_t>(any(0, 5000));
    std::int64_t now = 0;
    for (int i = 0; i < events; ++i) {
        Event e{rank,
                static_cast<std::int32_t>(i * 3 / events),
                i,
                static_cast<std::int32_t>(any(0, 8)),
                -1,
                -1,
                0,
                0,
                {-1, -1, -1, -1},
                -1,
                0,
                0,
                0};
        if (e.op != 0) e.send = static_cast<std::int32_t>(any(0, 1)), e.peer = 7, e.tag = 8192 + i / 5;
        for (int k = 0; k < 3; ++k)
            e.tile[k] = i * k + static_cast<std::int32_t>(
                                    any(0, 20) == 0 ? any(-2147483648LL, 2147483647LL - 3LL * events) : 0);
        e.wave = any(0, 20) == 0
                     ? any(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max())
                     : i;
        e.bytes = 256 * any(0, 2);
        e.begin_s = zero + static_cast<double>(now) * 1e-9;
        now += any(0, 100'000);
        e.end_s = zero + static_cast<double>(now) * 1e-9;
        t.events.push_back(e);
        if (e.op != 1) continue;
        const double end = e.end_s + static_cast<double>(any(-1000, 1'000'000)) * 1e-9;
        t.requests.push_back({rank, e.lane, e.peer, e.tag, e.send, 0, e.bytes, e.begin_s, end});
    }
    return t;
}

void expect_equal(const Timeline& a, const Timeline& b, std::size_t event, std::size_t request) {
    constexpr double near = 1e-9;
    ASSERT_EQ(a.events.size(), b.events.size() + event);
    ASSERT_EQ(a.requests.size(), b.requests.size() + request);
    for (std::size_t i = 0; i < b.events.size(); ++i) {
        const Event &x = a.events[i + event], &y = b.events[i];
        ASSERT_EQ(std::tie(x.rank, x.lane, x.step, x.op, x.peer, x.tag, x.send, x.slice, x.wave, x.bytes),
                  std::tie(y.rank, y.lane, y.step, y.op, y.peer, y.tag, y.send, y.slice, y.wave, y.bytes))
            << i;
        for (int k = 0; k < max_dims; ++k) ASSERT_EQ(x.tile[k], y.tile[k]) << i;
        ASSERT_NEAR(x.begin_s, y.begin_s, near);
        ASSERT_NEAR(x.end_s, y.end_s, near);
        if (i > 0) ASSERT_LE(a.events[i + event - 1].end_s, x.begin_s);
    }
    for (std::size_t i = 0; i < b.requests.size(); ++i) {
        const Request &x = a.requests[i + request], &y = b.requests[i];
        ASSERT_EQ(std::tie(x.rank, x.lane, x.peer, x.tag, x.send, x.pad, x.bytes),
                  std::tie(y.rank, y.lane, y.peer, y.tag, y.send, y.pad, y.bytes))
            << i;
        ASSERT_NEAR(x.posted_s, y.posted_s, near);
        ASSERT_NEAR(x.completed_s, y.completed_s, near);
    }
}

TEST(TimelineBytes, ComeBackAsTheyWere) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 dice(seed);
    for (int events : {0, 1, 2, 7, 500, 3000}) {
        const Timeline first = any_timeline(dice, events), second = any_timeline(dice, events / 2);
        Timeline both;
        add_timeline(timeline_bytes(first), both);
        expect_equal(both, first, 0, 0);
        const std::size_t e = both.events.size(), r = both.requests.size();
        add_timeline(timeline_bytes(second), both);
        expect_equal(both, second, e, r);
    }
}

TEST(TimelineBytes, AreFewForStepsThatRepeat) {
    Timeline t;
    for (int i = 0; i < 3000; ++i)
        t.events.push_back({1,
                            0,
                            i,
                            i % 3,
                            0,
                            8192 + i / 3,
                            i % 2,
                            0,
                            {i / 24, i % 24, 0, -1},
                            i,
                            256,
                            i * 2e-5,
                            (i + 1) * 2e-5 + i % 7 * 1e-7});
    EXPECT_LT(timeline_bytes(t).size(), t.events.size() * 12);
}

TEST(TimelineBytes, InPartAreRefused) {
    std::mt19937 dice(7);
    const std::string bytes = timeline_bytes(any_timeline(dice, 50));
    for (std::size_t n : {std::size_t{0}, std::size_t{5}, bytes.size() / 2, bytes.size() - 1}) {
        Timeline t;
        EXPECT_THROW(add_timeline(bytes.substr(0, n), t), InternalError) << n;
    }
}

}  // namespace
}  // namespace tilewave
