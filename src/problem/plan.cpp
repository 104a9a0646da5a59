#include "tilewave/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <type_traits>

#include "core/concat.hpp"
#include "problem/choice_checks.hpp"
#include "problem/stencil.hpp"
#include "problem/temporal_blocking.hpp"
#include "problem/tuning.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

using namespace tuning;

int Plan::lanes() const {
    std::int64_t product = 1;
    for (auto m : factors) product *= m;
    return static_cast<int>(product);
}

int Plan::ranks() const {
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    std::int64_t product = 1;
    for (auto g : grid) product = std::min(product * std::clamp<std::int64_t>(g, 1, most), most);
    return static_cast<int>(product);
}

IndexMatrix Plan::order(int n) const {
    IndexMatrix t = IndexMatrix::identity(n);
    if (row.n == 0) return t;
    int up = -1, down = -1, others = 0;
    for (int k = 0; k < row.n; ++k) {
        others += row[k] != 0 && ((row[k] != 1 && row[k] != -1) || (row[k] == 1 ? up : down) >= 0);
        if (row[k] == 1) up = k;
        if (row[k] == -1) down = k;
    }
    if (row.n != n || up < 0 || others)
        throw ConfigError(concat("row ", row, " was given; allowed are ", n,
                                 " entries, one of them 1, perhaps another -1, the rest 0"));
    int next = 0;
    for (int k = 0; k < n; ++k)
        if (k != up && k != down) t.row[next++] = IndexMatrix::identity(n).row[k];
    if (down >= 0) {
        t.row[next] = IndexMatrix::identity(n).row[up];
        t.row[next++][down] = 1;
    }
    t.row[next] = IndexMatrix::identity(n).row[up];
    return t;
}

bool Plan::independent_rows(const SweepProblem& problem) const {
    const int n = problem.dims();
    if (problem.sequential) return false;
    const IndexMatrix t = order(n);
    for (const Index& d : problem.dependences_of_values()) {
        const Index y = t * d;
        if (std::all_of(y.begin(), y.end() - 1, [](auto x) { return x == 0; })) return false;
    }
    return true;
}

bool Plan::layers_together(const SweepProblem& problem) const {
    const int n = problem.dims();
    if (problem.sequential || n < 3) return false;
    const IndexMatrix t = order(n);
    for (const Index& d : problem.dependences()) {
        const Index y = t * d;
        if (std::any_of(y.begin(), y.end() - 3, [](auto x) { return x != 0; })) continue;
        if (y[n - 3] > 0 && y[n - 2] < -y[n - 3]) return false;
    }
    return true;
}

int Plan::most_slices(const SweepProblem& problem) const {
    std::int64_t least = 1;
    const bool across = row.n > 0 && std::ranges::any_of(row, [](auto x) { return x < 0; });
    if (mapping_dim == tile.n - 1)
        least = shortest_sliced_row;
    else if (tile.n > 2 && across && layers_together(problem) && order(tile.n).row[tile.n - 3][mapping_dim] != 0)
        least = max_layers_in_turn;
    else if (mapping_dim == tile.n - 2 && row.n == 0 && !problem.sequential && !independent_rows(problem))
        least = max_simd_rows;
    return static_cast<int>(std::max<std::int64_t>(tile[mapping_dim] / least, 1));
}

std::int64_t largest_block(const SweepProblem& problem, const Index& grid, int k) {
    if (grid[k] == 1) return image(problem.loops, problem.space).extent(k);
    return problem.block_extents(problem.blocks(grid), k).most;
}

void check_dims(const Index& given, int n, const char* what) {
    if (given.n != n)
        throw ConfigError(concat(what, " ", given, " has ", given.n, " entries; the nest has ", n, " dimensions"));
}

void check_mapping_dim(int mapping_dim, int n) {
    if (mapping_dim < 0 || mapping_dim >= n)
        throw ConfigError(concat("mapping_dim ", mapping_dim, " was given; allowed are 0 to ", n - 1));
}

void check_grid(const Index& grid, int n, int ranks) {
    check_dims(grid, n, "grid");
    std::int64_t product = 1;
    for (auto g : grid)
        product = g < 1 || product > ranks ? product : product * std::min<std::int64_t>(g, ranks + std::int64_t{1});
    if (std::ranges::any_of(grid, [](auto g) { return g < 1; }) || product > ranks)
        throw ConfigError(concat("grid ", grid, " was given for ", ranks,
                                 " ranks; its entries must be >= 1 and multiply to at most ", ranks));
}

static std::string why_whole(const SweepProblem& problem, int k) {
    if (problem.sequential) return "the nest runs in loop order";
    if (problem.is_gathered() && k == problem.gathers) return "it is the loop of steps";
    if (!problem.pivots.empty()) return "only rows of arrays with a pivot are divided";
    if (!problem.loops.keeps(k)) return "it is a sum of loop indices, so that tiles honour every dependence";
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        if (!problem.arrays[a].replicated && problem.lacks(a, k))
            return problem.arrays[a].time_buffers > 0 && k == 0 ? "it is time" : concat("array ", a, " lacks it");
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        if (!problem.arrays[a].replicated && problem.swaps(a, k))
            return concat("array ", a, " has it before an outer index");
    for (const NestArray& a : problem.arrays)
        for (int m = 0; !a.replicated && m < a.axes.n; ++m)
            if (a.axes[m] == k && a.shape[m] != problem.shape[k] && !a.aligned)
                return concat("the arrays have different extents along it, ", a.shape[m], " and ", problem.shape[k]);
    return "an array is written at several offsets along it";
}

