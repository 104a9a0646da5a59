#include "plan/nests/rates.hpp"
#include "data/memory.hpp"
#include "plan/nests/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewave {

using namespace tuning;

// Time steps that go over tiles together, from cache to cache: not those that share one exchange of halos.
static int steps_in_caches(const Plan& plan) {
    return plan.generator == GeneratorKind::stencil ? 1 : plan.temporal_block;
}

double item_bytes(const SweepProblem& problem) {
    double bytes = 0;
    for (const NestArray& a : problem.arrays)
        if (!a.replicated) bytes += static_cast<double>(a.item_bytes);
    return bytes;
}

// Of a point in one step of time: every buffer that the step reads or writes.
static double step_bytes(const SweepProblem& problem) {
    double bytes = 0;
    for (const NestArray& a : problem.arrays)
        if (!a.replicated) bytes += static_cast<double>(a.item_bytes * std::max(a.time_buffers, 2));
    return bytes;
}

std::vector<double> reach_bytes(const SweepProblem& problem) {
    const int n = problem.dims();
    std::vector<double> reach(static_cast<std::size_t>(n), 0);
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a) {
        const NestArray& array = problem.arrays[a];
        if (array.replicated || !problem.written(a)) continue;
        for (int k = 0; k < n; ++k) {
            std::int64_t before = 0, after = 0;
            for (const Access& p : problem.accesses) {
                if (p.array != a || p.writes) continue;
                const std::int64_t offset = problem.offset(p)[k];
                before = std::max(before, -offset);
                after = std::max(after, offset);
            }
            reach[k] += static_cast<double>((before + after) * array.item_bytes);
        }
    }
    return reach;
}

Index extents_of(const SweepProblem& problem) {
    const Box box = image(problem.loops, problem.space);
    Index extents = box.hi - box.lo;
    for (auto& e : extents.v) e = std::max<std::int64_t>(e, 0);
    return extents;
}

PlanRates::PlanRates(const SweepProblem& problem, const Machine& machine, std::span<const MeasuredRate> rates,
                     Unmeasured unmeasured)
    : problem_(problem),
      machine_(machine),
      rates_(rates),
      unmeasured_(unmeasured),
      extents_(extents_of(problem)),
      unit_(problem.unit_dims()),
      rows_depend_(!problem.sequential && !Plan{}.independent_rows(problem)),
      reach_(reach_bytes(problem)),
      item_bytes_(item_bytes(problem)) {
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        if (problem.written(a)) written_bytes_ += static_cast<double>(problem.arrays[a].item_bytes);
    const auto one_core = static_cast<double>(machine.cache_bytes),
               shared = static_cast<double>(machine.shared_cache_bytes);
    cache_sizes_ = {one_core * first_level_part, one_core / 2, std::max(shared, one_core) / 2};
    for (const MeasuredRate& m : rates_) classes_.push_back(tile_class(case_of(m)));
}

double tile_rows(const Plan& plan) {
    double points = 1;
    for (auto t : plan.tile) points *= static_cast<double>(t);
    int up = plan.tile.n - 1, down = -1;
    for (int k = 0; k < plan.row.n; ++k) {
        if (plan.row[k] == 1) up = k;
        if (plan.row[k] == -1) down = k;
    }
    const auto a = static_cast<double>(plan.tile[up]);
    if (down < 0) return points / a;
    const auto b = static_cast<double>(plan.tile[down]);
    return points / (a * b) * (a + b - 1);
}

double tile_row_points(const Plan& plan) {
    double points = 1;
    for (auto t : plan.tile) points *= static_cast<double>(t);
    return points / std::max(tile_rows(plan), 1.0);
}

double PlanRates::working_set(const Plan& plan) const {
    if (problem_.window.along >= 0) return 0;
    int last = 0;  // the first dimension of the order of points
    while (last < plan.tile.n && (unit(last) || (plan.row.n ? plan.row[last] != 0 : last == plan.tile.n - 1))) ++last;
    if (last == plan.tile.n) return 0;
    double bytes = 2 * std::max(item_bytes_, 1.0);
    for (int k = 0; k < plan.tile.n; ++k)
        if (k != last) bytes *= static_cast<double>(plan.tile[k]);
    return bytes;
}

