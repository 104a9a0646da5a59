// Broadcasts in the least number of rounds: all ranks' rounds are played together.
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>

#include "generate/pattern/broadcast_rounds.hpp"
#include "tilewave/error.hpp"

namespace tilewave {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// The first rule that a broadcast breaks; empty: none.
std::string first_fault(int ranks, std::int64_t blocks) {
    const std::int64_t steps = ranks == 1 || blocks == 0 ? 0 : blocks - 1 + std::bit_width(unsigned(ranks - 1));
    std::vector<std::vector<BroadcastRound>> rounds;
    for (int r = 0; r < ranks; ++r) {
        rounds.push_back(broadcast_rounds(ranks, r, blocks));
        if (std::int64_t(rounds[r].size()) != steps) return "not the least number of rounds";
    }
    // The round after which a rank has a block; the root has all from the beginning.
    std::vector<std::vector<std::int64_t>> since(ranks, std::vector<std::int64_t>(blocks, never));
    since[0].assign(blocks, -1);
    for (std::int64_t i = 0; i < steps; ++i)
        for (int r = 0; r < ranks; ++r) {
            const std::string where = ", round " + std::to_string(i) + ", rank " + std::to_string(r);
            const auto& [to, send, from, receive] = rounds[r][i];
            if ((to < 0) != (send < 0) || (from < 0) != (receive < 0)) return "a rank without a block" + where;
            if (to >= 0) {
                if (to >= ranks || send >= blocks) return "send out of range" + where;
                if (since[r][send] >= i) return "sends what it does not have yet" + where;
                if (rounds[to][i].from != r || rounds[to][i].receive_block != send)
                    return "send without its receive" + where;
            }
            if (from >= 0) {
                if (from >= ranks || receive >= blocks) return "receive out of range" + where;
                if (since[r][receive] != never) return "receives a block again" + where;
                if (rounds[from][i].to != r || rounds[from][i].send_block != receive)
                    return "receive without its send" + where;
                since[r][receive] = i;
            }
        }
    for (int r = 0; r < ranks; ++r)
        for (const std::int64_t i : since[r])
            if (i == never) return "rank " + std::to_string(r) + " misses a block";
    return "";
}

TEST(BroadcastRounds, reach_every_rank_once_for_up_to_200_ranks) {
    for (int ranks = 1; ranks <= 200; ++ranks)
        for (const std::int64_t blocks : {0, 1, 2, 3, 5, 8, 17, 64})
            ASSERT_EQ(first_fault(ranks, blocks), "") << ranks << " ranks, " << blocks << " blocks";
}

TEST(BroadcastRounds, reach_every_rank_once_for_many_ranks) {
    for (const int ranks : {255, 256, 257, 1000, 1023, 1025, 4096})
        for (const std::int64_t blocks : {1, 8, 17})
            ASSERT_EQ(first_fault(ranks, blocks), "") << ranks << " ranks, " << blocks << " blocks";
}

// Every remainder of blocks by the rounds of a phase: the rounds left out at the beginning differ.
TEST(BroadcastRounds, reach_every_rank_once_whatever_the_number_of_blocks) {
    for (const int ranks : {2, 3, 5, 17, 36, 100})
        for (std::int64_t blocks = 1; blocks <= 30; ++blocks)
            ASSERT_EQ(first_fault(ranks, blocks), "") << ranks << " ranks, " << blocks << " blocks";
}

TEST(BroadcastRounds, are_those_of_the_example_with_17_ranks) {
    // The receive schedule of rank 16 is (-5, -2, -3, -1, 1); the second phase adds 5, block 6 is sent as 5.
    std::vector<std::int64_t> received;
    for (const BroadcastRound& round : broadcast_rounds(17, 16, 6)) received.push_back(round.receive_block);
    EXPECT_EQ(received, (std::vector<std::int64_t>{-1, -1, -1, -1, 1, 0, 3, 2, 4, 5}));
}

TEST(BroadcastRounds, agree_between_neighbours_among_all_ranks_that_int_holds) {
    const int ranks = std::numeric_limits<int>::max();
    for (const int rank : {0, 1, 1 << 30, ranks / 3, ranks - 1}) {
        const auto rounds = broadcast_rounds(ranks, rank, 40);
        ASSERT_EQ(rounds.size(), 39u + 31u);
        for (std::size_t i = 0; i < rounds.size(); ++i) {
            if (rounds[i].to < 0) continue;
            const BroadcastRound other = broadcast_rounds(ranks, rounds[i].to, 40)[i];
            EXPECT_EQ(other.from, rank);
            EXPECT_EQ(other.receive_block, rounds[i].send_block);
        }
    }
}

TEST(BroadcastRounds, refuse_ranks_and_blocks_that_are_none) {
    EXPECT_THROW(broadcast_rounds(0, 0, 1), InternalError);
    EXPECT_THROW(broadcast_rounds(4, -1, 1), InternalError);
    EXPECT_THROW(broadcast_rounds(4, 4, 1), InternalError);
    EXPECT_THROW(broadcast_rounds(4, 0, -1), InternalError);
}

}  // namespace
}  // namespace tilewave
