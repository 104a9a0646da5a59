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
          me_(layout.column_of(rank)),
          buffers_(panels_ahead(choices.lookahead, tiles_.panels()) + 1),
          panels_(me_ < 0 ? 0 : tiles_.panels()),
          backward_(backward),
          owned_(sides.owned(rank)),
          list_(rank, ranks, choices.lanes),
          ring_(list_, tiles_, choices.tree, layout.columns.parts, me_, buffers_, factor_panels, choices.chunk_bytes) {
        if (sides.rows.extent != layout.rows.extent || sides.rows.parts != 1 ||
            sides.columns.parts != layout.columns.parts)
            throw ConfigError(concat("solve: right-hand sides of ", sides.rows.extent, " rows on ", sides.rows.parts,
                                     " x ", sides.columns.parts,
                                     " ranks; allowed: as many rows as the matrix, by columns on its ranks"));
        std::vector<Array>& arrays = list_.schedule().arrays;
        arrays = {by_columns(item_bytes, layout.owned(rank)), tiles_.array(item_bytes, buffers_)};
        if (me_ < 0) arrays[factor_panels].storage = {{0, 0, 0, 0}, {0, 0, 0, 0}};
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
    /// The operations that copy a panel and that use it.
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
    // Of a step: the copy, then pieces by their first column, in coordinates that all ranks share.
    std::int64_t number(std::int64_t s, std::int64_t within) const { return s * (1 + sides_.columns.extent) + within; }
    std::int64_t last_row(std::int64_t t1) const { return tiles_.hi(std::min(t1, tiles_.tile_rows()) - 1); }

    void start(std::int64_t s) {
        const std::int64_t k = panel_of(s);
        const auto [t0, t1] = travels(k);
        const int owner = layout_.columns.part_of({tiles_.lo(k)});
        if (owner == me_) {
            const std::int64_t lo = layout_.columns.first(me_) + layout_.columns.local_of({tiles_.lo(k)}).at;
            const Box column{{tiles_.lo(t0), lo}, {last_row(t1), lo + tiles_.width(k)}};
            std::vector<Region> reads{{factor_matrix, column}};
            if (tiles_.more) reads.push_back({factor_triangles, {{0, lo}, {tiles_.block, column.hi[1]}}});
            list_.task(0, number(s, 0), copies(), std::move(reads), {{factor_panels, tiles_.region(s, t0, t1)}},
                       static_cast<double>(column.points() * list_.schedule().arrays[factor_matrix].item_bytes), {s});
        }
        ring_.start(s, owner, ring_.chunks(s, t0, t1));
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
            list_.task(lane, number(s, 1 + part.lo[1]), uses(), {{factor_panels, tiles_.region(s, t0, t1)}, b}, {b},
                       each * static_cast<double>(part.extent(1)), {s, k});
            if (lane == 0 && buffers_ > 1) ring_.arrive(s + 1, 1);
        }
    }

    std::int32_t array_of_sides_ = 0;
    TaskList list_;
    PanelRing ring_;
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
    FactorTask copies() const override { return qr_copy; }
    std::int32_t uses() const override { return what_.adjoint ? qr_reflect_adjoint : qr_reflect; }

    // Column j of the identity is 0 in the rows of panel k where j is less than its first row.
    std::int64_t unchanged(std::int64_t k) const override {
        if (!what_.identity) return owned_.lo[1];
        std::int64_t lo = 0, hi = owned_.extent(1);
        while (lo < hi) {
            const std::int64_t middle = (lo + hi) / 2;
            if (sides_.columns.global_of(me_, {middle}).at < tiles_.lo(k))
                lo = middle + 1;
            else
                hi = middle;
        }
        return owned_.lo[1] + lo;
    }

    Reflection what_;
};

}  // namespace

Schedule triangular_solve(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes,
                          const TriangularSystem& system, const FactorChoices& choices, int rank, int ranks) {
    require_block_columns(layout, ranks, true);
    return Solve(layout, sides, item_bytes, system, choices, rank, ranks).run();
}

Schedule apply_reflectors(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes,
                          const Reflection& what, const FactorChoices& choices, int rank, int ranks) {
    require_block_columns(layout, ranks, false);
    if (what.adjoint && what.identity)
        throw ConfigError("apply_reflectors: Q^H of an identity was asked for; allowed: identity with Q");
    return Reflect(layout, sides, item_bytes, what, choices, rank, ranks).run();
}

}  // namespace tilewave
