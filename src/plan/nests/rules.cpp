// Plans by rules, from the shape of the problem and the machine's numbers alone: where measuring and playing begin.
#include <algorithm>
#include <cmath>

#include "plan/nests/estimate.hpp"
#include "plan/nests/tuning.hpp"
#include "problem/choice_checks.hpp"
#include "problem/panel_width.hpp"
#include "problem/stencil.hpp"
#include "problem/temporal_blocking.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// Lanes go where a rank has most points: prime factors of `threads`, largest first.
Index spread_lanes(const SweepProblem& problem, const Index& grid, int mapping_dim, int threads) {
    Index factors = Index::filled(problem.shape.n, 1);
    if (problem.shape.n == 1 || problem.sequential) return factors;  // a chain: one lane is all it can use
    const std::vector<bool> unit = problem.unit_dims();
    for (int left = threads, p = threads; left > 1; p = left) {
        for (int q = left; q >= 2; --q)
            if (left % q == 0) p = q;  // smallest prime factor of what is left
        int best = -1;
        double most = 0;
        for (int k = 0; k < problem.shape.n; ++k) {
            if (problem.window.along >= 0 && k != problem.window.along) continue;
            const double width = static_cast<double>(largest_block(problem, grid, k)) / static_cast<double>(factors[k]);
            if (k != mapping_dim && !unit[k] && width > most) {
                most = width;
                best = k;
            }
        }
        if (best < 0) break;  // nothing to give them
        factors[best] *= p;
        left /= p;
    }
    return factors;
}

// z that minimises P(z) (t + V z) for P(z) = N/z + fill, within 1..N.
std::int64_t best_height(double n, double fill, double step_s, double layer_s) {
    const double z = std::sqrt(n * step_s / (std::max(fill, 1e-9) * std::max(layer_s, 1e-12)));
    return static_cast<std::int64_t>(std::clamp(z, 1.0, std::max(n, 1.0)));
}

std::int64_t panel_height(const SweepProblem& problem, std::int64_t others) {
    std::int64_t bytes = 0, least = 8;
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a) {
        if (!problem.in_window(a)) continue;
        const std::int64_t item = problem.arrays[a].item_bytes;
        bytes += problem.window_planes(a) * item * others;
        least = std::min(least, item);
    }
    return panel_width(bytes, least);
}

// With rolling windows: a lane's rows whole, over as many planes as make a step of the pipeline.
Index window_tile(const SweepProblem& problem, int ranks, const Plan& plan, const Machine& machine) {
    Index tile = Index::filled(problem.dims(), 1);
    for (int k = 0; k < tile.n; ++k)
        tile[k] = std::max<std::int64_t>(ceil_div(largest_block(problem, plan.grid, k), plan.factors[k]), 1);
    const int f = plan.mapping_dim, a = problem.window.along;
    const auto columns = static_cast<double>(plan.grid[a] * plan.factors[a]);
    double others = 1;
    for (int k = 0; k < tile.n; ++k)
        if (k != f && k != a) others *= static_cast<double>(tile[k]);
    const double layer = static_cast<double>(tile[a]) * others * machine.point_s;
    double step = ranks > 1 ? 2 * machine.latency_s : 2 * machine.hand_over_s;
    std::int64_t height = window_planes_of_a_tile;
    if (columns > 1) {
        // P(J) = N/J + fill steps of J layers (athanasaki2002), and, slanted, of a row for each point of one: a tile is
        // a band (src/problem/rolling_window.hpp), no higher than its rows are long.
        if (problem.window.slant) step += row_cost * layer;
        height = best_height(static_cast<double>(tile[f]), columns - 1, step, layer);
        if (problem.window.slant) height = std::min(height, panel_height(problem, static_cast<std::int64_t>(others)));
    }
    tile[f] = std::clamp<std::int64_t>(height, std::min<std::int64_t>(tile[f], least_window_planes_of_a_tile), tile[f]);
    return tile;
}

// The height at which two layers of a tile, a point's and that of the point before it along the outermost
// dimension, half fill the cache. No limit where rows run along that dimension: they reuse a row or two.
std::int64_t cached_height(const SweepProblem& problem, const Plan& plan, const Machine& machine, const Index& tile,
                           double layer, std::int64_t n) {
    const std::vector<bool> unit = problem.unit_dims();
    int outermost = 0;
    while (outermost < tile.n && (unit[outermost] || outermost == plan.mapping_dim)) ++outermost;
    if (outermost == tile.n || (plan.row.n == tile.n && plan.row[outermost] != 0)) return n;
    double bytes = 2 * layer / static_cast<double>(tile[outermost]);
    std::int64_t items = 0;
    for (const NestArray& a : problem.arrays)
        if (!a.replicated) items += a.item_bytes;
    bytes *= static_cast<double>(std::max<std::int64_t>(items, 1));
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(machine.cache_bytes) / 2 / bytes), 1,
                                    n);
}

