#include "generate/linalg/sides.hpp"

#include <algorithm>

#include "core/concat.hpp"

namespace tilewave {

namespace {

// Step s brings panel k = panel_of(s): from the first on, or from the last.
class PanelRound {
public:
    PanelRound(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes,
               const FactorChoices& choices, int rank, int ranks, std::int64_t more, bool backward)
        : layout_(layout),
          sides_(sides),
          choices_(choices),
          tiles_(tiles_of(layout, more)),
          me_(sides.column_of(rank)),
          buffers_(panels_ahead(choices.lookahead, tiles_.panels()) + 1),
          panels_(me_ < 0 ? 0 : tiles_.panels()),
          backward_(backward),
          owned_(sides.owned(rank)),
          list_(rank, ranks, choices.lanes),
          ring_(list_, tiles_, choices.tree, grid_row(sides, rank), buffers_, factor_panels, choices.chunk_bytes) {
        if (sides.rows.extent != layout.rows.extent || sides.rows.parts != 1 || sides.columns.parts < layout.ranks())
            throw ConfigError(concat("solve: right-hand sides of ", sides.rows.extent, " rows on ", sides.rows.parts,
                                     " x ", sides.columns.parts,
                                     " ranks; allowed: as many rows as the matrix, by "
                                     "columns on at least its ",
                                     layout.ranks(), " ranks"));
        std::vector<Array>& arrays = list_.schedule().arrays;
        arrays = {by_columns(item_bytes, layout.owned(rank)), tiles_.array(item_bytes, buffers_, me_ < 0 ? -1 : 0)};
        if (more) arrays.push_back(by_columns(item_bytes, triangles_of(layout, rank)));
        array_of_sides_ = static_cast<std::int32_t>(arrays.size());
        arrays.push_back(by_columns(item_bytes, owned_));
    }
    virtual ~PanelRound() = default;

    Schedule run() {
        for (std::int64_t s = 0; s < std::min<std::int64_t>(panels_, buffers_); ++s) start(s);
        for (std::int64_t s = 0; s < panels_; ++s) {
            ring_.arrive(s);
            const std::int32_t there = choices_.lanes > 1 ? list_.signal(0) : 0;
            std::vector<std::int32_t> done(choices_.lanes, 0);
            for (int lane = choices_.lanes - 1; lane >= 0; --lane) {
                if (lane > 0) list_.add(lane, Op::await, 0, there);
                use(s, lane);
                if (lane > 0) done[lane] = list_.signal(lane);
            }
            for (int lane = 1; lane < choices_.lanes; ++lane) list_.add(0, Op::await, lane, done[lane]);
            ring_.finish(s);
            if (s + buffers_ < panels_) start(s + buffers_);
        }
        return list_.finish();
    }

protected:
    /// The tiles of panel k that travel, [first, second).
    virtual std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const = 0;
    /// The operations that copy the tile of a panel on the diagonal, that copy the others, and that use the panel.
    virtual FactorTask copies_top() const { return copies(); }
    virtual FactorTask copies() const { return copy_panel; }
    virtual std::int32_t uses() const = 0;
    /// The columns of the right-hand sides, in their array's coordinates, that panel k does not change: up to there.
    virtual std::int64_t unchanged(std::int64_t) const { return owned_.lo[1]; }

    BlockCyclic layout_, sides_;
    FactorChoices choices_;
    PanelTiles tiles_;
    int me_, buffers_;
    std::int64_t panels_;
    bool backward_;
    Box owned_;

private:
    std::int64_t panel_of(std::int64_t s) const { return backward_ ? panels_ - 1 - s : s; }
    // Of a step: copies by tile, then pieces by their first column, in coordinates that all ranks share.
    std::int64_t number(std::int64_t s, std::int64_t within) const {
        return s * (copies_ + sides_.columns.extent) + within;
    }
    std::int64_t last_row(std::int64_t t1) const { return tiles_.hi(std::min(t1, tiles_.tile_rows()) - 1); }

    // The row of ranks that has a tile; the triangles are those of row 0.
    int row_of(std::int64_t t) const { return t < tiles_.tile_rows() ? layout_.rows.part_of({tiles_.lo(t)}) : 0; }

    // Tiles [t0, t1) of one rank, copied in one task: a run of the matrix that it has.
    void copy(std::int64_t s, std::int64_t t0, std::int64_t t1, FactorTask operation) {
        const std::int64_t k = panel_of(s),
                           lo = layout_.columns.first(column_) + layout_.columns.local_of({tiles_.lo(k)}).at;
        Region from{factor_triangles, {{0, lo}, {tiles_.block, lo + tiles_.width(k)}}};
        if (t0 < tiles_.tile_rows()) {
            const std::int64_t first = layout_.rows.first(row_of(t0)) + layout_.rows.local_of({tiles_.lo(t0)}).at;
            from = {factor_matrix, {{first, lo}, {first + tiles_.hi(t1 - 1) - tiles_.lo(t0), lo + tiles_.width(k)}}};
        }
        const double bytes = static_cast<double>(from.box.points() * list_.schedule().arrays[factor_matrix].item_bytes);
        list_.task(0, number(s, t0), operation, {from}, {{factor_panels, tiles_.region(s, t0, t1)}}, bytes, {s});
    }

