#include "generate/linalg/factor.hpp"

#include <algorithm>

#include "core/concat.hpp"

namespace tilewave {

namespace {

RankGroup part_of_row(RankGroup row, const FactorPart& part) {
    if (part.columns == 0) return row;
    return {part.columns, row.me - part.first_column, row.rank(part.first_column), row.step};
}

}  // namespace

void require_blocks(const BlockCyclic& a, int ranks, bool square) {
    const bool blocks = a.columns.block >= 1 && (a.rows.parts == 1 || a.rows.block == a.columns.block);
    if ((square && a.rows.extent != a.columns.extent) || !blocks || a.ranks() > ranks)
        throw ConfigError(concat("a factor of a matrix of ", a.rows.extent, " x ", a.columns.extent, " on ",
                                 a.rows.parts, " x ", a.columns.parts, " ranks in blocks of ", a.rows.block, " x ",
                                 a.columns.block, "; allowed: ", (square ? "square, " : ""),
                                 "by block columns, or in square blocks, on at most as many ranks as there are"));
}

Array by_columns(std::int64_t item_bytes, const Box& owned) {
    Array a{item_bytes, owned, owned};
    a.stride = {1, std::max<std::int64_t>(1, owned.extent(0))};
    return a;
}

PanelTiles tiles_of(const BlockCyclic& layout, std::int64_t more, int parts) {
    const std::int64_t rows = layout.rows.extent, block = layout.columns.block;
    return {rows, layout.columns.extent, block, more,
            Axis((rows + block - 1) / block, parts, 1, parts > 1 ? layout.rows.weights() : Weights())};
}

Box triangles_of(const BlockCyclic& layout, int rank) {
    const Box box = layout.owned(rank);
    return box.with(0, 0, box.extent(1) > 0 && layout.row_of(rank) == 0 ? layout.columns.block : 0);
}

RightLooking::RightLooking(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                           int ranks, std::int64_t more)
    : layout_(layout),
      choices_(choices),
      tiles_(tiles_of(layout, more, layout.rows.parts)),
      n_(tiles_.tile_rows()),
      begin_(choices.part.first_step),
      end_(choices.part.steps > 0 ? std::min(tiles_.panels(), begin_ + choices.part.steps) : tiles_.panels()),
      row_(layout.row_of(rank)),
      me_(layout.column_of(rank)),
      buffers_(std::max(2, panels_ahead(choices.lookahead, tiles_.panels()) + (choices.wavefront ? 2 : 1))),
      list_(rank, ranks, choices.lanes + (choices.wavefront ? 1 : 0)),
      ring_(list_, tiles_, choices.tree, part_of_row(grid_row(layout, rank), choices.part), buffers_, factor_panels,
            choices.chunk_bytes) {
    if (choices.wavefront && layout.rows.parts > 1)
        throw ConfigError(concat("a wavefront on ", layout.rows.parts, " x ", layout.columns.parts,
                                 " ranks; allowed: one row of ranks, or a broadcast"));
    list_.schedule().arrays = {by_columns(item_bytes, layout.owned(rank)), tiles_.array(item_bytes, buffers_, row_)};
    if (layout.rows.parts == 1) return;
    across_ = tiles_of(layout.transposed(), 1, layout.columns.parts);
    array_across_ = 2;
    list_.schedule().arrays.push_back(across_.array(item_bytes, buffers_, me_));
    down_.emplace(list_, across_, choices.tree, grid_column(layout, rank), 3 * buffers_, array_across_,
                  choices.chunk_bytes, tag_kinds);
}

std::pair<std::int64_t, std::int64_t> RightLooking::columns_of(std::int64_t k, Part part) const {
    const std::int64_t all = across_.tile_rows(), next = std::min(k + 2, all);
    if (part == of_the_panel) return {all, all + 1};
    return part == of_the_next ? std::pair{k + 1, next} : std::pair{next, all};
}

void RightLooking::post_down(std::int64_t k, Part part, bool sends) {
    const auto [j0, j1] = columns_of(k, part);
    const std::int64_t first = across_.first(me_), end = across_.before(me_, j1);
    int number = 0;
    for (std::int64_t at = across_.before(me_, j0), last = at; at < end; at = last) {
        const auto root = [&](std::int64_t i) {
            return part == of_the_panel ? RightLooking::root_of(k, 0) : root_of(k, across_.tile(me_, i));
        };
        while (last < end && root(last) == root(at)) ++last;
        const std::vector<Box> chunks = down_->chunks(k, first + at, first + last);
        if ((root(at) == row_) == sends) down_->start(3 * k + part, root(at), chunks, false, number);
        number += static_cast<int>(chunks.size());
    }
}

void RightLooking::open(std::int64_t k) {
    if (!has_column(k)) start(k);
    if (!down_) return;
    for (const Part part : {of_the_panel, of_the_next, of_the_others})
        if (part != of_the_panel || (by_tiles() && has_column(k))) post_down(k, part, false);
}

void RightLooking::close(std::int64_t k) {
    ring_.finish(k);
    end_of(k);
    if (!down_) return;
    for (const Part part : {of_the_panel, of_the_next, of_the_others}) down_->finish(3 * k + part);
}

Region RightLooking::of_matrix(std::int64_t j, std::int64_t t0, std::int64_t t1) const {
    const std::int64_t lo = layout_.columns.first(me_) + layout_.columns.local_of({tiles_.lo(j)}).at;
    const std::int64_t first = layout_.rows.first(row_), count = layout_.rows.count(row_);
    const auto row = [&](std::int64_t t) { return first + std::min(count, tiles_.before(row_, t) * tiles_.block); };
    return {factor_matrix, {{row(t0), lo}, {row(t1), lo + tiles_.width(j)}}};
}

std::vector<Box> RightLooking::chunks(std::int64_t k) const {
    const auto [t0, t1] = travels(k);
    std::vector<Box> all = ring_.chunks(k, tiles_.place(row_, t0), tiles_.place(row_, t1));
    if (const Box first = ahead(k); first.dims() > 0) all.insert(all.begin(), first);
    return all;
}

Schedule RightLooking::run() {
    if (choices_.part.steps < 0) {
        if (has_column(begin_)) factor(begin_);
        return renumbered(list_.finish());
    }
    return renumbered(choices_.wavefront ? run_waves() : run_ahead());
}

Schedule RightLooking::renumbered(Schedule s) const {
    const FactorPart& part = choices_.part;
    if (part.columns == 0) return s;
    const auto number = [&](int rank) {
        return layout_.row_of(rank) * part.columns + layout_.column_of(rank) - part.first_column;
    };
    s.rank = number(s.rank);
    s.ranks = layout_.rows.parts * part.columns;
    for (Message& m : s.messages) m.peer = number(m.peer);
    return s;
}

std::int64_t RightLooking::after_column(std::int64_t c, std::int64_t count, std::int64_t number) {
    const std::int64_t made = choices_.part.panel_columns;
    if (made == 0 || made >= count) return c + 1;
    const std::int64_t next = ((c * made + count - 1) / count + 1) * count / made;
    if (next > c + 1) list_.task(0, number, columns_left_out, {}, {}, static_cast<double>(next - c - 1));
    return next;
}

Schedule RightLooking::run_ahead() {
    const std::int64_t panels = me_ < 0 ? 0 : end_, columns = tiles_.block_columns();
    std::vector<std::int32_t> done(choices_.lanes, 0);
    for (std::int64_t k = begin_; k < std::min<std::int64_t>(panels, begin_ + buffers_); ++k) {
        open(k);
        if (k == begin_ && has_column(k)) make(k);
    }
    for (std::int64_t k = begin_; k < panels; ++k) {
        ring_.arrive(k);
        const std::int32_t panel_there = choices_.lanes > 1 ? list_.signal(0) : 0;
        const bool next = k + 1 < panels;
        if (down_) bring(k, of_the_next);
        if (next && has_column(k + 1)) {
            update(0, k, k + 1, k, last_tile(), false);
            make(k + 1);
        }
        if (down_) bring(k, of_the_others);
        const std::int32_t there = down_ && choices_.lanes > 1 ? list_.signal(0) : panel_there;
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
        close(k);
        if (k + buffers_ < panels) open(k + buffers_);
    }
    return list_.finish();
}

}  // namespace tilewave