Index default_tile(const SweepProblem& problem, int ranks, const Plan& plan, const Machine& machine) {
    if (problem.window.along >= 0) return window_tile(problem, ranks, plan, machine);
    Index tile = Index::filled(problem.shape.n, 1);
    double layer = 1, fill = 0, sweeps = 1;
    const std::vector<bool> unit = problem.unit_dims();
    for (int k = 0; k < problem.shape.n; ++k) {
        const std::int64_t block = std::max<std::int64_t>(largest_block(problem, plan.grid, k), 1);
        if (problem.sequential && !unit[k]) tile[k] = block;
        if (unit[k]) sweeps *= static_cast<double>(block);
        if (k == plan.mapping_dim || unit[k] || problem.sequential) continue;
        tile[k] = ceil_div(block, plan.factors[k]);
        layer *= static_cast<double>(tile[k]);
        // Steps to reach the last tile along k: 1 from lane to lane, 1 more to the next rank.
        fill += static_cast<double>(plan.grid[k] * plan.factors[k] - 1 + plan.grid[k] - 1);
    }
    const int i = plan.mapping_dim;
    if (problem.sequential || unit[i]) return tile;
    const auto n = std::max<std::int64_t>(largest_block(problem, plan.grid, i), 1);
    // A lane must reach its part before it can work: the wait for a tile is small next to all sweeps.
    const double step = ranks > 1 ? 2 * machine.latency_s : 2 * machine.hand_over_s;
    const std::int64_t least_tiles = ranks > 1 ? least_tiles_over_ranks : least_tiles_over_lanes;
    std::int64_t height = n;
    if (fill > 0) height = best_height(static_cast<double>(n) * sweeps, fill, step, layer * machine.point_s);
    if (fill > 0 && sweeps > 1)
        height = std::clamp<std::int64_t>(
            std::max(height, static_cast<std::int64_t>(static_cast<double>(n) * sweeps * filling / fill)), 1,
            ceil_div(n, least_tiles));
    // Rows across both are as short as the shorter side of the tile.
    if (plan.row.n == problem.dims() && plan.row[i] != 0)
        for (int k = 0; k < plan.row.n; ++k) {
            if (k == i || plan.row[k] == 0) continue;
            const std::int64_t some = std::min(long_row, ceil_div(n, least_tiles_of_a_sweep));
            height = std::max(height, std::min(4 * tile[k], std::max(some, ceil_div(n, 2 * least_tiles_of_a_sweep))));
        }
    // Rows whose points depend on each other go together, which saves more than the cache does.
    const bool across = i == problem.dims() - 2 && plan.row.n == 0 && !plan.independent_rows(problem);
    // Tiles cut across their rows keep rows of some points.
    const bool along = i == problem.dims() - 1 && plan.row.n == 0;
    const std::int64_t least = across ? max_simd_rows : along ? shortest_row : 1;
    height = std::clamp<std::int64_t>(std::min(height, cached_height(problem, plan, machine, tile, layer, n)),
                                      std::min(least, n), n);
    tile[i] = ceil_div(n, ceil_div(n, height));  // the last one is about as large as the others
    return tile;
}

int default_slices(const SweepProblem& problem, const Plan& plan, const Machine& machine) {
    double alpha = machine.point_s;
    for (auto t : plan.tile) alpha *= static_cast<double>(std::max<std::int64_t>(t, 1));
    return best_slices(problem, plan, alpha, machine.hand_over_s);
}

}  // namespace

