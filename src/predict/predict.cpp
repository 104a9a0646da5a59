#include "tilewave/predict.hpp"

#include "predict/simulation.hpp"

namespace tilewave {

Prediction predict(std::span<const Schedule> schedules, const Machine& machine, const KernelRate& rate,
                   const PredictOptions& options) {
    return Simulation(schedules, machine, rate, options).run();
}

std::vector<std::pair<std::int64_t, std::int64_t>> tile_work(const Schedule& schedule) {
    TileWork work(schedule);
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const Tile& t : schedule.tiles) {
        const Work w = work.of(t.box);
        all.push_back({w.rows, w.points});
    }
    return all;
}

}  // namespace tilewave
