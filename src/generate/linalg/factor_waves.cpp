// Factorizations as wavefronts, point to point: a panel goes from rank to rank, chunk by chunk, and is used as it
// comes.
#include <algorithm>
#include <vector>

#include "generate/linalg/factor.hpp"

namespace tilewave {

// Each chunk leaves as soon as its tiles are made.
void RightLooking::make_by_tiles(std::int64_t k) {
    if (!by_tiles()) return make(k);
    factor_top(k);
    start(k, true);
    for (const Box& chunk : chunks(k)) {
        factor_below(k, chunk.lo[1], chunk.hi[1]);
        ring_.arrive(k, 1);
    }
}

// Lane 0 receives, hands on and makes panels; it also updates the block column that is the next panel. Lanes from 1 on
// update the others. `urgent`: what lane 0 needs of them before it updates that column.
Schedule RightLooking::run_waves() {
    const std::int64_t panels = me_ < 0 ? 0 : tiles_.panels(), columns = tiles_.block_columns();
    const int lanes = choices_.lanes;
    const auto mine_in = [&](std::int64_t j, int lane) { return mine(j, lane - 1); };
    std::vector<std::vector<std::int32_t>> done(static_cast<std::size_t>(panels));  // by panel and lane: it is used
    std::int32_t urgent = 0;
    int urgent_lane = 0;
    const auto release = [&](std::int64_t k) {
        if (k < 0 || k >= panels) return;
        for (int lane = 1; lane <= lanes; ++lane)
            list_.add(0, Op::await, lane, done[static_cast<std::size_t>(k)][static_cast<std::size_t>(lane - 1)]);
        ring_.finish(k);
    };
    const auto begin = [&](std::int64_t k, bool own) {
        if (k >= panels || (owner(k) == me_) != own) return;
        release(k - buffers_);
        if (own)
            make_by_tiles(k);
        else
            start(k);
    };
    begin(0, true);
    begin(0, false);
    for (std::int64_t k = 0; k < panels; ++k) {
        begin(k + 1, false);
        const bool own = owner(k) == me_, next = k + 1 < panels && owner(k + 1) == me_;
        std::vector<std::pair<std::int64_t, std::int64_t>> parts;
        if (!own)
            for (const Box& chunk : chunks(k)) parts.emplace_back(chunk.lo[1], chunk.hi[1]);
        if (parts.empty()) parts.emplace_back(k, last_tile());
        const std::int64_t beside = k + 1 < panels ? k + 2 : k + 1;  // the first block column of the other lanes
        if (next && urgent_lane > 0) list_.add(0, Op::await, urgent_lane, urgent);
        urgent_lane = 0;
        for (const auto& [t0, t1] : parts) {
            if (!own) ring_.arrive(k, 1);
            const std::int32_t there = list_.signal(0);
            if (next) update(0, k, k + 1, t0, t1, false);
            for (int lane = 1; lane <= lanes; ++lane) {
                list_.add(lane, Op::await, 0, there);
                for (std::int64_t j = beside; j < columns; ++j) {
                    if (!mine_in(j, lane)) continue;
                    update(lane, k, j, t0, t1, false);
                    if (j != k + 2 || t1 != parts.back().second) continue;
                    urgent = list_.signal(lane);
                    urgent_lane = lane;
                }
            }
        }
        for (int lane = 1; lane <= lanes; ++lane) {
            for (std::int64_t j = 0; j < k; ++j)
                if (mine_in(j, lane)) left(lane, k, j);
            done[static_cast<std::size_t>(k)].push_back(list_.signal(lane));
        }
        begin(k + 1, true);
    }
    for (std::int64_t k = std::max<std::int64_t>(0, panels - buffers_); k < panels; ++k) release(k);
    return list_.finish();
}

}  // namespace tilewave
