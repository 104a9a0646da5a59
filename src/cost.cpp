#include "tilewave/cost.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace tilewave {
namespace {

/// Written so that a NaN fails too.
void require(bool ok, const char* what, double given, const char* allowed) {
    if (!ok)
        throw ConfigError(std::string(what) + " " + std::to_string(given) + " was given; " +
                          allowed + " is allowed");
}

void require_times(double alpha_s, double t_sync_in_s) {
    require(alpha_s >= 0, "a tile time alpha_s of", alpha_s, "0 or more");
    require(t_sync_in_s >= 0, "a hand-over time t_sync_in_s of", t_sync_in_s, "0 or more");
}

void require_tiles(double tiles) {
    require(tiles >= 1, "a number of tiles of", tiles, "1 or more");
}

void require_lambda(double lambda) { require(lambda > 0, "lambda", lambda, "more than 0"); }

}  // namespace

double vertical_pair_s(double alpha_s, double t_sync_in_s, double slices) {
    require_times(alpha_s, t_sync_in_s);
    require(slices > 0, "a number of slices of", slices, "more than 0");
    return alpha_s * (slices + 1) / slices + slices * t_sync_in_s;
}

double best_slices(double alpha_s, double t_sync_in_s) {
    require(alpha_s >= 0, "a tile time alpha_s of", alpha_s, "0 or more");
    require(t_sync_in_s > 0, "a hand-over time t_sync_in_s of", t_sync_in_s, "more than 0");
    return std::sqrt(alpha_s / t_sync_in_s);
}

double least_vertical_pair_s(double alpha_s, double t_sync_in_s) {
    require_times(alpha_s, t_sync_in_s);
    return alpha_s + 2 * std::sqrt(alpha_s * t_sync_in_s);
}

double pipeline_steps(ScheduleKind schedule, GroupingKind grouping, double tiles_along,
                      double tiles_across) {
    require_tiles(tiles_along);
    require_tiles(tiles_across);
    const bool vertical = grouping == GroupingKind::vertical;
    if (schedule == ScheduleKind::blocking)
        return tiles_along + (vertical ? tiles_across / 2 : tiles_across) - 1;
    return tiles_along + (vertical ? tiles_across : 1.5 * tiles_across) - 2;
}

double step_s(ScheduleKind schedule, GroupingKind grouping, const StepCosts& costs) {
    require_times(costs.alpha_s, costs.t_sync_in_s);
    const double compute_s = grouping == GroupingKind::vertical
                                 ? least_vertical_pair_s(costs.alpha_s, costs.t_sync_in_s)
                                 : costs.alpha_s;
    if (schedule == ScheduleKind::blocking) return compute_s + costs.t_comm_s;
    return costs.t_start_dma_s + std::max(compute_s, costs.t_comm_dma_s) + costs.t_synchro_s;
}

double run_s(ScheduleKind schedule, GroupingKind grouping, double tiles_along,
             double tiles_across, const StepCosts& costs) {
    return pipeline_steps(schedule, grouping, tiles_along, tiles_across) *
           step_s(schedule, grouping, costs);
}

double pipeline_steps_3d(double tiles_x, double tiles_y, double tiles_z) {
    for (double tiles : {tiles_x, tiles_y, tiles_z}) require_tiles(tiles);
    return 1.5 * tiles_x + 2 * tiles_y + tiles_z - 4;
}

bool overlapping_beats_blocking(double lambda, const StepCosts& costs) {
    require_lambda(lambda);
    const double beta_min_s = least_vertical_pair_s(costs.alpha_s, costs.t_sync_in_s);
    return costs.t_comm_s > lambda / 2 * (costs.t_start_dma_s + beta_min_s + costs.t_synchro_s);
}

bool hyperplane_beats_vertical(double lambda, const StepCosts& costs) {
    require_lambda(lambda);
    require_times(costs.alpha_s, costs.t_sync_in_s);
    return costs.t_sync_in_s > costs.alpha_s * (lambda / 4) * (lambda / 4);
}

}  // namespace tilewave
