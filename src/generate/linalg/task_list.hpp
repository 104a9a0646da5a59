// Writes a schedule of tasks: works are sorted by their numbers at the end.
#pragma once
#include <vector>

#include "schedule/lane_builder.hpp"

namespace tilewave {

class TaskList {
public:
    TaskList(int rank, int ranks, int lanes) {
        s_.rank = rank;
        s_.ranks = ranks;
        s_.lanes.resize(lanes);
        counts_.assign(static_cast<std::size_t>(lanes), 0);
    }

    Schedule& schedule() { return s_; }

    void add(int lane, Op op, std::int32_t item = 0, std::int32_t count = 0) {
        s_.lanes[lane].push_back({op, item, count});
    }

    /// A compute step, and its task. `coord` names its tile in timelines.
    void task(int lane, std::int64_t number, std::int32_t operation, std::vector<Region> reads,
              std::vector<Region> writes, double amount, const Index& coord = {}) {
        Tile tile;
        tile.coord = coord;
        tile.work = static_cast<std::int32_t>(s_.works.size());
        s_.works.push_back({number, TaskWork{operation, std::move(reads), std::move(writes), amount}});
        add(lane, Op::compute, static_cast<std::int32_t>(s_.tiles.size()));
        s_.tiles.push_back(tile);
    }

    /// Posts a message straight from or to an array: its number.
    /// @pre the region is one run of memory (the checker says so)
    int post(bool send, int peer, int tag, int array, const Box& region, int lane = 0) {
        const int id = add_message(s_, send, peer, tag, array, region);
        add(lane, send ? Op::post_send : Op::post_recv, id);
        return id;
    }

    void wait(int lane, const std::vector<int>& messages) {
        for (const int id : messages) add(lane, Op::wait, id);
    }

    /// The next count of a lane's counter, after the steps so far.
    std::int32_t signal(int lane) {
        const std::int32_t count = ++counts_[lane];
        add(lane, Op::signal, 0, count);
        return count;
    }

    /// The schedule, with its works in order.
    Schedule finish();

private:
    Schedule s_;
    std::vector<std::int32_t> counts_;
};

}  // namespace tilewave
