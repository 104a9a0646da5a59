#include "plan/nests/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "generate/nest/nest.hpp"
#include "plan/nests/planner.hpp"

namespace tilewave {

int best_slices(const SweepProblem& problem, const Plan& plan, double tile_s, double hand_over_s) {
    const double best = hand_over_s > 0 ? std::sqrt(tile_s / hand_over_s) : 64;
    return static_cast<int>(std::clamp<std::int64_t>(std::llround(best), 1, plan.most_slices(problem)));
}

Estimate::Estimate(const SweepProblem& problem, const Machine& machine, const PlanRates& rates)
    : problem_(problem),
      machine_(machine),
      rates_(rates),
      unit_(problem.unit_dims()),
      reach_(reach_bytes(problem)),
      item_bytes_(item_bytes(problem)) {
    const int n = problem.dims();
    const Box box = image(problem.loops, problem.space);
    extents_ = box.hi - box.lo;
    for (auto& e : extents_.v) e = std::max<std::int64_t>(e, 0);
    points_ = static_cast<double>(problem.space.points());
    if (why_no_stencil(problem).empty()) stencil_ = stencil_of(problem);
    depends_.assign(static_cast<std::size_t>(n), false);
    for (const Index& d : problem.dependences())
        for (int k = 0; k < n; ++k) depends_[k] = depends_[k] || d[k] != 0;
}

double crowd(const Plan& plan, const Machine& machine) {
    const std::vector<double> all = machine.lane_speeds(plan.ranks(), plan.lanes());
    return 1 / (plan.weights.empty() ? *std::ranges::min_element(all) : *std::ranges::max_element(all));
}

KernelRate shared_rate(KernelRate rate, double crowd) {
    for (double* s : {&rate.point_s, &rate.row_s, &rate.tile_s}) *s *= crowd;
    return rate;
}

// A neighbour of rank 0 along k.
const Link& Estimate::link(const Plan& plan, int k) const {
    std::int64_t other = 1;
    for (int l = k + 1; l < plan.grid.n; ++l) other *= plan.grid[l];
    bool far = false;  // somewhere along k a host ends
    const auto n = static_cast<std::int64_t>(machine_.host_of.size());
    for (std::int64_t r = 0, at = 0; at + 1 < plan.grid[k] && r + other < n && at < 64; ++at, r += other)
        far = far || !machine_.shares_host(static_cast<int>(r), static_cast<int>(r + other));
    return far ? machine_.other_host : machine_.same_host;
}

double Estimate::face_bytes(const Plan& plan, int k) const {
    double bytes = reach_[k];
    for (int l = 0; l < plan.tile.n; ++l)
        if (l != k) bytes *= static_cast<double>(plan.tile[l]);
    return bytes;
}

Estimate::Step Estimate::step(const Plan& plan) const {
    const KernelRate rate = shared_rate(rates_.of(plan), crowd(plan, machine_));
    const int n = problem_.dims(), lanes = plan.lanes();
    Step s;
    double ranks = 1, tile_points = 1;
    s.tiles = 1;
    Index across = Index::filled(n, 1);  // tiles of a lane along each dimension
    for (int k = 0; k < n; ++k) {
        across[k] =
            ceil_div(ceil_div(std::max<std::int64_t>(block(plan.grid, k), 1), std::max<std::int64_t>(plan.tile[k], 1)),
                     plan.factors[k]);
        s.tiles *= static_cast<double>(across[k]);
        ranks *= static_cast<double>(plan.grid[k]);
        tile_points *= static_cast<double>(plan.tile[k]);
    }
    // Tiles that skewed or bounded loops leave empty cost nothing, nearly.
    const double full = std::min(1.0, points_ / (ranks * lanes * s.tiles * tile_points));
    s.tile_s = rate.tile_s + full * (tile_rows(plan) * rate.row_s + tile_points * rate.point_s);
    const bool blocking = plan.schedule == ScheduleKind::blocking,
               vertical = plan.grouping == GroupingKind::vertical && lanes > 1;
    s.overhead_s = 2 * machine_.step_s;
    if (lanes > 1) s.overhead_s += machine_.step_s * plan.slices * 2;
    for (int k = 0; k < n; ++k) {
        const double tiles_along = static_cast<double>(across[k]), m = static_cast<double>(plan.factors[k]),
                     g = static_cast<double>(plan.grid[k]);
        if (depends_[k] && !unit(k)) {
            // Slices let the next lane of the rank begin when the first of them is done.
            const double within = vertical ? 1.0 / plan.slices : 1;
            s.fill_tiles += tiles_along * (g * ((m - 1) * within + 1) - 1);
            s.fill_s += g * (m - 1) * machine_.hand_over_s * (vertical ? plan.slices : 1);
        }
        if (plan.grid[k] == 1 || reach_[k] <= 0) continue;
        const Link& l = link(plan, k);
        const double bytes = face_bytes(plan, k);
        const double messages = std::max(1.0, std::ceil(bytes / static_cast<double>(plan.chunk_bytes)));
        const double per_tile_s =
            messages / plan.aggregate * (l.send_s + l.receive_s + 6 * machine_.step_s) +
            bytes * ((plan.helper ? 0 : 2 * l.busy_byte_s) + 2 * machine_.copy_byte_s.at(item_bytes_));
        // One tile in so many has a face there.
        s.overhead_s += per_tile_s / tiles_along;
        s.hidden_s += bytes * l.byte_s * lanes / m / tiles_along;
        s.exposed_s += (plan.synchronous || bytes > l.eager_bytes ? 2 : 1) * l.message_s(bytes) / tiles_along;
        s.fill_s += (g - 1) * (l.message_s(bytes) + per_tile_s);
    }
    if (!blocking) s.exposed_s = 0;
    return s;
}

// Time steps one after another: a lane's tiles with the halo that is computed redundantly, its part of the messages,
// and what of them computing does not hide.
double Estimate::stencil_s(const Plan& plan) const {
    const KernelRate rate = shared_rate(rates_.of(plan), crowd(plan, machine_));
    const Stencil& stencil = stencil_;
    const int n = problem_.dims(), lanes = plan.lanes();
    const auto together = static_cast<double>(std::max(plan.temporal_block, 1));
    const double times = stencil.timed ? static_cast<double>(extents_[0]) : 1;
    double tiles = 1, points = 1, rows = 1, redundant = 1;
    for (int k = stencil.first(); k < n; ++k) {
        const auto share =
            static_cast<double>(ceil_div(std::max<std::int64_t>(block(plan.grid, k), 1), plan.factors[k]));
        tiles *= std::ceil(share / static_cast<double>(std::max<std::int64_t>(plan.tile[k], 1)));
        points *= share;
        rows *= k == n - 1 ? std::ceil(share / static_cast<double>(std::max<std::int64_t>(plan.tile[k], 1))) : share;
        if (plan.grid[k] > 1 || problem_.period(k) > 0)
            redundant *= 1 + static_cast<double>(stencil.step_lo[k] + stencil.step_hi[k]) * (together - 1) / 2 /
                                 static_cast<double>(std::max<std::int64_t>(block(plan.grid, k), 1));
    }
    const double compute_s =
        redundant * (tiles * (rate.tile_s + 2 * machine_.step_s) + rows * rate.row_s + points * rate.point_s) +
        (lanes > 1 ? 4 * machine_.step_s + machine_.hand_over_s : 0);
    double own_s = 0, wire_s = 0;
    for (int k = stencil.first(); k < n; ++k) {
        if (plan.grid[k] == 1 || reach_[k] <= 0) continue;
        double bytes = reach_[k] * together;
        for (int l = stencil.first(); l < n; ++l)
            if (l != k) bytes *= static_cast<double>(std::max<std::int64_t>(block(plan.grid, l), 1));
        const Link& l = link(plan, k);
        const double messages = std::max(2.0, std::ceil(bytes / static_cast<double>(plan.chunk_bytes)));
        own_s += messages * (l.send_s + l.receive_s + 6 * machine_.step_s) +
                 bytes * ((plan.helper ? 0 : 2 * l.busy_byte_s) + 2 * machine_.copy_byte_s.at(item_bytes_));
        wire_s = std::max(wire_s, l.message_s(bytes));
    }
    const bool blocking = plan.schedule == ScheduleKind::blocking;
    const double exposed_s = blocking ? wire_s : std::max(0.0, wire_s - compute_s);
    return times * compute_s + times / together * (own_s / std::min<double>(lanes, 2) + exposed_s);
}

// Panels go one after another, and the others' rows by lanes.
double Estimate::pivot_s(const Plan& plan) const {
    const OperationRate rate =
        nest_rates(problem_, plan, shared_rate(rates_.of(plan), crowd(plan, machine_))).operations[0];
    const double blocks = std::ceil(static_cast<double>(extents_[0]) / static_cast<double>(plan.tile[0])),
                 tasks = blocks * std::ceil(static_cast<double>(extents_[1]) / static_cast<double>(plan.tile[1])),
                 panel = static_cast<double>(plan.tile[0] * plan.tile[0] * extents_[2]),
                 bytes = plan.ranks() > 1 ? item_bytes_ * static_cast<double>(plan.tile[0] * extents_[2]) : 0;
    return (points_ * rate.amount_s + tasks * rate.call_s) / (plan.ranks() * plan.lanes()) +
           blocks * (panel * rate.amount_s / plan.lanes() + (plan.lanes() > 1 ? 2 * machine_.hand_over_s : 0) +
                     (plan.ranks() > 1 ? link(plan, 1).message_s(bytes) : 0));
}

double Estimate::gather_s(const Plan& plan) const {
    const KernelRate rate = shared_rate(rates_.of(plan), crowd(plan, machine_));
    const double lanes = plan.ranks() * plan.lanes(), steps = static_cast<double>(extents_[problem_.gathers]);
    return (points_ * rate.point_s +
            points_ / static_cast<double>(std::max<std::int64_t>(extents_[extents_.n - 1], 1)) * rate.row_s) /
               lanes +
           steps * (rate.tile_s + (plan.lanes() > 1 ? 2 * machine_.hand_over_s : 0) +
                    (plan.ranks() > 1 ? machine_.same_host.message_s(item_bytes_) * (plan.ranks() - 1) : 0));
}

double Estimate::time_s(const Plan& plan) const {
    if (plan.generator == GeneratorKind::gather) return gather_s(plan);
    if (plan.generator == GeneratorKind::pivot) return pivot_s(plan);
    if (plan.generator == GeneratorKind::stencil) return stencil_s(plan);
    const Step s = step(plan);
    const double one = std::max(s.tile_s + s.overhead_s, s.hidden_s) + s.exposed_s;
    return s.tiles * one + s.fill_tiles * (s.tile_s + s.exposed_s) + s.fill_s;
}

std::int64_t Estimate::best_height(const Plan& plan) const {
    Plan p = plan;
    const int i = plan.mapping_dim;
    p.tile[i] = std::max<std::int64_t>(1, std::min<std::int64_t>(plan.tile[i], 64));
    const Step at = step(p);
    p.tile[i] *= 2;
    const Step twice = step(p);
    const auto z = static_cast<double>(p.tile[i]) / 2;
    const double layer = std::max((twice.tile_s - at.tile_s) / z, 1e-15);
    const double outside_layers_s = at.overhead_s + at.exposed_s + std::max(at.tile_s - layer * z, 0.0);
    const double layers = at.tiles * z;
    if (at.fill_tiles <= 0) return plan.tile[i];
    return static_cast<std::int64_t>(
        std::clamp(std::sqrt(layers * outside_layers_s / (at.fill_tiles * layer)), 1.0, 1e15));
}

std::int64_t Estimate::cached_height(const Plan& plan, double bytes) const {
    const std::int64_t high = std::max<std::int64_t>(block(plan.grid, plan.mapping_dim), 1);
    Plan p = plan;
    p.tile[p.mapping_dim] = 1;
    const double flat = rates_.working_set(p);
    p.tile[p.mapping_dim] = 2;
    if (rates_.working_set(p) == flat) return flat <= bytes ? high : 0;
    return std::min(high, static_cast<std::int64_t>(bytes / flat));
}

int Estimate::best_slices(const Plan& plan) const {
    return tilewave::best_slices(problem_, plan, step(plan).tile_s, machine_.hand_over_s);
}

std::int64_t Estimate::largest_message(const Plan& plan) const {
    double most = 0;
    for (int k = 0; k < plan.tile.n; ++k)
        if (plan.grid[k] > 1) most = std::max(most, face_bytes(plan, k));
    return static_cast<std::int64_t>(most);
}

void shorten(SweepProblem& p, int k, std::int64_t points) {
    const std::int64_t less = p.shape[k] - points;
    p.shape[k] -= less;
    p.space.hi[k] = std::max(p.space.hi[k] - less, p.space.lo[k]);
    if (!p.cuts.empty()) p.cuts[k] = Cut::even(p.shape[k]);
    for (NestArray& a : p.arrays)
        for (int m = 0; m < a.axes.n; ++m)
            if (a.axes[m] == k && !a.replicated) {
                if (!a.cuts.empty()) a.cuts[m] = Cut{};
                a.shape[m] = std::max<std::int64_t>(a.shape[m] - less, 0);
                if (a.scale.n) a.field_shape[m] = std::max<std::int64_t>(a.field_shape[m] - a.scale[m] * less, 0);
            }
}

double estimate_s(const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate) {
    const MeasuredRate as_given[] = {{plan, rate, true}};
    return Estimate(problem, machine, PlanRates(problem, machine, as_given)).time_s(plan);
}

// Minimises sum w_k m_k for a product of `lanes`: prime by prime, the largest first, to the dimension that is cheapest
// so far.
Index best_factors(const SweepProblem& problem, const Index& grid, int mapping_dim, std::int64_t lanes) {
    if (lanes < 1) throw ConfigError("lanes " + std::to_string(lanes) + " was given; allowed: 1 and more");
    Index m = Index::filled(problem.dims(), 1);
    if (problem.sequential || problem.dims() == 1) return m;
    const std::vector<bool> unit = problem.unit_dims();
    std::vector<std::int64_t> primes;
    for (std::int64_t p = 2, left = lanes; left > 1; ++p)
        for (; left % p == 0; left /= p) primes.push_back(p);
    for (auto p = primes.rbegin(); p != primes.rend(); ++p) {
        int best = -1;
        for (int k = 0; k < m.n; ++k) {
            if (k == mapping_dim || unit[k] || (problem.window.along >= 0 && k != problem.window.along)) continue;
            if (m[k] * *p > std::max<std::int64_t>(largest_block(problem, grid, k), 1)) continue;
            if (best < 0 || grid[k] * m[k] < grid[best] * m[best]) best = k;
        }
        if (best < 0) break;  // no dimension has so many points
        m[best] *= *p;
    }
    return m;
}

}  // namespace tilewave
