// Schedules of C++ programs, with lambdas as tasks: a ring on ranks as threads, and what is wrong on one rank.
#include <gtest/gtest.h>

#include "support/ranks.hpp"
#include "tilewave/tilewave.hpp"

using namespace tilewave;

namespace {

Box line(std::int64_t lo, std::int64_t hi) {
    return {{lo}, {hi}};
}

// Each rank adds what the rank before it has got to its own number; tag 0 is the first that a program may use.
Schedule ring(int rank, int ranks) {
    Schedule s;
    s.rank = rank;
    s.ranks = ranks;
    s.arrays.push_back({8, line(std::max(rank - 1, 0), rank + 1), line(rank, rank + 1)});
    const Region before{0, line(rank - 1, rank)}, mine{0, line(rank, rank + 1)};
    TaskWork task{0, {mine}, {mine}, 1};
    if (rank > 0) task.reads.push_back(before);
    s.works.push_back({rank, task});
    s.tiles.push_back({});
    s.lanes.emplace_back();
    const auto message = [&](int peer, bool send, const Box& region) {
        Message m;
        m.peer = peer;
        m.send = send;
        m.region = region;
        m.bytes = 8;
        s.messages.push_back(m);
        return static_cast<std::int32_t>(s.messages.size() - 1);
    };
    if (rank > 0) {
        const auto m = message(rank - 1, false, before.box);
        s.lanes[0].push_back({Op::post_recv, m});
        s.lanes[0].push_back({Op::wait, m});
    }
    s.lanes[0].push_back({Op::compute, 0});
    if (rank + 1 < ranks) {
        const auto m = message(rank + 1, true, mine.box);
        s.lanes[0].push_back({Op::post_send, m});
        s.lanes[0].push_back({Op::wait, m});
    }
    return s;
}

void add(const TaskCall& call) {
    auto* const to = reinterpret_cast<double*>(call.writes[0].data);
    if (call.reads.size() > 1) *to += *reinterpret_cast<const double*>(call.reads[1].data);
}

double run_ring(Context& context, const Schedule& s, const TaskFunction& task) {
    double memory[2] = {-1, -1};
    memory[context.rank() > 0] = context.rank() + 1;
    const Binding binding{reinterpret_cast<std::byte*>(memory), {8}};
    const ScheduleReport report = run_schedule(context, s, {&binding, 1}, {{&task, 1}, {}});
    EXPECT_GT(report.time_s, 0);
    EXPECT_EQ(report.timeline.events.empty(), context.rank() > 0);
    return memory[context.rank() > 0];
}

}  // namespace

TEST(RunSchedule, LambdasAsTasks) {
    for (int ranks : {1, 2, 3, 4}) {
        std::vector<Schedule> all;
        for (int r = 0; r < ranks; ++r) all.push_back(ring(r, ranks));
        ASSERT_FALSE(check(all)) << to_string(*check(all));
        for (const Schedule& s : all) EXPECT_FALSE(check_rank(s));
        const auto errors = errors_on_ranks(ranks, [&](Context& c) {
            const double n = c.rank() + 1;
            EXPECT_EQ(run_ring(c, all[static_cast<std::size_t>(c.rank())], add), n * (n + 1) / 2);
        });
        EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
    }
}

// Rank 1 sends its two numbers, rank 0 combines them with its own and keeps them in array 1.
Schedule combined(int rank) {
    Schedule s;
    s.rank = rank;
    s.ranks = 2;
    s.arrays = {{8, line(0, 2), line(0, 2), {}, true}, {8, line(0, 2), line(0, 2), {}, true}};
    s.buffers = {16};
    Message m;
    m.peer = 1 - rank;
    m.send = rank == 1;
    m.region = line(0, 2);
    m.bytes = 16;
    if (rank == 0) m.buffer = 0;
    s.messages = {m};
    if (rank == 1) {
        s.lanes = {{{Op::post_send, 0}, {Op::wait, 0}}};
        return s;
    }
    Message here = m;
    here.peer = 0;
    here.array = 1;
    s.messages.push_back(here);
    s.lanes = {{{Op::post_recv, 0}, {Op::wait, 0}, {Op::combine, 0, combine_array_left}, {Op::unpack, 1}}};
    s.results = {{1, line(0, 2), 0, {0, 1}, 5}};
    return s;
}