void check_cuts(const SweepProblem& problem, const Index& grid) {
    for (int k = 0; k < grid.n; ++k) {
        if (grid[k] == 1) continue;
        if (!problem.may_cut(k))
            throw ConfigError(
                concat("grid ", grid, " cuts dimension ", k, ", which stays whole on a rank: ", why_whole(problem, k)));
    }
}

static void check_row(const SweepProblem& problem, const Plan& plan) {
    const IndexMatrix t = plan.order(problem.dims());
    if (problem.sequential && !t.is_identity())
        throw ConfigError(
            concat("row ", plan.row,
                   " was given for a nest that runs in loop order; allowed are rows along the last dimension"));
    // A row has one step a place, time buffers are reused in turn.
    const bool time_buffers =
        std::ranges::any_of(problem.arrays, [](const NestArray& a) { return a.time_buffers > 1; });
    if (time_buffers && problem.dims() > 1 && plan.row.n && plan.row[0] != 0)
        throw ConfigError(
            concat("row ", plan.row,
                   " was given for a nest with several time buffers; allowed are rows within one time step"));
    for (const Index& d : problem.dependences())
        if (!lexicographically_positive(t * d))
            throw ConfigError(concat("row ", plan.row, " gives an order of points against the dependence ", d));
}

void check_factors(const Index& factors, int n, int mapping_dim, bool helper) {
    check_dims(factors, n, "factors");
    std::int64_t lanes = 1;
    for (auto m : factors) {
        if (m < 1 || factors[mapping_dim] != 1)
            throw ConfigError(
                concat("factors ", factors, " must be >= 1, and 1 at the mapping dimension ", mapping_dim));
        // Before the product, which could overflow.
        if (m > max_lanes || (lanes *= m) > max_lanes - helper)
            throw ConfigError(concat("factors ", factors, " ask for more lanes a rank than the ", max_lanes - helper,
                                     " that are allowed", (helper ? " beside a helper" : "")));
    }
}

template <class T>
static void check_least(const char* name, const T& value, double least) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        if (std::isfinite(static_cast<double>(value)) && static_cast<double>(value) >= least) return;
        std::ostringstream text;
        text << name << " " << value << " was given; allowed: " << (std::is_integral_v<T> ? "an integer" : "a number")
             << " >= " << least;
        throw ConfigError(text.str());
    }
}

namespace {

template <class T>
std::string text_of(const T& value) {
    if constexpr (std::is_same_v<T, Index> || std::is_same_v<T, Weights>) {
        return tilewave::to_string(value);
    } else if constexpr (std::is_enum_v<T>) {
        return choice_names<T>[static_cast<std::size_t>(value)];
    } else {
        std::ostringstream text;
        text << std::boolalpha << value;
        return text.str();
    }
}

}  // namespace

// Of nests with a schedule of tasks only how points are divided is to be chosen.
static void check_task_plan(const SweepProblem& problem, const Plan& plan) {
    const bool pivot = !problem.pivots.empty(), gather = problem.is_gathered();
    if ((plan.generator == GeneratorKind::pivot) != pivot || (plan.generator == GeneratorKind::gather) != gather)
        throw ConfigError(concat("generator ", text_of(plan.generator), " was given; allowed for this nest: ",
                                 pivot    ? "pivot, as it has one"
                                 : gather ? "gather, as its steps read along whole axes"
                                          : "sweep, perhaps stencil"));
    if (!pivot && !gather) return;
    Plan others = plan;
    others.grid = others.tile = others.factors = {};
    others.generator = Plan().generator;
    others.poll_period_s = Plan().poll_period_s;
    if (gather) others.mapping_dim = Plan().mapping_dim;
    if (others != Plan())
        throw ConfigError(concat(others.to_string(), " was given for a nest ",
                                 pivot ? "with a pivot" : "whose steps are gathered",
                                 "; allowed: grid, tile, factors, threads, poll_period_s"));
    if (pivot && plan.lanes() != plan.factors[1])
        throw ConfigError(
            concat("factors ", plan.factors, " were given for a nest with a pivot; allowed: rows are divided"));
    for (int k = 0; gather && k < problem.dims(); ++k)
        if (const auto divided = plan.grid[k] * plan.factors[k];
            divided > 1 && (!problem.may_cut(k) || divided != plan.ranks() * plan.lanes()))
            throw ConfigError(
                concat("grid ", plan.grid, " and factors ", plan.factors, " were given for a nest whose ",
                       "steps are gathered; allowed: ranks and lanes divide one loop, and no loop of steps"));
}

