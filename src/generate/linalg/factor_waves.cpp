// Factorizations as wavefronts, point to point: a panel goes from rank to rank, chunk by chunk, and is used as it
// comes.
#include <algorithm>
#include <utility>
#include <vector>

#include "generate/linalg/factor.hpp"

namespace tilewave {

// Waits until panel k is used up by all lanes and sent: its buffer is free.
void RightLooking::release(const Waves& waves, std::int64_t k) {
    if (k < begin_ || k >= end_) return;
    for (int lane = 1; lane <= choices_.lanes; ++lane) list_.add(0, Op::await, lane, waves.done[k][lane - 1]);
    ring_.finish(k);
}

// Posts the receives of the panels before `until`.
void RightLooking::expect(Waves& waves, std::int64_t until) {
    for (; waves.expected < std::min(until, end_); ++waves.expected) {
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

// The tiles of panel k in the parts in which they are used: its chunks; all at once where this rank makes the panel.
std::vector<RightLooking::TileRange> RightLooking::parts_of(std::int64_t k) const {
    std::vector<TileRange> parts;
    if (owner(k) != me_)
        for (const Box& chunk : chunks(k)) parts.push_back({chunk.lo[1], chunk.hi[1]});
    if (parts.empty()) parts.push_back({k, last_tile()});
    return parts;
}

// Lane 0 updates block column k + 1 by a part of panel k, and makes of it what is up to date then.
void RightLooking::update_next_panel(Waves& waves, std::int64_t k, TileRange part, bool last) {
    // Interchanges and reflectors change a column as a whole: they need all its tiles.
    const std::vector<Ready>& ready = waves.ready;
    std::size_t& next = waves.next_ready;
    while (next + 1 < ready.size() && (!by_tiles() || ready[next].until < part.end)) ++next;
    if (next < ready.size()) {
        list_.add(0, Op::await, ready[next].lane, ready[next].count);
        ++next;
    }
    update(0, k, k + 1, part.begin, part.end, false);
    make_until(waves, k + 1, part.end, last);
}

// The other lanes update the block columns on the right of the next panel: column k + 2, which becomes the panel after
// it, part by part; the others with `flush`, by all tiles from `pending` on.
void RightLooking::update_others(Waves& waves, std::int64_t k, TileRange part, std::int64_t pending, bool flush,
                                 std::int32_t arrived) {
    const std::int64_t first = k + 1 < end_ ? k + 2 : k + 1;
    for (int lane = 1; lane <= choices_.lanes; ++lane) {
        list_.add(lane, Op::await, 0, arrived);
        for (std::int64_t j = first; j < tiles_.block_columns(); ++j) {
            if (!updates(lane - 1, j)) continue;
            if (j == k + 2) {
                update(lane, k, j, part.begin, part.end, false);
                waves.ready_later.push_back({part.end, lane, list_.signal(lane)});
            } else if (flush) {
                update(lane, k, j, pending, part.end, false);
            }
        }
    }
}

// Lane 0 receives, hands on and makes panels; it also updates the block column that is the next panel. Lanes from 1 on
// update the others.
Schedule RightLooking::run_waves() {
    const std::int64_t panels = me_ < 0 ? 0 : end_;
    const double tile_flops = 2.0 * static_cast<double>(tiles_.block * tiles_.block * tiles_.block);
    Waves waves;
    waves.done.resize(panels);
    waves.expected = begin_;
    if (panels > 0 && owner(begin_) == me_) make_until(waves, begin_, last_tile(), true);
    for (std::int64_t k = begin_; k < panels; ++k) {
        const bool makes_next = k + 1 < panels && owner(k + 1) == me_;
        // Chunks of the panel after the next one arrive while those of the next one are made.
        expect(waves, k + (makes_next && by_tiles() && buffers_ > 2 ? 3 : 2));
        waves.ready = std::exchange(waves.ready_later, {});
        waves.next_ready = 0;
        const std::vector<TileRange> parts = parts_of(k);
        std::int64_t pending = parts.front().begin;  // tiles from here on are still to be applied to most columns
        for (std::size_t p = 0; p < parts.size(); ++p) {
            const bool last = p + 1 == parts.size();
            // Adjacent small parts make one task together.
            const bool flush =
                last || parts[p + 1].begin != parts[p].end || parts[p].end - pending >= units_of_task(tile_flops);
            if (owner(k) != me_) ring_.arrive(k, 1);
            const std::int32_t arrived = list_.signal(0);
            if (makes_next) update_next_panel(waves, k, parts[p], last);
            update_others(waves, k, parts[p], pending, flush, arrived);
            if (flush && !last) pending = parts[p + 1].begin;
        }
        for (int lane = 1; lane <= choices_.lanes; ++lane) {
            for (std::int64_t j = 0; j < k; ++j)
                if (updates(lane - 1, j)) left(lane, k, j);
            waves.done[k].push_back(list_.signal(lane));
        }
    }
    for (std::int64_t k = std::max(begin_, panels - buffers_); k < panels; ++k) release(waves, k);
    return list_.finish();
}

}  // namespace tilewave