TEST(RunSchedule, CombineStepsHaveAnOperationForEachArray) {
    std::vector<Schedule> all{combined(0), combined(1)};
    ASSERT_FALSE(check(all)) << to_string(*check(all));
    const auto run = [&](Context& c, std::span<const Combining> combinings) {
        std::int64_t given[2] = {10 * c.rank() + 1, 2}, got[2] = {0, 0};
        const Binding bindings[] = {{reinterpret_cast<std::byte*>(given), {8}},
                                    {reinterpret_cast<std::byte*>(got), {8}}};
        run_schedule(c, all[static_cast<std::size_t>(c.rank())], bindings, {{}, {}, combinings});
        return std::pair{got[0], got[1]};
    };
    const Combining sums[] = {{Reduction::sum, Dtype::i8}, {Reduction::sum, Dtype::i8}};
    const auto none = errors_on_ranks(2, [&](Context& c) {
        const auto got = run(c, sums);
        EXPECT_EQ(got, c.rank() == 0 ? std::pair(std::int64_t{12}, std::int64_t{4})
                                     : std::pair(std::int64_t{}, std::int64_t{}));
    });
    EXPECT_EQ(none, std::vector<std::string>(2));
    for (const std::string& error : errors_on_ranks(2, [&](Context& c) { run(c, {}); }))
        EXPECT_NE(error.find("combines values of array 0, for which no operation"), std::string::npos) << error;
    all[0].lanes[0][2].count = combine_array_right;  // rank 1's values first
    ASSERT_TRUE(check(all));
    EXPECT_NE(check(all)->why.find("should hold the values of array 0 of ranks 0, 1 combined"), std::string::npos)
        << check(all)->why;
}

TEST(RunSchedule, WhatOneTaskThrowsAllRanksThrow) {
    const auto errors = errors_on_ranks(3, [](Context& c) {
        const TaskFunction throws = [&](const TaskCall& call) {
            if (c.rank() == 1) throw std::runtime_error("no such luck");
            add(call);
        };
        try {
            run_ring(c, ring(c.rank(), 3), throws);
        } catch (const KernelError& e) {
            EXPECT_EQ(std::string(e.what()), "task 1 on rank 1: no such luck");
            EXPECT_EQ(run_ring(c, ring(c.rank(), 3), add), (c.rank() + 1) * (c.rank() + 2) / 2);
            throw;
        }
    });
    EXPECT_EQ(errors, std::vector<std::string>(3, "task 1 on rank 1: no such luck"));
}

TEST(RunSchedule, AMistakeOnOneRankIsAnErrorOfAll) {
    const auto refused = [](auto change, const std::string& words) {
        const auto errors = errors_on_ranks(3, [&](Context& c) {
            Schedule s = ring(c.rank(), 3);
            if (c.rank() == 1) change(s);
            run_ring(c, s, add);
        });
        for (const std::string& e : errors) EXPECT_NE(e.find(words), std::string::npos) << e;
    };
    refused([](Schedule& s) { s.works[0].task()->writes[0].box.hi = {7}; }, "outside its storage");
    refused([](Schedule& s) { s.works[0].task()->operation = 3; }, "operation 3");
    refused([](Schedule& s) { s.lanes[0].pop_back(); }, "never waited for");
    refused([](Schedule& s) { s.ranks = 2; }, "of 2 ranks was given to rank 1 of 3");
    refused([](Schedule& s) { s.messages[1].tag = 5; }, "from rank 1 to rank 2 do not meet");
    refused([](Schedule& s) { s.lanes[0][3].op = Op::post_recv; }, "which is a send");
    refused([](Schedule& s) { s.messages[0].peer = 1; }, "has this rank, 1, as its peer");
    refused([](Schedule& s) { s.lanes[0].push_back({Op::wait, 1}); }, "waited for twice");
}
