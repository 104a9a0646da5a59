// Every choice that turns a nest into schedules, as one value; and the rules that pick them.
#pragma once
#include <optional>
#include <string>

#include "tilewave/engine/plan_choices.hpp"
#include "tilewave/engine/problem.hpp"
#include "tilewave/machine.hpp"

namespace tilewave {

/// How a sweep is cut and ordered. Plain data; every field can be set by the user.
struct Plan {
    // Every choice with its default, and what it means: tilewave/engine/plan_choices.hpp.
#define TILEWAVE_CHOICE(type, name, otherwise, least, text) type name = otherwise;
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE

    int lanes() const;
    /// Ranks that compute.
    int ranks() const;
    /// The order of a tile's points: first the dimensions that a row keeps, then the sum of the two that it varies,
    /// then the first of these two, which varies along a row.
    /// @pre row is empty, a unit vector e_a, or e_a - e_b (ConfigError)
    IndexMatrix order(int dims) const;
    /// Whether no point of a row depends on another.
    bool independent_rows(const SweepProblem& problem) const;
    /// Whether rows that are neighbours along the third last coordinate of the order may be interleaved, each a row
    /// behind the one before it.
    bool layers_together(const SweepProblem& problem) const;
    /// The most slices of a tile that leave long rows, as many rows as there are SIMD lanes where points of a row
    /// depend on each other, and as many rows as are interleaved (limits.hpp).
    int most_slices(const SweepProblem& problem) const;
    /// @pre grid >= 1 multiplies to at most `ranks`; factors >= 1, 1 at mapping_dim (ConfigError)
    /// @pre factors multiply to at most max_lanes, one less with a helper (ConfigError)
    /// @pre grid is 1 along every dimension that problem.may_cut() refuses (ConfigError)
    /// @pre distributed arrays have equal extents along a dimension that is cut (ConfigError)
    /// @pre 1 <= tile <= largest block, componentwise; 1 along unit_dims (ConfigError)
    /// @pre the order of a row's points honours every dependence (ConfigError)
    /// @pre for a problem in loop order: one lane, one tile, rows along the last dimension (ConfigError)
    /// @pre generator is stencil where a loop is periodic, and where it is, the points of a time step are independent,
    /// tiles and lanes do not cut time, and rows, storage, slices and aggregate are as by default (ConfigError)
    /// @pre skew is empty, or k < l for which problem.loops has the sum (ConfigError)
    /// @pre every number is finite and at least the least value that plan_choices.hpp gives (ConfigError)
    /// @pre aggregate is 1 with several lanes, or where ranks read what later ones compute in the same steps
    /// (ConfigError)
    void validate(const SweepProblem& problem, int ranks) const;
    std::string to_string() const;
    friend bool operator==(const Plan&, const Plan&) = default;
};

/// Whether schedules of a plan have tasks in place of tiles of the nest.
inline bool has_tasks(const Plan& plan) {
    return plan.generator == GeneratorKind::pivot || plan.generator == GeneratorKind::gather;
}

/// The deep halo of temporal blocking: points of the next rank's block that a rank computes redundantly. Ranks then
/// wait for each other once a temporal block, not every time step.
struct DeepHalo {
    int along = -1;           ///< dimension of z; -1: no deep halo
    std::int64_t layers = 0;  ///< points of halo for each step of a block: none in its last step, most in its first
    std::int64_t steps = 1;   ///< time steps of a block
    std::int64_t end = 0;     ///< the time at which the run ends
    /// Halo points at time `t`. The last block is whole and the first may be short, as ranks begin one after another.
    std::int64_t at(std::int64_t t) const { return along < 0 ? 0 : layers * ((end - 1 - t) % steps); }
    /// The most halo points of all times, along each dimension of z.
    Index most(int dims) const;
};
/// The deep halo of `plan`; none unless one dimension is cut, tiles are whole along it, and every block is at least as
/// large as the deep halo.
DeepHalo deep_halo(const SweepProblem& problem, const Plan& plan);

/// Whether messages may be aggregated over tiles: no rank reads what a later rank computes, or only what it computed in
/// the temporal block before.
bool may_aggregate(const SweepProblem& problem, const Plan& plan);

/// The distribution of array `a` under `plan`, with its halo.
Layout layout(const SweepProblem& problem, const Plan& plan, int a);
/// The same of the field that array `a` is, or is every so many elements of.
Layout field_layout(const SweepProblem& problem, const Plan& plan, int a);
/// What `rank` stores of array `a` under `plan`: its block and halo, or the whole of a replicated array.
Box held(const SweepProblem& problem, const Plan& plan, int a, int rank);

/// How array `a` lies in the memory of `rank` under `plan`, in the array's dimensions; one time buffer. What is
/// part of a field lies among the field's elements.
MemoryOrder memory_order(const SweepProblem& problem, const Plan& plan, int a, int rank);
/// How the field that array `a` is, or is part of, lies in the memory of `rank`.
MemoryOrder field_order(const SweepProblem& problem, const Plan& plan, int a, int rank);
/// Bytes of array `a` in the memory of `rank`: of a field that several arrays are parts of, all with the first one.
std::int64_t array_bytes(const SweepProblem& problem, const Plan& plan, int a, int rank);
/// A hash of field_order() on all ranks (on some of them where there are many); 1 where all are row-major.
std::uint64_t memory_orders(const SweepProblem& problem, const Plan& plan, int a, int ranks);

/// Whether messages or time steps copy boxes of z coordinates that are no boxes of array `a`. Its memory then covers
/// these boxes, padding included.
bool lies_in_boxes(const SweepProblem& problem, const Plan& plan, int a);

/// Bytes of distributed arrays that `rank` holds under `plan`; rolling-window arrays do not count.
std::int64_t held_bytes(const SweepProblem& problem, const Plan& plan, int rank);

/// Whether the memory of the first rank's arrays is mostly padding: more than four times their elements, and more than
/// 4 MB. This happens to boxes of skewed loops, where a long loop is added to a short one.
bool mostly_padding(const SweepProblem& problem, const Plan& plan);

/// Points of the largest block along k of any rank, in z coordinates.
std::int64_t largest_block(const SweepProblem& problem, const Index& grid, int k);

/// Whether `plan` uses rolling windows: its rows and its mapping dimension are those of problem.window, and no other
/// dimension is cut.
bool uses_window(const SweepProblem& problem, const Plan& plan);

/// The longest row of independent points that every array can be stored for (Plan::storage), where points along the
/// last dimension depend on each other. Empty where there is none, or where rows would be shorter than a few SIMD
/// vectors.
Index skewed_row(const SweepProblem& problem);

/// The row of a plan with skewed storage, turned round where a rank's block is clearly shorter along the dimension that
/// the row goes down: arrays take block(up) (block(up) + block(down)) elements, so they are then denser.
Index row_of_blocks(const SweepProblem& problem, const Plan& plan);

/// The loops (k, l) along whose sum tiles are better cut (SweepProblem::skewed): for temporal blocking with rows along
/// e_k - e_l. Empty where arrays fit the caches.
Index skew_for_time(const SweepProblem& problem, int ranks, int lanes, const Index& row, const Machine& machine);

/// Adds temporal blocking to `plan`: tiles so low that they stay in the lanes' shares of the last cache; lane l takes
/// every `lanes`th time step. False, with the plan unchanged, where arrays fit the caches or tiles would be too small.
bool block_in_time(const SweepProblem& problem, const Machine& machine, int lanes, Plan& plan);

/// The choices that a user fixes; the planner picks the others.
struct PlanRequest {
#define TILEWAVE_CHOICE(type, name, otherwise, least, text) std::optional<type> name;
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    /// `plan` with the choices that are fixed.
    Plan apply(Plan plan) const;
    /// The choices that are fixed.
    std::string to_string() const;
    friend bool operator==(const PlanRequest&, const PlanRequest&) = default;
    int threads = 1;           ///< lanes of a rank at most, a helper counted
    bool all_threads = false;  ///< not fewer, where the nest has work for them (planner.hpp)
    Planning planning = Planning::automatic;
};

/// The plan by rules for `ranks` ranks: mapping along the longest dimension, the grid of least surface over the others,
/// one column of tiles a lane, the tile height that minimises P(z)(t + V z), and for vertical grouping
/// sqrt(alpha / t_sync_in) slices (athanasaki2002). Pure: equal arguments give equal plans on every rank.
Plan make_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine);

/// `plan`, made for `before`, with tiles for `now`: the same nest over other bounds. Dimensions with no more tiles than
/// lanes keep their number of tiles, the others the tiles' extents. Plan::validate() checks whether it fits `now`.
Plan fitted(const Plan& plan, const SweepProblem& before, const SweepProblem& now);

}  // namespace tilewave
