#include "tilewave/plan.hpp"

#include <algorithm>
#include <cmath>

#include "tilewave/cost.hpp"

namespace tilewave {

// Points of a row below which the call of the kernel shows beside the points.
static constexpr std::int64_t shortest_row = 64;

std::vector<Index> SweepProblem::dependences() const {
    std::vector<Index> result;
    const Index zero = Index::filled(shape.n, 0);
    for (const Access& r : reads) {
        const Index d = zero - r.offset;
        if (r.array == 0 && d != zero && std::find(result.begin(), result.end(), d) == result.end())
            result.push_back(d);
    }
    return result;
}

Layout SweepProblem::layout(int a, const Index& grid) const {
    if (arrays[a].replicated) return Layout(shape, Index::filled(shape.n, 1));
    Index lo = Index::filled(shape.n, 0), hi = lo;
    for (const Access& r : reads) {
        if (r.array != a) continue;
        for (int k = 0; k < shape.n; ++k) {
            lo[k] = std::max(lo[k], -r.offset[k]);
            hi[k] = std::max(hi[k], r.offset[k]);
        }
    }
    return Layout(shape, grid, lo, hi);
}

void SweepProblem::validate() const {
    if (shape.n < 1) throw ConfigError("a nest needs 1 to 4 dimensions, not 0");
    const Box whole{Index::filled(shape.n, 0), shape};
    if (space.dims() != shape.n || !whole.contains(space))
        throw ConfigError("the space " + tilewave::to_string(space) + " must lie inside the arrays of shape " +
                          tilewave::to_string(shape));
    if (arrays.empty() || arrays[0].replicated)
        throw ConfigError("a nest needs a written array, spread over the ranks");
    if (reads.size() > max_reads)
        throw ConfigError("the nest reads " + std::to_string(reads.size()) + " places; at most " +
                          std::to_string(max_reads) + " are allowed");
    for (const Access& r : reads) {
        if (r.array < 0 || r.array >= static_cast<int>(arrays.size()) || r.offset.n != shape.n)
            throw ConfigError("a read names array " + std::to_string(r.array) + " at offset " +
                              tilewave::to_string(r.offset) + "; there are " + std::to_string(arrays.size()) +
                              " arrays of " + std::to_string(shape.n) + " dimensions");
        if (!whole.contains(space.shifted(r.offset)))
            throw ConfigError("the read at offset " + tilewave::to_string(r.offset) + " leaves the array of shape " +
                              tilewave::to_string(shape) + " for points of " + tilewave::to_string(space));
    }
    for (const Index& d : dependences())
        if (std::any_of(d.begin(), d.end(), [](auto x) { return x < 0; }))
            throw ConfigError("the dependence " + tilewave::to_string(d) +
                              " has a negative component: no sweep of boxes can honour it; allowed are reads of the "
                              "written array at offsets whose components are all <= 0");
}

int Plan::lanes() const {
    std::int64_t product = 1;
    for (auto m : factors) product *= m;
    return static_cast<int>(product);
}

namespace {

std::int64_t largest_block(const SweepProblem& problem, const Index& grid, int k) {
    std::int64_t most = 0;
    for (std::int64_t c = 0; c < grid[k]; ++c) {
        const auto lo = std::max(block_start(problem.shape[k], grid[k], c), problem.space.lo[k]);
        const auto hi = std::min(block_start(problem.shape[k], grid[k], c + 1), problem.space.hi[k]);
        most = std::max(most, hi - lo);
    }
    return most;
}

void check_dims(const Index& given, int n, const char* what) {
    if (given.n != n)
        throw ConfigError(std::string(what) + " " + to_string(given) + " has " + std::to_string(given.n) +
                          " entries; the nest has " + std::to_string(n) + " dimensions");
}

void check_mapping_dim(int mapping_dim, int n) {
    if (mapping_dim < 0 || mapping_dim >= n)
        throw ConfigError("mapping_dim " + std::to_string(mapping_dim) + " was given; allowed are 0 to " +
                          std::to_string(n - 1));
}

void check_grid(const Index& grid, int n, int ranks) {
    check_dims(grid, n, "grid");
    std::int64_t product = 1;
    for (auto g : grid) product *= g;
    if (std::any_of(grid.begin(), grid.end(), [](auto g) { return g < 1; }) || product != ranks)
        throw ConfigError("grid " + to_string(grid) + " multiplies to " + std::to_string(product) +
                          ", but there are " + std::to_string(ranks) + " ranks; its entries must be >= 1 and multiply to " +
                          std::to_string(ranks));
}

void check_factors(const Index& factors, int n, int mapping_dim) {
    check_dims(factors, n, "factors");
    std::int64_t lanes = 1;
    for (auto m : factors) {
        if (m < 1 || factors[mapping_dim] != 1)
            throw ConfigError("factors " + to_string(factors) + " must be >= 1, and 1 at the mapping dimension " +
                              std::to_string(mapping_dim));
        // Before the product, which could overflow.
        if (m > max_lanes || (lanes *= m) > max_lanes)
            throw ConfigError("factors " + to_string(factors) + " ask for more lanes a rank than the " +
                              std::to_string(max_lanes) + " that are allowed");
    }
}

}  // namespace

void Plan::validate(const SweepProblem& problem, int ranks) const {
    const int n = problem.shape.n;
    check_mapping_dim(mapping_dim, n);
    check_grid(grid, n, ranks);
    check_dims(tile, n, "tile");
    check_factors(factors, n, mapping_dim);
    for (int k = 0; k < n; ++k) {
        const std::int64_t most = std::max<std::int64_t>(largest_block(problem, grid, k), 1);
        if (tile[k] < 1 || tile[k] > most)
            throw ConfigError("tile " + tilewave::to_string(tile) + ": entry " + std::to_string(tile[k]) +
                              " of dimension " + std::to_string(k) + " is outside 1 to " + std::to_string(most) +
                              ", the largest block of a rank");
    }
    if (lookahead < 1 || slices < 1 || chunk_bytes < 1)
        throw ConfigError("lookahead " + std::to_string(lookahead) + ", slices " + std::to_string(slices) +
                          " and chunk_bytes " + std::to_string(chunk_bytes) + " must be >= 1");
}

std::string Plan::to_string() const {
    return std::string("grid ") + tilewave::to_string(grid) + ", mapping dimension " + std::to_string(mapping_dim) +
           ", tile " + tilewave::to_string(tile) + ", lanes " + tilewave::to_string(factors) + ", " +
           (grouping == GroupingKind::hyperplane ? "hyperplane" : "vertical") + ", " +
           (schedule == ScheduleKind::overlapping ? "overlapping" : "blocking") + ", look-ahead " +
           std::to_string(lookahead) + ", slices " + std::to_string(slices) + ", chunk " +
           std::to_string(chunk_bytes) + " bytes";
}

namespace {

// Lanes go where a rank has most points: prime factors of `threads`, largest first.
Index spread_lanes(const SweepProblem& problem, const Index& grid, int mapping_dim, int threads) {
    Index factors = Index::filled(problem.shape.n, 1);
    if (problem.shape.n == 1) return factors;  // a chain: one lane is all it can use
    for (int left = threads, p = threads; left > 1; p = left) {
        for (int q = left; q >= 2; --q)
            if (left % q == 0) p = q;  // smallest prime factor of what is left
        int best = -1;
        double most = 0;
        for (int k = 0; k < problem.shape.n; ++k) {
            const double width = static_cast<double>(largest_block(problem, grid, k)) / static_cast<double>(factors[k]);
            if (k != mapping_dim && width > most) {
                most = width;
                best = k;
            }
        }
        factors[best < 0 ? (mapping_dim == 0 ? 1 : 0) : best] *= p;
        left /= p;
    }
    return factors;
}

// z that minimises P(z) (t + V z) for P(z) = N/z + fill, kept within 1..N.
std::int64_t best_height(double n, double fill, double step_s, double layer_s) {
    const double z = std::sqrt(n * step_s / (std::max(fill, 1e-9) * std::max(layer_s, 1e-12)));
    return static_cast<std::int64_t>(std::clamp(z, 1.0, std::max(n, 1.0)));
}

Index default_tile(const SweepProblem& problem, int ranks, const Plan& plan, const Machine& machine) {
    Index tile = Index::filled(problem.shape.n, 1);
    double layer = 1, fill = 0;
    for (int k = 0; k < problem.shape.n; ++k) {
        if (k == plan.mapping_dim) continue;
        const std::int64_t block = std::max<std::int64_t>(largest_block(problem, plan.grid, k), 1);
        tile[k] = ceil_div(block, plan.factors[k]);
        layer *= static_cast<double>(tile[k]);
        // Steps to reach the last tile along k: lanes are 1 apart, ranks 1 more.
        fill += static_cast<double>(plan.grid[k] * plan.factors[k] - 1 + plan.grid[k] - 1);
    }
    const int i = plan.mapping_dim;
    const auto n = std::max<std::int64_t>(largest_block(problem, plan.grid, i), 1);
    const double bytes = layer * static_cast<double>(problem.arrays[0].item_bytes);
    const double step = ranks > 1 ? 2 * machine.latency_s : 2 * machine.hand_over_s;
    // Alone there is nothing to pipeline; a tile of about 1 MB still keeps the polls and reuse local.
    tile[i] = fill > 0 ? best_height(static_cast<double>(n), fill, step, layer * machine.point_s)
                       : std::clamp<std::int64_t>(static_cast<std::int64_t>((1 << 20) / bytes), 1, n);
    return tile;
}

// sqrt(alpha / t_sync_in), alpha the time of a tile (athanasaki2002); but where slices cut the
// rows of the kernel, rows stay long enough that the call for each costs little beside them.
int default_slices(const Plan& plan, const Machine& machine) {
    double alpha = machine.point_s;
    for (auto t : plan.tile) alpha *= static_cast<double>(std::max<std::int64_t>(t, 1));
    const std::int64_t height = plan.tile[plan.mapping_dim];
    const std::int64_t shortest = plan.mapping_dim == plan.tile.n - 1 ? shortest_row : 1;
    return static_cast<int>(std::clamp<std::int64_t>(std::llround(best_slices(alpha, machine.hand_over_s)), 1,
                                                     std::max<std::int64_t>(height / shortest, 1)));
}

}  // namespace

Plan make_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine) {
    problem.validate();
    const int n = problem.shape.n;
    Plan plan;
    // Longest dimension, the last of equals: tiles along it stay on one CPU.
    for (int k = 0; k < n; ++k)
        if (problem.space.extent(k) >= problem.space.extent(plan.mapping_dim)) plan.mapping_dim = k;
    if (!request.mapping_dim && request.grid && request.grid->n == n) {
        // A fixed grid says which dimensions are cut: map along the longest uncut one.
        int best = -1;
        for (int k = 0; k < n; ++k)
            if ((*request.grid)[k] == 1 && (best < 0 || problem.space.extent(k) >= problem.space.extent(best))) best = k;
        if (best >= 0) plan.mapping_dim = best;
    }
    plan.mapping_dim = request.mapping_dim.value_or(plan.mapping_dim);
    check_mapping_dim(plan.mapping_dim, n);
    // Checked as they come: what follows divides by them and loops over them.
    plan.grid = request.grid.value_or(default_grid(problem.space.hi - problem.space.lo, ranks, plan.mapping_dim));
    check_grid(plan.grid, n, ranks);
    plan.factors = request.factors.value_or(spread_lanes(problem, plan.grid, plan.mapping_dim, request.threads));
    check_factors(plan.factors, n, plan.mapping_dim);
    plan.grouping = request.grouping.value_or(GroupingKind::hyperplane);
    plan.schedule = request.schedule.value_or(ScheduleKind::overlapping);
    plan.lookahead = request.lookahead.value_or(1);
    plan.tile = request.tile ? *request.tile : default_tile(problem, ranks, plan, machine);
    check_dims(plan.tile, n, "tile");
    plan.chunk_bytes = request.chunk_bytes.value_or(plan.chunk_bytes);
    if (plan.grouping == GroupingKind::vertical && plan.lanes() > 1)
        plan.slices = default_slices(plan, machine);
    plan.slices = request.slices.value_or(plan.slices);
    plan.validate(problem, ranks);
    return plan;
}

}  // namespace tilewave
