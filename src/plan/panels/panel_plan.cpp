#include "plan/panels/panel_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "core/concat.hpp"
#include "generate/linalg/factors.hpp"
#include "generate/linalg/sides.hpp"
#include "plan/panels/tuning.hpp"

namespace tilewave {

FactorChoices choices_of(const FactorPlan& plan, int threads) {
    FactorChoices c;
    c.wavefront = plan.algorithm == FactorAlgorithm::wavefront;
    c.tree = plan.tree;
    c.lookahead = plan.lookahead;
    c.lanes = threads;
    c.chunk_bytes = plan.chunk_bytes;
    return c;
}

namespace {

// The first of the ranks that have most of a matrix.
int rank_with_most(const BlockCyclic& layout) {
    const auto most = [](const Axis& axis) {
        int best = 0;
        for (int part = 1; part < axis.parts; ++part)
            if (axis.count(part) > axis.count(best)) best = part;
        return best;
    };
    return layout.rank_of(most(layout.rows), most(layout.columns));
}

// Arrays in which panels travel.
std::int64_t moving_panels(const Schedule& s) {
    std::int64_t bytes = 0;
    for (const Array& a : s.arrays)
        if (a.time_buffers > 0 && !a.storage.empty())
            bytes += a.storage.points() / a.storage.extent(0) *
                     std::min<std::int64_t>(a.time_buffers, a.storage.extent(0)) * a.item_bytes;
    return bytes;
}

// Grids of about all ranks, rows at most as columns where the matrix is not taller; and the one on which it lies.
std::vector<Index> grids_of(const std::string& call, const PanelProblem& p, const FactorOptions& wish) {
    const bool wavefront = wish.algorithm == FactorAlgorithm::wavefront;
    if (wish.grid) {
        const Index& g = *wish.grid;
        if (g.n != 2 || g[0] < 1 || g[1] < 1 || g[0] > p.ranks || g[1] > p.ranks || g[0] * g[1] > p.ranks)
            throw ConfigError(concat(call, ": grid: given ", g,
                                     "; allowed: two integers >= 1, (rows, columns), at most ", p.ranks,
                                     " ranks in all"));
        if (g[0] > 1 && wavefront)
            throw ConfigError(concat(call, ": grid: given ", g,
                                     " with algorithm 'wavefront'; allowed: one row of ranks, or "
                                     "'broadcast'"));
        return {g};
    }
    const Axis &rows = p.matrix.rows, &columns = p.matrix.columns;
    if (wavefront || p.work == PanelWork::solve || columns.extent == 0) return {Index{1, p.ranks}};
    std::vector<Index> all;
    if (p.ranks <= tuning::most_ranks_in_a_row) all.push_back(Index{1, p.ranks});
    const std::int64_t tall = std::max<std::int64_t>(1, rows.extent / columns.extent);
    for (std::int64_t r = 2; r <= p.ranks && r * r <= tall * p.ranks; ++r) {
        const std::int64_t c = p.ranks / r;
        // Divisors; next to the square also what leaves few ranks idle.
        const bool whole = r * c == p.ranks, nearly = c <= r + 1 && r * c >= (1 - tuning::most_idle) * p.ranks;
        const bool many = p.ranks > tuning::most_ranks_of_blocks && 2 * c > tuning::most_panels;
        if ((whole || nearly) && !many) all.push_back(Index{r, c});
    }
    const Index given{rows.parts, columns.parts};
    if (rows.block > 0 && rows.block == columns.block && rows.parts > 1 && std::ranges::count(all, given) == 0)
        all.push_back(given);
    if (all.empty()) all.push_back(Index{1, p.ranks});
    return all;
}

std::vector<std::int64_t> blocks_of(const PanelProblem& p, const Index& grid, const FactorOptions& wish) {
    const Axis &rows = p.matrix.rows, &columns = p.matrix.columns;
    const std::int64_t n = std::min(rows.extent, columns.extent), ranks = std::max(grid[0], grid[1]);
    if (wish.block) return {std::min(*wish.block, std::max<std::int64_t>(1, columns.extent))};
    const bool narrow = columns.block < tuning::panel_blocks.front() && columns.block * tuning::most_narrow_panels < n;
    const bool lies = rows.parts == grid[0] && columns.parts == grid[1] && columns.block > 0 &&
                      (rows.parts == 1 || rows.block == columns.block);
    if (ranks > 1 && lies && columns.block * ranks < n && !narrow) return {columns.block};
    std::vector<std::int64_t> all;
    if (wish.memory_bytes)
        for (const std::int64_t b : tuning::small_blocks)
            if (b <= std::max<std::int64_t>(1, columns.extent)) all.push_back(b);
    // Some block columns for each rank, so that none is idle for long.
    const std::size_t before = all.size();
    for (const std::int64_t b : tuning::panel_blocks)
        if (b * ranks * 2 <= n) all.push_back(b);
    if (all.size() == before)
        all.push_back(std::clamp<std::int64_t>((n + 2 * ranks - 1) / (2 * ranks), 1, tuning::usual_block));
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (p.ranks <= tuning::most_ranks_of_blocks || wish.memory_bytes) return all;
    const auto wider = std::ranges::upper_bound(all, tuning::usual_block);
    return {wider == all.begin() ? all.front() : *(wider - 1)};
}

bool same_kind(const FactorPlan& a, const FactorPlan& b) {
    return a.block == b.block && a.algorithm == b.algorithm && a.grid == b.grid && a.in_proportion == b.in_proportion;
}

// Bytes that a rank sends.
std::int64_t sent_by(const Schedule& s) {
    std::int64_t bytes = 0;
    for (const Message& m : s.messages)
        if (m.send) bytes += m.bytes;
    return bytes;
}

// Of rank 0; of very many steps about, by three parts of them.
std::int64_t sent_by_rank_0(const PanelProblem& p, const FactorPlan& plan) {
    const std::int64_t panels = std::min(p.matrix.rows.extent, p.matrix.columns.extent) / plan.block,
                       steps = std::min<std::int64_t>(plan.grid[1], tuning::panels_counted);
    if (p.work == PanelWork::solve || panels < 6 * tuning::panels_counted) return sent_by(panel_schedule(p, plan, 0));
    std::int64_t sum = 0;  // by Simpson's rule
    for (const std::int64_t i : {0, 1, 2})
        sum += (i == 1 ? 4 : 1) * sent_by(panel_schedule(p, plan, 0, {(panels - steps) * i / 2, steps}));
    return sum * panels / (6 * steps);
}

// Seconds in which each rank sends and receives its part of the matrix, on its way to where the factor lies.
double moving_s(const PanelProblem& p, const FactorPlan& plan, const Machine& machine) {
    if (p.ranks == 1 || panel_layout(p, plan).same(p.matrix)) return 0;
    const bool hosts = !machine.shares_host(0, p.ranks - 1);
    const Link& link = hosts ? machine.other_host : machine.same_host;
    double sharing = 0;
    for (int rank = 0; hosts && rank < p.ranks; ++rank) sharing += machine.shares_host(0, rank) ? 1 : 0;
    const double bytes = static_cast<double>(p.matrix.rows.extent * p.matrix.columns.extent * p.item_bytes) / p.ranks;
    return bytes * link.byte_s * std::max(1.0, sharing) + (p.ranks - 1) * (link.send_s + link.receive_s);
}

std::int64_t least_sent(const PanelProblem& p, const FactorPlan& plan) {
    if (p.ranks == 1 || (p.work != PanelWork::lu && p.work != PanelWork::cholesky)) return 0;
    const auto n = static_cast<double>(p.matrix.columns.extent), item = static_cast<double>(p.item_bytes);
    const double ranks = plan.grid[0] * plan.grid[1], memory = n * n / ranks + plan.memory_bytes / item;
    if (memory == 0) return 0;
    return std::llround(item * (p.work == PanelWork::lu ? 2 : 1) / 3 * n * n * n / (ranks * std::sqrt(memory)));
}

}  // namespace

std::string FactorPlan::text() const {
    const bool waves = algorithm == FactorAlgorithm::wavefront;
    return std::string(choice_names<FactorAlgorithm>[static_cast<std::size_t>(waves)]) +
           (waves ? "" : std::string(" by ") + choice_names<BroadcastTree>[static_cast<std::size_t>(tree)]) +
           (grid[0] > 1 ? concat(" on ", grid[0], " x ", grid[1], " ranks") : "") +
           (in_proportion ? ", blocks in proportion" : "") + ", panels of " + std::to_string(block) + " in chunks of " +
           std::to_string(chunk_bytes >> 10) + " KiB, " + std::to_string(lookahead) + " ahead" +
           (moving_s > 0 ? ", redistributed first" : "");
}

BlockCyclic panel_layout(const PanelProblem& p, const FactorPlan& plan) {
    const auto rows = static_cast<int>(plan.grid[0]);
    const BlockCyclic even{{p.matrix.rows.extent, rows, rows > 1 ? plan.block : 0},
                           {p.matrix.columns.extent, static_cast<int>(plan.grid[1]), plan.block}};
    return plan.in_proportion ? even.in_proportion(p.weights) : even;
}

BlockCyclic even_columns(std::int64_t rows, std::int64_t columns, int ranks, const Weights& weights) {
    const std::int64_t parts = weights.empty() ? ranks : ranks * tuning::blocks_in_proportion;
    const BlockCyclic even{{rows, 1, 0}, {columns, ranks, std::max<std::int64_t>(1, (columns + parts - 1) / parts)}};
    return even.in_proportion(weights);
}

Schedule panel_schedule(const PanelProblem& p, const FactorPlan& plan, int rank, const FactorPart& part) {
    const BlockCyclic layout = panel_layout(p, plan);
    FactorChoices choices = choices_of(plan, p.threads);
    choices.part = part;
    switch (p.work) {
        case PanelWork::cholesky: return cholesky(layout, p.item_bytes, choices, rank, p.ranks);
        case PanelWork::lu: return lu(layout, p.item_bytes, choices, rank, p.ranks);
        case PanelWork::qr: return qr(layout, p.item_bytes, choices, rank, p.ranks);
        default: {
            const BlockCyclic sides =
                plan.in_proportion ? even_columns(p.sides.rows.extent, p.sides.columns.extent, p.ranks, p.weights)
                                   : p.sides;
            return triangular_solve(layout, sides, p.item_bytes, p.system, choices, rank, p.ranks);
        }
    }
}

std::vector<FactorPlan> panel_plans(const std::string& call, const PanelProblem& p, const FactorOptions& wish) {
    check_choices(call, wish, p.ranks);
    const bool many = p.ranks > tuning::most_ranks_of_blocks && !wish.memory_bytes;
    const bool solve = p.work == PanelWork::solve, chosen = wish.algorithm && wish.block && wish.lookahead;
    // As the caller or the matrix says; those of the machine are compared with even blocks.
    const bool always = !p.weights.empty() && (wish.weights || !p.matrix.weights().empty());
    std::vector<FactorPlan> all;
    struct Known {
        std::int64_t memory = -1, sent = 0;
    };
    std::map<std::tuple<std::int64_t, FactorAlgorithm, std::int64_t, int, BroadcastTree, bool>, Known> known;
    const std::vector<std::int64_t> chunks =
        wish.chunk_bytes ? std::vector{*wish.chunk_bytes}
                         : std::vector(tuning::panel_chunks_bytes.begin(), tuning::panel_chunks_bytes.end());
    const auto add = [&](FactorPlan plan) {
        for (const std::int64_t chunk : chunks) {
            plan.chunk_bytes = chunk;
            Known& found =
                known[{plan.grid[0], plan.algorithm, plan.block, plan.lookahead, plan.tree, plan.in_proportion}];
            if (found.memory < 0)
                found = {moving_panels(panel_schedule(p, plan, rank_with_most(panel_layout(p, plan)), {0, 1})),
                         sent_by_rank_0(p, plan)};
            plan.memory_bytes = found.memory;
            plan.sent_bytes = found.sent;
            plan.least_sent_bytes = least_sent(p, plan);
            all.push_back(plan);
            if (solve || chosen || many || p.ranks == 1) break;  // the largest alone: where nothing is free either
        }
    };
    for (const Index& grid : grids_of(call, p, wish))
        for (const FactorAlgorithm algorithm : {FactorAlgorithm::broadcast, FactorAlgorithm::wavefront}) {
            const bool wavefront = algorithm == FactorAlgorithm::wavefront;
            // Alone, a rank has nobody to wait for.
            const bool waves = !solve && p.ranks > 1 && grid[0] == 1 && wish.tree != BroadcastTree::least_rounds;
            if (wish.algorithm ? *wish.algorithm != algorithm : wavefront && !waves) continue;
            std::vector<int> aheads(tuning::panel_lookaheads.begin(), tuning::panel_lookaheads.end());
            if (wish.memory_bytes) aheads.insert(aheads.begin(), 0);
            if (many) aheads.pop_back();
            if (p.ranks == 1) aheads.resize(1);
            if (wish.lookahead) aheads = {*wish.lookahead};
            for (const std::int64_t block : blocks_of(p, grid, wish))
                for (const BroadcastTree tree : {BroadcastTree::ring, BroadcastTree::least_rounds}) {
                    const bool usual = tree == BroadcastTree::ring || (std::max(grid[0], grid[1]) > 2 && !wavefront);
                    if (wish.tree ? *wish.tree != tree : !usual) continue;
                    for (const int ahead : aheads) {
                        FactorPlan plan;
                        plan.grid = grid;
                        plan.algorithm = algorithm;
                        plan.tree = tree;
                        plan.lookahead = ahead;
                        plan.block = block;
                        for (const bool in_proportion : {false, true}) {
                            plan.in_proportion = in_proportion;
                            if (in_proportion ? p.weights.empty() : always) continue;
                            add(plan);
                        }
                    }
                }
        }
    std::int64_t least = all.front().memory_bytes;
    for (const FactorPlan& plan : all) least = std::min(least, plan.memory_bytes);
    if (wish.memory_bytes)
        std::erase_if(all, [&](const FactorPlan& plan) { return plan.memory_bytes > *wish.memory_bytes; });
    if (all.empty())
        throw ConfigError(call + ": memory: given " + std::to_string(*wish.memory_bytes) +
                          " bytes; allowed: at least " + std::to_string(least) +
                          ", what the smallest plan of these choices needs beyond the matrices");
    return all;
}

std::vector<FactorPlan> played_panels(const PanelProblem& p, std::vector<FactorPlan> plans, const Machine& machine,
                                      const PanelRates& rates) {
    if (plans.size() == 1 || std::min(p.matrix.rows.extent, p.matrix.columns.extent) == 0) {
        plans.resize(1);
        return plans;
    }
    const auto counted = [](const FactorPlan& plan) {
        const double time_s = plan.predicted_s + plan.moving_s;
        return plan.algorithm == FactorAlgorithm::wavefront ? time_s / tuning::clearly : time_s;
    };
    const auto simulate = [&](FactorPlan& plan) {
        if (plan.predicted_s >= 0) return;
        plan.moving_s = moving_s(p, plan, machine);
        plan.predicted_s = panels_prediction(p, plan, machine, rates(plan), false, tuning::most_plan_steps).time_s;
    };
    std::vector<FactorPlan> kinds;
    std::vector<double> steps;  // of a plan of each kind
    double all = 0;
    for (const FactorPlan& plan : plans) {
        if (std::ranges::none_of(kinds, [&](const FactorPlan& kind) { return same_kind(kind, plan); })) {
            kinds.push_back(plan);
            steps.push_back(simulated_steps(p, plan, tuning::most_plan_steps));
        }
        all += steps.back();
    }
    if (all > tuning::most_plans_steps) {
        while (kinds.size() > 1 && std::accumulate(steps.begin(), steps.end(), 0.0) > tuning::most_alone_steps) {
            const auto most = std::ranges::max_element(steps);
            kinds.erase(kinds.begin() + (most - steps.begin()));
            steps.erase(most);
        }
        if (steps.size() == 1 && steps.front() > tuning::most_alone_steps) return kinds;
        std::ranges::for_each(kinds, simulate);
        std::ranges::stable_sort(kinds, {}, counted);
        std::erase_if(plans, [&](const FactorPlan& plan) { return !same_kind(kinds.front(), plan); });
        plans.erase(plans.begin());
        plans.insert(plans.begin(), kinds.begin(), kinds.end());
    }
    std::ranges::for_each(plans, simulate);
    std::ranges::stable_sort(plans, {}, counted);
    return plans;
}

}  // namespace tilewave
