#include "plan/nests/candidates.hpp"
#include "plan/nests/tuning.hpp"
#include "problem/stencil.hpp"

#include <algorithm>
#include <cmath>

namespace tilewave {

using namespace tuning;

namespace {

// All factorizations of `product` over the dimensions that `open` gives, 1 along the others; large ones of the
// first dimensions first: of equal plans the first is taken, and blocks that are separate in memory share no lines of
// the caches.
void factorisations(std::int64_t product, const std::vector<bool>& open, int k, Index& now, std::int64_t most,
                    std::vector<Index>& out) {
    if (static_cast<std::int64_t>(out.size()) >= most) return;
    if (k == now.n) {
        if (product == 1) out.push_back(now);
        return;
    }
    for (std::int64_t f = open[k] ? product : 1; f >= 1; --f) {
        if (product % f) continue;
        now[k] = f;
        factorisations(product / f, open, k + 1, now, most, out);
    }
    now[k] = 1;
}

std::vector<Index> factorisations(std::int64_t product, const std::vector<bool>& open, std::int64_t most) {
    std::vector<Index> all;
    Index now = Index::filled(static_cast<int>(open.size()), 1);
    factorisations(product, open, 0, now, most, all);
    return all;
}

}  // namespace

PlanCandidates::PlanCandidates(const SweepProblem& problem, int ranks, const PlanRequest& request,
                               const Machine& machine, const Estimate& estimate, const PlanRates& rates,
                               const Plan& by_rules)
    : problem_(problem),
      ranks_(ranks),
      request_(request),
      machine_(machine),
      estimate_(estimate),
      rates_(rates),
      by_rules_(by_rules),
      least_row_(std::min<double>(shortest_row, tile_row_points(by_rules))),
      sweeps_(by_rules.generator == GeneratorKind::sweep),
      stencils_(request.generator.value_or(GeneratorKind::stencil) == GeneratorKind::stencil &&
                why_no_stencil(problem).empty()),
      rows_depend_(!problem.sequential && !by_rules.independent_rows(problem)),
      in_blocks_(!without(problem.paths_off, FastPath::temporal_blocks)) {}

std::vector<int> PlanCandidates::mapping_dims() const {
    if (request_.mapping_dim) return {*request_.mapping_dim};
    if (problem_.window.along >= 0 || problem_.sequential || problem_.dims() == 1 || request_.tile)
        return {by_rules_.mapping_dim};
    std::vector<int> dims{by_rules_.mapping_dim};
    for (int k = 0; k < problem_.dims(); ++k)
        if (k != by_rules_.mapping_dim && !estimate_.unit(k)) dims.push_back(k);
    return dims;
}

std::vector<Index> PlanCandidates::grids(int mapping_dim) const {
    if (request_.grid) return {*request_.grid};
    if (ranks_ == 1 || problem_.window.along >= 0) return {by_rules_.grid};
    std::vector<bool> open;
    for (int k = 0; k < problem_.dims(); ++k) open.push_back(problem_.may_cut(k) && k != mapping_dim);
    std::vector<Index> all = factorisations(ranks_, open, most_grids);
    // Ranks without points only wait.
    std::erase_if(all, [&](const Index& g) {
        for (int k = 0; k < g.n; ++k)
            if (g[k] > std::max<std::int64_t>(problem_.space.extent(k), 1)) return true;
        return false;
    });
    if (all.empty() && mapping_dim == by_rules_.mapping_dim) all.push_back(by_rules_.grid);
    for (const Index& g : smaller_grids(open)) all.push_back(g);
    return all;
}

// Of fewer ranks, the rest idle: those of the first host, and halves of all down to one.
std::vector<Index> PlanCandidates::smaller_grids(const std::vector<bool>& open) const {
    std::vector<bool> whole = open;
    whole.flip();
    std::vector<Index> result;
    const bool some = std::ranges::find(open, true) != open.end();
    std::vector<int> counts;
    for (int r = ranks_ / 2; r >= 1; r /= 2) counts.push_back(r);
    int here = 1;
    while (here < ranks_ && machine_.shares_host(0, here)) ++here;
    if (here < ranks_ && std::ranges::find(counts, here) == counts.end()) counts.push_back(here);
    for (const int r : counts)
        if (some || r == 1) result.push_back(default_grid(problem_.space.hi - problem_.space.lo, r, whole));
    return result;
}

std::vector<Index> PlanCandidates::factors(const Index& grid, int mapping_dim) const {
    if (request_.factors) return {*request_.factors};
    if (problem_.sequential || problem_.dims() == 1) return {by_rules_.factors};
    std::vector<bool> open;
    for (int k = 0; k < problem_.dims(); ++k)
        open.push_back(k != mapping_dim && !estimate_.unit(k) &&
                       (problem_.window.along < 0 || k == problem_.window.along));
    std::vector<Index> all;
    std::vector<std::int64_t> counts;
    for (std::int64_t lanes = request_.threads; lanes >= 1; lanes /= 2) counts.push_back(lanes);
    // With a helper on another thread, all others compute.
    if (request_.helper.value_or(ranks_ > 1) && request_.threads > 2) counts.push_back(request_.threads - 1);
    for (const std::int64_t lanes : counts) {
        if (request_.all_threads && lanes != by_rules_.lanes()) continue;
        const std::vector<Index> some = factorisations(lanes, open, most_factors + 1);
        if (static_cast<std::int64_t>(some.size()) > most_factors)
            all.push_back(best_factors(problem_, grid, mapping_dim, lanes));
        else
            all.insert(all.end(), some.begin(), some.end());
    }
    std::erase_if(all, [&](const Index& m) {
        for (int k = 0; k < m.n; ++k)
            if (m[k] > 1 && m[k] > estimate_.block(grid, k)) return true;
        return false;
    });
    if (all.empty()) all.push_back(by_rules_.factors);
    return all;
}

std::vector<Plan> PlanCandidates::all() const {
    std::vector<Plan> found;
    if (has_tasks(by_rules_))
        for (Plan plan = by_rules_; !request_.factors && !request_.all_threads && plan.lanes() > 1;) {
            for (std::int64_t& lanes : plan.factors.v) lanes = std::max<std::int64_t>(lanes / 2, 1);
            found.push_back(plan);
        }
    const Add add = [&](const Plan& p) {
        if (wide_enough(p)) found.push_back(p);
    };
    if (stencils_) stencils(add);
    for (const int mapping_dim : sweeps_ ? mapping_dims() : std::vector<int>{})
        for (const Index& grid : grids(mapping_dim))
            for (const Index& m : factors(grid, mapping_dim)) {
                if (grid.n != problem_.dims() || m.n != problem_.dims() || m[mapping_dim] != 1) continue;
                Plan plan = by_rules_;
                plan.temporal_block = request_.temporal_block.value_or(1);
                plan.aggregate = request_.aggregate.value_or(1);
                plan.mapping_dim = mapping_dim;
                plan.grid = grid;
                plan.factors = m;
                tiles(plan, add);
            }
    return found;
}

// Of each grid, number of lanes and of time steps for one exchange: tiles as large as a lane's part, or pieces of it.
void PlanCandidates::stencils(const Add& add) const {
    const int mapping_dim = request_.mapping_dim.value_or(stencil_of(problem_).timed ? 0 : problem_.dims() - 1);
    for (const Index& grid : grids(mapping_dim))
        for (const Index& m : factors(grid, mapping_dim)) {
            if (grid.n != problem_.dims() || m.n != problem_.dims() || m[mapping_dim] != 1) continue;
            Plan plan = by_rules_;
            plan.generator = GeneratorKind::stencil;
            plan.storage = request_.storage.value_or(StorageKind::plain);
            plan.row = request_.row.value_or(Index());
            plan.mapping_dim = mapping_dim;
            plan.grid = grid;
            plan.factors = m;
            plan.aggregate = request_.aggregate.value_or(1);
            for (const int steps : {1, 2, 4, 8}) {
                if (request_.temporal_block ? steps > 1
                                            : steps > 1 && (plan.ranks() == 1 || problem_.once || !in_blocks_ ||
                                                            steps > problem_.space.extent(0)))
                    continue;
                plan.temporal_block = request_.temporal_block.value_or(steps);
                stencil_tiles(plan, add);
            }
        }
}

void PlanCandidates::stencil_tiles(Plan plan, const Add& add) const {
    const int n = problem_.dims(), first = stencil_of(problem_).first();
    plan.tile = Index::filled(n, 1);
    for (int k = first; k < n; ++k) plan.tile[k] = share(plan, k);
    if (request_.tile) plan.tile = *request_.tile;
    kinds(plan, add);
    const Index whole = plan.tile;
    if (request_.tile || plan.temporal_block > 1) return;  // tiles of these are tried next to a good one
    for (int k = first; k < n - 1; ++k)
        for (std::int64_t w = 2; w <= most_parts && whole[k] >= least_part_points * w; w *= 2) {
            plan.tile = whole;
            plan.tile[k] = ceil_div(whole[k], w);
            kinds(plan, add);
        }
}

// The same grid with time steps as wholes, where tiles follow each other over them; or the reverse.
void PlanCandidates::other_generator(const Plan& plan, const Add& add) const {
    if (plan.generator == GeneratorKind::stencil) return;
    if (!stencils_ || plan.factors[0] != 1) return;
    Plan p = plan;
    p.generator = GeneratorKind::stencil;
    p.grouping = request_.grouping.value_or(GroupingKind::hyperplane);
    p.slices = request_.slices.value_or(1);
    p.aggregate = request_.aggregate.value_or(1);
    p.temporal_block = request_.temporal_block.value_or(1);
    add(p);
}

// Points of a lane along k.
std::int64_t PlanCandidates::share(const Plan& plan, int k) const {
    return std::max<std::int64_t>(ceil_div(std::max<std::int64_t>(estimate_.block(plan.grid, k), 1), plan.factors[k]),
                                  1);
}

void PlanCandidates::tiles(Plan plan, const Add& add) const {
    if (request_.tile) {
        plan.tile = *request_.tile;
        kinds(plan, add);
        return;
    }
    if (problem_.sequential) {
        kinds(plan, add);
        return;
    }
    const int i = plan.mapping_dim, n = problem_.dims();
    const std::int64_t high = std::max<std::int64_t>(estimate_.block(plan.grid, i), 1);
    // A tile is a lane's whole width, or a part of it along one dimension.
    std::vector<std::pair<int, std::int64_t>> splits{{-1, 1}};
    if (problem_.window.along < 0)
        for (int k = 0; k < n; ++k)
            for (std::int64_t w = 2; w <= most_parts; w *= 2)
                if (k != i && !estimate_.unit(k) && share(plan, k) >= least_part_points * w) splits.push_back({k, w});
    for (const auto& [dim, w] : splits) {
        plan.tile = Index::filled(n, 1);
        for (int k = 0; k < n; ++k)
            if (!estimate_.unit(k))
                plan.tile[k] = std::max<std::int64_t>(ceil_div(share(plan, k), k == dim ? w : 1), 1);
        if (estimate_.unit(i)) {
            kinds(plan, add);
            continue;
        }
        if (dim < 0 && !request_.temporal_block && !request_.grouping) {
            Plan together = plan;
            if (block_in_time(problem_, machine_, plan.lanes(), together)) {
                together.aggregate = request_.aggregate.value_or(together.aggregate);
                if (!request_.factors || together.factors == *request_.factors) kinds(together, add);
            }
        }
        if (dim < 0) temporal_blocking(plan, add);
        const std::int64_t most = problem_.window.along >= 0 ? std::min(high, 2 * by_rules_.tile[i])
                                                             : high;  // as the pieces of tiles are made for
        std::vector<std::int64_t> wishes;
        // The best height as far as each cache goes, and beyond all of them.
        for (std::size_t level = 0; level <= rates_.cache_sizes().size(); ++level) {
            const bool all = level == rates_.cache_sizes().size();
            const std::int64_t cap =
                all ? most : std::min(most, estimate_.cached_height(plan, rates_.cache_sizes()[level]));
            if (cap < 1) continue;  // its layers alone are more than that cache holds
            plan.tile[i] = cap;
            const std::int64_t best = std::clamp<std::int64_t>(estimate_.best_height(plan), 1, cap);
            for (const double factor : heights)
                wishes.push_back(std::clamp<std::int64_t>(std::llround(static_cast<double>(best) * factor), 1, cap));
        }
        for (std::int64_t& wish : wishes)
            wish = ceil_div(high, ceil_div(high, wish));  // the last one is about as large as the others
        std::ranges::sort(wishes);
        wishes.erase(std::unique(wishes.begin(), wishes.end()), wishes.end());
        for (const std::int64_t wish : wishes) {
            plan.tile[i] = std::min(wish, most);
            kinds(plan, add);
        }
    }
}

// Steps of time together on one rank, along each dimension that rows do not vary, as many points as each cache holds:
// lanes side by side, and each lane with every so many-th step.
void PlanCandidates::temporal_blocking(Plan plan, const Add& add) const {
    const int i = plan.mapping_dim;
    const auto lanes = static_cast<int>(plan.lanes());
    const bool along_rows = plan.row.n ? plan.row[i] != 0 : i == problem_.dims() - 1;
    if (request_.temporal_block || request_.grouping || request_.factors || plan.ranks() > 1 || problem_.dims() < 3)
        return;
    if (along_rows || !estimate_.unit(0) || problem_.sequential || problem_.window.along >= 0) return;
    const auto in_caches = [&](Plan p, int steps) {
        double layer = 2 * item_bytes(problem_) * std::max(steps, static_cast<int>(p.factors[0]));
        for (int k = 0; k < problem_.dims(); ++k) {
            p.tile[k] = estimate_.unit(k) ? 1 : share(p, k);
            if (k != i) layer *= static_cast<double>(p.tile[k]);
        }
        p.temporal_block = steps;
        const std::int64_t high = p.tile[i];
        for (const double size : rates_.cache_sizes()) {
            p.tile[i] = std::clamp<std::int64_t>(static_cast<std::int64_t>(size / layer), 1, high);
            kinds(p, add);
        }
    };
    Plan in_turn = plan;
    for (int k = 0; k < problem_.dims(); ++k) in_turn.factors[k] = k == 0 ? lanes : 1;
    for (const int steps : {1, 2, 4, 6, 8}) {
        if (std::max(steps, lanes) > problem_.space.extent(0) || (steps > 1 && !in_blocks_)) continue;
        if (lanes > 1 && steps > 1 && plan.factors[0] == 1) in_caches(plan, steps);
        // A step at a time, lanes follow each other from step to step; blocks of one step a lane would only add pauses:
        // the wave equation on 160 x 170 x 180 floats took 18.3 ms with them, 9.8 without.
        if (steps == 1 ? lanes == 1 : steps % lanes != 0 || (steps == lanes && lanes > 1)) continue;
        in_caches(in_turn, steps);
    }
}

void PlanCandidates::kinds(Plan plan, const Add& add) const {
    const int lanes = plan.lanes();
    for (const ScheduleKind schedule : {ScheduleKind::overlapping, ScheduleKind::blocking}) {
        if (request_.schedule ? *request_.schedule != schedule
                              : plan.ranks() == 1 && schedule == ScheduleKind::blocking)
            continue;
        for (const GroupingKind grouping : {GroupingKind::hyperplane, GroupingKind::vertical}) {
            if (request_.grouping ? *request_.grouping != grouping
                                  : grouping == GroupingKind::vertical && (lanes == 1 || plan.temporal_block > 1 ||
                                                                           plan.generator == GeneratorKind::stencil))
                continue;
            plan.schedule = schedule;
            plan.grouping = grouping;
            plan.slices = 1;
            if (grouping == GroupingKind::vertical && lanes > 1) plan.slices = estimate_.best_slices(plan);
            plan.slices = request_.slices.value_or(plan.slices);
            plan.lookahead = request_.lookahead.value_or(1);
            plan.synchronous = request_.synchronous.value_or(false);
            for (const bool helper : {false, true}) {
                if (request_.helper ? *request_.helper != helper
                                    : helper && (plan.ranks() == 1 || request_.all_threads))
                    continue;
                if (helper && lanes > std::max(request_.threads - 1, request_.helper ? 1 : 0)) continue;
                plan.helper = helper;
                plan.poll_period_s = request_.poll_period_s.value_or(helper ? 0 : by_rules_.poll_period_s);
                add(plan);
            }
        }
    }
}

bool PlanCandidates::wide_enough(const Plan& plan) const {
    if (!request_.slices && plan.slices > 1 && plan.slices > plan.most_slices(problem_)) return false;
    if (request_.tile) return true;
    if (tile_row_points(plan) < least_row_) return false;
    const int across = problem_.dims() - 2;
    if (!rows_depend_ || plan.row.n != 0 || across < 0 || estimate_.unit(across)) return true;
    return plan.tile[across] >= std::min(max_simd_rows, share(plan, across));
}

std::vector<Plan> PlanCandidates::neighbours(const Plan& plan) const {
    std::vector<Plan> found;
    if (problem_.sequential || has_tasks(plan)) return found;
    const Add add = [&](const Plan& p) {
        if (wide_enough(p)) found.push_back(p);
    };
    if (!request_.tile) other_tiles(plan, add);
    if (!request_.temporal_block && !request_.tile) other_steps_of_time(plan, add);
    other_messages(plan, add);
    other_generator(plan, add);
    auto with = [&](auto change) {
        Plan p = plan;
        change(p);
        add(p);
    };
    if (!request_.slices && plan.grouping == GroupingKind::vertical && plan.lanes() > 1)
        for (const double factor : {0.5, 2.0})
            with([&](Plan& p) { p.slices = std::max(1, static_cast<int>(std::lround(plan.slices * factor))); });
    return found;
}

// Extents of a tile along k that are worth a look from `plan`.
std::vector<std::int64_t> PlanCandidates::extents(const Plan& plan, int k) const {
    const std::int64_t now = plan.tile[k], most = k == plan.mapping_dim
                                                      ? std::max<std::int64_t>(estimate_.block(plan.grid, k), 1)
                                                      : share(plan, k);
    std::vector<std::int64_t> all{most};
    for (const double factor : {0.5, 0.62, 0.8, 1.25, 1.6, 2.0})
        all.push_back(std::llround(static_cast<double>(now) * factor));
    Plan one = plan;
    one.tile[k] = 1;
    const double bytes = rates_.working_set(one);
    one.tile[k] = 2;
    if (bytes > 0 && rates_.working_set(one) > bytes)
        for (const double size : rates_.cache_sizes()) all.push_back(static_cast<std::int64_t>(size / bytes));
    for (std::int64_t& e : all) e = std::clamp<std::int64_t>(e, 1, most);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::erase(all, now);
    return all;
}

void PlanCandidates::other_tiles(const Plan& plan, const Add& add) const {
    const bool planes = problem_.window.along >= 0;
    for (int k = 0; k < problem_.dims(); ++k) {
        if (estimate_.unit(k) || (planes && k != plan.mapping_dim)) continue;
        for (const std::int64_t e : extents(plan, k)) {
            if (planes && e > 2 * by_rules_.tile[k]) continue;
            Plan p = plan;
            p.tile[k] = e;
            add(p);
            // A tile of about as many points, cut along another dimension.
            for (int l = 0; l < problem_.dims() && !planes; ++l) {
                if (l == k || estimate_.unit(l) || plan.tile[k] == e) continue;
                const std::int64_t most = l == plan.mapping_dim ? estimate_.block(plan.grid, l) : share(plan, l);
                const auto wish = static_cast<std::int64_t>(static_cast<double>(plan.tile[l]) *
                                                            static_cast<double>(plan.tile[k]) / static_cast<double>(e));
                Plan q = p;
                q.tile[l] = std::clamp<std::int64_t>(wish, 1, std::max<std::int64_t>(most, 1));
                if (q.tile[l] != plan.tile[l]) add(q);
            }
        }
    }
}

void PlanCandidates::other_steps_of_time(const Plan& plan, const Add& add) const {
    if (plan.generator == GeneratorKind::stencil) {
        if (plan.ranks() == 1 || problem_.once || !in_blocks_) return;
        for (const int steps : {plan.temporal_block / 2, plan.temporal_block + 1, plan.temporal_block * 2}) {
            Plan p = plan;
            p.temporal_block = steps;
            if (steps >= 1 && steps <= problem_.space.extent(0)) add(p);
        }
        return;
    }
    if (plan.temporal_block == 1 || !in_blocks_) return;
    for (const int steps : {plan.temporal_block / 2, plan.temporal_block * 3 / 2, plan.temporal_block * 2}) {
        Plan p = plan;
        p.temporal_block = steps;
        const auto lanes = static_cast<int>(plan.factors[0]);  // each has every so many-th step
        if (steps >= 2 && steps % lanes == 0 && steps <= problem_.space.extent(0)) add(p);
    }
    Plan separate = plan;  // as many lanes, side by side
    separate.temporal_block = separate.aggregate = 1;
    if (plan.factors[0] == 1) add(separate);
}

void PlanCandidates::other_messages(const Plan& plan, const Add& add) const {
    if (plan.ranks() == 1) return;
    auto with = [&](auto change) {
        Plan p = plan;
        change(p);
        add(p);
    };
    if (!request_.schedule)
        with([](Plan& p) {
            p.schedule = p.schedule == ScheduleKind::blocking ? ScheduleKind::overlapping : ScheduleKind::blocking;
        });
    if (plan.schedule == ScheduleKind::overlapping && !request_.lookahead && plan.generator == GeneratorKind::sweep)
        for (const int ahead : {1, 2, 4})
            if (ahead != plan.lookahead) with([&](Plan& p) { p.lookahead = ahead; });
    if (!request_.poll_period_s && !plan.helper)
        for (const double period : {0.0, 12.5e-6, 50e-6, 200e-6})
            if (period != plan.poll_period_s) with([&](Plan& p) { p.poll_period_s = period; });
    if (!request_.chunk_bytes && estimate_.largest_message(plan) > 64 << 10)
        for (const std::int64_t bytes : {64 << 10, 256 << 10, 1 << 20})
            if (bytes != plan.chunk_bytes) with([&](Plan& p) { p.chunk_bytes = bytes; });
    if (!request_.aggregate && plan.aggregate > 1)
        for (const int together : {plan.aggregate / 2, plan.aggregate * 2})
            with([&](Plan& p) { p.aggregate = std::max(together, 1); });
}

}  // namespace tilewave
