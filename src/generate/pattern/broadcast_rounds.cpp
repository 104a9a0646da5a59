#include "generate/pattern/broadcast_rounds.hpp"

#include <algorithm>
#include <bit>

#include "tilewave/error.hpp"

namespace tilewave {
namespace {

using Integers = std::vector<std::int64_t>;

// Rounds come in phases of q = ceil(log2 ranks). In round k of each phase every rank r sends to
// r + skip[k] and receives from r - skip[k], modulo ranks. After round k of the first phase every
// rank below skip[k+1] <= 2·skip[k] has one block, its base block; after q rounds all ranks have.

/// skip[q] = ranks, and each skip below is half of the next one, rounded up; skip[0] = 1.
Integers skips_of(int ranks) {
    const int q = std::bit_width(unsigned(ranks - 1));
    Integers skip(q + 1, ranks);
    for (int k = q; k > 0; --k) skip[k - 1] = (skip[k] + 1) / 2;
    return skip;
}

/// Where a walk from the root over ever smaller skips came to, and the last skip it took: the base block of that rank.
struct Walk {
    std::int64_t rank = 0;
    int last = -1;
};

/// The largest free skips first, never beyond `high`, until the walk is beyond `low`.
Walk walk(const Integers& skip, const std::vector<bool>& free, std::int64_t low, std::int64_t high) {
    Walk w;
    for (int e = int(skip.size()) - 1; e >= 0 && w.rank <= low; --e)
        if (free[e] && w.rank + skip[e] <= high) w = {w.rank + skip[e], e};
    ensure(w.last >= 0, "no block left for a round of a broadcast");
    return w;
}

/// What `rank` > 0 receives in round k of a phase, counted from the first block of the phase:
/// its base block once, and for the rest -1, ..., -q without the base block's number in the phase
/// before, so that every block comes once. Every phase adds q.
///
/// The block of round k is the base block of a rank from rank - skip[k+1] to rank - skip[k]: of the
/// first that a walk meets there which leaves out the blocks of rounds before. That its sender has
/// it by then is the paper's theorem for its depth-first search (O(q) in all); a walk from the root
/// in each round (O(q²)) finds the same blocks: compared and checked for every rank of up to 6000
/// ranks, of 19 larger numbers of ranks up to 1.4 million, and for 3 million random pairs below 2^31.
Integers receive_schedule(const Integers& skip, std::int64_t rank) {
    const int q = int(skip.size()) - 1;
    std::vector<bool> free(q + 1, true);
    const int base = walk(skip, free, rank - 1, rank).last;
    free[base] = false;
    const std::int64_t beyond = rank + skip[q];  // `rank` once round the ring: differences stay positive
    Integers blocks(q);
    std::int64_t nearest = beyond;
    for (int k = 0; k < q; ++k) {
        const Walk w = walk(skip, free, beyond - skip[k + 1], std::min(beyond - skip[k], nearest - 1));
        free[w.last] = false;
        nearest = w.rank;
        blocks[k] = w.last == q ? base : w.last - q;  // q: the root itself, with a block of this phase
    }
    return blocks;
}

}  // namespace

std::vector<BroadcastRound> broadcast_rounds(int ranks, int rank, std::int64_t blocks) {
    ensure(ranks >= 1, "a broadcast needs a rank");
    ensure(0 <= rank && rank < ranks, "the rank of a broadcast is not one of its ranks");
    ensure(blocks >= 0, "a broadcast of less than no blocks");
    if (ranks == 1 || blocks == 0) return {};

    const Integers skip = skips_of(ranks);
    const int q = int(skip.size()) - 1;
    const std::int64_t last = blocks - 1;
    // The last phase begins at block `last`. So only its base block lies at or beyond `last`, for every rank: sent as
    // `last`, it is the one time that the rank gets that block. Counting back, the first phase begins `early` blocks
    // before block 0; its first `early` rounds have nothing to send and are left out.
    const std::int64_t early = (q - last % q) % q;

    struct Peer {
        int to, from;
        std::int64_t send, receive;
    };
    std::vector<Peer> peers(q);
    const Integers received = rank > 0 ? receive_schedule(skip, rank) : Integers(q);
    for (int k = 0; k < q; ++k) {
        const int to = int((rank + skip[k]) % ranks), from = int((rank - skip[k] + ranks) % ranks);
        peers[k] = {to, from, to > 0 ? receive_schedule(skip, to)[k] : 0, received[k]};
    }

    std::vector<BroadcastRound> rounds(last + q);
    for (std::int64_t i = 0; i < last + q; ++i) {
        const std::int64_t k = (i + early) % q, phase_begin = i - k;
        const Peer& p = peers[k];
        // The root needs no block. A negative block belongs to a time before the broadcast.
        if (p.to > 0 && p.send + phase_begin >= 0) {
            rounds[i].to = p.to;
            rounds[i].send_block = std::min(p.send + phase_begin, last);
        }
        if (rank > 0 && p.receive + phase_begin >= 0) {
            rounds[i].from = p.from;
            rounds[i].receive_block = std::min(p.receive + phase_begin, last);
        }
    }
    return rounds;
}

}  // namespace tilewave
