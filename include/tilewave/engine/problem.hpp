// What a nest computes, before it is cut: its loops, its arrays, and which point reads and writes what.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "tilewave/engine/fast_paths.hpp"
#include "tilewave/engine/layout.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// The least halo before and behind a block, along an array's dimensions; empty: none is asked for. `wraps`: 1 for
/// dimensions along which it goes on beyond the array's ends; empty: it does along none.
struct LeastHalo {
    Index lo = {}, hi = {}, wraps = {};
    friend bool operator==(const LeastHalo&, const LeastHalo&) = default;
};

/// One array of a nest.
struct NestArray {
    std::int64_t item_bytes = 4;
    bool replicated = false;  ///< read only, and whole on every rank
    Index shape = {};         ///< its extents; empty: the problem's
    Index axes = {};          ///< the loop index of each of its dimensions; empty: all, in order
    /// Above 0: loop index 0 is time, no dimension of the array, which has this many time buffers. What a point reads d
    /// time_buffers before the one that it writes takes d + 1 of them.
    int time_buffers = 0;
    /// Time buffers that have values before the first step.
    int given_time_buffers() const { return time_buffers > 1 ? time_buffers - 1 : 1; }
    /// The array is not read after the run: a rolling window of it is enough (WindowShape).
    bool window = false;
    LeastHalo least_halo = {};  ///< in the array's dimensions; of a part: the field's
    /// Its blocks are those of the loops also where it has other extents: the last block has what is left.
    bool aligned = false;
    /// Where it is every scale-th element of a field, from `residue` on, as F[2*i+1] reads F: these, by dimension of
    /// the array, and the field's extents. Empty: it is the whole field.
    Index scale = {}, residue = {}, field_shape = {};
    int field = -1;  ///< the first array of the problem that is part of the same field; -1: none but itself
    /// How the field that it is, or is part of, is cut along each of its dimensions; empty: as the loops are.
    std::vector<Cut> cuts = {};
    int history = 0;  ///< earlier time steps that a run leaves, beside the last one
};

/// What a place of a nest with a pivot is in step k of its loops k, i, j: the point's element [i, j] of an array that
/// is written, or its elements [k, j], [i, k] and [k, k]; or an element of an array that is only read.
enum class PivotRead : std::uint8_t { point, row, column, corner, operand };

/// A nest: every point of `space` within `bounds`, once, in the order of the loops, or in another order with the same
/// results.
///
/// Loop indices x are those of the nest as written. Tiles are boxes of the coordinates z = loops x: row k of `loops` is
/// a unit vector where loop k runs as written, its negative where it runs downwards, and a skew where dependences need
/// one.
struct SweepProblem {
    Index shape;  ///< extents of the distributed arrays, one for each loop index
    Box space;    ///< of loop indices
    std::vector<NestArray> arrays;
    std::vector<Access> accesses;    ///< writes come first
    std::vector<Bound> bounds = {};  ///< of loop indices
    IndexMatrix loops = {};
    bool sequential = false;  ///< dependences are not constant vectors: one tile, points in loop order
    WindowShape window = {};  ///< of arrays for which in_window() holds
    bool once = false;        ///< points update elements in any order: none is computed again in a halo
    Index periodic = {};      ///< 1 for loop indices along which subscripts wrap, 0 for others; empty: none wraps
    /// How the elements at points + origin() are cut along each loop index; empty: into even blocks of the shape.
    std::vector<Cut> cuts = {};
    /// In proportion to which ranks have points, where nothing is in `cuts`; empty: even blocks.
    Weights weights = {};
    /// By access: whether no point ever writes the element that it reads, as a condition on the indices excludes that;
    /// empty: of none.
    std::vector<bool> never_written = {};
    /// By access, where loop 0 is a pivot: its step k reads row k and column k of what points write. Empty: it is none.
    std::vector<PivotRead> pivots = {};
    /// By access: whether loops inside the body read all elements along the last loop; empty: of none.
    std::vector<bool> wholes = {};
    /// The loop whose steps may be gathered: a step reads of what is written nothing but what earlier steps have
    /// written, along whole axes, too. -1: there is none. See gathered().
    int gathers = -1;
    PathsOff paths_off = 0;  ///< fast paths that plans, schedules and kernels of it do without

