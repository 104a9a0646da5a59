#include "generate/linalg/lu.hpp"

#include <algorithm>

namespace tilewave {

namespace {

class Lu {
public:
    Lu(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks)
        : layout_(layout),
          choices_(choices),
          tiles_{layout.rows.extent, layout.columns.block, 1},
          grid_(layout.columns.parts),
          me_(layout.column_of(rank)),
          buffers_(std::max(2, choices.lookahead + 1)),
          n_(me_ < 0 ? 0 : tiles_.count()),
          list_(rank, ranks, choices.lanes),
          ring_(list_, tiles_, choices.tree, grid_, me_, buffers_, factor_panels, choices.chunk_bytes),
          done_(static_cast<std::size_t>(choices.lanes), 0) {
        list_.schedule().arrays = {by_columns(item_bytes, layout.owned(rank)), tiles_.array(item_bytes, buffers_)};
        if (me_ < 0) list_.schedule().arrays[factor_panels].storage = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    }

    Schedule run() {
        for (std::int64_t k = 0; k < std::min<std::int64_t>(n_, buffers_); ++k) {
            if (owner(k) != me_) start(k);
            if (k == 0 && owner(0) == me_) factor(0);
        }
        for (std::int64_t k = 0; k < n_; ++k) {
            ring_.arrive(k);
            const std::int32_t there = choices_.lanes > 1 ? list_.signal(0) : 0;
            if (k + 1 < n_ && owner(k + 1) == me_) {
                column(0, k, k + 1, false);
                factor(k + 1);
            }
            for (int lane = choices_.lanes - 1; lane >= 0; --lane) {
                if (lane > 0) list_.add(lane, Op::await, 0, there);
                // A block column always has the same lane: its updates stay in order. Those on the left come last.
                for (std::int64_t j = k + 2; j < n_; ++j)
                    if (mine(j, lane)) column(lane, k, j, lane == 0);
                for (std::int64_t j = 0; j < k; ++j)
                    if (mine(j, lane)) swap(lane, k, j, lu_swap);
                if (lane > 0) done_[static_cast<std::size_t>(lane)] = list_.signal(lane);
            }
            if (k + 1 < n_) ring_.arrive(k + 1);
            for (int lane = 1; lane < choices_.lanes; ++lane)
                list_.add(0, Op::await, lane, done_[static_cast<std::size_t>(lane)]);
            ring_.finish(k);
            if (k + buffers_ < n_ && owner(k + buffers_) != me_) start(k + buffers_);
        }
        return list_.finish();
    }

private:
    int owner(std::int64_t k) const { return layout_.columns.part_of({tiles_.lo(k)}); }
    bool mine(std::int64_t j, int lane) const { return owner(j) == me_ && (j / grid_) % choices_.lanes == lane; }
    // Of a step: the panel, then interchanges by block column, then updates by block column and tile.
    std::int64_t number(std::int64_t k, std::int64_t within) const {
        return k * (1 + tiles_.count() * (tiles_.count() + 1)) + within;
    }
    Region of_matrix(std::int64_t j, std::int64_t t0, std::int64_t t1) const {
        const std::int64_t lo = layout_.columns.first(me_) + layout_.columns.local_of({tiles_.lo(j)}).at;
        return {factor_matrix, {{tiles_.lo(t0), lo}, {tiles_.hi(t1 - 1), lo + tiles_.hi(j) - tiles_.lo(j)}}};
    }

    void start(std::int64_t k) { ring_.start(k, owner(k), k, n_ + 1); }

    void factor(std::int64_t k) {
        const Region column = of_matrix(k, k, n_);
        const double width = static_cast<double>(column.box.extent(1)),
                     high = static_cast<double>(column.box.extent(0));
        list_.task(0, number(k, 0), lu_panel, {column}, {column, {factor_panels, tiles_.region(k, k, n_ + 1)}},
                   width * width * (high - width / 3), {k, k});
        start(k);
    }

    void swap(int lane, std::int64_t k, std::int64_t j, FactorTask operation) {
        const Region column = of_matrix(j, k, n_);
        const double width = static_cast<double>(column.box.extent(1) * tiles_.block * tiles_.block);
        list_.task(lane, number(k, 1 + j), operation, {{factor_panels, tiles_.region(k, k, n_ + 1)}, column}, {column},
                   operation == lu_row ? width : width / static_cast<double>(tiles_.block), {k, j, k});
    }

    // Block column j on the right of panel k: interchanged, its row of U, and the rest updated.
    void column(int lane, std::int64_t k, std::int64_t j, bool looks) {
        swap(lane, k, j, lu_row);
        const double tile = 2.0 * static_cast<double>(tiles_.block * tiles_.block * (tiles_.hi(j) - tiles_.lo(j)));
        const std::int64_t step =
            std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(1e9, choices_.task_flops / tile)));
        const Region row = of_matrix(j, k, k + 1);
        for (std::int64_t t = k + 1; t < n_; t += step) {
            const std::int64_t end = std::min(n_, t + step);
            const Region part = of_matrix(j, t, end);
            list_.task(lane, number(k, 1 + n_ + j * n_ + t), lu_update,
                       {{factor_panels, tiles_.region(k, t, end)}, row, part}, {part},
                       2.0 * static_cast<double>(part.box.points() * tiles_.block), {k, j, t});
            if (looks && k + 1 < n_) ring_.arrive(k + 1, 1);
        }
    }

    BlockCyclic layout_;
    FactorChoices choices_;
    TileGrid tiles_;
    int grid_, me_, buffers_;
    std::int64_t n_;
    TaskList list_;
    PanelRing ring_;
    std::vector<std::int32_t> done_;
};

}  // namespace

Schedule lu(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks) {
    require_block_columns(layout, ranks);
    return Lu(layout, item_bytes, choices, rank, ranks).run();
}

}  // namespace tilewave
