#include "generate/linalg/factor.hpp"

#include <algorithm>

#include "core/concat.hpp"

namespace tilewave {

void require_block_columns(const BlockCyclic& a, int ranks, bool square) {
    if ((square && a.rows.extent != a.columns.extent) || a.rows.parts != 1 || a.columns.block < 1 || a.ranks() > ranks)
        throw ConfigError(concat("a factor of a matrix of ", a.rows.extent, " x ", a.columns.extent, " on ",
                                 a.rows.parts, " x ", a.columns.parts, " ranks; allowed: ", (square ? "square, " : ""),
                                 "by block columns on at most as many ranks as there are"));
}

Array by_columns(std::int64_t item_bytes, const Box& owned) {
    Array a{item_bytes, owned, owned};
    a.stride = {1, std::max<std::int64_t>(1, owned.extent(0))};
    return a;
}

PanelTiles tiles_of(const BlockCyclic& layout, std::int64_t more) {
    return {layout.rows.extent, layout.columns.extent, layout.columns.block, more};
}

Box triangles_of(const BlockCyclic& layout, int rank) {
    Box box = layout.owned(rank);
    box.lo[0] = 0;
    box.hi[0] = box.extent(1) > 0 ? layout.columns.block : 0;
    return box;
}

RightLooking::RightLooking(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                           int ranks, std::int64_t more)
    : layout_(layout),
      choices_(choices),
      tiles_(tiles_of(layout, more)),
      n_(tiles_.tile_rows()),
      grid_(layout.columns.parts),
      me_(layout.column_of(rank)),
      buffers_(std::max(2, panels_ahead(choices.lookahead, tiles_.panels()) + (choices.wavefront ? 2 : 1))),
      list_(rank, ranks, choices.lanes + (choices.wavefront ? 1 : 0)),
      ring_(list_, tiles_, choices.tree, grid_, me_, buffers_, factor_panels, choices.chunk_bytes) {
    list_.schedule().arrays = {by_columns(item_bytes, layout.owned(rank)), tiles_.array(item_bytes, buffers_)};
    if (me_ < 0) list_.schedule().arrays[factor_panels].storage = {{0, 0, 0, 0}, {0, 0, 0, 0}};
}

Region RightLooking::of_matrix(std::int64_t j, std::int64_t t0, std::int64_t t1) const {
    const std::int64_t lo = layout_.columns.first(me_) + layout_.columns.local_of({tiles_.lo(j)}).at;
    return {factor_matrix, {{tiles_.lo(t0), lo}, {tiles_.hi(t1 - 1), lo + tiles_.width(j)}}};
}

std::vector<Box> RightLooking::chunks(std::int64_t k) const {
    const auto [t0, t1] = travels(k);
    std::vector<Box> all = ring_.chunks(k, t0, t1);
    if (const Box first = ahead(k); first.dims() > 0) all.insert(all.begin(), first);
    return all;
}

Schedule RightLooking::run() {
    return choices_.wavefront ? run_waves() : run_ahead();
}

Schedule RightLooking::run_ahead() {
    const std::int64_t panels = me_ < 0 ? 0 : tiles_.panels(), columns = tiles_.block_columns();
    std::vector<std::int32_t> done(choices_.lanes, 0);
    for (std::int64_t k = 0; k < std::min<std::int64_t>(panels, buffers_); ++k) {
        if (owner(k) != me_) start(k);
        if (k == 0 && owner(0) == me_) make(0);
    }
    for (std::int64_t k = 0; k < panels; ++k) {
        ring_.arrive(k);
        const std::int32_t there = choices_.lanes > 1 ? list_.signal(0) : 0;
        const bool next = k + 1 < panels;
        if (next && owner(k + 1) == me_) {
            update(0, k, k + 1, k, last_tile(), false);
            make(k + 1);
        }
        for (int lane = choices_.lanes - 1; lane >= 0; --lane) {
            if (lane > 0) list_.add(lane, Op::await, 0, there);
            // Those on the left come last: nobody waits for them.
            for (std::int64_t j = k + (next ? 2 : 1); j < columns; ++j)
                if (updates(lane, j)) update(lane, k, j, k, last_tile(), lane == 0 && next);
            for (std::int64_t j = 0; j < k; ++j)
                if (updates(lane, j)) left(lane, k, j);
            if (lane > 0) done[lane] = list_.signal(lane);
        }
        if (next) ring_.arrive(k + 1);
        for (int lane = 1; lane < choices_.lanes; ++lane) list_.add(0, Op::await, lane, done[lane]);
        ring_.finish(k);
        if (k + buffers_ < panels && owner(k + buffers_) != me_) start(k + buffers_);
    }
    return list_.finish();
}

}  // namespace tilewave