namespace {

// Tiles along it stay on one CPU: the longest dimension, the last of equals, that is not carried by
// tiles of one point and leaves another one to cut.
int longest_dim(const SweepProblem& problem, int ranks, const PlanRequest& request, int not_along) {
    const int n = problem.dims();
    const Box box = image(problem.loops, problem.space);
    const std::vector<bool> unit = problem.unit_dims();
    const bool fixed = request.grid && request.grid->n == n;
    int best = -1;
    for (const bool strict : {true, false}) {
        for (int k = 0; k < n; ++k) {
            bool other = ranks == 1 || n == 1;
            for (int l = 0; l < n; ++l) other = other || (l != k && problem.may_cut(l));
            // A fixed grid says which dimensions are cut: map along the longest uncut one.
            if (!other || k == not_along || (fixed && (*request.grid)[k] != 1) || (strict && unit[k])) continue;
            if (best < 0 || box.extent(k) >= box.extent(best)) best = k;
        }
        if (best >= 0) return best;
        if (not_along >= 0) return longest_dim(problem, ranks, request, -1);
    }
    return n - 1;
}

// Lanes that take turns at time steps hand all that they write to each other. Where a dimension lies between that of
// the tiles and that of the rows each lane has its part of it instead, and only rows next to the cut are handed over:
// heat on 232³ floats, two lanes of an AMD EPYC: 1.1 to 1.8 GPts/s with time steps in turn, 3.3 to 4.6 so.
Plan lanes_side_by_side(const SweepProblem& problem, Plan plan) {
    const std::int64_t lanes = plan.factors[0];
    const std::vector<bool> unit = problem.unit_dims();
    for (int k = plan.mapping_dim + 1; lanes > 1 && k + 1 < problem.dims(); ++k) {
        if (unit[k] || plan.tile[k] < least_part_points * lanes) continue;
        std::swap(plan.factors[0], plan.factors[k]);
        plan.tile[k] = ceil_div(plan.tile[k], lanes);
        return plan;
    }
    return plan;
}

// Tiles that are cut along it alone are each one piece of a row-major array.
int first_dim_of_space(const SweepProblem& problem) {
    const std::vector<bool> unit = problem.unit_dims();
    const auto first = std::ranges::find(unit, false);
    return first == unit.end() ? 0 : static_cast<int>(first - unit.begin());
}

// The dimension that rows go along, where time steps would go together and tiles be low across it; else -1.
int whole_row(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine) {
    if (request.tile || request.temporal_block ||
        !streams(problem, static_cast<double>(ranks) * request.threads, machine))
        return -1;
    const Index row = request.row.value_or(Index{});
    int along = problem.dims() - 1;
    for (int k = 0, varied = 0; k < row.n; ++k) {
        if (row[k] == 0) continue;
        along = k;
        if (++varied > 1) return -1;
    }
    return along;
}

}  // namespace

namespace {

// Whether points along `row` can be neighbours in every array: fields are stored so, what is
// replicated lies as it lies.
bool storable(const SweepProblem& problem, const Index& row) {
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a) {
        const NestArray& n = problem.arrays[a];
        if (problem.window.along >= 0 && problem.in_window(a)) continue;  // a rolling window needs no storage
        int varied = 0, has = 0;
        for (int k = 0; k < row.n; ++k) {
            varied += row[k] != 0;
            has += row[k] != 0 && !problem.lacks(a, k);
        }
        const bool last = n.axes.n > 0 && row[static_cast<int>(n.axes[n.axes.n - 1])] != 0;
        if (n.replicated ? has > 1 || (has == 1 && !last) : has != varied) return false;
    }
    return true;
}

bool runs_down(const SweepProblem& problem, int k) {
    return problem.loops.keeps(k) && problem.loops.row[k][k] < 0;
}

}  // namespace

Index skewed_row(const SweepProblem& problem) {
    const int n = problem.dims();
    Plan probe;
    if (n < 2 || problem.sequential || probe.independent_rows(problem)) return {};
    const std::vector<Index> deps = problem.dependences();
    const Box box = image(problem.loops, problem.space);
    double longest = shortest_row;
    Index best;
    for (int up = 0; up < n; ++up)
        for (int down = 0; down < n; ++down) {
            // Where both loops run downwards, the row in memory is that of a nest whose loops run upwards.
            const bool turned = up != down && runs_down(problem, up) && runs_down(problem, down);
            probe.row = Index::filled(n, 0);
            probe.row[down] = turned ? 1 : -1;  // up == down: along one dimension
            probe.row[up] = turned ? -1 : 1;
            const auto a = static_cast<double>(box.extent(up)), b = static_cast<double>(box.extent(down));
            const double length = up == down ? a : a * b / std::max(a + b - 1, 1.0);
            if (length < longest || (up != down && a > b) || !storable(problem, probe.row)) continue;
            const IndexMatrix t = probe.order(n);
            const bool legal =
                std::ranges::all_of(deps, [&](const Index& d) { return lexicographically_positive(t * d); });
            if (!legal || !probe.independent_rows(problem)) continue;
            longest = length;
            best = probe.row;
        }
    return best;
}

