// The rate of a body for plans whose tiles are not those that it was measured on.
#pragma once
#include <span>
#include <vector>

#include "plan/nests/planner.hpp"

namespace tilewave {

/// What a plan's tiles find in the caches: plans of one class have comparable rates.
struct TileClass {
    bool together = false;  ///< time steps go together
    int level = 0;          ///< the cache that holds what a tile's points use again: 0 to 2; 3: none does
    int steps = 0;          ///< how many of these, by powers of two: what is fetched from memory is as much less
    int rows = 0;           ///< length of its rows: less than a vector or two, some vectors, more, so many that
                            ///< their ends do not count
    bool few_rows = false;  ///< fewer next to each other than kernels compute together
    /// Of steps that go together: what of a tile is contiguous in memory is less than a page, so that each row of it
    /// begins with data that was not prefetched. 7-point heat, 256³ floats, blocks of 8 steps: tiles (1, 1, 254, 254)
    /// 112 ms, (1, 254, 1, 254) 264.
    bool scattered = false;
    /// Of steps that go together beyond the cache of one core: the bytes of their tiles, by powers of two. How much of
    /// the last cache a CPU really has is known only by measuring: other machines on the same chip take their share.
    int bytes = 0;
    /// Where the arrays of a rank lie, from which tiles fetch what they use first: 0: the caches of its cores; then by
    /// powers of two of the last cache; of steps that go together only 1 or, beyond that cache, 4.
    int arrays = 0;
    bool operator==(const TileClass&) const = default;
};

/// Rates of a body by plan, from those that were measured, on arrays of any shape. A class of tiles that nobody has
/// measured has the rate of the nearest one, with what memory takes more or less, and what is hoped or feared.
class PlanRates {
public:
    /// @pre at least one rate; problem, machine and rates outlive this (not checked)
    PlanRates(const SweepProblem& problem, const Machine& machine, std::span<const MeasuredRate> rates,
              Unmeasured unmeasured = Unmeasured::hoped);

    /// With this plan's lanes and tiles: fewer lanes share the memory, and flat tiles fetch more of what others have
    /// computed.
    KernelRate of(const Plan& plan) const;
    /// Whether tiles of its class were measured, with as many lanes or more.
    bool measured(const Plan& plan) const;
    /// The same, or of shorter rows, or, where nothing was measured on arrays that lie on this level of memory, on any.
    bool known(const Plan& plan) const;
    /// TileClass::arrays of a rate.
    int level_of(const MeasuredRate& m) const { return tile_class(case_of(m)).arrays; }
    /// The rate that of() begins with.
    const MeasuredRate& nearest(const Plan& plan) const;
    /// Bytes that points of a tile use again: two layers of the dimension that its points vary last. 0 where that is a
    /// row.
    double working_set(const Plan& plan) const;
    /// Bytes of a working set that each cache is taken to hold, smallest first: half of the cache.
    const std::vector<double>& cache_sizes() const { return cache_sizes_; }
    TileClass tile_class(const Plan& plan) const { return tile_class({plan, extents_}); }

private:
    // A plan for loops of these extents.
    struct Case {
        const Plan& plan;
        const Index& extents;
        std::int64_t block(int k) const { return ceil_div(extents[k], plan.grid[k]); }
        std::int64_t share(int k) const { return std::max<std::int64_t>(ceil_div(block(k), plan.factors[k]), 1); }
    };
    Case case_of(const MeasuredRate& m) const { return {m.plan, m.extents.n ? m.extents : extents_}; }
    TileClass tile_class(const Case& c) const;
    double fetched_s(const Case& c) const;
    double streamed_s(const Case& c) const;
    double least_point_s(const Case& c) const;
    KernelRate with_lanes(KernelRate rate, const Case& c) const;
    double together_bytes(const Case& c, int steps) const;
    double array_bytes(const Case& c) const;
    bool scattered(const Case& c) const;
    const Curve* memory(const Plan& plan) const;
    bool unit(int k) const { return unit_[k]; }
    int ranks_here() const;

    const SweepProblem& problem_;
    const Machine& machine_;
    std::span<const MeasuredRate> rates_;
    std::vector<TileClass> classes_;  // of the rates
    Unmeasured unmeasured_;
    Index extents_;  // of the loops in z coordinates
    std::vector<bool> unit_;
    bool rows_depend_;  // along the last dimension: kernels compute max_simd_rows of them at once
    std::vector<double> cache_sizes_;
    std::vector<double> reach_;  // by dimension: bytes of written arrays that a point reads along it
    double item_bytes_ = 0;      // of a point of all arrays that are not replicated
    double written_bytes_ = 0;   // of a point of all arrays that are written
};

/// Of the loops of a problem in z coordinates.
Index extents_of(const SweepProblem& problem);

/// Rows of a tile of `plan`, and the points of one of them on average.
double tile_rows(const Plan& plan);
double tile_row_points(const Plan& plan);

/// By dimension: bytes that a point reads of what points along it write, in both directions.
std::vector<double> reach_bytes(const SweepProblem& problem);
/// Bytes of a point of all arrays that are not replicated.
double item_bytes(const SweepProblem& problem);

}  // namespace tilewave