// The tiles of all steps, each a tile or two behind the one before it along the first dimension that tiles cut; before
// the next step comes to a tile, all tiles along the later dimensions have passed.
double PlanRates::together_bytes(const Case& c, int steps) const {
    double bytes = step_bytes(problem_) * steps;
    bool cut = false;
    for (int k = 0; k < c.plan.tile.n; ++k) {
        const std::int64_t all = c.share(k), tile = std::max<std::int64_t>(c.plan.tile[k], 1);
        bytes *= static_cast<double>(unit(k) ? 1 : cut ? all : std::min(tile, all));
        cut = cut || (!unit(k) && tile < all);
    }
    return bytes;
}

// Of all arrays that a rank holds a part of.
double PlanRates::array_bytes(const Case& c) const {
    double bytes = 0;
    for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a) {
        const NestArray& n = problem_.arrays[a];
        if (n.replicated) continue;
        auto of_this = static_cast<double>(n.item_bytes * std::max(n.time_buffers, 1));
        for (int k = 0; k < c.extents.n; ++k)
            if (!problem_.lacks(a, k)) of_this *= static_cast<double>(std::max<std::int64_t>(c.block(k), 1));
        bytes += of_this;
    }
    return bytes;
}

bool PlanRates::scattered(const Case& c) const {
    const Plan& plan = c.plan;
    if (plan.row.n || plan.storage == StorageKind::skewed) return false;
    std::int64_t run = 0;  // bytes of the array with the largest elements
    for (const NestArray& a : problem_.arrays)
        if (!a.replicated) run = std::max(run, a.item_bytes);
    for (int k = plan.tile.n - 1; k >= 0 && !unit(k); --k) {
        run *= std::max<std::int64_t>(std::min(plan.tile[k], c.share(k)), 1);
        if (plan.tile[k] < c.share(k)) return run < page_bytes;
    }
    return false;
}

TileClass PlanRates::tile_class(const Case& of) const {
    const Plan& plan = of.plan;
    const auto lanes_in_time = unit(0) && plan.tile.n > 1 ? static_cast<int>(plan.factors[0]) : 1;
    const int steps = std::max(steps_in_caches(plan), lanes_in_time);
    TileClass c{steps > 1, 0};
    for (int s = steps; s > 1; s /= 2) ++c.steps;
    const double row = tile_row_points(plan);
    while (c.rows < static_cast<int>(std::size(row_lengths)) && row >= row_lengths[c.rows]) ++c.rows;
    const int across = plan.tile.n - 2;
    if (plan.row.n == 0 && across >= 0 && !unit(across) && rows_depend_)
        c.few_rows = plan.tile[across] < std::min(max_simd_rows, of.share(across));
    double bytes = working_set(plan);
    if (c.together) {
        bytes = together_bytes(of, steps);
        c.scattered = scattered(of);
        for (double b = cache_sizes_[1]; b < bytes; b *= 2) ++c.bytes;
    }
    while (c.level < static_cast<int>(cache_sizes_.size()) && bytes > cache_sizes_[c.level]) ++c.level;
    if (const double all = array_bytes(of); problem_.window.along < 0 && all > cache_sizes_[1]) {
        const double last = 2 * cache_sizes_.back();
        for (double b = last / 4; b < all && c.arrays < 5; b *= 2) ++c.arrays;
        c.arrays = c.together ? (all > last ? 4 : 1) : std::max(c.arrays, 1);
    }
    return c;
}

bool PlanRates::measured(const Plan& plan) const {
    const TileClass c = tile_class(plan);
    for (std::size_t r = 0; r < rates_.size(); ++r)
        if (rates_[r].of_all_tiles || (classes_[r] == c && rates_[r].plan.lanes() >= plan.lanes())) return true;
    return false;
}

bool PlanRates::known(const Plan& plan) const {
    const TileClass c = tile_class(plan);
    const bool here = std::ranges::any_of(classes_, [&](const TileClass& other) { return other.arrays == c.arrays; });
    for (std::size_t r = 0; r < rates_.size(); ++r) {
        TileClass other = classes_[r];
        if (!here) other.arrays = c.arrays;
        // Longer rows are no slower a point, and what begins a row or a tile is in the rate.
        if (!c.together && other.rows < c.rows) other.rows = c.rows;
        other.few_rows = other.few_rows && c.few_rows;
        if (rates_[r].of_all_tiles || (other == c && rates_[r].plan.lanes() >= plan.lanes())) return true;
    }
    return false;
}

