#include "tilewave/predict.hpp"

#include <optional>

#include "predict/simulation.hpp"

namespace tilewave {

Prediction predict(std::span<const Schedule> schedules, const Machine& machine, const Rates& rates,
                   const PredictOptions& options) {
    return Simulation(schedules, machine, rates, options).run();
}

std::vector<std::pair<std::int64_t, std::int64_t>> tile_work(const Schedule& schedule) {
    std::vector<std::optional<TileWork>> works(schedule.works.size());
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const Tile& t : schedule.tiles) {
        auto& work = works[static_cast<std::size_t>(t.work)];
        if (!work) work.emplace(schedule, nest_of(schedule, t));
        const RowCount w = work->of(t.box);
        all.push_back({w.rows, w.points});
    }
    return all;
}

}  // namespace tilewave
