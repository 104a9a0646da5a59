// Choosing a plan: candidates by closed form, the best of each kind played, the winner refined.
//
// The derivations are in docs/decisions/0010-planning.md.
#include "tilewave/planner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

#include "plan_estimate.hpp"
#include "tilewave/cost.hpp"
#include "tilewave/schedule.hpp"

namespace tilewave {

namespace {

// A plan that is not the one by rules must be this much better: the predictor is no better than that.
constexpr double worth = 0.98;
// Nor is one that was found later, further from what has proved itself, taken for less than this.
constexpr double worth_later = 0.995;
// Fewer ranks must be this much better: arrays would first have to move to them, and other nests' plans may want them back.
constexpr double worth_fewer = 0.9;
// Rows shorter than those that the rate was measured on take what nobody knows: less than a vector is computed point by point.
constexpr double shortest_row = 12;
constexpr std::int64_t most_grids = 400, most_factors = 40;
constexpr double heights[] = {1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 0.71, 1, 1.41, 2, 4, 8};

// Every way to write `product` as factors of the dimensions that `open` says, 1 along the others; large ones of the first dimensions first: of equal
// plans the first is taken, and blocks that lie apart in memory share no lines of the caches.
void factorisations(std::int64_t product, const std::vector<bool>& open, int k, Index& now, std::int64_t most, std::vector<Index>& out) {
    if (static_cast<std::int64_t>(out.size()) >= most) return;
    if (k == now.n) {
        if (product == 1) out.push_back(now);
        return;
    }
    for (std::int64_t f = open[static_cast<std::size_t>(k)] ? product : 1; f >= 1; --f) {
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

// The schedule's and grouping's names, for reasons.
std::string kind_of(const Plan& p) {
    return std::string(p.schedule == ScheduleKind::blocking ? "blocking" : "overlapping") +
           (p.lanes() > 1 ? p.grouping == GroupingKind::vertical ? ", vertical" : ", hyperplane" : "");
}

class Planner {
public:
    Planner(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine, const KernelRate& rate, const PlannerOptions& options)
        : problem_(problem), ranks_(ranks), request_(request), machine_(machine), rate_(rate), options_(options), estimate_(problem, machine, rate) {}

    Choice choose();

private:
    void enumerate();
    std::vector<int> mapping_dims() const;
    std::vector<Index> grids(int mapping_dim) const;
    std::vector<Index> smaller_grids(const std::vector<bool>& open) const;
    std::vector<Index> factors(const Index& grid, int mapping_dim) const;
    void tiles(Plan plan);
    void kinds(Plan plan);
    bool wide_enough(const Plan& plan) const;
    void add(const Plan& plan);
    void play(const Plan& plan);
    void play_best_of_each_kind();
    void refine();
    // What a candidate takes, plans of fewer ranks as much longer as they must be better.
    double weighed_s(const Candidate& c) const { return c.time_s / (c.plan.ranks() < least_ranks_ ? worth_fewer : 1); }
    const Candidate& best() const { return *std::min_element(played_.begin(), played_.end(), [&](auto& a, auto& b) { return weighed_s(a) < weighed_s(b); }); }
    bool valid(const Plan& plan) const {
        try {
            plan.validate(problem_, ranks_);
            return true;
        } catch (const ConfigError&) {
            return false;
        }
    }

    const SweepProblem& problem_;
    int ranks_;
    const PlanRequest& request_;
    const Machine& machine_;
    const KernelRate& rate_;
    const PlannerOptions& options_;
    Estimate estimate_;
    Plan by_rules_;
    struct Estimated {
        Plan plan;
        double time_s;
    };
    std::vector<Estimated> estimated_;
    std::vector<Candidate> played_;  // the plan by rules first
    std::int64_t considered_ = 0;
    double steps_left_ = 0, least_row_ = 1;
    int least_ranks_ = 1;  // plans of fewer leave out some that have points
    bool rows_depend_ = false;  // kernels compute rows_together of them at once, the rate was measured with as many
    double most_bytes_ = 0;  // of the working set: the rate was measured with one as large as the rules'
};

std::vector<int> Planner::mapping_dims() const {
    if (request_.mapping_dim) return {*request_.mapping_dim};
    if (problem_.planes.along >= 0 || problem_.in_order || problem_.dims() == 1 || request_.tile || by_rules_.time_block > 1) return {by_rules_.mapping_dim};
    std::vector<int> dims{by_rules_.mapping_dim};
    const std::vector<bool> unit = problem_.unit_dims();
    for (int k = 0; k < problem_.dims(); ++k)
        if (k != by_rules_.mapping_dim && !unit[static_cast<std::size_t>(k)]) dims.push_back(k);
    return dims;
}

std::vector<Index> Planner::grids(int mapping_dim) const {
    if (request_.grid) return {*request_.grid};
    if (ranks_ == 1 || problem_.planes.along >= 0) return {by_rules_.grid};
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
std::vector<Index> Planner::smaller_grids(const std::vector<bool>& open) const {
    std::vector<bool> whole = open;
    whole.flip();
    std::vector<Index> result;
    const bool some = std::find(open.begin(), open.end(), true) != open.end();
    std::vector<int> counts;
    for (int r = ranks_ / 2; r >= 1; r /= 2) counts.push_back(r);
    int here = 1;
    while (here < ranks_ && machine_.shares_host(0, here)) ++here;
    if (here < ranks_ && std::find(counts.begin(), counts.end(), here) == counts.end()) counts.push_back(here);
    for (const int r : counts)
        if (some || r == 1) result.push_back(default_grid(problem_.space.hi - problem_.space.lo, r, whole));
    return result;
}

std::vector<Index> Planner::factors(const Index& grid, int mapping_dim) const {
    if (request_.factors) return {*request_.factors};
    if (problem_.in_order || problem_.dims() == 1) return {by_rules_.factors};
    std::vector<bool> open;
    for (int k = 0; k < problem_.dims(); ++k)
        open.push_back(k != mapping_dim && !estimate_.unit(k) && (problem_.planes.along < 0 || k == problem_.planes.along));
    std::vector<Index> all;
    std::vector<std::int64_t> counts;
    for (std::int64_t lanes = request_.threads; lanes >= 1; lanes /= 2) counts.push_back(lanes);
    // With a helper on a thread of its own, all others compute.
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

void Planner::enumerate() {
    for (const int mapping_dim : mapping_dims())
        for (const Index& grid : grids(mapping_dim))
            for (const Index& m : factors(grid, mapping_dim)) {
                if (grid.n != problem_.dims() || m.n != problem_.dims() || m[mapping_dim] != 1) continue;
                Plan plan = by_rules_;
                plan.time_block = request_.time_block.value_or(1);
                plan.bundle = request_.bundle.value_or(1);
                plan.mapping_dim = mapping_dim;
                plan.grid = grid;
                plan.factors = m;
                tiles(plan);
            }
}

void Planner::tiles(Plan plan) {
    if (request_.tile) {
        plan.tile = *request_.tile;
        kinds(plan);
        return;
    }
    if (problem_.in_order) {
        kinds(plan);
        return;
    }
    const int i = plan.mapping_dim, n = problem_.dims();
    const std::int64_t high = std::max<std::int64_t>(estimate_.block(plan.grid, i), 1);
    // A tile is a lane's whole width, or a part of it along one dimension.
    std::vector<std::pair<int, std::int64_t>> splits{{-1, 1}};
    if (problem_.planes.along < 0)
        for (int k = 0; k < n; ++k)
            for (std::int64_t w = 2; w <= 32; w *= 2)
                if (k != i && !estimate_.unit(k) && ceil_div(estimate_.block(plan.grid, k), plan.factors[k]) >= 8 * w) splits.push_back({k, w});
    for (const auto& [dim, w] : splits) {
        plan.tile = Index::filled(n, 1);
        for (int k = 0; k < n; ++k) {
            if (estimate_.unit(k)) continue;
            plan.tile[k] = std::max<std::int64_t>(ceil_div(ceil_div(std::max<std::int64_t>(estimate_.block(plan.grid, k), 1), plan.factors[k]), k == dim ? w : 1), 1);
        }
        if (estimate_.unit(i)) {
            kinds(plan);
            continue;
        }
        if (by_rules_.time_block > 1 && !request_.time_block) {  // the rate is that of caches
            if (dim >= 0 || !take_steps_together(problem_, machine_, by_rules_.lanes(), plan)) continue;
            plan.bundle = request_.bundle.value_or(plan.bundle);
            kinds(plan);
            continue;
        }
        std::int64_t cap = estimate_.cached_height(plan, most_bytes_);
        if (cap < 1) continue;  // its layers alone are more than the cache holds
        if (problem_.planes.along >= 0) cap = std::min(cap, 2 * by_rules_.tile[i]);  // as the pieces of tiles are made for
        plan.tile[i] = cap;
        const std::int64_t best = std::clamp<std::int64_t>(estimate_.best_height(plan), 1, cap);
        std::int64_t last = 0;
        for (const double factor : heights) {
            const auto wish = std::clamp<std::int64_t>(std::llround(static_cast<double>(best) * factor), 1, cap);
            plan.tile[i] = ceil_div(high, ceil_div(high, wish));  // the last one is about as large as the others
            if (plan.tile[i] != std::exchange(last, plan.tile[i])) kinds(plan);
        }
    }
}

void Planner::kinds(Plan plan) {
    const int lanes = plan.lanes();
    for (const ScheduleKind schedule : {ScheduleKind::overlapping, ScheduleKind::blocking}) {
        if (request_.schedule ? *request_.schedule != schedule : plan.ranks() == 1 && schedule == ScheduleKind::blocking) continue;
        for (const GroupingKind grouping : {GroupingKind::hyperplane, GroupingKind::vertical}) {
            if (request_.grouping ? *request_.grouping != grouping : (lanes == 1 || plan.time_block > 1) && grouping == GroupingKind::vertical) continue;
            plan.schedule = schedule;
            plan.grouping = grouping;
            plan.slices = 1;
            if (grouping == GroupingKind::vertical && lanes > 1) plan.slices = estimate_.best_slices(plan);
            plan.slices = request_.slices.value_or(plan.slices);
            plan.lookahead = request_.lookahead.value_or(1);
            plan.synchronous = request_.synchronous.value_or(false);
            for (const bool helper : {false, true}) {
                if (request_.helper ? *request_.helper != helper : helper && (plan.ranks() == 1 || request_.all_threads)) continue;
                if (helper && lanes > std::max(request_.threads - 1, request_.helper ? 1 : 0)) continue;
                plan.helper = helper;
                plan.poll_period_s = request_.poll_period_s.value_or(helper ? 0 : by_rules_.poll_period_s);
                add(plan);
            }
        }
    }
}

// Whether tiles have rows as long, and as many beside each other, as those that the rate was measured with.
bool Planner::wide_enough(const Plan& plan) const {
    if (!request_.slices && plan.slices > 1 && plan.slices > plan.most_slices(problem_)) return false;
    if (request_.tile) return true;
    if (estimate_.row_points(plan) < least_row_) return false;
    const int across = problem_.dims() - 2;
    if (!rows_depend_ || plan.row.n != 0 || across < 0 || estimate_.unit(across)) return true;
    return plan.tile[across] >= std::min(rows_together, ceil_div(estimate_.block(plan.grid, across), plan.factors[across]));
}

void Planner::add(const Plan& plan) {
    if (!wide_enough(plan)) return;
    ++considered_;
    estimated_.push_back({plan, estimate_.time_s(plan)});
}

void Planner::play(const Plan& plan) {
    for (const Candidate& c : played_)
        if (c.plan.to_string() == plan.to_string()) return;
    if (!valid(plan) || (!played_.empty() && !wide_enough(plan))) return;
    const double steps = estimate_.steps_played(plan);
    if (!played_.empty() && steps > steps_left_) return;
    steps_left_ -= steps;
    played_.push_back(evaluate(problem_, plan, machine_, estimate_.rate_of(plan)));
}

void Planner::play_best_of_each_kind() {
    std::stable_sort(estimated_.begin(), estimated_.end(), [](const Estimated& a, const Estimated& b) { return a.time_s < b.time_s; });
    // The best of each schedule, grouping and number of lanes and ranks; then those of each grid; then the next heights and widths.
    std::map<std::tuple<int, int, int, int, bool>, int> of_kind;
    std::map<std::vector<std::int64_t>, int> of_grid;
    std::vector<std::size_t> order, later, last;
    for (std::size_t e = 0; e < estimated_.size(); ++e) {
        const Plan& p = estimated_[e].plan;
        if (estimated_[e].time_s > 4 * estimated_.front().time_s && !order.empty()) break;
        const std::tuple<int, int, int, int, bool> kind{static_cast<int>(p.schedule), static_cast<int>(p.grouping), p.lanes(), p.ranks(), p.helper};
        std::vector<std::int64_t> grid(p.grid.begin(), p.grid.end());
        grid.push_back(p.mapping_dim);
        grid.insert(grid.end(), p.factors.begin(), p.factors.end());
        if (of_kind[kind]++ == 0)
            order.push_back(e);
        else if (of_grid[grid]++ == 0)
            later.push_back(e);
        else
            last.push_back(e);
    }
    const auto rank = [&](const std::vector<std::size_t>& some, int most) {
        for (const std::size_t e : some)
            if (most-- > 0) play(estimated_[e].plan);
    };
    const int total = options_.simulate;
    rank(order, std::max(4, total / 2));
    rank(later, std::max(2, total / 4));
    rank(last, std::max(2, total / 4));
}

// Around the best so far, one choice at a time.
void Planner::refine() {
    if (problem_.in_order) return;
    for (int turn = 0; turn < 2; ++turn) {
        const Plan from = best().plan;
        auto vary = [&](auto change) {
            Plan p = best().plan;
            change(p);
            play(p);
        };
        const int m = from.mapping_dim;
        if (!request_.tile && !estimate_.unit(m) && from.time_block == 1)
            for (const double factor : {turn ? 0.8 : 0.6, turn ? 1.25 : 1.6})
                vary([&](Plan& p) {
                    const std::int64_t most = largest_block(problem_, p.grid, m);
                    const std::int64_t cap = std::max(estimate_.cached_height(p, most_bytes_), from.tile[m]);
                    p.tile[m] = std::clamp<std::int64_t>(std::llround(static_cast<double>(from.tile[m]) * factor), 1, std::max<std::int64_t>(std::min(most, cap), 1));
                });
        if (!request_.lookahead && from.schedule == ScheduleKind::overlapping && from.ranks() > 1 && turn == 0)
            for (const int ahead : {2, 4}) vary([&](Plan& p) { p.lookahead = ahead; });
        if (!request_.poll_period_s && !from.helper && from.ranks() > 1 && turn == 0)
            for (const double period : {0.0, 12.5e-6, 200e-6}) vary([&](Plan& p) { p.poll_period_s = period; });
        if (!request_.slices && from.grouping == GroupingKind::vertical && from.lanes() > 1)
            for (const double factor : {0.5, 2.0}) vary([&](Plan& p) { p.slices = std::max(1, static_cast<int>(std::lround(from.slices * factor))); });
        if (!request_.chunk_bytes && from.ranks() > 1 && turn == 1 && estimate_.largest_message(from) > 64 << 10)
            for (const std::int64_t bytes : {64 << 10, 1 << 20}) vary([&](Plan& p) { p.chunk_bytes = bytes; });
        if (best().plan.to_string() == from.to_string() && turn == 0) continue;
    }
}

std::string percent(double ratio) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", 100 * ratio);
    return text;
}

// What of the other's time was larger, most of all.
std::string reason(const Candidate& best, const Candidate& other) {
    const struct {
        const char* name;
        double Parts::*part;
    } parts[] = {{"fill", &Parts::fill_s}, {"computing", &Parts::compute_s}, {"packing", &Parts::pack_s}, {"posting", &Parts::post_s},
                 {"waiting for messages", &Parts::wait_s}, {"hand-over between lanes", &Parts::hand_over_s}, {"drain", &Parts::drain_s}};
    const char* most = parts[0].name;
    double excess = -1, theirs = 0, ours = 0;
    for (const auto& p : parts)
        if (const double more = other.parts.*p.part - best.parts.*p.part; more > excess) {
            excess = more;
            most = p.name;
            theirs = other.parts.*p.part;
            ours = best.parts.*p.part;
        }
    char text[256];
    const double more = other.time_s / std::max(best.time_s, 1e-30) - 1;
    if (more < 0 && other.plan.ranks() < best.plan.ranks())
        std::snprintf(text, sizeof text, "%s %% faster on %d rank(s), for which arrays would have to move", percent(-more).c_str(), other.plan.ranks());
    else if (more < 1 - worth)
        std::snprintf(text, sizeof text, "as good (%+.1f %%), and the one taken is simpler", 100 * more);
    else
        std::snprintf(text, sizeof text, "%s %% slower: %s %.3g ms against %.3g", percent(more).c_str(), most, 1e3 * theirs, 1e3 * ours);
    return text;
}

Choice Planner::choose() {
    by_rules_ = make_plan(problem_, ranks_, request_, machine_);
    steps_left_ = static_cast<double>(options_.most_steps);
    least_row_ = std::min(shortest_row, estimate_.row_points(by_rules_));
    most_bytes_ = std::max(static_cast<double>(machine_.cache_bytes) / 2, estimate_.working_set(by_rules_));
    rows_depend_ = !problem_.in_order && !by_rules_.independent_rows(problem_);
    least_ranks_ = by_rules_.ranks();
    estimate_.measured_with(by_rules_);
    play(by_rules_);
    enumerate();
    play_best_of_each_kind();
    refine();
    Choice choice;
    choice.considered = considered_ + 1;
    choice.simulated = static_cast<std::int64_t>(played_.size());
    // The rules win where nothing is clearly better; and so does, of two plans that are as good, the one found first.
    std::size_t first = 0;
    for (std::size_t c = 1; c < played_.size(); ++c)
        if (weighed_s(played_[c]) < (first == 0 ? worth : worth_later) * weighed_s(played_[first])) first = c;
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < played_.size(); ++c)
        if (c != first) order.push_back(c);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return played_[a].time_s < played_[b].time_s; });
    order.insert(order.begin(), first);
    for (const std::size_t c : order) {
        choice.ranked.push_back(played_[c]);
        if (c != first) choice.ranked.back().reason = kind_of(played_[c].plan) + ": " + reason(played_[first], played_[c]);
    }
    return choice;
}

}  // namespace

Choice choose_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine, const KernelRate& rate,
                   const PlannerOptions& options) {
    const int along = problem.planes.along;
    if (along >= 0 && ranks > 1 && !problem.may_cut(along)) {  // as make_plan: ranks share another dimension
        SweepProblem whole = problem;
        whole.planes = {};
        return choose_plan(whole, ranks, request, machine, rate, options);
    }
    return Planner(problem, ranks, request, machine, rate, options).choose();
}

}  // namespace tilewave