const MeasuredRate& PlanRates::nearest(const Plan& plan) const {
    const TileClass c = tile_class(plan);
    const MeasuredRate* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r < rates_.size(); ++r) {
        const MeasuredRate& m = rates_[r];
        const TileClass& other = classes_[r];
        double distance =
            100.0 * (other.together != c.together) + 15.0 * std::abs(other.steps - c.steps) +
            10.0 * std::abs(other.level - c.level) + 5.0 * std::abs(other.bytes - c.bytes) +
            7.0 * std::abs(other.arrays - c.arrays) +
            20.0 * (std::abs(other.rows - c.rows) + (other.few_rows != c.few_rows) + (other.scattered != c.scattered)) +
            5.0 * (m.plan.lanes() < plan.lanes());
        for (int k = 0; k < plan.tile.n && k < m.plan.tile.n; ++k)
            distance += 0.1 * std::abs(std::log2(static_cast<double>(std::max<std::int64_t>(plan.tile[k], 1)) /
                                                 static_cast<double>(std::max<std::int64_t>(m.plan.tile[k], 1))));
        if (distance < least) {
            least = distance;
            best = &m;
        }
    }
    return *best;
}

// As many lanes as work at once; null where nothing is known of memory.
const Curve* PlanRates::memory(const Plan& plan) const {
    if (machine_.memory.empty()) return nullptr;
    return &machine_
                .memory[std::min(static_cast<std::size_t>(plan.lanes() * ranks_here()), machine_.memory.size()) - 1];
}

// What a point takes for values next to its tile that have left the core's cache since they were computed.
double PlanRates::fetched_s(const Case& c) const {
    const Plan& plan = c.plan;
    const Curve* const memory = this->memory(plan);
    if (!memory || steps_in_caches(plan) > 1 || problem_.window.along >= 0 || problem_.sequential || has_tasks(plan))
        return 0;
    double all = 1, tile_bytes = item_bytes_;
    Index across = Index::filled(plan.tile.n, 1);
    for (int k = 0; k < plan.tile.n; ++k) {
        if (unit(k)) continue;
        tile_bytes *= static_cast<double>(plan.tile[k]);
        across[k] = ceil_div(ceil_div(std::max<std::int64_t>(c.block(k), 1), std::max<std::int64_t>(plan.tile[k], 1)),
                             plan.factors[k]);
        all *= static_cast<double>(across[k]);
    }
    double seconds = 0;
    for (int k = 0; k < plan.tile.n; ++k) {
        if (unit(k) || across[k] == 1) continue;
        // Of the tiles until the next one along k, and as much again next to them; half a cache stays, as for working
        // sets.
        const double between = 2 * tile_bytes * all / static_cast<double>(across[k]);
        if (between > static_cast<double>(machine_.cache_bytes))
            seconds += reach_[k] / static_cast<double>(plan.tile[k]) * memory->at(between);
    }
    return seconds;
}

// What a point takes for its elements from where the arrays lie.
double PlanRates::streamed_s(const Case& c) const {
    const Curve* const memory = this->memory(c.plan);
    if (!memory || problem_.window.along >= 0) return 0;
    return item_bytes_ * memory->at(array_bytes(c) / c.plan.lanes()) / steps_in_caches(c.plan);
}

// What a point takes at least, on any machine: to stream its elements. Short rows in a cache do not tell what begins a
// row and what a point takes.
double PlanRates::least_point_s(const Case& c) const {
    if (problem_.window.along >= 0) return 0;
    double points = 1;
    for (int k = 0; k < problem_.dims(); ++k)
        points *= static_cast<double>(unit(k) ? 1 : std::max<std::int64_t>(c.block(k), 1));
    const double bytes = array_bytes(c);
    return bytes / points * (bytes > cache_sizes_[1] ? least_memory_byte_s : least_cache_byte_s) /
           steps_in_caches(c.plan);
}

int PlanRates::ranks_here() const {
    return machine_.host_of.empty() ? 1 : static_cast<int>(machine_.host_of.count(machine_.host_of[0]));
}

