#include "polyhedral/cost.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace tilewave {
namespace {

/// Written so that a NaN fails too.
void require(bool ok, const char* what, double given, const char* allowed) {
    if (!ok)
        throw ConfigError(std::string(what) + " " + std::to_string(given) + " was given; " + allowed + " is allowed");
}

void require_times(double alpha_s, double t_sync_in_s) {
    require(alpha_s >= 0, "a tile time alpha_s of", alpha_s, "0 or more");
    require(t_sync_in_s >= 0, "a hand-over time t_sync_in_s of", t_sync_in_s, "0 or more");
}

void require_depth(std::int64_t depth) {
    require(depth >= 0, "a depth of", static_cast<double>(depth), "0 or more");
}

void require_lambda(double lambda) {
    require(lambda > 0, "lambda", lambda, "more than 0");
}

}  // namespace

void TileGrid::validate() const {
    const int n = tiles.n;
    if (n < 1 || nodes.n != n || factors.n != n)
        throw ConfigError("tiles " + to_string(tiles) + ", nodes " + to_string(nodes) + " and factors " +
                          to_string(factors) + " were given; as many components of each are allowed, 1 to 4");
    if (mapping_dim < 0 || mapping_dim >= n)
        throw ConfigError("mapping dimension " + std::to_string(mapping_dim) + " was given; 0 to " +
                          std::to_string(n - 1) + " is allowed");
    for (int k = 0; k < n; ++k) {
        require(tiles[k] >= 1, "a number of tiles of", static_cast<double>(tiles[k]), "1 or more");
        require(nodes[k] >= 1, "a number of nodes of", static_cast<double>(nodes[k]), "1 or more");
        require(factors[k] >= 1, "a factor of", static_cast<double>(factors[k]), "1 or more");
    }
    require(factors[mapping_dim] == 1, "a factor along the mapping dimension of",
            static_cast<double>(factors[mapping_dim]), "1");
}

std::int64_t TileGrid::columns() const {
    std::int64_t all = 1;
    for (int k = 0; k < tiles.n; ++k)
        if (k != mapping_dim) all *= ceil_div(tiles[k], factors[k]);
    return all;
}

std::int64_t TileGrid::depth() const {
    std::int64_t sum = 0;
    for (int k = 0; k < tiles.n; ++k) sum += factors[k] - 1;
    return sum;
}

double vertical_group_s(double alpha_s, double t_sync_in_s, double slices, std::int64_t depth) {
    require_times(alpha_s, t_sync_in_s);
    require(slices > 0, "a number of slices of", slices, "more than 0");
    require_depth(depth);
    if (depth == 0) return alpha_s;
    const auto d = static_cast<double>(depth);
    return alpha_s * (slices + d) / slices + (slices + d - 1) * t_sync_in_s;
}

double best_slices(double alpha_s, double t_sync_in_s, std::int64_t depth) {
    require(alpha_s >= 0, "a tile time alpha_s of", alpha_s, "0 or more");
    require(t_sync_in_s > 0, "a hand-over time t_sync_in_s of", t_sync_in_s, "more than 0");
    require_depth(depth);
    return std::sqrt(static_cast<double>(depth) * alpha_s / t_sync_in_s);
}

double least_vertical_group_s(double alpha_s, double t_sync_in_s, std::int64_t depth) {
    require_times(alpha_s, t_sync_in_s);
    require_depth(depth);
    if (depth == 0) return alpha_s;
    const auto d = static_cast<double>(depth);
    return alpha_s + 2 * std::sqrt(d * alpha_s * t_sync_in_s) + (d - 1) * t_sync_in_s;
}

std::int64_t pipeline_steps(ScheduleKind schedule, GroupingKind grouping, const TileGrid& grid) {
    grid.validate();
    const bool vertical = grouping == GroupingKind::vertical, overlapping = schedule == ScheduleKind::overlapping;
    std::int64_t steps = 1;
    for (int k = 0; k < grid.tiles.n; ++k) {
        const std::int64_t m = grid.factors[k];
        // Nodes begin at whole groups.
        const std::int64_t last = (grid.nodes[k] - 1) * ceil_div(grid.tiles[k], m) * m + grid.tiles[k] - 1,
                           last_group = last / m;
        if (k == grid.mapping_dim)
            steps += last;
        else if (vertical)
            steps += (overlapping ? 2 : 1) * last_group;
        else
            steps += last + (overlapping ? last_group : 0);
    }
    return steps;
}

double step_s(ScheduleKind schedule, GroupingKind grouping, const TileGrid& grid, const StepCosts& costs) {
    grid.validate();
    require_times(costs.alpha_s, costs.t_sync_in_s);
    const double column_s = grouping == GroupingKind::vertical
                                ? least_vertical_group_s(costs.alpha_s, costs.t_sync_in_s, grid.depth())
                                : costs.alpha_s;
    const double compute_s = static_cast<double>(grid.columns()) * column_s;
    if (schedule == ScheduleKind::blocking) return compute_s + costs.t_comm_s;
    return costs.t_start_dma_s + std::max(compute_s, costs.t_comm_dma_s) + costs.t_synchro_s;
}

double run_s(ScheduleKind schedule, GroupingKind grouping, const TileGrid& grid, const StepCosts& costs) {
    return static_cast<double>(pipeline_steps(schedule, grouping, grid)) * step_s(schedule, grouping, grid, costs);
}

bool overlapping_beats_blocking(double lambda, const StepCosts& costs) {
    require_lambda(lambda);
    const double beta_min_s = least_vertical_group_s(costs.alpha_s, costs.t_sync_in_s);
    return costs.t_comm_s > lambda / 2 * (costs.t_start_dma_s + beta_min_s + costs.t_synchro_s);
}

bool hyperplane_beats_vertical(double lambda, const StepCosts& costs) {
    require_lambda(lambda);
    require_times(costs.alpha_s, costs.t_sync_in_s);
    return costs.t_sync_in_s > costs.alpha_s * (lambda / 4) * (lambda / 4);
}

}  // namespace tilewave
