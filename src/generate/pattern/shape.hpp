// Which boxes of which arrays a pattern moves, and the steps of its one lane.
#pragma once
#include <vector>

#include "tilewave/engine/pattern.hpp"

namespace tilewave {

/// Whether each rank has a part of the matrix: spread and multi_reduce.
inline bool has_parts(PatternKind kind) {
    return kind == PatternKind::spread || kind == PatternKind::multi_reduce;
}

/// A piece of a part: where it is given from and where it is got, as array numbers.
struct Chunk {
    std::int32_t give = 0, get = 0;
    Box box;
};

/// The coordinates: (row, column), or with dealt columns (row, round of blocks, column in the
/// round), in which each rank's part is a box, plus one for a last round that is not full.
class PatternShape {
public:
    PatternShape(const PatternProblem& problem, int rank, const PatternStrides& strides);

    const std::vector<Array>& arrays() const { return arrays_; }
    /// Part `r` whole: one or two pieces; broadcast and reduce have part 0 alone.
    std::vector<Chunk> pieces(int r) const;
    std::vector<Chunk> chunks(int r, std::int64_t chunk_bytes) const;

private:
    Box all(bool rest) const;
    Box part(int r, bool rest) const;

    const PatternProblem& problem_;
    std::vector<std::int64_t> offsets_;  // of the parts side by side
    std::int64_t full_rounds_ = 0;       // rounds of blocks that every rank has whole
    bool rest_ = false;
    std::vector<Array> arrays_;
};

/// Adds messages and steps to the one lane of a pattern's schedule.
class PatternLane {
public:
    PatternLane(Schedule& schedule, int tag) : s_(schedule), tag_(tag) { s_.lanes.resize(1); }

    /// `count` new buffers of `bytes`; the number of the first.
    int buffers(int count, std::int64_t bytes);
    /// A message; staged in `buffer` unless it can go straight from or to the array.
    int message(bool send, int peer, int array, const Box& region, int buffer, bool always_staged = false);
    /// A send of what message `other` has brought, from where it is.
    int forward(int other, int peer);
    bool staged(int message) const { return s_.messages[message].buffer >= 0; }
    void step(Op op, int item, int count = 0) { s_.lanes[0].push_back({op, item, count}); }
    void pack_and_post(int message) {
        if (staged(message)) step(Op::pack, message);
        step(Op::post_send, message);
    }
    /// From message `other`'s buffer to `array` of this rank.
    void unpack_to(int other, int array);
    /// Within this rank, through `buffer`.
    void copy(const Chunk& chunk, int buffer);

private:
    Schedule& s_;
    int tag_;
};

}  // namespace tilewave
