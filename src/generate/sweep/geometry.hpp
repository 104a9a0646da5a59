// Where each tile and each message of a sweep lies: pure functions of problem, plan and rank,
// so that a sender and a receiver, each alone, list the same messages in the same order.
#pragma once
#include <unordered_map>
#include <utility>
#include <vector>

#include "generate/copy/copy.hpp"
#include "generate/sweep/sweep.hpp"

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
    int array = 0;
    int tile = 0;  // position in the sender's order
    Box region;    // what the receiver reads of it, perhaps widened to whole rows of memory
    int tag = 0;
    std::int64_t read_at = 0;  // time of the first tile of the receiver that reads it
};

/// All boxes are of z coordinates (SweepProblem::loops).
class SweepGeometry {
public:
    SweepGeometry(const SweepProblem& problem, const Plan& plan);

    /// Array `a` as `rank` holds it.
    Array array(int a, int rank) const;
    /// The ranks that `rank` may exchange messages with, ascending: those whose blocks are no further away than some
    /// access reaches. Their number does not depend on the number of ranks.
    std::vector<int> neighbours(int rank) const;
    /// The first and the last time of a tile of any rank; the first is later where no rank has a tile.
    std::pair<std::int64_t, std::int64_t> first_and_last_time() const;
    /// The points that `rank` computes for all, and perhaps more.
    const Box& block(int rank) const { return blocks_of(rank).block; }
    /// The points that it computes, those of the deep halo among them.
    const Box& reached(int rank) const { return blocks_of(rank).reached; }
    /// The tiles of `rank` in order.
    std::vector<PlacedTile> tiles(int rank) const;
    /// Range of local tile positions that meet `region` in the block of `rank`.
    Box tiles_meeting(int rank, const Box& region) const;
    /// Whether `target` reads anything that `source` computes: only then are there faces.
    bool sends(int source, int target) const;
    /// The faces `source` sends to `target`, in the sender's tile order.
    std::vector<Face> faces(int source, const std::vector<PlacedTile>& source_tiles, int target) const;
    /// By face: its aggregate, faces of some tiles that go together (Plan::aggregate), counted from 0; -1: it goes
    /// alone. Faces of different blocks of time do not go together, nor more bytes than a message has.
    std::vector<int> aggregates(const std::vector<Face>& faces, const std::vector<PlacedTile>& source_tiles) const;
    /// Boxes of array `a` that `source` owns and `target` reads as they were before the sweep.
    std::vector<Box> initial_halo(int a, int source, int target) const;
    /// Boxes of array `a` that `source` has computed and `target` owns.
    std::vector<Box> return_to_owner(int a, int source, int target) const;
    /// Parts of a tile that lanes pipeline, along the mapping dimension.
    std::vector<Box> slices(const Box& tile) const;
    /// Boxes whose points read what `region` of array `a` holds now, in the run: each a region shifted.
    std::vector<Box> readers(int a, const Box& region) const;
    /// The same for what the memory of `region` held before it got there, for arrays whose memory
    /// holds several values in a run; else empty.
    std::vector<Box> former_readers(int a, const Box& region) const;
    /// Messages of this array go through buffers: its memory holds several values in a run.
    bool staged(int a) const;
    /// Only planes of this array are stored.
    bool in_window(int a) const { return planes_ && problem_.in_window(a); }
    /// How far back points read array `a`, along each dimension.
    Index reach(int a) const;
    const std::vector<Index>& dependences() const { return dependences_; }
    const Box& space() const { return space_; }
    const Layout& layout(int a) const { return layouts_[a]; }
    std::int64_t time_of(const Index& coord) const;
    /// Whether `peer` comes after `rank` in the order of the loops.
    bool forward(int rank, int peer) const { return lexicographically_positive(place(peer) - place(rank)); }
    Index slots() const { return slots_; }

private:
    void list_reads();
    void count_slots();
    void weigh_dimensions();
    void add_readers(int rank, std::vector<int>& result) const;
    void add_owners(int rank, std::vector<int>& result) const;
    std::int64_t end_of_rows(int rank, std::int64_t t) const;
    Box beyond_deep_halo(int a, int target, std::int64_t t) const;
    std::int64_t first_read(int a, int target, const Box& region) const;
    Box widened(int a, const Box& needed, const Array& here, const Array& there) const;
    void describe_window(int a, Array& array) const;
    struct Blocks {
        Box block, reached;
    };
    const Blocks& blocks_of(int rank) const;
    Box coords_meeting(const Box& points) const;
    Box in_array_coordinates(const Box& region) const;
    Index place(int rank) const;
    std::int64_t weight(int k) const;
    Index tiles_begin(int rank) const;
    Index first_tile(int rank) const;
    Index tile_count(int rank) const;

    const SweepProblem& problem_;
    const Plan& plan_;
    std::vector<Layout> layouts_;
    std::vector<Array> kinds_;
    Layout blocks_;
    mutable std::unordered_map<int, Blocks> seen_;  // by rank: of this rank and its neighbours
    Box space_;
    std::vector<Index> dependences_;
    std::vector<Index> offsets_;  // of the accesses, in z coordinates
    std::vector<bool> new_;       // by access: it reads what the run computes
    DeepHalo deep_halo_;
    std::vector<bool> unit_;  // by dimension: tiles have one point along it (SweepProblem::unit_dims)
    bool planes_;             // of arrays in a rolling window only planes are stored
    struct Read {
        int array;
        Index offset;
    };
    std::vector<Read> reads_;  // of what the run computes: by points; and of planes by the next column of tiles
    Index slots_, fewest_;     // tiles a dimension: room for the most of any rank, the fewest of a rank with points
    Index weights_;            // of unit dimensions, in the time of a tile; 0 of the others
    // From the first step of a temporal block to that of the next one; 0: time steps follow each other.
    std::int64_t block_time_ = 0;
};

}  // namespace tilewave