KernelRate PlanRates::of(const Plan& plan) const {
    const MeasuredRate& m = nearest(plan);
    const Case here{plan, extents_}, there = case_of(m);
    // Times of one lane are a lower bound for several lanes, which share caches and memory.
    const bool alone = !m.of_all_tiles && m.plan.lanes() == 1;
    KernelRate rate = alone ? m.rate : with_lanes(m.rate, here);
    const TileClass c = tile_class(plan), was = classes_[static_cast<std::size_t>(&m - rates_.data())];
    const bool elsewhere = !m.of_all_tiles && c.arrays != was.arrays;
    const bool longer = c.together && was.together && steps_in_caches(plan) != steps_in_caches(m.plan);
    const double more_s =
        fetched_s(here) - fetched_s(there) + (elsewhere || longer ? streamed_s(here) - streamed_s(there) : 0);
    rate.point_s = std::max(rate.point_s * least_part, rate.point_s + more_s);
    if (!m.of_all_tiles && c != was)
        rate.point_s = std::max(rate.point_s, least_point_s(here) - rate.row_s / std::max(tile_row_points(plan), 1.0));
    // Lanes that split rows meet in a cache line of each, which goes to the other lane and, by the next sweep, back.
    // Each lane's rate is measured in separate memory.
    const bool rows_split = plan.row.n == 0 && plan.storage == StorageKind::plain && steps_in_caches(plan) == 1 &&
                            plan.factors[plan.factors.n - 1] > 1;
    if (rows_split && problem_.window.along < 0) rate.row_s += line_of_hand_over * machine_.hand_over_s;
    if (unit(0) && plan.tile.n > 1 && plan.factors[0] > 1)
        rate.point_s +=
            written_bytes_ / static_cast<double>(cache_line_bytes) * streamed_line_of_hand_over * machine_.hand_over_s;
    // Smaller tiles find more in nearer caches; temporal blocks gain by larger ones, too, while a cache holds
    // them.
    const bool cached = c.level < static_cast<int>(cache_sizes_.size());
    const bool hopeful =
        c.together != was.together || (c.together ? cached && (c.level != was.level || c.steps > was.steps ||
                                                               c.bytes < was.bytes || (was.scattered && !c.scattered))
                                                  : c.level < was.level || c.arrays < was.arrays);
    const bool fewer_steps = c.together && was.together && c.steps < was.steps && c.level >= was.level;
    TileClass near = was;
    near.arrays = c.arrays;
    if (m.of_all_tiles || c == was || fewer_steps) return rate;
    if (unmeasured_ != Unmeasured::hoped) return rate;
    if (c == near && c.arrays > was.arrays) return rate;  // what memory takes more is in it
    rate.point_s *= hopeful ? hoped_part : barely_hoped_part;
    if (hopeful) rate.row_s *= hoped_part;  // rows begin with lines that are fetched
    return rate;
}

KernelRate PlanRates::with_lanes(KernelRate rate, const Case& c) const {
    const Plan& plan = c.plan;
    // Measured with all lanes at once, and perhaps with one: between them in a straight line.
    if (rate.one_lane_factor > 0 && rate.lanes > 1) {
        const double others = static_cast<double>(std::clamp(plan.lanes(), 1, rate.lanes) - 1) / (rate.lanes - 1);
        for (double* s : {&rate.point_s, &rate.row_s, &rate.tile_s})
            *s *= rate.one_lane_factor + (1 - rate.one_lane_factor) * others;
        return rate;
    }
    // What memory takes a point of it shrinks as lanes do. Rolling windows stay in the caches.
    if (problem_.window.along >= 0) return rate;
    const auto all = static_cast<int>(machine_.memory.size());
    if (all < 2) return rate;
    const int lanes = std::clamp(plan.lanes() * ranks_here(), 1, all);
    double points = 1;
    for (int k = 0; k < problem_.dims(); ++k) points *= static_cast<double>(unit(k) ? 1 : c.block(k));
    const double bytes = points * item_bytes_ / plan.lanes();
    const double with_all = machine_.memory[all - 1].at(bytes), with_these = machine_.memory[lanes - 1].at(bytes);
    rate.point_s =
        std::max(rate.point_s * least_part, rate.point_s - item_bytes_ * std::max(0.0, with_all - with_these));
    return rate;
}

}  // namespace tilewave
