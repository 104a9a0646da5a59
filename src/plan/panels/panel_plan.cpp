#include "plan/panels/panel_plan.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

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

// Arrays in which panels travel.
std::int64_t moving_panels(const Schedule& s) {
    std::int64_t bytes = 0;
    for (const Array& a : s.arrays)
        if (a.time_buffers > 0 && !a.storage.empty())
            bytes += a.storage.points() / a.storage.extent(0) *
                     std::min<std::int64_t>(a.time_buffers, a.storage.extent(0)) * a.item_bytes;
    return bytes;
}

std::vector<Index> grids_of(const std::string& call, const PanelProblem& p, const FactorOptions& wish) {
    if (!wish.grid) return {Index{1, p.ranks}};
    const Index& g = *wish.grid;
    if (g.n != 2 || g[0] < 1 || g[1] < 1 || g[0] > p.ranks || g[1] > p.ranks || g[0] * g[1] > p.ranks)
        throw ConfigError(concat(call, ": grid: given ", g, "; allowed: two integers >= 1, (rows, columns), at most ",
                                 p.ranks, " ranks in all"));
    if (g[0] > 1 && wish.algorithm == FactorAlgorithm::wavefront)
        throw ConfigError(concat(call, ": grid: given ", g,
                                 " with algorithm 'wavefront'; allowed: one row of ranks, or "
                                 "'broadcast'"));
    return {g};
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
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

// Plans whose tasks are counted.
struct Counted {
    FactorPlan plan;
    std::int64_t tasks = 0;  // of all ranks, about
    bool same_kind(const Counted& other) const {
        return plan.block == other.plan.block && plan.algorithm == other.plan.algorithm && plan.grid == other.plan.grid;
    }
};

// Leaves out what takes too long to simulate: of the kinds with most tasks all plans but the first, then these kinds.
void limit_tasks(std::vector<Counted>& all) {
    const auto total = [&] {
        std::int64_t sum = 0;
        for (const Counted& c : all) sum += c.tasks;
        return sum;
    };
    std::vector<Counted> kinds;  // the first plan of each, those with most tasks first
    for (const Counted& c : all)
        if (std::ranges::none_of(kinds, [&](const Counted& kind) { return kind.same_kind(c); })) kinds.push_back(c);
    std::ranges::stable_sort(kinds, std::greater(), &Counted::tasks);
    for (const bool whole : {false, true})
        for (const Counted& kind : kinds) {
            if (total() <= tuning::most_played_tasks || all.size() == 1) return;
            bool keeps = !whole || std::ranges::all_of(all, [&](const Counted& c) { return c.same_kind(kind); });
            std::erase_if(all, [&](const Counted& c) { return c.same_kind(kind) && !std::exchange(keeps, false); });
        }
}

// Bytes that a rank sends.
std::int64_t sent_by(const Schedule& s) {
    std::int64_t bytes = 0;
    for (const Message& m : s.messages)
        if (m.send) bytes += m.bytes;
    return bytes;
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
           (grid[0] > 1 ? concat(" on ", grid[0], " x ", grid[1], " ranks") : "") + ", panels of " +
           std::to_string(block) + " in chunks of " + std::to_string(chunk_bytes >> 10) + " KiB, " +
           std::to_string(lookahead) + " ahead";
}

BlockCyclic panel_layout(const PanelProblem& p, const FactorPlan& plan) {
    const auto rows = static_cast<int>(plan.grid[0]);
    return {{p.matrix.rows.extent, rows, rows > 1 ? plan.block : 0},
            {p.matrix.columns.extent, static_cast<int>(plan.grid[1]), plan.block}};
}

Schedule panel_schedule(const PanelProblem& p, const FactorPlan& plan, int rank) {
    const BlockCyclic layout = panel_layout(p, plan);
    const FactorChoices choices = choices_of(plan, p.threads);
    switch (p.work) {
        case PanelWork::cholesky: return cholesky(layout, p.item_bytes, choices, rank, p.ranks);
        case PanelWork::lu: return lu(layout, p.item_bytes, choices, rank, p.ranks);
        case PanelWork::qr: return qr(layout, p.item_bytes, choices, rank, p.ranks);
        default: return triangular_solve(layout, p.sides, p.item_bytes, p.system, choices, rank, p.ranks);
    }
}

std::vector<FactorPlan> panel_plans(const std::string& call, const PanelProblem& p, const FactorOptions& wish) {
    check_choices(call, wish);
    const bool solve = p.work == PanelWork::solve, chosen = wish.algorithm && wish.block && wish.lookahead;
    std::vector<Counted> all;
    struct Known {
        std::int64_t memory = 0, sent = 0, tasks = 0;
    };
    std::map<std::tuple<std::int64_t, FactorAlgorithm, std::int64_t, int, BroadcastTree>, Known> known;
    const std::vector<std::int64_t> chunks =
        wish.chunk_bytes ? std::vector{*wish.chunk_bytes}
                         : std::vector(tuning::panel_chunks_bytes.begin(), tuning::panel_chunks_bytes.end());
    const auto add = [&](FactorPlan plan) {
        for (const std::int64_t chunk : chunks) {
            plan.chunk_bytes = chunk;
            Known& found = known[{plan.grid[0], plan.algorithm, plan.block, plan.lookahead, plan.tree}];
            if (found.tasks == 0) {
                const Schedule one = panel_schedule(p, plan, 0);
                found = {moving_panels(one), sent_by(one), static_cast<std::int64_t>(one.works.size()) * p.ranks + 1};
            }
            plan.memory_bytes = found.memory;
            plan.sent_bytes = found.sent;
            plan.least_sent_bytes = least_sent(p, plan);
            all.push_back({plan, found.tasks});
            if (solve || chosen || p.ranks == 1) break;  // the largest alone: where nothing is free either
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
                        add(plan);
                    }
                }
        }
    std::int64_t least = all.front().plan.memory_bytes;
    for (const Counted& c : all) least = std::min(least, c.plan.memory_bytes);
    if (wish.memory_bytes)
        std::erase_if(all, [&](const Counted& c) { return c.plan.memory_bytes > *wish.memory_bytes; });
    if (all.empty())
        throw ConfigError(call + ": memory: given " + std::to_string(*wish.memory_bytes) +
                          " bytes; allowed: at least " + std::to_string(least) +
                          ", what the smallest plan of these choices needs beyond the matrices");
    limit_tasks(all);
    std::vector<FactorPlan> plans;
    for (const Counted& c : all) plans.push_back(c.plan);
    return plans;
}

std::vector<FactorPlan> played_panels(const PanelProblem& p, std::vector<FactorPlan> plans, const Machine& machine,
                                      const PanelRates& rates) {
    if (plans.size() == 1 || std::min(p.matrix.rows.extent, p.matrix.columns.extent) == 0) {
        plans.resize(1);
        return plans;
    }
    for (FactorPlan& plan : plans) {
        std::vector<Schedule> parts;
        for (int rank = 0; rank < p.ranks; ++rank) parts.push_back(panel_schedule(p, plan, rank));
        PredictOptions options;
        options.record = false;
        options.threads = p.threads;
        plan.predicted_s = predict(parts, machine, Rates({KernelRate()}, rates(plan)), options).time_s;
    }
    std::stable_sort(plans.begin(), plans.end(), [](const FactorPlan& a, const FactorPlan& b) {
        const auto counted = [](const FactorPlan& plan) {
            return plan.algorithm == FactorAlgorithm::wavefront ? plan.predicted_s / tuning::clearly : plan.predicted_s;
        };
        return counted(a) < counted(b);
    });
    return plans;
}

}  // namespace tilewave
