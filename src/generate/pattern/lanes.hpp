// The lanes of each pattern; every function writes the steps of one rank.
#pragma once
#include <vector>

#include "generate/pattern/shape.hpp"

namespace tilewave {

/// Broadcast along any tree (a ring is a tree of one child each): chunk by chunk from `parent`
/// (-1: this is the root) to `children`, forwarded before it is copied out.
void relay(PatternLane& lane, const std::vector<Chunk>& chunks, int parent, const std::vector<int>& children,
           int buffers, std::int64_t buffer_bytes);

/// Reduce along the reverse tree: chunks from `children`, joined, on to `parent` (-1: into the
/// result). this_rank_first: its values stand left of its children's.
void collect(PatternLane& lane, const std::vector<Chunk>& chunks, int parent, const std::vector<int>& children,
             bool this_rank_first, int buffers, std::int64_t buffer_bytes);

/// Broadcast in the least number of rounds.
void exchange_rounds(PatternLane& lane, const std::vector<Chunk>& chunks, int rank, int ranks, int root, int buffers,
                     std::int64_t buffer_bytes);

/// Every part around the ring: copied out (spread), or joined with this rank's until it
/// comes home (multi_reduce). parts[r]: the chunks of part r.
void shift(PatternLane& lane, const std::vector<std::vector<Chunk>>& parts, int rank, bool reduce, int buffers,
           std::int64_t buffer_bytes);

/// The same result with every rank sending to every other: one latency, p - 1 messages at once.
void exchange_all(PatternLane& lane, const std::vector<std::vector<Chunk>>& parts, int rank, bool reduce, int buffers,
                  std::int64_t buffer_bytes);

}  // namespace tilewave
