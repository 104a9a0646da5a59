// What a nest computes, before it is cut: its loops, its arrays, and which point reads and writes what.
#pragma once
#include <utility>
#include <vector>

#include "tilewave/layout.hpp"
#include "tilewave/schedule.hpp"

namespace tilewave {

/// One array of a nest.
struct NestArray {
    std::int64_t item_bytes = 4;
    bool replicated = false;  ///< read only, and whole on every rank
    Index shape = {};         ///< its own extents; empty: the problem's
    Index axes = {};          ///< the loop index of each of its dimensions; empty: all, in order
    /// Above 0: loop index 0 is time, no dimension of the array, which has this many time buffers. What a point reads d
    /// time_buffers before the one that it writes takes d + 1 of them.
    int time_buffers = 0;
    /// Levels that are there before the first step: the current one and those before it.
    int given_time_buffers() const { return time_buffers > 1 ? time_buffers - 1 : 1; }
    /// Nobody reads it after the run, so that planes of it may be all that is kept (WindowShape).
    bool window = false;
};

/// How arrays of which a run keeps only the window lie in memory: in planes of which only those are there
/// that points still read, a plane in rows of points that do not depend on each other. Plane
/// z[across] + slant z[along] holds z; rows vary z[along].
struct WindowShape {
    int along = -1, across = -1;  ///< of z coordinates; -1: such arrays are kept whole
    int slant = 0;                ///< 1: rows go along e_along - e_across, on a hyperplane
    /// From a point of a row to the next.
    Index row(int dims) const {
        Index r = Index::filled(dims, 0);
        r[along] = 1;
        if (slant) r[across] = -1;
        return r;
    }
};

/// Every point of `space` that is within `bounds` once, in the order of the loops, or in any other
/// that gives the same results. Loop indices x are those of the nest as written; `loops` turns them
/// into the coordinates z = loops x in which tiles are boxes: a unit row where a loop runs as written,
/// minus one where it runs downwards, and a skew where dependences ask for one.
struct SweepProblem {
    Index shape;  ///< extents of the arrays that are spread over ranks, one a loop index
    Box space;    ///< loop indices
    std::vector<NestArray> arrays;
    std::vector<Access> accesses;    ///< those that write first
    std::vector<Bound> bounds = {};  ///< of the loop indices
    IndexMatrix loops = {};
    bool sequential = false;  ///< dependences are not vectors: one tile, points in loop order
    WindowShape window = {};  ///< of the arrays that in_window() says
    bool once = false;        ///< no point may be computed by two ranks, though they give it one value: all points are
                              ///< reduced to a number

    /// Fills in what was left empty.
    void complete();
    /// complete(), with the loops that run downwards turned; then, where it is valid, the skew that makes tiles legal
    /// and the planes of arrays that may be kept in planes. `downwards`: one for each loop index.
    /// @throws ConfigError as validate()
    void settle(const std::vector<bool>& downwards);
    /// The same with another number of time steps, where loop index 0 is time.
    SweepProblem with_steps(std::int64_t steps) const;
    int dims() const { return shape.n; }
    bool written(int a) const;
    bool lacks(int a, int k) const;
    /// Whether the array has loop index k before an outer one: A[j, i] in loops over i, then j. Ranks are
    /// numbered along the array's own dimensions, so they cut one of the two at most.
    bool swaps(int a, int k) const;
    /// Offset of the array's first write: array coordinates minus it are the writer's loop indices.
    Index shift(int a) const;
    /// The first written array's shift along the loop indices it has: ranks cut the loops where they
    /// cut that array.
    Index origin() const;
    /// Loop indices k of part c when `parts` ranks share them; the whole range for one.
    std::pair<std::int64_t, std::int64_t> part(int k, std::int64_t parts, std::int64_t c) const;
    /// Offset of an access from the point, in z coordinates, where the array's first write is at 0.
    Index offset(const Access& access) const;
    /// Whether plain loops have computed what this access reads (if it is in the space at all).
    bool reads_new(const Access& access) const;
    /// Vectors in z coordinates from a point to one that must come later, each lexicographically
    /// positive: values (flow), reads before a write (anti), writes before a write (output), and
    /// time buffers that share a buffer.
    std::vector<Index> dependences() const;
    /// Whether ranks may have parts of the loops along k: every array that is not replicated has that
    /// dimension, of one extent and after those of outer indices, z_k is one loop index, and an array with several
    /// written places has one offset there.
    bool may_cut(int k) const;
    /// Whether planes suffice for array `a`: it is marked window, written at one place at every point, and what
    /// points read of it is computed before them, or never.
    bool in_window(int a) const;
    /// How many planes of array `a` points read or write. @pre window.along >= 0
    int window_planes(int a) const;
    /// Whether points read, beside their own place, of a level before the current one: with what is outside the space,
    /// which may have another value there than it keeps from the current level on.
    bool reads_history_beside() const;
    /// Whether a tile has one point along k: it carries a dependence that goes back along another index.
    std::vector<bool> unit_dims() const;
    /// The same nest, tiles cut along z_k + z_l in place of z_l: along a row of e_k - e_l only z_k varies then.
    /// @pre 0 <= k < l < dims, both loop indices that every spread array has (ConfigError)
    SweepProblem skewed(int k, int l) const;
    /// Whether arrays `a` and `b` have equal shape, dimensions, items and time_buffers.
    bool alike(int a, int b) const;
    /// The distribution of array `a` over `grid`, in its own dimensions, with the ghosts that accesses of it and of
    /// arrays like it need: of the points of each rank's block and `deep_halo` more of them along each dimension of z.
    Layout layout(int a, const Index& grid, const Index& deep_halo = {}) const;
    /// The box of z coordinates of a box of array `a`; along time its time_buffers from before the sweep.
    Box box_of(int a, const Box& own) const;
    /// What a point must satisfy to be computed, beside being in the box of z coordinates.
    std::vector<Bound> conditions() const;
    /// @pre shape and space of 1 to 4 dimensions (ConfigError)
    /// @pre at most max_places accesses, one that writes, those that write first (ConfigError)
    /// @pre no written array is replicated; every access names an array, stays inside it (ConfigError)
    /// @pre an array that lacks a loop index and is written is accessed at one place (ConfigError)
    /// @pre an array with time buffers has every loop index but time (ConfigError)
    /// @pre an array with time buffers is written once, at the next level and no other offset, and
    ///   reads what its time buffers still hold (ConfigError)
    void validate() const;
};

/// The least skew that makes every dependence of `problem` non-negative where its loops run as
/// `problem.loops` says: z_k += s z_l for l < k. Time is never skewed, nor an index that some array
/// which is spread over ranks lacks; dependences that are then still negative are carried by tiles of
/// one point (unit_dims).
IndexMatrix legal_skew(const SweepProblem& problem);

/// The planes for the arrays that problem.in_window() says: rows of points that do not depend on each other, along a
/// dimension that ranks can cut, and planes across the longest other one; slanted where no dimension has
/// such rows. None where a dependence goes back along some dimension.
WindowShape choose_window(const SweepProblem& problem);

}  // namespace tilewave
