// Ranks that agree on errors, and that wait for each other in vain.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "context/agreement.hpp"
#include "execute/executor.hpp"
#include "support/ranks.hpp"

using namespace tilewave;

TEST(Agree, TheLowestFailingRankSpeaksForAll) {
    for (int bad = 0; bad < 3; ++bad) {
        std::atomic<int> caught{0};
        on_ranks(3, [&](Context& context) {
            RankStatus status;
            if (context.rank() >= bad)
                status = {RankStatus::Kind::kernel, "rank " + std::to_string(context.rank()), ""};
            try {
                agree(context, status);
            } catch (const KernelError& e) {
                EXPECT_EQ(std::string(e.what()), "rank " + std::to_string(bad));
                ++caught;
            }
        });
        EXPECT_EQ(caught, 3);
    }
}

TEST(Agree, RanksThatCallDifferentFunctionsAllLearnOfItAndGoOn) {
    for (int ranks : {2, 3, 6}) {
        std::atomic<int> caught{0}, went_on{0};
        on_ranks(ranks, [&](Context& context) {
            for (int odd = 0; odd < ranks; ++odd) {
                RankStatus status;
                status.caller = {context.rank() == odd ? "one" : "other", "here:" + std::to_string(context.rank())};
                status.description = std::string(static_cast<std::size_t>(200 * context.rank()), 'x');
                try {
                    agree(context, status);
                } catch (const ConfigError& e) {
                    const std::string text = e.what();
                    // Two ranks that differ, the one that does and another.
                    const std::string line = "here:" + std::to_string(odd);
                    caught += text.find("different functions: rank ") != text.npos && text.find(" one") != text.npos &&
                              text.find(" other") != text.npos && text.find(line) != text.npos;
                }
                status = {};
                status.prepared = 7;
                went_on += agree(context, status);
            }
        });
        EXPECT_EQ(caught, ranks * ranks);
        EXPECT_EQ(went_on, ranks * ranks);
    }
}

TEST(Agree, ARankThatHasEndedIsNotWaitedFor) {
    for (int ranks : {2, 3, 5})
        for (int gone = 0; gone < ranks; ++gone) {
            std::atomic<int> caught{0};
            on_ranks(ranks, [&](Context& context) {
                if (context.rank() == gone) return context.end();
                for (int call = 0; call < 2; ++call) {
                    RankStatus status;
                    status.caller = {"one", "here"};
                    try {
                        agree(context, status);
                    } catch (const MpiError& e) {
                        caught += e.what() == "rank " + std::to_string(gone) + " has ended; rank " +
                                                  std::to_string(context.rank()) + " calls one, here";
                    }
                }
                EXPECT_EQ(context.ended(), gone);
            });
            EXPECT_EQ(caught, 2 * (ranks - 1));
        }
}

TEST(Executor, AStallIsReportedWithRankLaneAndMessage) {
    // Rank 1 answers only after rank 0 has been told that it waits.
    std::atomic<bool> told{false};
    std::mutex lock;
    std::string report;
    on_ranks(2, [&](Context& context) {
        const Layout whole({4}, {1});
        Schedule s;
        s.rank = context.rank();
        s.ranks = 2;
        s.arrays = {{8, whole.whole(), whole.whole()}};
        Message m;
        m.peer = 1 - context.rank();
        m.tag = 5;
        m.send = context.rank() == 1;
        m.region = whole.whole();
        m.bytes = 32;
        s.messages = {m};
        s.lanes = {{{m.send ? Op::post_send : Op::post_recv, 0, 0}, {Op::wait, 0, 0}}};
        double data[4] = {1, 2, 3, 4};
        const Binding b[] = {{reinterpret_cast<std::byte*>(data), Index{8}}};
        ExecuteOptions options;
        options.stall_s = 0.05;
        options.stalled = [&](const std::string& text) {
            std::scoped_lock guard(lock);
            report = text;
            told = true;
        };
        if (context.rank() == 1)
            while (!told) std::this_thread::yield();
        execute(s, b, Programs{}, context.transport(), context.lanes(), options);
    });
    EXPECT_NE(report.find("rank 0, lane 0, step 1: wait message 0 (receive of 32 bytes from rank 1, tag 5)"),
              std::string::npos)
        << report;
}
