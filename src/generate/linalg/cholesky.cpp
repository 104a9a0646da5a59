#include "generate/linalg/cholesky.hpp"

#include <algorithm>

namespace tilewave {

void require_block_columns(const BlockCyclic& a, int ranks) {
    if (a.rows.extent != a.columns.extent || a.rows.parts != 1 || a.columns.block < 1 || a.ranks() > ranks)
        throw ConfigError("a factor of a matrix of " + std::to_string(a.rows.extent) + " x " +
                          std::to_string(a.columns.extent) + " on " + std::to_string(a.rows.parts) + " x " +
                          std::to_string(a.columns.parts) +
                          " ranks; allowed: square, by block columns on at most as many ranks as there are");
}

Array by_columns(std::int64_t item_bytes, const Box& owned) {
    Array a{item_bytes, owned, owned};
    a.stride = {1, std::max<std::int64_t>(1, owned.extent(0))};
    return a;
}

namespace {

class Cholesky {
public:
    Cholesky(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks)
        : layout_(layout),
          choices_(choices),
          tiles_{layout.rows.extent, layout.columns.block},
          grid_(layout.columns.parts),
          me_(layout.column_of(rank)),
          buffers_(std::max(2, choices.lookahead + 1)),
          list_(rank, ranks, choices.lanes),
          ring_(list_, tiles_, choices.tree, grid_, me_, buffers_, factor_panels, choices.chunk_bytes),
          done_(static_cast<std::size_t>(choices.lanes), 0) {
        list_.schedule().arrays = {by_columns(item_bytes, layout.owned(rank)), tiles_.array(item_bytes, buffers_)};
        if (me_ < 0) list_.schedule().arrays[factor_panels].storage = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    }

    Schedule run() {
        const std::int64_t n = me_ < 0 ? 0 : tiles_.count();
        for (std::int64_t k = 0; k < std::min<std::int64_t>(n, buffers_); ++k) {
            if (owner(k) != me_) start(k);
            if (k == 0 && owner(0) == me_) factor(0);
        }
        for (std::int64_t k = 0; k + 1 < n; ++k) {
            ring_.arrive(k);
            const std::int32_t there = choices_.lanes > 1 ? list_.signal(0) : 0;
            // Look-ahead: the next panel is made and sent before the rest is updated.
            if (owner(k + 1) == me_) {
                update(0, k, k + 1, false);
                factor(k + 1);
            }
            for (int lane = choices_.lanes - 1; lane >= 0; --lane) {
                if (lane > 0) list_.add(lane, Op::await, 0, there);
                for (std::int64_t j = k + 2, mine = 0; j < n; ++j) {
                    if (owner(j) != me_) continue;
                    // A block column always has the same lane: its updates stay in order.
                    if ((j / grid_) % choices_.lanes == lane) update(lane, k, j, lane == 0);
                    ++mine;
                }
                if (lane > 0) done_[static_cast<std::size_t>(lane)] = list_.signal(lane);
            }
            ring_.arrive(k + 1);
            for (int lane = 1; lane < choices_.lanes; ++lane)
                list_.add(0, Op::await, lane, done_[static_cast<std::size_t>(lane)]);
            ring_.finish(k);
            if (k + buffers_ < n && owner(k + buffers_) != me_) start(k + buffers_);
        }
        if (n > 0) ring_.finish(n - 1);
        return list_.finish();
    }

private:
    int owner(std::int64_t k) const { return layout_.columns.part_of({tiles_.lo(k)}); }
    std::int64_t number(std::int64_t k, std::int64_t within) const {
        const std::int64_t n = tiles_.count() + 1;
        return k * (n * n + 1) + within;
    }
    // Rows of tiles [t0, t1) in block column j.
    Region of_matrix(std::int64_t j, std::int64_t t0, std::int64_t t1) const {
        const std::int64_t lo = layout_.columns.first(me_) + layout_.columns.local_of({tiles_.lo(j)}).at;
        return {factor_matrix, {{tiles_.lo(t0), lo}, {tiles_.hi(t1 - 1), lo + tiles_.hi(j) - tiles_.lo(j)}}};
    }

    void start(std::int64_t k) { ring_.start(k, owner(k), k + 1, tiles_.count()); }

    void factor(std::int64_t k) {
        const std::int64_t n = tiles_.count();
        const Region column = of_matrix(k, k, n);
        const double width = static_cast<double>(column.box.extent(1)),
                     high = static_cast<double>(column.box.extent(0));
        std::vector<Region> writes{column};
        if (k + 1 < n) writes.push_back({factor_panels, tiles_.region(k, k + 1, n)});
        list_.task(0, number(k, 0), factor_panel, {column}, std::move(writes), width * width * (high - width * 2 / 3),
                   {k, k});
        start(k);
    }

    // Block column j without what panel k contributes, in groups of tiles of about task_flops.
    void update(int lane, std::int64_t k, std::int64_t j, bool looks) {
        const std::int64_t n = tiles_.count(), width = tiles_.hi(j) - tiles_.lo(j);
        const double tile = 2.0 * static_cast<double>(tiles_.block * tiles_.block * width);
        const std::int64_t step =
            std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(1e9, choices_.task_flops / tile)));
        for (std::int64_t t = j; t < n; t += step) {
            const std::int64_t end = std::min(n, t + step);
            const Region part = of_matrix(j, t, end);
            list_.task(lane, number(k, 1 + j * tiles_.count() + t), update_column,
                       {{factor_panels, tiles_.region(k, t, end)}, {factor_panels, tiles_.region(k, j, j + 1)}, part},
                       {part}, 2.0 * static_cast<double>(part.box.points() * tiles_.block), {k, j, t});
            if (looks && k + 1 < n) ring_.arrive(k + 1, 1);
        }
    }