void Plan::validate(const SweepProblem& problem, int ranks) const {
    const int n = problem.shape.n;
    check_mapping_dim(mapping_dim, n);
    check_grid(grid, n, ranks);
    check_cuts(problem, grid);
    if (weights != problem.weights)
        throw ConfigError(concat("weights ", tilewave::to_string(weights), " were given for blocks in proportion to ",
                                 tilewave::to_string(problem.weights), "; they must be equal"));
    if (!weights.empty() && std::ssize(weights) < this->ranks())
        throw ConfigError(concat("grid ", grid, " was given for ", weights.size(),
                                 " weights; its entries must multiply ", "to at most as many"));
    check_dims(tile, n, "tile");
    check_factors(factors, n, mapping_dim, helper);
    check_task_plan(problem, *this);
    check_row(problem, *this);
    if (generator == GeneratorKind::stencil)
        check_stencil_plan(problem, *this);
    else if (problem.wraps())
        throw ConfigError("generator sweep was given for a nest with periodic loops; allowed: stencil");
    const std::vector<bool> unit = problem.unit_dims();
    for (int k = 0; k < n; ++k) {
        const std::int64_t most = std::max<std::int64_t>(largest_block(problem, grid, k), 1);
        if (tile[k] < 1 || (tile[k] > most && generator != GeneratorKind::gather))
            throw ConfigError(concat("tile ", tile, ": entry ", tile[k], " of dimension ", k, " is outside 1 to ", most,
                                     ", the largest block of a rank"));
        if (unit[k] && tile[k] != 1)
            throw ConfigError(concat("tile ", tile, ": entry ", k,
                                     " must be 1: a dependence along it goes back along another dimension"));
        if (problem.sequential && ((tile[k] != most && !unit[k]) || lanes() > 1))
            throw ConfigError(concat("tile ", tile, " on ", counted(lanes(), "lane"),
                                     ": a nest that runs in loop order is one tile on one lane"));
    }
    constexpr std::int64_t most_padded = std::int64_t{64} << 20;  // less is let through where it is asked for
    if (storage == StorageKind::skewed && mostly_padding(problem, *this) && held_bytes(problem, *this, 0) > most_padded)
        throw ConfigError(concat("storage skewed was given: the boxes of these skewed loops take ",
                                 held_bytes(problem, *this, 0) >> 20,
                                 " MiB a rank, more than four times the arrays; allowed here: plain"));
    if (skew.n != 0 && (skew.n != 2 || skew[0] < 0 || skew[0] >= skew[1] || skew[1] >= n ||
                        problem.loops.row[static_cast<int>(skew[1])][static_cast<int>(skew[0])] == 0))
        throw ConfigError(concat("skew ", skew, " was given; allowed are (k, l) with 0 <= k < l < ", n,
                                 ", whose sum the loops are cut along, or none"));
#define TILEWAVE_CHOICE(type, name, otherwise, least, text) check_least(#name, name, least);
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    if (aggregate > 1 && !may_aggregate(problem, *this))
        throw ConfigError(concat(
            "aggregate ", aggregate, " was given; allowed here is 1: ",
            (lanes() > 1                   ? "each of several lanes sends by itself"
             : uses_window(problem, *this) ? "a rolling window's messages go as its rows are computed"
                                           : "ranks read what later ones compute, and would wait for each other")));
}

Plan fitted(const Plan& plan, const SweepProblem& before, const SweepProblem& now) {
    Plan result = plan;
    const std::vector<bool> unit = now.unit_dims();
    for (int k = 0; k < plan.tile.n; ++k) {
        const std::int64_t was = std::max<std::int64_t>(largest_block(before, plan.grid, k), 1);
        const std::int64_t most = std::max<std::int64_t>(largest_block(now, plan.grid, k), 1),
                           tiles = ceil_div(was, plan.tile[k]);
        result.tile[k] = unit[k] ? 1 : tiles <= plan.factors[k] ? ceil_div(most, tiles) : std::min(plan.tile[k], most);
    }
    return result;
}

// Those that are not as they are by default.
std::string Plan::to_string() const {
    const Plan usual;
    std::string text;
#define TILEWAVE_CHOICE(type, name, otherwise, least, doc) \
    if (name != usual.name) text += (text.empty() ? "" : ", ") + std::string(#name " ") + text_of(name);
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    return text;
}

Plan PlanRequest::apply(Plan plan) const {
#define TILEWAVE_CHOICE(type, name, otherwise, least, text) plan.name = name.value_or(plan.name);
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    return plan;
}

std::string PlanRequest::to_string() const {
    std::string text = "up to " + std::to_string(threads) + " threads" + (all_threads ? ", all of them" : "");
    if (planning != Planning::automatic)
        text += std::string(", ") + choice_names<Planning>[static_cast<std::size_t>(planning)] + " planning";
#define TILEWAVE_CHOICE(type, name, otherwise, least, doc) \
    if (name) text += std::string(", " #name " ") + text_of(*name);
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    return text;
}

}  // namespace tilewave
