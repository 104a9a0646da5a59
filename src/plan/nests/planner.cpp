// Choosing a plan: candidates by closed form, the best of each kind simulated, the winner refined.
//
// The derivations are in docs/decisions/0010-planning.md.
#include "plan/nests/planner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "core/concat.hpp"
#include "plan/nests/candidates.hpp"
#include "plan/nests/tuning.hpp"
#include "problem/stencil.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// The schedule's and grouping's names, for reasons.
bool cuts_rows(const Plan& p) {
    if (p.slices == 1) return false;
    const int m = p.mapping_dim, last = p.tile.n - 1;
    if (p.row.n) return p.row[m] != 0;
    return m == last || (m == last - 1 && p.tile[m] < 4 * max_simd_rows * p.slices);
}

// Whether the second plan has the grid of the first one, with more blocks along a later loop.
bool is_turned_to(const Plan& first, const Plan& second) {
    return std::ranges::lexicographical_compare(second.grid, first.grid) &&
           std::ranges::is_permutation(first.grid, second.grid);
}

class Planner {
public:
    Planner(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine,
            std::span<const MeasuredRate> rates, const PlannerOptions& options)
        : problem_(problem),
          ranks_(ranks),
          machine_(machine),
          options_(options),
          by_rules_(make_plan(problem, ranks, request, machine)),
          rates_(problem, machine, rates, options.unmeasured),
          estimate_(problem, machine, rates_),
          candidates_(problem, ranks, request, machine, estimate_, rates_, by_rules_),
          steps_left_(static_cast<double>(options.most_steps)),
          stencils_(why_no_stencil(problem).empty()),
          independent_(stencils_ || problem.dependences().empty()),
          least_ranks_(by_rules_.ranks()) {}

    Choice choose();

private:
    struct Estimated {
        Plan plan;
        double time_s;
    };
    std::vector<Estimated> estimated(const std::vector<Plan>& plans);
    void play(const Plan& plan, bool even_if_large = false);
    void play_best_of_each_kind();
    void search();
    // What a candidate takes, plans of some kinds as much longer as they must be better.
    double weighed_s(const Candidate& c) const {
        return c.time_s / (c.plan.ranks() < least_ranks_ ? worth_fewer : 1) /
               (stencils_ && c.plan.generator == GeneratorKind::sweep && c.plan.ranks() > 1 ? worth_sweeping : 1) /
               (is_turned(c.plan) ? worth_turning : 1) / std::pow(worth_doubling_lanes, std::log2(c.plan.lanes())) /
               (cuts_rows(c.plan) ? worth_cutting_rows : 1);
    }
    // Whether the same grid with more blocks along an earlier loop was simulated, too; of points that depend on each
    // other that decides about more than messages.
    bool is_turned(const Plan& plan) const {
        return independent_ &&
               std::ranges::any_of(played_, [&](const Candidate& other) { return is_turned_to(other.plan, plan); });
    }
    const Candidate& best() const {
        return *std::ranges::min_element(played_, [&](auto& a, auto& b) { return weighed_s(a) < weighed_s(b); });
    }
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
    const Machine& machine_;
    const PlannerOptions& options_;
    const Plan by_rules_;
    PlanRates rates_;
    Estimate estimate_;
    PlanCandidates candidates_;
    std::vector<Candidate> played_;  // the plan by rules first, if it is not too large
    std::set<std::string> seen_;     // that were simulated, or cannot be
    std::int64_t considered_ = 0;
    double steps_left_;
    bool stencils_;     // the nest may run as a stencil
    bool independent_;  // points of a time step do not depend on each other
    int least_ranks_;   // plans of fewer leave out some that have points
};

std::vector<Planner::Estimated> Planner::estimated(const std::vector<Plan>& plans) {
    std::vector<Estimated> all;
    for (const Plan& p : plans) {
        if (options_.unmeasured == Unmeasured::left_out && !rates_.known(p)) continue;
        all.push_back({p, estimate_.time_s(p)});
        ++considered_;
    }
    std::ranges::stable_sort(all, [](const Estimated& a, const Estimated& b) { return a.time_s < b.time_s; });
    return all;
}

void Planner::play(const Plan& plan, bool even_if_large) {
    const double steps = simulated_steps(problem_, plan, machine_);
    if (steps > steps_left_ && !even_if_large) return;
    if (!seen_.insert(plan.to_string()).second || !valid(plan)) return;
    steps_left_ -= steps;
    played_.push_back(evaluate(problem_, plan, machine_, rates_.of(plan)));
}

void Planner::play_best_of_each_kind() {
    const std::vector<Estimated> all = estimated(candidates_.all());
    // The best of each schedule, grouping and number of lanes and ranks; then those of each grid; then the next heights
    // and widths.
    std::map<std::tuple<int, int, int, int, int, bool, bool>, int> of_kind;
    std::map<std::vector<std::int64_t>, int> of_grid;
    std::vector<std::size_t> order, later, last;
    for (std::size_t e = 0; e < all.size(); ++e) {
        const Plan& p = all[e].plan;
        if (all[e].time_s > 4 * all.front().time_s && !order.empty()) break;
        const std::tuple<int, int, int, int, int, bool, bool> kind{static_cast<int>(p.generator),
                                                                   static_cast<int>(p.schedule),
                                                                   static_cast<int>(p.grouping),
                                                                   p.lanes(),
                                                                   p.ranks(),
                                                                   p.helper,
                                                                   p.temporal_block > 1};
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
            if (most-- > 0) play(all[e].plan);
    };
    const int total = options_.simulate;
    rank(order, std::max(4, total / 2));
    rank(later, std::max(2, total / 4));
    rank(last, std::max(2, total / 4));
}