    BlockCyclic layout_;
    FactorChoices choices_;
    TileGrid tiles_;
    int grid_, me_, buffers_;
    TaskList list_;
    PanelRing ring_;
    std::vector<std::int32_t> done_;
};

}  // namespace

Schedule cholesky(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                  int ranks) {
    require_block_columns(layout, ranks);
    return Cholesky(layout, item_bytes, choices, rank, ranks).run();
}

Schedule triangular_solve(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes,
                          TriangularSolve kind, const FactorChoices& choices, int rank, int ranks) {
    require_block_columns(layout, ranks);
    if (sides.rows.extent != layout.rows.extent || sides.rows.parts != 1 || sides.columns.parts != layout.columns.parts)
        throw ConfigError("solve: right-hand sides of " + std::to_string(sides.rows.extent) + " rows on " +
                          std::to_string(sides.rows.parts) + " x " + std::to_string(sides.columns.parts) +
                          " ranks; allowed: as many rows as the matrix, by columns on its ranks");
    const TileGrid tiles{layout.rows.extent, layout.columns.block};
    const int me = layout.column_of(rank), buffers = choices.lookahead + 1;
    const std::int64_t n = tiles.count();
    TaskList list(rank, ranks, choices.lanes);
    const Box mine = sides.owned(rank);
    list.schedule().arrays = {by_columns(item_bytes, layout.owned(rank)), tiles.array(item_bytes, buffers),
                              by_columns(item_bytes, mine)};
    if (me < 0) list.schedule().arrays[factor_panels].storage = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (me < 0) return list.finish();
    PanelRing ring(list, tiles, choices.tree, layout.columns.parts, me, buffers, factor_panels, choices.chunk_bytes);
    const std::int64_t stride = 1 + ranks * choices.lanes;
    // Panels are numbered as they come: from the first on, or from the last. Of an upper triangle a panel has the tiles
    // down to the diagonal.
    const bool back = kind == TriangularSolve::lower_adjoint || kind == TriangularSolve::upper;
    const auto panel_of = [&](std::int64_t s) { return back ? n - 1 - s : s; };
    const auto first_tile = [&](std::int64_t k) { return kind == TriangularSolve::upper ? 0 : k; };
    const auto last_tile = [&](std::int64_t k) { return kind == TriangularSolve::upper ? k : n - 1; };
    const auto start = [&](std::int64_t s) {
        const std::int64_t k = panel_of(s), t0 = first_tile(k), t1 = last_tile(k) + 1;
        const int owner = layout.columns.part_of({tiles.lo(k)});
        if (owner == me) {
            const std::int64_t lo = layout.columns.first(me) + layout.columns.local_of({tiles.lo(k)}).at;
            const Box column{{tiles.lo(t0), lo}, {tiles.hi(t1 - 1), lo + tiles.hi(k) - tiles.lo(k)}};
            list.task(0, s * stride, copy_panel, {{factor_matrix, column}}, {{factor_panels, tiles.region(s, t0, t1)}},
                      static_cast<double>(column.points() * item_bytes), {s});
        }
        ring.start(s, owner, t0, t1);
    };
    for (std::int64_t s = 0; s < std::min<std::int64_t>(n, buffers); ++s) start(s);
    for (std::int64_t s = 0; s < n; ++s) {
        const std::int64_t k = panel_of(s), t0 = first_tile(k), t1 = last_tile(k) + 1;
        ring.arrive(s);
        const std::int32_t there = choices.lanes > 1 ? list.signal(0) : 0;
        std::vector<std::int32_t> done(static_cast<std::size_t>(choices.lanes), 0);
        for (int lane = 0; lane < choices.lanes; ++lane) {
            Box part{{tiles.lo(t0), 0}, {tiles.hi(t1 - 1), 0}};
            part.lo[1] = mine.lo[1] + mine.extent(1) * lane / choices.lanes;
            part.hi[1] = mine.lo[1] + mine.extent(1) * (lane + 1) / choices.lanes;
            if (lane > 0) list.add(lane, Op::await, 0, there);
            if (!part.empty()) {
                const Region b{factor_sides, part};
                list.task(lane, s * stride + 1 + rank * choices.lanes + lane,
                          solve_lower + static_cast<std::int32_t>(kind), {{factor_panels, tiles.region(s, t0, t1)}, b},
                          {b}, 2.0 * static_cast<double>(part.points() * (tiles.hi(k) - tiles.lo(k))), {s, k});
            }
            if (lane > 0) done[static_cast<std::size_t>(lane)] = list.signal(lane);
        }
        for (int lane = 1; lane < choices.lanes; ++lane)
            list.add(0, Op::await, lane, done[static_cast<std::size_t>(lane)]);
        ring.finish(s);
        if (s + buffers < n) start(s + buffers);
    }
    return list.finish();
}

}  // namespace tilewave
