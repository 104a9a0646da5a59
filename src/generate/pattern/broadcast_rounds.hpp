// Broadcast of many blocks in the least number of rounds: who sends which block when.
// J. L. Träff, "Optimal Broadcast Schedules in Logarithmic Time with Applications to Broadcast,
// All-Broadcast, Reduction and All-Reduction", arXiv:2407.18004.
#pragma once
#include <cstdint>
#include <vector>

namespace tilewave {

/// One round as one rank sees it: at most one block out and one in, at the same time.
/// -1 as rank and block: none. Ranks are counted from the root, which is 0.
struct BroadcastRound {
    int to = -1;
    std::int64_t send_block = -1;
    int from = -1;
    std::int64_t receive_block = -1;
};

/// The blocks - 1 + ceil(log2 ranks) rounds of `rank` in a broadcast of `blocks` blocks, the
/// fewest there can be; none for one rank or no block. Every rank but the root receives every
/// block exactly once, and sends only what it received in an earlier round.
/// Costs O(blocks + log³ ranks), without communication.
/// @pre ranks >= 1, 0 <= rank < ranks, blocks >= 0
/// @throws InternalError
std::vector<BroadcastRound> broadcast_rounds(int ranks, int rank, std::int64_t blocks);

}  // namespace tilewave
