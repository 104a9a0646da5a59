// What a factor or a solve takes by prediction: its schedules simulated, all or some steps of them.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/concat.hpp"
#include "plan/panels/panel_plan.hpp"
#include "plan/panels/tuning.hpp"
#include "predict/machine_part.hpp"

namespace tilewave {

namespace {

std::int64_t panels_of(const PanelProblem& p, const FactorPlan& plan) {
    return (std::min(p.matrix.rows.extent, p.matrix.columns.extent) + plan.block - 1) / plan.block;
}

// Ranks of a column of the grid exchange a message for each column of their panel.
bool by_columns(const PanelProblem& p, const FactorPlan& plan) {
    return plan.grid[0] > 1 && (p.work == PanelWork::lu || p.work == PanelWork::qr);
}

std::int64_t lane_steps(const PanelProblem& p, const FactorPlan& plan, const FactorPart& part) {
    std::int64_t all = 0;
    for (const auto& lane : panel_schedule(p, plan, 0, part).lanes) all += static_cast<std::int64_t>(lane.size());
    return all;
}

struct Cost {
    double step = 0;   // steps of a lane's list for a rank and panel, at the beginning
    double whole = 0;  // of all ranks in all
};

Cost cost_of(const PanelProblem& p, const FactorPlan& plan) {
    if (p.work == PanelWork::solve || panels_of(p, plan) == 0)
        return {0, static_cast<double>(lane_steps(p, plan, {}) * p.ranks)};
    const auto k = static_cast<double>(panels_of(p, plan)), ranks = static_cast<double>(plan.grid[0] * plan.grid[1]);
    // In proportion, panels one after another may lie on any columns of the grid.
    FactorPart part{0, 2, 0,
                    static_cast<int>(plan.in_proportion ? plan.grid[1] : std::min<std::int64_t>(2, plan.grid[1])), 1};
    Cost cost;
    cost.step = static_cast<double>(lane_steps(p, plan, part)) / 2;
    cost.whole = ranks * k * cost.step;
    if (!by_columns(p, plan)) return cost;
    const double one = 2 * cost.step;
    part.panel_columns = 2;
    const double a_column = static_cast<double>(lane_steps(p, plan, part)) - one;
    cost.whole += a_column * static_cast<double>(plan.grid[0] * plan.block) * k;
    return cost;
}

// From 0 to n of the parabola through three points.
double integral(const std::array<double, 3>& x, const std::array<double, 3>& y, double n) {
    double sum = 0;
    for (const int i : {0, 1, 2}) {
        const double a = x[(i + 1) % 3], b = x[(i + 2) % 3];
        sum += y[i] * (n * n * n / 3 - (a + b) * n * n / 2 + a * b * n) / ((x[i] - a) * (x[i] - b));
    }
    return std::max(0.0, sum);
}

// The ranks of a part, by their numbers in the whole.
std::vector<int> ranks_of(const BlockCyclic& layout, const FactorPart& part) {
    std::vector<int> all;
    for (int row = 0; row < layout.rows.parts; ++row)
        for (int i = 0; i < part.columns; ++i) all.push_back(layout.rank_of(row, part.first_column + i));
    return all;
}

double part_s(const PanelProblem& p, const FactorPlan& plan, const FactorPart& part, const Machine& machine,
              const std::vector<OperationRate>& rates) {
    const std::vector<int> ranks = ranks_of(panel_layout(p, plan), part);
    std::vector<Schedule> schedules;
    for (const int rank : ranks) schedules.push_back(panel_schedule(p, plan, rank, part));
    PredictOptions options;
    options.record = false;
    options.threads = p.threads;
    return predict(schedules, part_of(machine, ranks, p.ranks), Rates({KernelRate()}, rates), options).time_s;
}

// A column of a panel that a column of ranks makes: of more columns and of fewer, the difference.
double column_s(const PanelProblem& p, const FactorPlan& plan, FactorPart part, const Machine& machine,
                std::vector<OperationRate> rates) {
    rates[columns_left_out] = {0, 0};
    part.steps = -1;
    part.first_column = panel_layout(p, plan).columns.part_of({part.first_step * plan.block});
    part.columns = 1;
    double time_s[2];
    for (const int i : {0, 1}) {
        part.panel_columns = tuning::panel_columns[i];
        time_s[i] = part_s(p, plan, part, machine, rates);
    }
    return std::max(0.0, time_s[1] - time_s[0]) / (tuning::panel_columns[1] - tuning::panel_columns[0]);
}

}  // namespace

PanelSample sample_of(const PanelProblem& p, const FactorPlan& plan, double most_steps) {
    const Cost cost = cost_of(p, plan);
    const std::int64_t panels = panels_of(p, plan), q = plan.grid[1];
    if (cost.whole <= most_steps || cost.step == 0) return {};
    PanelSample sample;
    if (by_columns(p, plan) && plan.block > tuning::panel_columns[1]) sample.panel_columns = tuning::panel_columns[0];
    // Two parts at three places, the shorter one with half as many steps, on as many columns as the longer one has.
    const double columns = std::sqrt(std::min(most_steps, tuning::most_plan_steps) /
                                     (4.5 * cost.step * static_cast<double>(plan.grid[0])));
    const std::int64_t most = std::min(tuning::most_columns_played, panels / tuning::least_panels_sampled),
                       least = tuning::least_columns_played;
    sample.columns =
        static_cast<int>(std::min(q, std::clamp(static_cast<std::int64_t>(columns), least, std::max(least, most))));
    if (plan.in_proportion) sample.columns = static_cast<int>(q);
    sample.steps = sample.columns < q ? sample.columns : 2 * q;
    sample.cost = 4.5 * cost.step * static_cast<double>(plan.grid[0] * sample.columns * sample.steps);
    if (tuning::least_panels_sampled * sample.steps > panels) {  // all steps
        sample.steps = 0;
        sample.columns = static_cast<int>(q);
        sample.cost = cost.whole;
        if (sample.panel_columns == 0) return {};
    }
    for (const std::int64_t i : {0, 1, 2}) {
        const std::int64_t first = (panels - sample.steps) * i / 2;
        sample.first.push_back(sample.columns < q ? first - std::max<std::int64_t>(0, first % q + sample.columns - q)
                                                  : first);
    }
    return sample;
}

double simulated_steps(const PanelProblem& p, const FactorPlan& plan, double most_steps) {
    const PanelSample sample = sample_of(p, plan, most_steps);
    return sample.first.empty() ? cost_of(p, plan).whole : sample.cost;
}

FactorPart PanelSample::part(const FactorPlan& plan, std::int64_t at, std::int64_t count) const {
    const auto column = static_cast<int>(columns < plan.grid[1] ? first[at] % plan.grid[1] : 0);
    return {first[at], count, column, columns, panel_columns};
}

std::string PanelSample::text(const FactorPlan& plan) const {
    std::string text;
    if (steps > 0)
        text = concat(steps, " steps at the beginning, in the middle and at the end, on ", plan.grid[0], " x ", columns,
                      " of ", plan.grid[0], " x ", plan.grid[1], " ranks");
    if (panel_columns > 0)
        text += concat(steps > 0 ? ", " : "", panel_columns, " of ", plan.block, " columns of a panel");
    return text;
}

double sampled_s(const PanelProblem& p, const FactorPlan& plan, const PanelSample& sample, const Machine& machine,
                 std::vector<OperationRate> rates) {
    const auto left_out = [&](std::int64_t at) {
        if (sample.panel_columns > 0)
            rates[columns_left_out] = {0, column_s(p, plan, sample.part(plan, at, 1), machine, rates)};
    };
    if (sample.steps == 0) {
        left_out(1);
        return part_s(p, plan, {0, 0, 0, sample.columns, sample.panel_columns}, machine, rates);
    }
    const std::int64_t few = sample.steps / 2;
    std::array<double, 3> step_s;
    double begin_s = 0;
    for (const int i : {0, 1, 2}) {
        left_out(i);
        const double short_s = part_s(p, plan, sample.part(plan, i, few), machine, rates),
                     long_s = part_s(p, plan, sample.part(plan, i, sample.steps), machine, rates);
        step_s[i] = std::max(0.0, long_s - short_s) / static_cast<double>(sample.steps - few);
        if (i > 0) continue;
        begin_s = std::max(0.0, short_s - step_s[0] * static_cast<double>(few));
        if (sample.columns == plan.grid[1]) continue;
        // The first panel goes on to the other columns.
        FactorPart part = sample.part(plan, 0, few);
        part.columns = static_cast<int>(few);
        begin_s += std::max(0.0, short_s - part_s(p, plan, part, machine, rates)) *
                   static_cast<double>(std::min(plan.grid[1], panels_of(p, plan)) - sample.columns) /
                   static_cast<double>(sample.columns - few);
    }
    const double middle = static_cast<double>(few + sample.steps) / 2;
    std::array<double, 3> at;
    for (const int i : {0, 1, 2}) at[i] = static_cast<double>(sample.first[i]) + middle;
    return begin_s + integral(at, step_s, static_cast<double>(panels_of(p, plan)));
}

Prediction panels_prediction(const PanelProblem& p, const FactorPlan& plan, const Machine& machine,
                             const std::vector<OperationRate>& rates, bool record, double most_steps) {
    if (const PanelSample sample = sample_of(p, plan, most_steps); !sample.first.empty()) {
        Prediction found;
        found.time_s = sampled_s(p, plan, sample, machine, rates);
        return found;
    }
    std::vector<Schedule> parts;
    for (int rank = 0; rank < p.ranks; ++rank) parts.push_back(panel_schedule(p, plan, rank));
    PredictOptions options;
    options.record = record;
    options.threads = p.threads;
    return predict(parts, machine, Rates({KernelRate()}, rates), options);
}

std::vector<Schedule> timed_schedules(const PanelProblem& p, const FactorPlan& plan) {
    const PanelSample sample = sample_of(p, plan, tuning::most_timed_steps * p.ranks);
    if (sample.first.empty()) return {panel_schedule(p, plan, 0)};
    std::vector<Schedule> all;
    for (const std::int64_t at : {0, 1, 2}) {
        const FactorPart part = sample.part(plan, at, std::min<std::int64_t>(sample.steps, 2));
        all.push_back(panel_schedule(p, plan, ranks_of(panel_layout(p, plan), part).front(), part));
    }
    return all;
}

}  // namespace tilewave
