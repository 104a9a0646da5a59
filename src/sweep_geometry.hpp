// Where each tile and each message of a sweep lies: pure functions of problem, plan and rank,
// so that a sender and a receiver, each alone, list the same messages in the same order.
#pragma once
#include <vector>

#include "tilewave/copy.hpp"
#include "tilewave/sweep.hpp"

namespace tilewave {

/// One tile of one rank. A rank's tiles are ordered by (time, coord), which every dependence
/// follows, so a lane that runs its tiles in this order cannot wait for itself.
struct PlacedTile {
    Index local;  // tile position within the rank's block
    Index coord;  // in the global tile space, where every rank has `slots` tiles a dimension
    std::int64_t time = 0;
    int lane = 0;
    Box box;
};

/// A message that carries one tile's face, or a chunk of it, to another rank.
struct Face {
    int tile = 0;  // position in the sender's order
    Box region;    // what the receiver reads of it, perhaps widened to whole rows of memory
    int tag = 0;
    std::int64_t read_at = 0;  // time of the first tile of the receiver that reads it
};

class SweepGeometry {
public:
    SweepGeometry(const SweepProblem& problem, const Plan& plan);

    const Layout& layout(int array) const { return layouts_[array]; }
    /// The points that `rank` computes.
    Box block(int rank) const;
    /// The tiles of `rank` in order.
    std::vector<PlacedTile> tiles(int rank) const;
    /// Range of local tile positions that meet `region` (global points) in the block of `rank`.
    Box tiles_meeting(int rank, const Box& region) const;
    /// The faces `source` sends to `target`, in the sender's tile order.
    std::vector<Face> faces(int source, const std::vector<PlacedTile>& source_tiles, int target) const;
    /// Boxes of array `a` that `source` owns and `target` reads as they were before the sweep.
    std::vector<Box> rim(int a, int source, int target) const;
    /// Parts of a tile that lanes pipeline, along the mapping dimension.
    std::vector<Box> slices(const Box& tile) const;
    const std::vector<Index>& dependences() const { return dependences_; }
    std::int64_t time_of(const Index& coord) const;
    Index slots() const { return slots_; }

private:
    std::int64_t first_read(int target, const Box& region) const;
    Box widened(const Box& needed, int source, int target) const;

    const SweepProblem& problem_;
    const Plan& plan_;
    std::vector<Layout> layouts_;
    std::vector<Index> dependences_;
    Grouping grouping_;
    LinearSchedule times_;
    Index slots_;
};

}  // namespace tilewave