    // Tiles of one rank next to each other are copied, and travel, together.
    void start(std::int64_t s) {
        const std::int64_t k = panel_of(s), n = tiles_.tile_rows();
        const auto [t0, t1] = travels(k);
        int chunks = 0;
        for (std::int64_t t = t0, end = t0; t < t1; t = end) {
            for (++end; end < t1 && row_of(end) == row_of(t); ++end) {
            }
            const int root = layout_.rank_of(row_of(t), layout_.columns.part_of({tiles_.lo(k)}));
            if (root == me_) {
                // The tile on the diagonal, and the triangle behind the others, are copied for themselves.
                const std::int64_t top = copies_top() != copies() && t <= k && k < end ? k + 1 : t;
                if (t < top) copy(s, t, top, copies_top());
                if (top < std::min(end, n)) copy(s, top, std::min(end, n), copies());
                if (end > n) copy(s, n, end, copies());
            }
            const std::vector<Box> some = ring_.chunks(s, t, end);
            ring_.start(s, root, some, false, chunks);
            chunks += static_cast<int>(some.size());
        }
    }

    // A lane's share of the columns, in pieces of about task_flops: lane 0 hands the next panel on between them.
    void use(std::int64_t s, int lane) {
        const std::int64_t k = panel_of(s), first = unchanged(k), all = owned_.hi[1] - first;
        const auto [t0, t1] = travels(k);
        const std::int64_t lo = first + all * lane / choices_.lanes, hi = first + all * (lane + 1) / choices_.lanes;
        Box part{{tiles_.lo(t0), lo}, {last_row(t1), hi}};
        const double each = (tiles_.more ? 4.0 : 2.0) * static_cast<double>(part.extent(0) * tiles_.width(k));
        const std::int64_t step =
            std::max(least_side, static_cast<std::int64_t>(std::min(1e9, choices_.task_flops / std::max(each, 1.0))));
        const std::int64_t count = (hi - lo + step - 1) / step;
        for (std::int64_t i = 0; i < count; ++i) {
            part.lo[1] = lo + (hi - lo) * i / count;
            part.hi[1] = lo + (hi - lo) * (i + 1) / count;
            const Region b{array_of_sides_, part};
            list_.task(lane, number(s, copies_ + part.lo[1]), uses(), {{factor_panels, tiles_.region(s, t0, t1)}, b},
                       {b}, each * static_cast<double>(part.extent(1)), {s, k});
            if (lane == 0 && buffers_ > 1) ring_.arrive(s + 1, 1);
        }
    }

    std::int64_t copies_ = tiles_.tile_rows() + tiles_.more;
    std::int32_t array_of_sides_ = 0;
    TaskList list_;
    PanelRing ring_;
    int column_ = layout_.column_of(list_.schedule().rank);
};

class Solve : public PanelRound {
public:
    Solve(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes, const TriangularSystem& system,
          const FactorChoices& choices, int rank, int ranks)
        : PanelRound(layout, sides, item_bytes, choices, rank, ranks, 0, system.backward()), system_(system) {}

private:
    // Down from the diagonal, or up to it.
    std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const override {
        return system_.upper ? std::pair{std::int64_t{0}, k + 1} : std::pair{k, tiles_.tile_rows()};
    }
    FactorTask copies() const override { return system_.op == Transpose::adjoint ? copy_conjugate : copy_panel; }
    std::int32_t uses() const override { return solve_first + system_.number(); }

    TriangularSystem system_;
};

class Reflect : public PanelRound {
public:
    Reflect(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes, const Reflection& what,
            const FactorChoices& choices, int rank, int ranks)
        : PanelRound(layout, sides, item_bytes, choices, rank, ranks, 1, !what.adjoint), what_(what) {}

private:
    std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const override { return {k, tiles_.tile_rows() + 1}; }
    FactorTask copies_top() const override { return qr_copy; }
    FactorTask copies() const override { return copy_conjugate; }
    std::int32_t uses() const override { return what_.adjoint ? qr_reflect_adjoint : qr_reflect; }

    // Column j of the identity is 0 in the rows of panel k where j is less than its first row.
    std::int64_t unchanged(std::int64_t k) const override {
        if (!what_.identity) return owned_.lo[1];
        return owned_.lo[1] + sides_.columns.before(me_, {tiles_.lo(k)});
    }

    Reflection what_;
};

}  // namespace

Schedule triangular_solve(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes,
                          const TriangularSystem& system, const FactorChoices& choices, int rank, int ranks) {
    require_blocks(layout, ranks, true);
    return Solve(layout, sides, item_bytes, system, choices, rank, ranks).run();
}

Schedule apply_reflectors(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes,
                          const Reflection& what, const FactorChoices& choices, int rank, int ranks) {
    require_blocks(layout, ranks, false);
    if (what.adjoint && what.identity)
        throw ConfigError("apply_reflectors: Q^H of an identity was asked for; allowed: identity with Q");
    return Reflect(layout, sides, item_bytes, what, choices, rank, ranks).run();
}

}  // namespace tilewave