    /// The extent after which subscripts wrap along loop index k; 0: they do not.
    std::int64_t period(int k) const { return periodic.n > 0 && periodic[k] ? shape[k] : 0; }
    bool wraps() const {
        return std::ranges::any_of(periodic, [](auto p) { return p != 0; });
    }

    /// Fills in members that were left empty.
    void complete();
    /// complete(), then reverses the loops that run `downwards` (one for each loop index), and picks the skew that
    /// makes tiles legal and the shape of rolling windows.
    /// @throws ConfigError as validate()
    void normalize_loops(const std::vector<bool>& downwards);
    /// The same nest with its steps gathered, not in the order of its loops. @pre gathers >= 0
    SweepProblem gathered() const;
    /// Whether a point reads of what is written elements of other indices along loop k.
    bool reads_aside(int k) const;
    bool is_gathered() const { return gathers >= 0 && !sequential; }
    /// The same with another number of time steps, where loop index 0 is time.
    SweepProblem with_steps(std::int64_t steps) const;
    int dims() const { return shape.n; }
    bool written(int a) const;
    bool lacks(int a, int k) const;
    /// Whether loop index k comes before an outer one in the array: A[j, i] in loops over i, then j. Ranks are numbered
    /// along the array's dimensions, so the grid may cut only one of the two.
    bool swaps(int a, int k) const;
    /// Whether some array is every so many elements of a field: loops are not skewed then.
    bool has_parts_of_fields() const;
    /// Whether the loops are skewed though some array is: elements that are some apart are no box of skewed loops.
    bool skews_parts_of_fields() const;
    /// Offset of the array's first write: the writer's loop indices are array coordinates minus this. Of a part with
    /// time buffers that no point writes: of the time step that a point computes.
    Index shift(int a) const;
    /// The access whose element of a point says whose the point is along loop k: the first one with that index, of an
    /// array that is spread over the ranks if there is one; -1: none has it.
    int owner(int k) const;
    /// The offsets of the owners: the grid cuts the loops where it cuts their arrays.
    Index origin() const;
    /// Who has which elements at points + origin().
    Layout blocks(const Index& grid) const;
    /// The same nest with points in proportion to `ranks` weights, or with even blocks where there are none.
    /// @pre a weight from 1 to most_weight for each rank, and no array has blocks of its own (ConfigError)
    SweepProblem weighted(const Weights& weights, int ranks) const;
    /// Cuts the loops as array `a` is cut, whose element at `offset` belongs to a point.
    /// @pre the array has cuts
    void follow(int a, const Index& offset);
    /// The range of loop index k of block c of blocks(); one block has the whole range.
    std::pair<std::int64_t, std::int64_t> block_range(const Layout& blocks, int k, std::int64_t c) const;
    /// The blocks of loop index k that have points, [first, last + 1), of blocks().
    std::pair<std::int64_t, std::int64_t> blocks_with_points(const Layout& blocks, int k) const;
    /// How many points blocks of loop index k of blocks() have; costs O(1) where blocks are even.
    struct BlockExtents {
        std::int64_t least = 0;   ///< of all blocks, perhaps 0
        std::int64_t fewest = 0;  ///< of the blocks that have points; 0: there is none
        std::int64_t most = 0;
    };
    BlockExtents block_extents(const Layout& blocks, int k) const;
    /// Offset of an access from the point in z coordinates; the array's first write is at 0.
    Index offset(const Access& access) const;
    /// Whether plain loops have computed the element before this access reads it.
    bool reads_new(const Access& access) const;
    /// Dependence vectors in z coordinates, from a point to one that must come later; each is lexicographically
    /// positive. Flow, anti and output dependences, and the reuse of time buffers.
    std::vector<Index> dependences() const;
    /// The same without those that hold only if every point writes: what a point of a row needs of another one. Tiles
    /// keep to dependences(), as points that do not write store what was there.
    std::vector<Index> dependences_of_values() const;
    /// Whether the grid may cut the loops along k. Then z_k is one loop index, every distributed array has that
    /// dimension, with one extent and after those of outer indices, and an array with several writes has one offset
    /// there.
    bool may_cut(int k) const;
    /// Whether a rolling window is enough for array `a`: it is marked so, every point writes it at one place, and
    /// points read of it only elements that are computed before them, or never.
    bool in_window(int a) const;
    /// Hyperplanes of array `a` that a point reads or writes. @pre window.along >= 0
    int window_planes(int a) const;
    /// Whether points read of an earlier time step what others write, or none. Elements outside the space may then have
    /// other values than they keep from the current time step on.
    bool reads_history_of_neighbours() const;
    /// Whether tiles have one point along k: it carries a dependence that goes back along another index.
    std::vector<bool> unit_dims() const;
    /// The same nest with tiles that are cut along z_k + z_l instead of z_l: a row along e_k - e_l then varies z_k
    /// only.
    /// @pre 0 <= k < l < dims, both loop indices that every distributed array has (ConfigError)
    SweepProblem skewed(int k, int l) const;
    /// Whether arrays `a` and `b` have equal shape, dimensions, item size and time buffers.
    bool interchangeable(int a, int b) const;
    /// The distribution of array `a` over `grid`, in its dimensions, with the halo that its accesses and those of
    /// arrays like it need. `deep_halo`: points along each dimension of z that a rank computes beyond the end of its
    /// block; `before`: the same before its beginning.
    Layout layout(int a, const Index& grid, const Index& deep_halo = {}, const Index& before = {}) const;
    /// The distribution of the field that array `a` is, or is part of: blocks and halos hold those of its parts.
    Layout field_layout(int a, const Index& grid, const Index& deep_halo = {}, const Index& before = {}) const;
    /// The box of z coordinates of a box of array `a`; along time the steps that its buffers hold before the run.
    Box box_of(int a, const Box& elements) const;
    /// The bounds in z coordinates: points of the box that violate one are not computed.
    std::vector<Bound> conditions() const;
    /// @pre shape and space of 1 to max_dims dimensions (ConfigError)
    /// @pre at most max_places accesses, one that writes, those that write first (ConfigError)
    /// @pre no written array is replicated; every access names an array, stays inside it (ConfigError)
    /// @pre an array that lacks a loop index and is written is accessed at one place (ConfigError)
    /// @pre an array with time buffers has every loop index but time (ConfigError)
    /// @pre arrays have equal extents along a periodic loop index, which is not time; a field has as many times the
    ///   extent of its parts as they leave elements out (ConfigError)
    /// @pre an array with time buffers is written at the next time step and no other offset; reads
    ///   are of time steps that its buffers still hold (ConfigError)
    void validate() const;

private:
    std::vector<Index> dependences_without(const std::vector<bool>& left_out) const;
    std::vector<Cut> loop_cuts(const Index& grid) const;
    std::vector<Cut> cuts_of(const NestArray& array, const Index& grid, bool field) const;
    std::pair<std::int64_t, std::int64_t> most_beyond(const Layout& layout, int m, const Layout& blocks, int k) const;
};

/// The least skew z_k += s z_l, l < k, that makes every dependence of `problem` non-negative, on top of problem.loops.
/// Time is never skewed, nor an index that a distributed array lacks. Dependences that are still negative then are
/// carried by tiles of one point (unit_dims).
IndexMatrix legal_skew(const SweepProblem& problem);

/// The shape of rolling windows: rows of independent points along a dimension that the grid can cut, hyperplanes across
/// the longest other dimension; slanted where no dimension has such rows. None where a dependence goes back along some
/// dimension.
WindowShape choose_window(const SweepProblem& problem);

}  // namespace tilewave
