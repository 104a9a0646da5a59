// Closed forms for a 2-D nest on nodes of two CPUs, to prune plans and to test the predictor.
// Source of every formula: athanasaki2002; what is derived here says so. Times in seconds.
#pragma once
#include <cstdint>

#include "tilewave/grouping.hpp"
#include "tilewave/linear_schedule.hpp"

namespace tilewave {

/// The costs of one step on one node.
struct StepCosts {
    double alpha_s = 0;        ///< one tile on one CPU
    double t_sync_in_s = 0;    ///< one hand-over between the CPUs of a node
    double t_comm_s = 0;       ///< blocking: all communication of a step
    double t_comm_dma_s = 0;   ///< overlapping: the transfers, beside the computation
    double t_start_dma_s = 0;  ///< overlapping: starting them, not hidden
    double t_synchro_s = 0;    ///< overlapping: synchronisation with the neighbours, not hidden
};

/// beta(N) = alpha (N + 1)/N + N t_sync_in: a vertical pair of tiles, pipelined in N slices.
/// @pre alpha_s >= 0 and t_sync_in_s >= 0 (ConfigError)
/// @pre slices > 0 (ConfigError)
double vertical_pair_s(double alpha_s, double t_sync_in_s, double slices);
/// The N of the least beta(N): sqrt(alpha / t_sync_in); not rounded, and less than 1 where
/// slicing does not pay.
/// @pre alpha_s >= 0 (ConfigError)
/// @pre t_sync_in_s > 0 (ConfigError)
double best_slices(double alpha_s, double t_sync_in_s);
/// beta_min = alpha + 2 sqrt(alpha t_sync_in).
/// @pre alpha_s >= 0 and t_sync_in_s >= 0 (ConfigError)
double least_vertical_pair_s(double alpha_s, double t_sync_in_s);

/// P, the time steps of tiles_along × tiles_across tiles (X/x × Y/y), two CPUs a node:
/// blocking vertical X/x + Y/(2y) - 1, overlapping vertical X/x + Y/y - 2, overlapping
/// hyperplane X/x + 3Y/(2y) - 2; blocking hyperplane X/x + Y/y - 1 (derived: the step of a
/// tile is the sum of its coordinates).
/// @pre tiles_along >= 1 and tiles_across >= 1 (ConfigError)
double pipeline_steps(ScheduleKind schedule, GroupingKind grouping, double tiles_along,
                      double tiles_across);
/// One step: blocking c + t_comm, overlapping t_start_dma + max(c, t_comm_dma) + t_synchro,
/// where c is beta_min for vertical groups and alpha for hyperplane groups.
/// @pre costs.alpha_s >= 0 and costs.t_sync_in_s >= 0 (ConfigError)
double step_s(ScheduleKind schedule, GroupingKind grouping, const StepCosts& costs);
/// T = pipeline_steps · step_s.
/// @pre tiles_along >= 1 and tiles_across >= 1 (ConfigError)
/// @pre costs.alpha_s >= 0 and costs.t_sync_in_s >= 0 (ConfigError)
double run_s(ScheduleKind schedule, GroupingKind grouping, double tiles_along,
             double tiles_across, const StepCosts& costs);
/// P of a 3-D nest with overlapping hyperplane groups of two CPUs along the first index and
/// tiles along the third on one CPU: 3X/(2x) + 2Y/y + Z/z - 4.
/// @pre the numbers of tiles are >= 1 (ConfigError)
double pipeline_steps_3d(double tiles_x, double tiles_y, double tiles_z);

/// Overlapping beats blocking, both with vertical groups, for lambda = (Y/y)/(X/x) << 1:
/// t_comm > lambda/2 (t_start_dma + beta_min + t_synchro).
/// @pre lambda > 0 (ConfigError)
/// @pre costs.alpha_s >= 0 and costs.t_sync_in_s >= 0 (ConfigError)
bool overlapping_beats_blocking(double lambda, const StepCosts& costs);
/// Hyperplane groups beat vertical ones, both overlapping, for lambda << 1:
/// t_sync_in > alpha (lambda/4)^2.
/// @pre lambda > 0 (ConfigError)
/// @pre costs.alpha_s >= 0 and costs.t_sync_in_s >= 0 (ConfigError)
bool hyperplane_beats_vertical(double lambda, const StepCosts& costs);

}  // namespace tilewave