bool uses_window(const SweepProblem& problem, const Plan& plan) {
    const auto [along, across, slant] = problem.window;
    if (along < 0 || plan.mapping_dim != across) return false;
    const int n = problem.dims();
    if (plan.row.n == 0 ? along != n - 1 || slant : plan.row != problem.window.row(n)) return false;
    for (int k = 0; k < n; ++k) {
        if (k == along) continue;
        if (plan.grid[k] != 1 || plan.factors[k] != 1) return false;
        // A rank of skewed loops begins after planes and rows that the rank before it computes, and its tiles read.
        if (plan.grid[along] != 1 && !problem.loops.keeps(k)) return false;
        if (k != across && plan.tile[k] < image(problem.loops, problem.space).extent(k)) return false;
    }
    return true;
}

// Gives points to ranks and lanes, as far as they are not given: along no dimension that is `whole`. Checked as it
// comes: what follows divides by the numbers and loops over them.
static void spread_points(Plan& plan, const SweepProblem& problem, int ranks, const PlanRequest& request,
                          const std::vector<bool>& whole) {
    const int n = problem.dims();
    plan.grid = request.grid ? *request.grid : default_grid(problem.space.hi - problem.space.lo, ranks, whole);
    check_grid(plan.grid, n, ranks);
    check_cuts(problem, plan.grid);
    plan.factors = request.factors.value_or(
        spread_lanes(problem, plan.grid, plan.mapping_dim, std::max(request.threads - plan.helper, 1)));
    check_factors(plan.factors, n, plan.mapping_dim, plan.helper);
    plan.synchronous = request.synchronous.value_or(plan.schedule == ScheduleKind::blocking);
}

// Time steps as wholes: ranks and lanes share space, tiles are as large as a lane's part of it.
static Plan make_stencil_plan(const SweepProblem& problem, int ranks, const PlanRequest& request) {
    const int n = problem.dims();
    if (request.generator.value_or(GeneratorKind::stencil) != GeneratorKind::stencil)
        throw ConfigError("generator sweep was given for a nest with periodic loops; allowed: stencil");
    if (const std::string why = why_no_stencil(problem); !why.empty())
        throw ConfigError("generator stencil was given; allowed: sweep, as of this nest " + why);
    Plan plan;
    plan.weights = problem.weights;
    plan = request.apply(std::move(plan));
    plan.generator = GeneratorKind::stencil;
    plan.mapping_dim = request.mapping_dim.value_or(stencil_of(problem).timed ? 0 : n - 1);
    check_mapping_dim(plan.mapping_dim, n);
    std::vector<bool> whole;
    for (int k = 0; k < n; ++k) whole.push_back(!problem.may_cut(k) || (k == plan.mapping_dim && n > 1));
    spread_points(plan, problem, ranks, request, whole);
    plan.tile = Index::filled(n, 1);
    for (int k = stencil_of(problem).first(); k < n; ++k)
        plan.tile[k] = std::max<std::int64_t>(ceil_div(largest_block(problem, plan.grid, k), plan.factors[k]), 1);
    plan.tile = request.tile.value_or(plan.tile);
    plan.validate(problem, ranks);
    return plan;
}

// Rows over ranks and lanes.
static Plan make_pivot_plan(const SweepProblem& problem, int ranks, const PlanRequest& request) {
    Plan plan;
    plan.generator = GeneratorKind::pivot;
    plan.grid = {1, ranks, 1};
    plan.factors = {1, request.threads, 1};
    plan = request.apply(std::move(plan));
    check_grid(plan.grid, problem.dims(), ranks);
    const auto most = [&](int k) { return std::max<std::int64_t>(largest_block(problem, plan.grid, k), 1); };
    std::int64_t item = 1;
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        if (problem.written(a)) item = std::max(item, problem.arrays[a].item_bytes);
    plan.tile = request.tile.value_or(Index{std::min(pivot_steps, most(0)), std::min(pivot_rows, most(1)),
                                            std::min(pivot_strip_bytes / item, most(2))});
    plan.validate(problem, ranks);
    return plan;
}

// The loop that all ranks and lanes divide: one along which no step reads another's elements, if it is long enough.
static int gathered_cut(const SweepProblem& problem, int ranks, int lanes) {
    int best = -1;
    const auto value = [&](int k) {
        return std::pair{problem.reads_aside(k) || problem.space.extent(k) < ranks * lanes ? std::int64_t{0}
                                                                                           : problem.space.extent(k),
                         static_cast<std::int64_t>(k)};
    };
    for (int k = 0; k < problem.dims(); ++k)
        if (problem.may_cut(k) && (best < 0 || value(k) > value(best))) best = k;
    if (best < 0) throw ConfigError("no loop of the steps that are gathered can be divided");
    return best;
}

