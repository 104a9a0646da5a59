// Closed forms that candidates are pruned with: what a plan takes, without its schedules.
#pragma once
#include <vector>

#include "plan/nests/rates.hpp"
#include "problem/stencil.hpp"

namespace tilewave {

/// sqrt(alpha / t_sync_in) slices of a tile (athanasaki2002), or as many as leave the kernel its rows.
int best_slices(const SweepProblem& problem, const Plan& plan, double tile_s, double hand_over_s);

/// T = N t + F: N tiles of the busiest lane, t of a step of one, F until the first tile of the last lane can begin.
/// After the P·step of athanasaki2002, with the time of a border of ranks and of lanes in place of whole steps
/// (docs/decisions/0010-planning.md).
class Estimate {
public:
    /// @pre problem, machine and rates outlive this (not checked)
    Estimate(const SweepProblem& problem, const Machine& machine, const PlanRates& rates);

    double time_s(const Plan& plan) const;
    /// Of a tile's extent along the mapping dimension, the others as in `plan`: sqrt(H c / (f v)) for H layers, c
    /// seconds of a step outside its layers, v of a layer, f tiles until the last lane begins.
    std::int64_t best_height(const Plan& plan) const;
    /// The most points along the mapping dimension with which the working set stays within `bytes`; 0: there is none.
    std::int64_t cached_height(const Plan& plan, double bytes) const;
    int best_slices(const Plan& plan) const;
    std::int64_t largest_message(const Plan& plan) const;

    bool unit(int k) const { return unit_[k]; }
    std::int64_t block(const Index& grid, int k) const { return ceil_div(extents_[k], grid[k]); }

private:
    struct Step {
        double tile_s = 0;      ///< the kernel
        double overhead_s = 0;  ///< posting, packing, signals of the lane
        double hidden_s = 0;    ///< transfers, overlapped with the next tile (overlapping)
        double exposed_s = 0;   ///< transfers that are waited for (blocking)
        double tiles = 0;       ///< of the busiest lane
        double fill_tiles = 0;  ///< until the last lane begins
        double fill_s = 0;      ///< in addition to them
    };
    Step step(const Plan& plan) const;
    double stencil_s(const Plan& plan) const;
    double pivot_s(const Plan& plan) const;
    double gather_s(const Plan& plan) const;
    const Link& link(const Plan& plan, int k) const;
    double face_bytes(const Plan& plan, int k) const;

    const SweepProblem& problem_;
    const Machine& machine_;
    const PlanRates& rates_;
    Index extents_;    // of the loops in z coordinates
    Stencil stencil_;  // where the nest may run as one
    std::vector<bool> unit_;
    std::vector<bool> depends_;  // by dimension: some dependence goes along it
    std::vector<double> reach_;  // by dimension: bytes that a point's values are read by the next rank
    double points_ = 0, item_bytes_ = 0;
};

/// Lanes of `plan` on the set of CPUs that has most of them, over its CPUs; 1 where each has one.
double crowd(const Plan& plan, const Machine& machine);

/// A rate of lanes that have a CPU to themselves, where `crowd` share one.
KernelRate shared_rate(KernelRate rate, double crowd);

/// Makes the arrays that are spread no longer than `points` along dimension k, and the loops as much shorter.
void shorten(SweepProblem& problem, int k, std::int64_t points);

}  // namespace tilewave
