// How the rows of a prepared sweep lie in memory and depend on each other: what decides which kernel computes them.
#include <algorithm>

#include "nests/prepared_sweep.hpp"

namespace tilewave {

using namespace tuning;

int PreparedSweep::stagger() const {
    const int n = problem_.dims();
    if (problem_.sequential || n < 2) return 0;
    const IndexMatrix order = plan_.order(n);
    bool within = false;
    std::int64_t points = 1;
    for (const Index& d : problem_.dependences()) {
        const Index y = order * d;
        if (!std::all_of(y.begin(), y.end() - 2, [](auto x) { return x == 0; })) continue;
        const std::int64_t rows = y[n - 2], along = y[n - 1];
        if (rows == 0) within = true;
        if (rows < 0) return 0;
        if (rows > 0) points = std::max(points, ceil_div(1 - along, rows));
    }
    return within && points <= most_stagger ? static_cast<int>(points) : 0;
}

std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>> PreparedSweep::neighbours() const {
    const std::vector<Access>& places = only_nest(schedule_).places;
    std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>> result;
    for (const Access& place : places) {
        const auto writes = [&](const Access& p) { return p.writes && p.array == place.array; };
        result.emplace_back();
        if (std::ranges::count_if(places, writes) != 1) continue;
        const Index y = only_nest(schedule_).order * (place.offset - std::ranges::find_if(places, writes)->offset);
        if (std::all_of(y.begin(), y.end() - 2, [](auto x) { return x == 0; }))
            result.back() = {y[y.n - 2], y[y.n - 1]};
    }
    return result;
}

std::vector<std::pair<int, std::int64_t>> PreparedSweep::same_row() const {
    std::vector<std::pair<int, std::int64_t>> result;
    if (has_tasks(plan_)) return {problem_.accesses.size(), {-1, 0}};
    const Index along = inverse(only_nest(schedule_).order) * Index::unit(problem_.dims(), problem_.dims() - 1);
    const std::vector<Access>& places = only_nest(schedule_).places;
    for (std::size_t q = 0; q < places.size(); ++q) {
        result.push_back({-1, 0});
        for (std::size_t p = 0; p < q && result.back().first < 0; ++p) {
            if (places[p].array != places[q].array || result[p].first >= 0) continue;
            const Index between = places[q].offset - places[p].offset;
            std::int64_t points = 0;
            for (int k = 0; k < along.n; ++k)
                if (along[k] != 0) points = between[k] / along[k];
            if (points == 0) continue;
            Index back = between;
            for (int k = 0; k < along.n; ++k) back[k] -= points * along[k];
            if (back == Index::filled(along.n, 0)) result.back() = {static_cast<int>(p), points};
        }
    }
    return result;
}

std::vector<std::int64_t> PreparedSweep::row_steps(std::span<const RunArray> arrays) const {
    if (has_tasks(plan_)) {  // whose rows go along the last loop upwards
        std::vector<std::int64_t> steps;
        for (const Access& p : problem_.accesses) {
            Binding memory = arrays[p.array].whole;
            if (arrays[p.array].field) {
                memory.stride_bytes = memory_order(problem_, plan_, p.array, context_.rank()).stride;
                for (auto& s : memory.stride_bytes.v) s *= problem_.arrays[p.array].item_bytes;
            }
            const Index first = Index::filled(problem_.arrays[p.array].axes.n, 0);
            steps.push_back(memory_of(problem_, p, memory, first).stride_bytes[problem_.dims() - 1]);
        }
        return tasks_of(problem_, plan_, context_.rank())->row_steps(std::move(steps));
    }
    return steps_by(inverse(only_nest(schedule_).order) * Index::unit(problem_.dims(), problem_.dims() - 1), arrays);
}

// Bytes that each place moves by when a point moves by `along`.
std::vector<std::int64_t> PreparedSweep::steps_by(const Index& along, std::span<const RunArray> arrays) const {
    std::vector<std::int64_t> steps;
    for (const Access& p : only_nest(schedule_).places) {
        const RunArray& array = arrays[p.array];
        if (in_window(p.array)) {
            steps.push_back(problem_.arrays[p.array].item_bytes);
            continue;
        }
        const NestArray& n = problem_.arrays[p.array];
        Binding memory = array.whole;
        Index first = Index::filled(n.axes.n, 0);
        if (lies_as_planned(p.array, array)) {
            memory.stride_bytes = memory_order(problem_, plan_, p.array, context_.rank()).stride;
            for (auto& s : memory.stride_bytes.v) s *= n.item_bytes;
        }
        const Binding b = to_loops(p.array, memory, first, array.mirrored);
        std::int64_t step = 0;
        for (int k = n.time_buffers > 0 ? 1 : 0; k < along.n; ++k) step += along[k] * b.stride_bytes[k];
        steps.push_back(step);
    }
    return steps;
}

}  // namespace tilewave
