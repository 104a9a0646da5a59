#include "tilewave/engine/predict.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "check/repeated.hpp"
#include "core/concat.hpp"
#include "predict/simulation.hpp"
#include "schedule/repeat.hpp"
#include "schedule/whole.hpp"

namespace tilewave {

namespace {

// Repetitions that are simulated at first and at most, and the part by which two in a row may differ to be steady.
constexpr std::int64_t first_simulated = 4, most_simulated = 64;
constexpr double steady = 0.002;

}  // namespace

Prediction predict(std::span<const Schedule> schedules, const Machine& machine, const Rates& rates,
                   const PredictOptions& options) {
    if (options.times < 1) throw ConfigError(concat("predict: times is ", options.times, "; 1 or more is allowed"));
    if (std::ranges::none_of(schedules, [](const Schedule& s) { return !s.repeated.empty(); }))
        return Simulation(schedules, machine, rates, options).run();
    const auto simulate = [&](std::int64_t times) {
        const std::vector<Schedule> all = unrolled(schedules, times);
        return Simulation(all, machine, rates, options).run();
    };
    for (const Schedule& s : schedules) {
        if (const auto found = damage(s)) throw ConfigError("predict: " + found->entry + ": " + found->why);
        if (auto wrong = check_repeated_rank(s)) throw ConfigError(concat("predict: ", *wrong));
    }
    std::int64_t simulated = std::min(options.times, first_simulated);
    Prediction p = simulate(simulated);
    double one_s = 0;
    for (double before_s = -1; simulated < options.times; before_s = one_s) {
        const std::int64_t more = std::min(options.times, 2 * simulated);
        Prediction longer = simulate(more);
        one_s = (longer.time_s - p.time_s) / static_cast<double>(more - simulated);
        p = std::move(longer);
        simulated = more;
        if (simulated >= most_simulated || std::abs(one_s - before_s) <= steady * one_s) break;
    }
    if (simulated == options.times) return p;
    const double time_s = p.time_s + static_cast<double>(options.times - simulated) * one_s, scale = time_s / p.time_s;
    for (const auto part : all_parts) p.parts.*part *= scale;
    p.time_s = time_s;
    return p;
}

std::vector<std::pair<std::int64_t, std::int64_t>> tile_work(const Schedule& schedule) {
    std::vector<std::optional<TileWork>> works(schedule.works.size());
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const Tile& t : schedule.tiles) {
        auto& work = works[t.work];
        if (!work) work.emplace(schedule, nest_of(schedule, t));
        const RowCount w = work->of(t.box);
        all.push_back({w.rows, w.points});
    }
    return all;
}

}  // namespace tilewave
