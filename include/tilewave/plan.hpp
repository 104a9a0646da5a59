// Every choice that turns a nest into schedules, as one value; and the rules that pick them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tilewave/machine.hpp"
#include "tilewave/plan_choices.hpp"
#include "tilewave/problem.hpp"

namespace tilewave {

/// How a sweep is cut and ordered. Plain data; every field can be set by the user.
struct Plan {
    // Every choice with its default, and what it means: tilewave/plan_choices.hpp.
#define TILEWAVE_CHOICE(type, name, otherwise, least, text) type name = otherwise;
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE

    int lanes() const;
    /// Ranks that compute.
    int ranks() const;
    /// The order of a tile's points: (z_k of the dimensions the row keeps, in order; the sum of the two
    /// that it varies; the first of these), the last varying along a row.
    /// @pre row is empty, a unit vector e_a, or e_a - e_b (ConfigError)
    IndexMatrix order(int dims) const;
    /// Whether no point of a row depends on another.
    bool independent_rows(const SweepProblem& problem) const;
    /// Whether planes that follow each other along the third last coordinate of the order may be computed together,
    /// each a row behind the one before it.
    bool layers_together(const SweepProblem& problem) const;
    /// The most slices of a tile that leave rows long enough, so many beside each other as kernels compute at once
    /// where they depend within themselves, and so many planes as are computed in turn.
    int most_slices(const SweepProblem& problem) const;
    /// @pre grid >= 1 multiplies to at most `ranks`; factors >= 1, 1 at mapping_dim (ConfigError)
    /// @pre factors multiply to at most max_lanes, one less with a helper (ConfigError)
    /// @pre grid is 1 along every dimension that problem.may_cut() refuses (ConfigError)
    /// @pre arrays that are spread have equal extents along a dimension that is cut (ConfigError)
    /// @pre 1 <= tile <= largest block, componentwise; 1 along unit_dims (ConfigError)
    /// @pre the order of a row's points honours every dependence (ConfigError)
    /// @pre for a problem in loop order: one lane, one tile, rows along the last dimension (ConfigError)
    /// @pre skew is empty, or k < l for which problem.loops has the sum (ConfigError)
    /// @pre every number is finite and at least the least value that plan_choices.hpp gives (ConfigError)
    /// @pre aggregate is 1 with several lanes, or where ranks read what later ones compute in the same steps
    /// (ConfigError)
    void validate(const SweepProblem& problem, int ranks) const;
    std::string to_string() const;
};

/// What each rank computes beyond its block, of the points of the next one, where steps of time that go together read
/// back over the border: so ranks wait for each other once a block of steps, and for the rest each for the one before
/// it only.
struct DeepHalo {
    int along = -1;           ///< of z coordinates; -1: nothing is computed twice
    std::int64_t layers = 0;  ///< fewer with every step of a block, none in its last
    std::int64_t steps = 1;   ///< of a block
    std::int64_t end = 0;     ///< of time
    /// Layers at time `t`: blocks end with the end, so the first, which ranks begin one after another, is the short
    /// one.
    std::int64_t at(std::int64_t t) const { return along < 0 ? 0 : layers * ((end - 1 - t) % steps); }
    /// The most of all times, along each dimension of z.
    Index most(int dims) const;
};
/// That of `plan`: where one dimension is cut, tiles are whole along it, and no block is smaller than what is computed
/// of it twice.
DeepHalo deep_halo(const SweepProblem& problem, const Plan& plan);

/// Whether messages may wait for those of later tiles: no rank reads what a later one computes, or only what it
/// computed in the block of steps before.
bool may_aggregate(const SweepProblem& problem, const Plan& plan);

/// The distribution of array `a` under `plan`, with the ghosts that are read.
Layout layout(const SweepProblem& problem, const Plan& plan, int a);
/// What `rank` has of array `a` then: its block with ghosts, or the whole of a replicated one.
Box held(const SweepProblem& problem, const Plan& plan, int a, int rank);

/// How array `a` lies in the memory of `rank` under `plan`, in the array's own dimensions; one time level.
MemoryOrder memory_order(const SweepProblem& problem, const Plan& plan, int a, int rank);
/// A number for what memory_order() gives on all ranks (of very many, on some of them): equal where that is; 1 where
/// all are row-major.
std::uint64_t memory_orders(const SweepProblem& problem, const Plan& plan, int a, int ranks);

/// Whether boxes of z coordinates of array `a` are copied, by messages or from a time level to the next, and differ
/// from its own: what of them is outside the array has memory, too.
bool lies_in_boxes(const SweepProblem& problem, const Plan& plan, int a);

/// Of what `rank` holds of the arrays under `plan`: those that are spread, but where only planes of them are kept.
std::int64_t held_bytes(const SweepProblem& problem, const Plan& plan, int rank);

/// Whether the boxes that the first rank's arrays lie in have more than four times their elements, and more than 4 MB:
/// boxes of skewed loops, along a loop that is much longer than the one it is added to. On one rank row-major arrays
/// have none.
bool mostly_padding(const SweepProblem& problem, const Plan& plan);

/// Points of the largest block along k of any rank, in z coordinates.
std::int64_t largest_block(const SweepProblem& problem, const Index& grid, int k);

/// Whether `plan` keeps planes only of the arrays that problem.in_window() says: its rows and its mapping dimension
/// are those of problem.window, and no other dimension is cut.
bool uses_window(const SweepProblem& problem, const Plan& plan);

/// A row whose points are independent where those along the last dimension are not: the one with the
/// longest rows, of those that every array can be stored for (Plan::storage). Empty where there is
/// none, where the last dimension will do, or where rows would be shorter than a few vectors.
Index skewed_row(const SweepProblem& problem);

/// The row of a plan with skewed storage, or the same row the other way where a rank's block is clearly shorter along
/// the dimension that it goes down: arrays are stored over block(up) (block(up) + block(down)) points, row after row,
/// so they lie the denser.
Index row_of_blocks(const SweepProblem& problem, const Plan& plan);

/// The loops (k, l) along whose sum tiles are better cut (SweepProblem::skewed), as steps of time follow each other
/// over arrays that caches do not hold and rows go along e_k - e_l; else empty.
Index skew_for_time(const SweepProblem& problem, int ranks, int lanes, const Index& row, const Machine& machine);

/// Makes the steps of time of `plan` go together: its tiles so low that they stay in the lanes' shares of the last
/// cache, each lane with every `lanes`th step. False, and the plan as it was, where arrays fit as they are or tiles
/// would be too small.
bool block_in_time(const SweepProblem& problem, const Machine& machine, int lanes, Plan& plan);

/// The choices a user fixes; the others are picked.
struct PlanRequest {
#define TILEWAVE_CHOICE(type, name, otherwise, least, text) std::optional<type> name;
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    /// `plan` with the choices that are fixed.
    Plan apply(Plan plan) const;
    int threads = 1;           ///< lanes of a rank at most, a helper counted
    bool all_threads = false;  ///< not fewer, where the nest has work for them (planner.hpp)
};

/// The plan for `ranks` ranks: mapping along the longest dimension, the grid of least surface
/// over the others, one tile column a lane, the tile height that minimises P(z)(t + V z), and
/// for vertical grouping the slice count sqrt(alpha / t_sync_in) (athanasaki2002).
/// Pure: equal arguments give equal plans on every rank.
Plan make_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine);

/// `plan`, made for `before`, with tiles for `now`, the same nest over other bounds: as many where there were no more
/// than lanes, else of the same extents; at most a rank's block. It may still be none for `now`: see Plan::validate().
Plan fitted(const Plan& plan, const SweepProblem& before, const SweepProblem& now);

}  // namespace tilewave
