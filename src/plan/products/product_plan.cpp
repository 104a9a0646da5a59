#include "plan/products/product_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <tuple>

#include "generate/linalg/panels.hpp"
#include "generate/linalg/redistribute.hpp"
#include "plan/products/tuning.hpp"
#include "predict/machine_part.hpp"

namespace tilewave {

namespace {

template <class Kind>
std::string name_of(Kind kind) {
    return choice_names<Kind>[static_cast<std::size_t>(kind)];
}

ProductOperand in_blocks(const ProductOperand& operand, const BlockCyclic& blocks) {
    ProductOperand made = operand;
    if (!blocks.same(operand.blocks)) made.blocks = blocks;
    return made;
}

std::int64_t ceil_of(std::int64_t n, std::int64_t by) {
    return std::max<std::int64_t>(1, (n + by - 1) / by);
}

// The same grid with parts in proportion, of blocks that are small enough for that.
BlockCyclic dealt(const BlockCyclic& blocks, const Weights& weights) {
    const auto fine = [](const Axis& a) {
        const std::int64_t most = ceil_of(a.extent, a.parts * tuning::blocks_in_proportion);
        return Axis(a.extent, a.parts, a.block == 0 ? most : std::min(a.block, most));
    };
    return BlockCyclic{fine(blocks.rows), fine(blocks.columns), blocks.ranks_by_column}.in_proportion(weights);
}

bool two_dimensions(const BlockCyclic& c) {
    return c.rows.parts > 1 && c.columns.parts > 1;
}

// An axis on so many parts: as it is where it lies so, else in the blocks of another one.
Axis spread(const Axis& given, int parts, const Axis& other) {
    if (given.parts == parts) return given;
    const bool like = parts > 1 && other.block > 0;
    return {given.extent, parts, like ? other.block : ceil_of(given.extent, std::max(1, 2 * parts))};
}

bool narrow(const Axis& a) {
    return a.parts > 1 && a.block > 0 && a.block < tuning::least_block &&
           a.block * tuning::most_narrow_blocks < a.extent;
}

// The common dimension in blocks that a panel may fill.
Axis widened(const Axis& a, bool wide) {
    if (!wide || !narrow(a)) return a;
    return {a.extent, a.parts, std::min(tuning::wide_block, ceil_of(a.extent, 2 * a.parts))};
}

// The blocks that op(A) and op(B) need next to those of C. `by_columns`: B by columns on the ranks of C's rows.
std::pair<BlockCyclic, BlockCyclic> wanted(const BlockCyclic& a, const BlockCyclic& b, const BlockCyclic& c,
                                           bool by_columns, bool wide) {
    if (by_columns) {
        const int parts = c.rows.parts;
        const Axis whole{a.columns.extent, 1, 0};
        // Two blocks a rank: the smallest number with which a rank computes one while another travels.
        const Axis columns =
            b.columns.parts == parts ? b.columns : Axis{b.columns.extent, parts, ceil_of(b.columns.extent, 2 * parts)};
        return {{c.rows, whole, false}, {Axis{b.rows.extent, 1, 0}, columns, false}};
    }
    return {{c.rows, widened(spread(a.columns, c.columns.parts, c.columns), wide), c.ranks_by_column},
            {widened(spread(b.rows, c.rows.parts, c.rows), wide), c.columns, c.ranks_by_column}};
}

// Whether the ranks of a C by rows or columns share the common dimension of the operand that travels.
bool has_common_panels(const ProductRequest& r) {
    const BlockCyclic &a = r.a.blocks, &b = r.b.blocks, &c = r.c.blocks;
    if (c.rows.parts == 1 && c.columns.parts > 1) return a.columns.parts == c.columns.parts && a.rows.parts == 1;
    return b.rows.parts == c.rows.parts && b.columns.parts == 1;
}

std::vector<ProductAlgorithm> algorithms_of(const ProductRequest& r) {
    if (r.wish.algorithm) return {*r.wish.algorithm};
    if (r.wish.pending.value_or(false)) return {ProductAlgorithm::wavefront};
    const bool square = two_dimensions(r.c.blocks);
    if (square || r.ranks == 1) return {ProductAlgorithm::summa};
    std::vector<ProductAlgorithm> all{ProductAlgorithm::broadcast, ProductAlgorithm::wavefront};
    // Panels of the common dimension, for which an operand moves; without moving "broadcast" takes them.
    if (!has_common_panels(r)) all.push_back(ProductAlgorithm::summa);
    return all;
}

std::vector<std::int64_t> panels_of(const ProductRequest& r, bool wavefront) {
    if (r.wish.panel) return {*r.wish.panel};
    const std::int64_t n = r.c.blocks.columns.extent, k = r.a.blocks.columns.extent;
    const std::int64_t longest = std::max<std::int64_t>(1, wavefront ? n : std::max(n, k));
    std::vector<std::int64_t> all;
    if (r.wish.memory_bytes) all.assign(tuning::small_panels.begin(), tuning::small_panels.end());
    for (const std::int64_t panel : tuning::product_panels)
        if (r.ranks > 1 && panel < longest) all.push_back(panel);
    if (all.empty() || all.back() != tuning::product_panels.back()) all.push_back(tuning::product_panels.back());
    return all;
}

std::vector<int> lookaheads_of(const ProductRequest& r, bool pending) {
    if (r.wish.lookahead) return {*r.wish.lookahead};
    if (r.ranks == 1 || pending) return {tuning::panel_lookaheads.front()};
    std::vector<int> all(tuning::panel_lookaheads.begin(), tuning::panel_lookaheads.end());
    if (r.wish.memory_bytes) all.insert(all.begin(), 0);
    return all;
}

// Each plan as often as one of its choices has values, with each of them.
template <class T>
std::vector<ProductPlan> with_each(const std::vector<ProductPlan>& plans, T ProductPlan::* choice,
                                   const std::vector<T>& values) {
    std::vector<ProductPlan> all;
    for (const ProductPlan& plan : plans)
        for (const T value : values) (all.emplace_back(plan).*choice) = value;
    return all;
}

// All choices that are free, each once.
std::vector<ProductPlan> combinations(const ProductRequest& r) {
    std::vector<ProductPlan> all;
    const int group = std::max(r.c.blocks.rows.parts, r.c.blocks.columns.parts);
    for (const ProductAlgorithm algorithm : algorithms_of(r)) {
        const bool waves = algorithm == ProductAlgorithm::wavefront;
        std::vector<BroadcastTree> trees{BroadcastTree::ring};
        if (group > 2 && !waves) trees.push_back(BroadcastTree::least_rounds);
        if (r.wish.tree) trees = {*r.wish.tree};
        std::vector<bool> pendings{false};
        if (waves && r.threads == 1 && r.ranks > 1 && r.ranks <= most_ranks_played) pendings.push_back(true);
        if (r.wish.pending) pendings = {*r.wish.pending && waves};
        std::vector<double> tasks(tuning::product_tasks.begin(), tuning::product_tasks.end());
        if (r.ranks == 1) tasks.resize(1);
        if (r.wish.task_flops) tasks = {*r.wish.task_flops};
        std::vector<bool> wides{false};
        if (!waves && (narrow(r.a.blocks.columns) || narrow(r.b.blocks.rows))) wides.push_back(true);
        if (r.wish.wide_blocks) wides = {*r.wish.wide_blocks};
        std::vector<ProductPlan> plans(1);
        plans.front().algorithm = algorithm;
        plans = with_each(plans, &ProductPlan::wide_blocks, wides);
        if (!r.weights.empty())
            plans = with_each(plans, &ProductPlan::in_proportion,
                              r.wish.weights ? std::vector{true} : std::vector{false, true});
        plans = with_each(plans, &ProductPlan::panel, panels_of(r, waves));
        plans = with_each(plans, &ProductPlan::tree, trees);
        plans = with_each(plans, &ProductPlan::pending, pendings);
        plans = with_each(plans, &ProductPlan::task_flops, tasks);
        for (const ProductPlan& plan : plans)
            for (const ProductPlan& one : with_each({plan}, &ProductPlan::lookahead, lookaheads_of(r, plan.pending)))
                all.push_back(one);
    }
    return all;
}

// The ranks at the ends of a grid and next to them, in order; all where they are few, or have unequal parts. Others
// have as much as one of these.
std::vector<int> ends_of(const BlockCyclic& blocks, int ranks) {
    std::vector<int> all;
    const bool equal = blocks.weights().empty();
    const auto inside = [](int at, int parts) { return at > 1 && at < parts - 2; };
    for (int rank = 0; rank < ranks; ++rank) {
        const bool left_out =
            ranks > most_ranks_played && equal &&
            (inside(blocks.row_of(rank), blocks.rows.parts) || inside(blocks.column_of(rank), blocks.columns.parts));
        if (!left_out) all.push_back(rank);
    }
    return all;
}

// A product on fewer ranks, each of which has as much to do.
struct Fewer {
    ProductRequest request;
    double part;             // of the ranks along the longer side of the grid
    std::vector<int> ranks;  // as they are numbered in the whole
};

Fewer on_fewer(const ProductRequest& r, double part) {
    const auto parts_of = [&](int parts) {
        return std::min(parts, std::max(2, static_cast<int>(std::lround(parts * part))));
    };
    const auto shorter = [&](const Axis& a, const Axis& b) {  // of the operands that have it
        const Axis& cut = a.parts > 1 ? a : b;
        return cut.extent * parts_of(cut.parts) / cut.parts;
    };
    const std::int64_t m = shorter(r.c.blocks.rows, r.a.blocks.rows),
                       n = shorter(r.c.blocks.columns, r.b.blocks.columns),
                       k = shorter(r.a.blocks.columns, r.b.blocks.rows);
    const auto cut = [&](ProductOperand operand, std::int64_t rows, std::int64_t columns) {
        BlockCyclic& b = operand.blocks;
        const auto some = [&](const Axis& a, std::int64_t extent) {
            Weights weights = a.weights();
            if (!weights.empty()) weights.resize(parts_of(a.parts));
            return Axis(extent, parts_of(a.parts), a.block, weights);
        };
        b = {some(b.rows, rows), some(b.columns, columns), b.ranks_by_column};
        return operand;
    };
    Fewer fewer{r, part, {}};
    fewer.request.a = cut(r.a, m, k);
    fewer.request.b = cut(r.b, k, n);
    fewer.request.c = cut(r.c, m, n);
    const BlockCyclic &all = r.c.blocks, &some = fewer.request.c.blocks;
    fewer.request.ranks = std::max({some.ranks(), fewer.request.a.blocks.ranks(), fewer.request.b.blocks.ranks()});
    for (int rank = 0; rank < fewer.request.ranks; ++rank)
        fewer.ranks.push_back(rank < some.ranks() ? all.rank_of(some.row_of(rank), some.column_of(rank)) : rank);
    if (!r.weights.empty()) {
        fewer.request.weights.clear();
        for (const int rank : fewer.ranks) fewer.request.weights.push_back(r.weights[rank]);
    }
    const bool tall = all.rows.parts >= all.columns.parts;
    fewer.part = tall ? static_cast<double>(some.rows.parts) / all.rows.parts
                      : static_cast<double>(some.columns.parts) / all.columns.parts;
    return fewer;
}

// The largest part of the grid that is played.
double played_part(const ProductRequest& r) {
    const int longest = std::max({r.c.blocks.rows.parts, r.c.blocks.columns.parts, 2});
    const auto part_of = [&](int parts) { return static_cast<double>(parts) / longest; };
    int few = 2, many = longest + 1;
    while (many - few > 1) {
        const int middle = (few + many) / 2;
        (on_fewer(r, part_of(middle)).request.ranks <= most_ranks_played ? few : many) = middle;
    }
    return part_of(few);
}

std::vector<Schedule> schedules_of(const ProductCase& one) {
    std::vector<Schedule> parts;
    for (int rank = 0; rank < one.ranks; ++rank) parts.push_back(one.schedule(rank));
    return parts;
}

PredictOptions options_of(const ProductRequest& r) {
    PredictOptions options;
    options.record = false;
    options.threads = r.threads;
    return options;
}

// Seconds of a case by prediction, redistributions included.
double played_s(const ProductRequest& r, const ProductCase& one, const Machine& machine, const ProductRates& rates) {
    const std::vector<Schedule> parts = schedules_of(one);
    const std::vector<OperationRate> operations = rates(one, parts);
    double total = predict(parts, machine, Rates({KernelRate()}, operations), options_of(r)).time_s;
    const std::array<BlockCyclic, 3> given{r.a.stored(), r.b.stored(), r.c.stored()}, stored = one.stored();
    const std::vector<OperationRate> copies(3, operations[copy_a]);
    for (std::size_t i = 0; i < 3; ++i) {
        if (!one.moved[i]) continue;
        const MatrixMove move(given[i], stored[i], item_bytes(r.type), one.ranks);
        std::vector<Schedule> moves;
        for (int rank = 0; rank < one.ranks; ++rank) moves.push_back(move_matrix(move, rank));
        const double once = predict(moves, machine, Rates({KernelRate()}, copies), options_of(r)).time_s;
        total += i == 2 && r.adds ? 2 * once : once;
    }
    return total;
}

// The same of many ranks, by the straight line through what fewer take: each has as many rows and columns, and the
// common dimension and the way around a ring are longer on more.
double time_of(const std::string& call, const ProductRequest& r, const ProductPlan& plan, const Machine& machine,
               const ProductRates& rates) {
    const double part = played_part(r);
    if (part == 1) return played_s(r, product_case(call, r, plan), machine, rates);
    const Fewer some[] = {on_fewer(r, part), on_fewer(r, part / 2)};
    double time_s[2];
    for (int i = 0; i < 2; ++i)
        time_s[i] = played_s(some[i].request, product_case(call, some[i].request, plan),
                             part_of(machine, some[i].ranks, r.ranks), rates);
    if (some[0].part <= some[1].part) return time_s[0];
    return time_s[0] + std::max(0.0, time_s[0] - time_s[1]) * (1 - some[0].part) / (some[0].part - some[1].part);
}

}  // namespace

std::string ProductPlan::text() const {
    char task[32];
    std::snprintf(task, sizeof task, "%g", task_flops / 1e6);
    std::string text = name_of(algorithm), names;
    if (algorithm != ProductAlgorithm::wavefront) text += " by " + name_of(tree);
    text += ", panels of " + std::to_string(panel) + ", tasks of " + task + " Mflop, ";
    if (in_proportion) text += "C in proportion, ";
    text += pending ? "a pending block for every other rank" : std::to_string(lookahead) + " ahead";
    for (std::size_t i = 0; i < 3; ++i)
        if (moved[i]) names += (names.empty() ? "" : " and ") + std::string(1, "ABC"[i]);
    if (names.empty()) return text;
    return text + ", " + names + " redistributed" + (wide_blocks ? " in wider blocks" : "");
}

std::array<BlockCyclic, 3> ProductCase::stored() const {
    if (!mirrored) return {operands[0].stored(), operands[1].stored(), operands[2].stored()};
    const auto back = [](const ProductOperand& operand) { return operand.transposed().stored(); };
    return {back(operands[1]), back(operands[0]), back(operands[2])};
}

std::int64_t ProductCase::copies_bytes(int rank) const {
    std::int64_t total = 0;
    const std::array<BlockCyclic, 3> all = stored();
    for (std::size_t i = 0; i < 3; ++i)
        if (moved[i]) total += all[i].owned(rank).points() * problem.item_bytes;
    return total;
}

std::array<std::int64_t, 2> ProductCase::whole() const {
    std::int64_t rows = 0, columns = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        const Box owned = operands[2].blocks.owned(rank);
        rows = std::max(rows, owned.extent(0));
        columns = std::max(columns, owned.extent(1));
    }
    // Panels of the common dimension meet all of C, panels of B's columns as many of C.
    if (!b_by_rows()) columns = std::min(columns, most_columns(problem, choices.panel));
    return {rows, columns};
}

