// The plans that a planner has to choose from: those to begin with, and the neighbours of a good one.
#pragma once
#include <functional>
#include <vector>

#include "plan/nests/estimate.hpp"
#include "plan/nests/planner.hpp"

namespace tilewave {

/// Every plan that is made obeys the request; not every one is valid for the problem.
class PlanCandidates {
public:
    /// @pre everything outlives this (not checked)
    PlanCandidates(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine,
                   const Estimate& estimate, const PlanRates& rates, const Plan& by_rules);

    /// Of each mapping dimension, grid and number of lanes: tiles by closed form, of every schedule and grouping, and
    /// tiles of temporal blocks.
    std::vector<Plan> all() const;
    /// `plan` with one choice changed: a tile's extent halved, doubled or made to fit a cache, the mapping dimension,
    /// temporal blocking, schedule, grouping, slices, look-ahead, polls, chunks.
    std::vector<Plan> neighbours(const Plan& plan) const;
    /// Whether tiles have rows as long as those by rules, and as many next to each other as kernels compute together.
    bool wide_enough(const Plan& plan) const;

private:
    using Add = std::function<void(const Plan&)>;
    std::vector<int> mapping_dims() const;
    std::vector<Index> grids(int mapping_dim) const;
    std::vector<Index> smaller_grids(const std::vector<bool>& open) const;
    std::vector<Index> factors(const Index& grid, int mapping_dim) const;
    void stencils(const Add& add) const;
    void stencil_tiles(Plan plan, const Add& add) const;
    void other_generator(const Plan& plan, const Add& add) const;
    void tiles(Plan plan, const Add& add) const;
    void temporal_blocking(Plan plan, const Add& add) const;
    void kinds(Plan plan, const Add& add) const;
    void other_tiles(const Plan& plan, const Add& add) const;
    void other_steps_of_time(const Plan& plan, const Add& add) const;
    void other_messages(const Plan& plan, const Add& add) const;
    std::vector<std::int64_t> extents(const Plan& plan, int k) const;
    std::int64_t share(const Plan& plan, int k) const;

    const SweepProblem& problem_;
    int ranks_;
    const PlanRequest& request_;
    const Machine& machine_;
    const Estimate& estimate_;
    const PlanRates& rates_;
    const Plan& by_rules_;
    double least_row_;
    bool sweeps_, stencils_;  // generators to choose from
    bool rows_depend_;        // kernels compute max_simd_rows of them at once, the rate was measured with as many
    bool in_blocks_;          // time steps may be blocked
};

}  // namespace tilewave
