// Factorizations as wavefronts, point to point: a panel goes from rank to rank, chunk by chunk, and is used as it
// comes.
#include <algorithm>
#include <utility>
#include <vector>

#include "generate/linalg/factor.hpp"

namespace tilewave {

// Waits until panel k is used up by all lanes and sent: its buffer is free.
void RightLooking::release(const Waves& waves, std::int64_t k) {
    if (k < 0 || k >= tiles_.panels()) return;
    for (int lane = 1; lane <= choices_.lanes; ++lane) list_.add(0, Op::await, lane, waves.done[k][lane - 1]);
    ring_.finish(k);
}

// Posts the receives of the panels before `until`.
void RightLooking::expect(Waves& waves, std::int64_t until) {
    for (; waves.expected < std::min(until, tiles_.panels()); ++waves.expected) {
        if (owner(waves.expected) == me_) continue;
        release(waves, waves.expected - buffers_);
        start(waves.expected);
    }
}

// Makes panel k of its tiles before t1, which are up to date; where its tiles wait for each other, when `all` are. Each
// chunk leaves as soon as its tiles are made.
void RightLooking::make_until(Waves& waves, std::int64_t k, std::int64_t t1, bool all) {
    if (!all && (!by_tiles() || t1 <= k)) return;
    if (waves.making != k) {
        release(waves, k - buffers_);
        if (!by_tiles()) return make(k);
        factor_top(k);
        start(k, true);
        waves.making = k;
        waves.made = 0;
    }
    const std::vector<Box> parts = chunks(k);
    for (; waves.made < parts.size() && (all || parts[waves.made].hi[1] <= t1); ++waves.made) {
        factor_below(k, parts[waves.made].lo[1], parts[waves.made].hi[1]);
        ring_.arrive(k, 1);
    }
}

// Lane 0 receives, hands on and makes panels; it also updates the block column that is the next panel. Lanes from 1 on
// update the others.
Schedule RightLooking::run_waves() {
    const std::int64_t panels = me_ < 0 ? 0 : tiles_.panels(), columns = tiles_.block_columns();
    const int lanes = choices_.lanes;
    const double tile_flops = 2.0 * static_cast<double>(tiles_.block * tiles_.block * tiles_.block);
    // What lane 0 awaits before it updates the tiles before `until` of the block column that is the next panel.
    struct Urgent {
        std::int64_t until = 0;
        int lane = 0;
        std::int32_t count = 0;
    };
    std::vector<Urgent> urgent;
    Waves waves;
    waves.done.resize(panels);
    if (panels > 0 && owner(0) == me_) make_until(waves, 0, last_tile(), true);
    for (std::int64_t k = 0; k < panels; ++k) {
        const bool own = owner(k) == me_, next = k + 1 < panels && owner(k + 1) == me_;
        // Chunks of the panel behind the next one come while those of the next one are made.
        expect(waves, k + (next && by_tiles() && buffers_ > 2 ? 3 : 2));
        std::vector<std::pair<std::int64_t, std::int64_t>> parts;
        if (!own)
            for (const Box& chunk : chunks(k)) parts.emplace_back(chunk.lo[1], chunk.hi[1]);
        if (parts.empty()) parts.emplace_back(k, last_tile());
        const std::int64_t beside = k + 1 < panels ? k + 2 : k + 1;  // the first block column of the other lanes
        const std::vector<Urgent> needed = std::exchange(urgent, {});
        auto need = needed.begin();
        std::int64_t met = parts.front().first;  // tiles from here on have not met block columns that nobody waits for
        for (std::size_t p = 0; p < parts.size(); ++p) {
            const auto [t0, t1] = parts[p];
            const bool last = p + 1 == parts.size();
            const bool enough = last || parts[p + 1].first != t1 || t1 - met >= units_of_task(tile_flops);
            if (!own) ring_.arrive(k, 1);
            const std::int32_t there = list_.signal(0);
            if (next) {
                // Interchanges and reflectors change a column as a whole: they need all its tiles.
                while (need != needed.end() && need + 1 != needed.end() && (!by_tiles() || need->until < t1)) ++need;
                if (need != needed.end()) {
                    list_.add(0, Op::await, need->lane, need->count);
                    ++need;
                }
                update(0, k, k + 1, t0, t1, false);
                make_until(waves, k + 1, t1, last);
            }
            for (int lane = 1; lane <= lanes; ++lane) {
                list_.add(lane, Op::await, 0, there);
                for (std::int64_t j = beside; j < columns; ++j) {
                    if (!mine(j, lane - 1)) continue;
                    if (j == k + 2) {
                        update(lane, k, j, t0, t1, false);
                        urgent.push_back({t1, lane, list_.signal(lane)});
                    } else if (enough) {
                        update(lane, k, j, met, t1, false);
                    }
                }
            }
            if (enough && !last) met = parts[p + 1].first;
        }
        for (int lane = 1; lane <= lanes; ++lane) {
            for (std::int64_t j = 0; j < k; ++j)
                if (mine(j, lane - 1)) left(lane, k, j);
            waves.done[k].push_back(list_.signal(lane));
        }
    }
    for (std::int64_t k = std::max<std::int64_t>(0, panels - buffers_); k < panels; ++k) release(waves, k);
    return list_.finish();
}

}  // namespace tilewave