ProductCase product_case(const std::string& call, const ProductRequest& r, const ProductPlan& plan) {
    const BlockCyclic& blocks = r.c.blocks;
    const bool mirrored = blocks.rows.parts == 1 && blocks.columns.parts > 1;
    std::array<ProductOperand, 3> given{r.a, r.b, r.c};
    if (mirrored) given = {r.b.transposed(), r.a.transposed(), r.c.transposed()};
    ProductOperand c = given[2];
    const bool waves = plan.algorithm == ProductAlgorithm::wavefront;
    // Part i of C is rows of all columns: C by rows for the time of the product.
    if (waves && two_dimensions(c.blocks))
        c = in_blocks(c, {{c.blocks.rows.extent, r.ranks, ceil_of(c.blocks.rows.extent, r.ranks)},
                          {c.blocks.columns.extent, 1, 0},
                          false});
    if (plan.in_proportion) c = in_blocks(c, dealt(c.blocks, r.weights));
    const BlockCyclic &a0 = given[0].blocks, &b0 = given[1].blocks;
    const bool keeps_common = b0.rows.parts == c.blocks.rows.parts && b0.columns.parts == 1;
    const bool panels_of_b =
        plan.algorithm == ProductAlgorithm::broadcast && c.blocks.columns.parts == 1 && !keeps_common;
    const auto [wanted_a, wanted_b] =
        wanted(a0, b0, c.blocks, (waves || panels_of_b) && c.blocks.ranks() > 1, plan.wide_blocks);
    const ProductOperand a = in_blocks(given[0], wanted_a), b = in_blocks(given[1], wanted_b);
    std::array<bool, 3> moved{!a.blocks.same(a0), !b.blocks.same(b0), !c.blocks.same(given[2].blocks)};
    const MatmulProblem problem{a.blocks,           b.blocks, c.blocks,
                                item_bytes(r.type), r.adds,   {a.turned, b.turned, c.turned}};
    MatmulChoices choices;
    choices.algorithm = waves ? MatmulAlgorithm::wavefront : MatmulAlgorithm::broadcast;
    choices.tree = plan.tree;
    choices.lookahead = plan.lookahead;
    choices.panel = plan.panel;
    choices.pending = plan.pending;
    choices.lanes = r.threads;
    choices.task_flops = plan.task_flops;
    if (const std::string why = fits(problem, choices); !why.empty())
        throw ConfigError(call + ": algorithm '" + name_of(plan.algorithm) + "': the layouts have " + why);
    if (mirrored) std::swap(moved[0], moved[1]);
    return {{a, b, c}, mirrored, moved, problem, choices, r.ranks};
}

