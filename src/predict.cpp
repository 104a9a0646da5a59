#include "tilewave/predict.hpp"

#include <algorithm>

#include "parts_count.hpp"
#include "simulation.hpp"

namespace tilewave {

Parts parts(const Timeline& timeline) {
    if (timeline.events.empty()) return {};
    std::vector<PartsCount> lanes;
    double begin = timeline.events[0].begin_s, end = timeline.events[0].end_s;
    const Event* last = nullptr;
    for (const Event& e : timeline.events) {
        if (!last || last->rank != e.rank || last->lane != e.lane) lanes.emplace_back();
        last = &e;
        lanes.back().add(static_cast<Op>(e.op), e.begin_s, e.end_s);
        begin = std::min(begin, e.begin_s);
        end = std::max(end, e.end_s);
    }
    return average(lanes, begin, end);
}

Prediction predict(std::span<const Schedule> schedules, const Machine& machine, const KernelRate& rate, const PredictOptions& options) {
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