// Round after round the neighbours of the best one, until they are no better.
void Planner::search() {
    for (int round = 0; round < most_rounds; ++round) {
        const Candidate from = best();
        const double estimate_s = estimate_.time_s(from.plan);
        int left = most_neighbours;
        for (const Estimated& e : estimated(candidates_.neighbours(from.plan))) {
            if (e.time_s > hopeless * estimate_s || left == 0) break;
            const std::size_t before = played_.size();
            play(e.plan);
            left -= played_.size() > before;
        }
        if (weighed_s(best()) > worth_going_on * weighed_s(from)) return;
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
        double Parts::* part;
    } parts[] = {{"fill", &Parts::fill_s},
                 {"computing", &Parts::compute_s},
                 {"packing", &Parts::pack_s},
                 {"posting", &Parts::post_s},
                 {"waiting for messages", &Parts::wait_s},
                 {"hand-over between lanes", &Parts::hand_over_s},
                 {"drain", &Parts::drain_s}};
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
        std::snprintf(text, sizeof text, "%s %% faster on %s, for which arrays would have to move",
                      percent(-more).c_str(), counted(other.plan.ranks(), "rank").c_str());
    else if (more < worth - 1 && other.plan.lanes() > best.plan.lanes())
        std::snprintf(text, sizeof text, "%s %% faster on %d lanes; twice as many must be %s %% faster",
                      percent(-more).c_str(), other.plan.lanes(), percent(1 - worth_doubling_lanes).c_str());
    else if (more < worth - 1 && is_turned_to(best.plan, other.plan))
        std::snprintf(text, sizeof text,
                      "%s %% faster with more blocks along a later loop, for which arrays of other nests would move; "
                      "such a grid must be %s %% faster",
                      percent(-more).c_str(), percent(1 - worth_turning).c_str());
    else if (more < 1 - worth)
        std::snprintf(text, sizeof text, "as good (%+.1f %%), and the one taken is simpler", 100 * more);
    else
        std::snprintf(text, sizeof text, "%s %% slower: %s %.3g ms against %.3g", percent(more).c_str(), most,
                      1e3 * theirs, 1e3 * ours);
    return text;
}

Choice Planner::choose() {
    play(by_rules_);
    play_best_of_each_kind();
    if (played_.empty()) play(by_rules_, true);
    search();
    Choice choice;
    choice.considered = considered_ + 1;
    choice.simulated = static_cast<std::int64_t>(played_.size());
    if (options_.unmeasured == Unmeasured::left_out && !rates_.known(played_.front().plan) && played_.size() > 1)
        played_.erase(played_.begin());
    // The rules win where nothing is clearly better; and so does, of two plans that are as good, the one found first.
    std::size_t first = 0;
    for (std::size_t c = 1; c < played_.size(); ++c)
        if (weighed_s(played_[c]) < (first == 0 ? worth : worth_later) * weighed_s(played_[first])) first = c;
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < played_.size(); ++c)
        if (c != first) order.push_back(c);
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return played_[a].time_s < played_[b].time_s; });
    order.insert(order.begin(), first);
    for (const std::size_t c : order) {
        choice.ranked.push_back(played_[c]);
        if (c != first) choice.ranked.back().reason = reason(played_[first], played_[c]);
    }
    choice.rate = rates_.of(played_[first].plan);
    choice.nearest = rates_.nearest(played_[first].plan);
    choice.measured = rates_.measured(played_[first].plan);
    return choice;
}

std::span<const MeasuredRate> at_least_one(std::span<const MeasuredRate> rates) {
    if (rates.empty()) throw ConfigError("a plan was asked for with no rate; allowed: one that was measured, or more");
    return rates;
}

}  // namespace

Choice choose_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine,
                   std::span<const MeasuredRate> rates, const PlannerOptions& options) {
    at_least_one(rates);
    const int along = problem.window.along;
    if (along >= 0 && ranks > 1 && !problem.may_cut(along)) {  // as make_plan: ranks share another dimension
        SweepProblem whole = problem;
        whole.window = {};
        return choose_plan(whole, ranks, request, machine, rates, options);
    }
    return Planner(problem, ranks, request, machine, rates, options).choose();
}

Choice choose_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine,
                   const KernelRate& rate, const PlannerOptions& options) {
    const MeasuredRate by_rules[] = {{make_plan(problem, ranks, request, machine), rate, true}};
    return choose_plan(problem, ranks, request, machine, by_rules, options);
}

KernelRate rate_for(const SweepProblem& problem, const Plan& plan, const Machine& machine,
                    std::span<const MeasuredRate> rates) {
    return PlanRates(problem, machine, at_least_one(rates)).of(plan);
}

MeasuredRate nearest_rate(const SweepProblem& problem, const Plan& plan, const Machine& machine,
                          std::span<const MeasuredRate> rates) {
    return PlanRates(problem, machine, at_least_one(rates)).nearest(plan);
}

bool rate_is_measured(const SweepProblem& problem, const Plan& plan, const Machine& machine,
                      std::span<const MeasuredRate> rates) {
    return PlanRates(problem, machine, rates).measured(plan);
}

}  // namespace tilewave
