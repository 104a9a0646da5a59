// Closed forms of athanasaki2002 for tiles on nodes of several CPUs, to prune plans and to test the predictor. The
// paper has them for two dimensions and two CPUs a node, and one example of three dimensions; what is derived here
// from its groups and schedules says so. Times in seconds.
#pragma once
#include <cstdint>

#include "polyhedral/grouping.hpp"
#include "polyhedral/linear_schedule.hpp"
#include "tilewave/index.hpp"

namespace tilewave {

/// Tiles that read their neighbours one back along each dimension, on a grid of nodes.
struct TileGrid {
    Index tiles;          ///< of one node along each dimension: of the node that has most
    Index nodes;          ///< along each dimension
    Index factors;        ///< m: CPUs of a node along each dimension, 1 along the mapping dimension
    int mapping_dim = 0;  ///< tiles along it stay on one CPU

    /// Tiles that a CPU has in one step: 1 where a node has m_x tiles along every other dimension x, as in the paper;
    /// the product of ceil(tiles_x / m_x) (derived).
    std::int64_t columns() const;
    /// Hand-overs from the first CPU of a vertical group to its last: sum of m_x - 1 (derived; 1 for two CPUs).
    std::int64_t depth() const;
    /// @pre 1 to 4 dimensions, the same of all; 0 <= mapping_dim < that (ConfigError)
    /// @pre tiles, nodes, factors >= 1, factors 1 along mapping_dim (ConfigError)
    void validate() const;
};

/// The costs of one step on one node.
struct StepCosts {
    double alpha_s = 0;        ///< one tile on one CPU
    double t_sync_in_s = 0;    ///< one hand-over between the CPUs of a node
    double t_comm_s = 0;       ///< blocking: all communication of a step
    double t_comm_dma_s = 0;   ///< overlapping: the transfers, beside the computation
    double t_start_dma_s = 0;  ///< overlapping: starting them, not hidden
    double t_synchro_s = 0;    ///< overlapping: synchronisation with the neighbours, not hidden
};

/// beta(N) = alpha (N + d)/N + (N + d - 1) t_sync_in: a vertical group of tiles, pipelined in N slices over CPUs of
/// which the last is d hand-overs behind the first. The paper has d = 1, a pair; the rest is derived.
/// @pre alpha_s >= 0 and t_sync_in_s >= 0 (ConfigError)
/// @pre slices > 0, depth >= 0 (ConfigError)
double vertical_group_s(double alpha_s, double t_sync_in_s, double slices, std::int64_t depth = 1);
/// The N of the least beta(N): sqrt(d alpha / t_sync_in); not rounded, and less than 1 where
/// slicing does not pay.
/// @pre alpha_s >= 0, depth >= 0 (ConfigError)
/// @pre t_sync_in_s > 0 (ConfigError)
double best_slices(double alpha_s, double t_sync_in_s, std::int64_t depth = 1);
/// beta_min = alpha + 2 sqrt(d alpha t_sync_in) + (d - 1) t_sync_in; alpha for d = 0.
/// @pre alpha_s >= 0, t_sync_in_s >= 0, depth >= 0 (ConfigError)
double least_vertical_group_s(double alpha_s, double t_sync_in_s, std::int64_t depth = 1);

/// P, the time steps from the first tile to the last. With t_k tiles along k over all nodes, g_k = ceil(t_k / m_k)
/// groups along k, i the mapping dimension, and sums over the other dimensions x:
///   blocking vertical       t_i + sum(g_x - 1)
///   overlapping vertical    t_i + 2 sum(g_x - 1)
///   blocking hyperplane     t_i + sum(t_x - 1)
///   overlapping hyperplane  t_i + sum(t_x - 1 + g_x - 1)
/// In 2-D with m = 2: X/x + Y/(2y) - 1, X/x + Y/y - 2, (derived) X/x + Y/y - 1, X/x + 3Y/(2y) - 2; the example of
/// three dimensions: 3X/(2x) + 2Y/y + Z/z - 4. Other dimensions and factors are derived: each Pi of the paper is a
/// sum over dimensions, whose greatest values are those of the last tile.
/// @pre grid.validate() passes (ConfigError)
std::int64_t pipeline_steps(ScheduleKind schedule, GroupingKind grouping, const TileGrid& grid);
/// One step: blocking c + t_comm, overlapping t_start_dma + max(c, t_comm_dma) + t_synchro, where c is beta_min for
/// vertical groups and alpha for hyperplane groups, for each of grid.columns() (derived; 1 in the paper).
/// @pre costs.alpha_s >= 0 and costs.t_sync_in_s >= 0, grid.validate() passes (ConfigError)
double step_s(ScheduleKind schedule, GroupingKind grouping, const TileGrid& grid, const StepCosts& costs);
/// T = P · step_s. For several columns an upper bound (derived): the first and last steps are not full.
/// @pre costs.alpha_s >= 0 and costs.t_sync_in_s >= 0, grid.validate() passes (ConfigError)
double run_s(ScheduleKind schedule, GroupingKind grouping, const TileGrid& grid, const StepCosts& costs);

/// Two dimensions, two CPUs a node. Overlapping beats blocking, both with vertical groups, for lambda = (Y/y)/(X/x) <<
/// 1: t_comm > lambda/2 (t_start_dma + beta_min + t_synchro).
/// @pre lambda > 0 (ConfigError)
/// @pre costs.alpha_s >= 0 and costs.t_sync_in_s >= 0 (ConfigError)
bool overlapping_beats_blocking(double lambda, const StepCosts& costs);
/// Hyperplane groups beat vertical ones, both overlapping, for lambda << 1:
/// t_sync_in > alpha (lambda/4)^2.
/// @pre lambda > 0 (ConfigError)
/// @pre costs.alpha_s >= 0 and costs.t_sync_in_s >= 0 (ConfigError)
bool hyperplane_beats_vertical(double lambda, const StepCosts& costs);

}  // namespace tilewave