std::vector<ProductPlan> product_plans(const std::string& call, const ProductRequest& r) {
    check_choices(call, r.wish, r.ranks);
    std::vector<ProductPlan> all = combinations(r);
    for (ProductPlan& plan : all) {
        const ProductCase one = product_case(call, r, plan);
        plan.moved = one.moved;
        for (const int rank : ends_of(one.operands[2].blocks, r.ranks))
            plan.memory_bytes = std::max(plan.memory_bytes, one.copies_bytes(rank) + moving_bytes(one.schedule(rank)));
    }
    if (!r.wish.memory_bytes) return all;
    std::int64_t least = all.front().memory_bytes;
    for (const ProductPlan& plan : all) least = std::min(least, plan.memory_bytes);
    std::erase_if(all, [&](const ProductPlan& plan) { return plan.memory_bytes > *r.wish.memory_bytes; });
    if (all.empty())
        throw ConfigError(call + ": memory: given " + std::to_string(*r.wish.memory_bytes) +
                          " bytes; allowed: at least " + std::to_string(least) +
                          ", what the smallest plan of these choices needs beyond the matrices");
    return all;
}

void measure_products(const std::string& call, const ProductRequest& r, const std::vector<ProductPlan>& plans, int rank,
                      const ProductRates& rates) {
    std::set<std::tuple<ProductAlgorithm, std::int64_t, double, bool, bool>> seen;  // panels ahead change no task
    for (const ProductPlan& plan : plans) {
        if (!seen.insert({plan.algorithm, plan.panel, plan.task_flops, plan.wide_blocks, plan.in_proportion}).second)
            continue;
        const ProductCase one = product_case(call, r, plan);
        rates(one, {one.schedule(rank)});
    }
}

std::vector<ProductPlan> played_products(const std::string& call, const ProductRequest& r,
                                         std::vector<ProductPlan> plans, const Machine& machine,
                                         const ProductRates& rates) {
    if (plans.size() == 1) return plans;
    for (ProductPlan& plan : plans) plan.predicted_s = time_of(call, r, plan, machine, rates);
    // Moving operands and lanes without a separate thread are hard to predict: they must be clearly faster.
    const auto counted = [](const ProductPlan& plan) {
        const bool hard = plan.pending || plan.moved != std::array<bool, 3>{};
        return hard ? plan.predicted_s / tuning::clearly : plan.predicted_s;
    };
    std::ranges::stable_sort(plans, {}, counted);
    return plans;
}

}  // namespace tilewave
