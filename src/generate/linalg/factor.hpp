// What factorizations by block columns have in common: one rank's schedule, panel after panel, with look-ahead.
#pragma once
#include <utility>
#include <vector>

#include "generate/linalg/factors.hpp"
#include "generate/linalg/panel_ring.hpp"
#include "schedule/operations.hpp"

namespace tilewave {

/// Arrays of the schedules: the matrix and the moving panels; of QR then the triangles T of its panels; of solving
/// and applying, the right-hand sides as the last one.
enum FactorArray : std::int32_t { factor_matrix, factor_panels, factor_triangles };

/// The array of a matrix by columns.
Array by_columns(std::int64_t item_bytes, const Box& owned);
/// @throws ConfigError where it does not lie by block columns on at most so many ranks; or is not square
void require_block_columns(const BlockCyclic& layout, int ranks, bool square);
/// The tiles of a matrix by block columns, and `more` tiles of its panels.
PanelTiles tiles_of(const BlockCyclic& layout, std::int64_t more);
/// Where the triangles T of a rank's panels lie: block rows, and columns as those of the matrix.
Box triangles_of(const BlockCyclic& layout, int rank);

/// The owner of panel k makes it and sends it to all ranks, which update their block columns on its right. The owner of
/// the next panel makes it before it updates others, so that it travels meanwhile (look-ahead).
///
/// As a wavefront: lane 0 has the panels, other lanes the block columns; with as many of these as there are threads,
/// one lane is virtual. Lane 0 hands each chunk of a panel to the next rank when it is there, whatever the others do,
/// and they use it at once: tile t of a panel meets block column j when it has come so far, in waves t + j. Where
/// panels are made by tiles, chunks of the next panel leave while those of this one still come: a link is used in both
/// directions.
class RightLooking {
public:
    /// @pre layout by block columns, all its ranks the first of `ranks`; lanes >= 1
    RightLooking(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks,
                 std::int64_t more);
    virtual ~RightLooking() = default;
    Schedule run();

protected:
    /// Makes panel k, in lane 0 of its owner.
    virtual void factor(std::int64_t k) = 0;
    /// Block column j on the right of panel k, as far as tiles [t0, t1) of the panel go beyond those before. `looks`:
    /// hand_on() between its tasks.
    virtual void update(int lane, std::int64_t k, std::int64_t j, std::int64_t t0, std::int64_t t1, bool looks) = 0;
    /// Block column j on the left of panel k.
    virtual void left(int, std::int64_t, std::int64_t) {}
    /// The tiles of panel k that travel, [first, second).
    virtual std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const = 0;
    /// What travels before them; empty: nothing.
    virtual Box ahead(std::int64_t) const { return {}; }
    /// Whether tiles of a panel are made one after another, by factor_top and factor_below.
    virtual bool by_tiles() const { return false; }
    virtual void factor_top(std::int64_t) {}
    virtual void factor_below(std::int64_t, std::int64_t, std::int64_t) {}

    /// Waits for one more chunk of the panel behind k, and sends it on.
    void hand_on(std::int64_t k) { ring_.arrive(k + 1, 1); }
    /// Rows of tiles [t0, t1) of block column j, which this rank owns.
    Region of_matrix(std::int64_t j, std::int64_t t0, std::int64_t t1) const;
    Region of_panel(std::int64_t k, std::int64_t t0, std::int64_t t1) const {
        return {factor_panels, tiles_.region(k, t0, t1)};
    }
    /// How many units of so many flops make about a task.
    std::int64_t units_of_task(double flops) const {
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(1e9, choices_.task_flops / flops)));
    }

    /// Calls f(begin, end) for the tiles [t0, t1) of block column j in groups of about task_flops.
    template <class F>
    void for_tile_groups(std::int64_t j, std::int64_t t0, std::int64_t t1, F f) {
        const auto step = units_of_task(2.0 * static_cast<double>(tiles_.block * tiles_.block * tiles_.width(j)));
        for (std::int64_t t = t0; t < t1; t += step) f(t, std::min(t1, t + step));
    }

    BlockCyclic layout_;
    FactorChoices choices_;
    PanelTiles tiles_;
    std::int64_t n_;  // tile rows
    int grid_, me_, buffers_;
    TaskList list_;

private:
    Schedule run_ahead();
    Schedule run_waves();
    struct TileRange {
        std::int64_t begin, end;
    };
    // The count of a lane from which the tiles before `until` of the next panel's block column are up to date.
    struct Ready {
        std::int64_t until;
        int lane;
        std::int32_t count;
    };
    struct Waves {
        std::vector<std::vector<std::int32_t>> done;  // by panel and lane: the count at which it is used up
        std::int64_t expected = 0;                    // panels before it that others make have their receives
        std::int64_t making = -1;                     // the panel that is made by tiles
        std::size_t made = 0;                         // how many of its chunks are
        std::vector<Ready> ready, ready_later;        // of the next panel's block column, and of the one after it
        std::size_t next_ready = 0;                   // those before it were awaited
    };
    void release(const Waves& waves, std::int64_t k);
    void expect(Waves& waves, std::int64_t until);
    void make_until(Waves& waves, std::int64_t k, std::int64_t t1, bool all);
    std::vector<TileRange> parts_of(std::int64_t k) const;
    void update_next_panel(Waves& waves, std::int64_t k, TileRange part, bool last);
    void update_others(Waves& waves, std::int64_t k, TileRange part, std::int64_t pending, bool flush,
                       std::int32_t arrived);
    int owner(std::int64_t k) const { return layout_.columns.part_of({tiles_.lo(k)}); }
    // A block column always has the same lane: its updates stay in order.
    bool updates(int lane, std::int64_t j) const { return owner(j) == me_ && (j / grid_) % choices_.lanes == lane; }
    std::int64_t last_tile() const { return tiles_.tile_rows() + tiles_.more; }
    std::vector<Box> chunks(std::int64_t k) const;
    void start(std::int64_t k, bool held = false) { ring_.start(k, owner(k), chunks(k), held); }
    void make(std::int64_t k) {
        factor(k);
        start(k);
    }

    PanelRing ring_;
};

}  // namespace tilewave