// One step, and as many elements of the loop that is divided as travel at once.
static Plan make_gather_plan(const SweepProblem& problem, int ranks, const PlanRequest& request) {
    Plan plan;
    plan.generator = GeneratorKind::gather;
    int lanes = request.threads;
    for (const std::int64_t f : request.factors.value_or(Index()))
        lanes = static_cast<int>(std::max<std::int64_t>(lanes, f));
    int cut = gathered_cut(problem, ranks, lanes);
    for (int k = 0; k < problem.dims(); ++k)
        if (request.grid && request.grid->n == problem.dims() && (*request.grid)[k] > 1) cut = k;
    plan.mapping_dim = problem.gathers;
    plan.grid = plan.factors = Index::filled(problem.dims(), 1);
    plan.grid[cut] = ranks, plan.factors[cut] = request.threads;
    plan = request.apply(std::move(plan));
    check_grid(plan.grid, problem.dims(), ranks);
    const std::int64_t part = std::max<std::int64_t>(largest_block(problem, plan.grid, cut), 1);
    plan.tile = problem.space.hi - problem.space.lo;
    std::int64_t bytes = part;
    for (int k = 0; k < problem.dims(); ++k) {
        plan.tile[k] = std::max<std::int64_t>(plan.tile[k], 1);
        if (k != cut && k != problem.gathers) bytes *= plan.tile[k];
    }
    std::int64_t item = 1;
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        if (problem.written(a)) item = std::max(item, problem.arrays[a].item_bytes);
    const std::int64_t chunks = problem.reads_aside(cut) ? std::clamp<std::int64_t>(bytes * item / gathered_chunk_bytes,
                                                                                    1, most_gathered_chunks)
                                                         : 1;
    plan.tile[problem.gathers] = 1;
    plan.tile[cut] = ceil_div(part, chunks);
    plan.tile = request.tile.value_or(plan.tile);
    plan.validate(problem, ranks);
    return plan;
}

Plan make_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine) {
    problem.validate();
    if (problem.is_gathered()) return make_gather_plan(problem, ranks, request);
    if (!problem.pivots.empty()) return make_pivot_plan(problem, ranks, request);
    if (problem.wraps() || request.generator == GeneratorKind::stencil)
        return make_stencil_plan(problem, ranks, request);
    const int n = problem.shape.n;
    const int along = problem.window.along;
    if (along >= 0 && ranks > 1 && !problem.may_cut(along)) {  // ranks share another dimension, so arrays are whole
        SweepProblem whole = problem;
        whole.window = {};
        return make_plan(whole, ranks, request, machine);
    }
    Plan plan;
    plan.weights = problem.weights;
    plan = request.apply(std::move(plan));
    plan.mapping_dim = along >= 0 ? problem.window.across
                                  : longest_dim(problem, ranks, request, whole_row(problem, ranks, request, machine));
    plan.mapping_dim = request.mapping_dim.value_or(plan.mapping_dim);
    check_mapping_dim(plan.mapping_dim, n);
    if (along >= 0) {
        plan.row = problem.window.row(n);
        // What is whole lies along the same rows, where it can.
        if (problem.window.slant && storable(problem, plan.row) && !without(problem.paths_off, FastPath::skewed))
            plan.storage = StorageKind::skewed;
    }
    std::vector<bool> whole;
    for (int k = 0; k < n; ++k)
        whole.push_back(!problem.may_cut(k) || (k == plan.mapping_dim && n > 1) ||
                        (along >= 0 && k != along && problem.may_cut(along)));
    spread_points(plan, problem, ranks, request, whole);
    plan.row = request.row.value_or(plan.row);
    plan.storage = request.storage.value_or(plan.storage);
    plan.tile = request.tile ? *request.tile : default_tile(problem, ranks, plan, machine);
    check_dims(plan.tile, n, "tile");
    if (!request.tile && !request.temporal_block && !request.factors && !request.grouping) {
        Plan in_one_piece = plan;
        in_one_piece.mapping_dim = first_dim_of_space(problem);
        const bool together = block_in_time(problem, machine, request.threads, plan);
        if (ranks == 1 && !request.mapping_dim && plan.row.n == 0 &&
            block_in_time(problem, machine, request.threads, in_one_piece) &&
            (!together || in_one_piece.temporal_block >= plan.temporal_block))
            plan = lanes_side_by_side(problem, std::move(in_one_piece));
    }
    plan = request.apply(std::move(plan));
    if (!request.slices && plan.grouping == GroupingKind::vertical && plan.lanes() > 1)
        plan.slices = default_slices(problem, plan, machine);
    plan.validate(problem, ranks);
    return plan;
}

}  // namespace tilewave
