// What factorizations on grids of ranks have in common: one rank's schedule, panel after panel, with look-ahead.
#pragma once
#include <optional>
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
/// @throws ConfigError where it does not lie in square blocks on at most so many ranks; or is not square
void require_blocks(const BlockCyclic& layout, int ranks, bool square);
/// The tiles of a matrix on so many parts of its rows, and `more` places of each part.
PanelTiles tiles_of(const BlockCyclic& layout, std::int64_t more, int parts = 1);
/// Where the triangles T of a rank's panels lie: block rows, and columns as those of the matrix.
Box triangles_of(const BlockCyclic& layout, int rank);

/// Panel k is made by the column of ranks that has its block column. Its tiles travel along the rows of the grid. Where
/// the grid has several rows, block row k goes down the columns of the grid, too; then ranks update their blocks on the
/// right. The ranks of the next panel make it before they update others, so that it travels meanwhile (look-ahead).
///
/// As a wavefront: lane 0 has the panels, other lanes the block columns; with as many of these as there are threads,
/// one lane is virtual. Lane 0 hands each chunk of a panel to the next rank when it is there, whatever the others do,
/// and they use it at once: tile t of a panel meets block column j when it has come so far, in waves t + j. Where
/// panels are made by tiles, chunks of the next panel leave while those of this one still come: a link is used in both
/// directions.
class RightLooking {
public:
    /// @pre layout as require_blocks(), all its ranks the first of `ranks`; lanes >= 1; as a wavefront one row of ranks
    RightLooking(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks,
                 std::int64_t more);
    virtual ~RightLooking() = default;
    Schedule run();

protected:
    /// Makes this rank's part of panel k, in lane 0.
    virtual void factor(std::int64_t k) = 0;
    /// The parts of a step of what goes down the columns of several rows of ranks: a tile for the ranks that make the
    /// panel, a tile for the block column of the next panel, tiles for those behind it.
    enum Part { of_the_panel, of_the_next, of_the_others };
    /// Before the block columns of a part are updated in step k: in lane 0 of all ranks of their columns at once.
    virtual void bring(std::int64_t, Part) {}
    /// After all of a step, in lane 0.
    virtual void end_of(std::int64_t) {}
    /// The row of ranks that has the tile for block column j.
    virtual int root_of(std::int64_t k, std::int64_t) const { return tiles_.part_of(k); }
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
    /// This rank's rows of tiles [t0, t1) of block column j, of which it has some.
    Region of_matrix(std::int64_t j, std::int64_t t0, std::int64_t t1) const;
    Region of_panel(std::int64_t k, std::int64_t t0, std::int64_t t1) const {
        return {factor_panels, tiles_.region(k, tiles_.place(row_, t0), tiles_.place(row_, t1))};
    }
    /// Whether the ranks of a block column, or of a block row, are this one's column or row.
    bool has_column(std::int64_t j) const { return owner(j) == me_; }
    bool has_row(std::int64_t t) const { return tiles_.part_of(t) == row_; }
    bool has_rows(std::int64_t t0, std::int64_t t1) const { return tiles_.before(row_, t0) < tiles_.before(row_, t1); }
    /// Of what goes down a column of ranks, the tile for block column j; of number n_ the one for the panel's ranks.
    Region of_across(std::int64_t k, std::int64_t j) const {
        const std::int64_t at = across_.place(me_, j);
        return {array_across_, across_.region(k, at, at + 1)};
    }
    /// Sends the tiles of a part that this rank has; and waits for the others, which it hands on.
    void send_down(std::int64_t k, Part part) { post_down(k, part, true); }
    void arrive_down(std::int64_t k, Part part) { down_->arrive(3 * k + part); }
    /// The block columns of a part, of which those of this column of ranks are meant.
    std::pair<std::int64_t, std::int64_t> columns_of(std::int64_t k, Part part) const;

    /// How many units of so many flops make about a task.
    std::int64_t units_of_task(double flops) const {
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(1e9, choices_.task_flops / flops)));
    }

    /// Calls f(begin, end) for the tiles [t0, t1) of block column j in groups of about task_flops.
    template <class F>
    void for_tile_groups(std::int64_t j, std::int64_t t0, std::int64_t t1, F f) {
        const auto step = units_of_task(2.0 * static_cast<double>(tiles_.block * tiles_.block * tiles_.width(j)));
        const std::int64_t first = tiles_.before(row_, t0), end = tiles_.before(row_, t1);
        for (std::int64_t at = first; at < end; at += step)
            f(tiles_.tile(row_, at), at + step < end ? tiles_.tile(row_, at + step) : t1);
    }

    BlockCyclic layout_;
    FactorChoices choices_;
    PanelTiles tiles_, across_;
    std::int64_t n_;            // tile rows
    std::int64_t begin_, end_;  // the steps
    int row_, me_, buffers_;
    TaskList list_;
    std::int32_t array_across_ = -1;
    /// Messages between ranks of a column have tags of kind 0 where they go down, of others in classes of factors.
    static constexpr int tag_kinds = 3;

    /// The column that a column of ranks makes after column c of so many: the next one but in a part, where a task
    /// stands for those between.
    std::int64_t after_column(std::int64_t c, std::int64_t count, std::int64_t number);

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
    // A block column always has the same lane: its updates stay in order.
    bool updates(int lane, std::int64_t j) const {
        return has_column(j) && layout_.columns.local_of({tiles_.lo(j)}).at / tiles_.block % choices_.lanes == lane;
    }
    std::int64_t last_tile() const { return tiles_.tile_rows() + tiles_.more; }
    std::vector<Box> chunks(std::int64_t k) const;
    int owner(std::int64_t k) const { return layout_.columns.part_of({tiles_.lo(k)}); }
    void start(std::int64_t k, bool held = false) {
        ring_.start(k, owner(k) - choices_.part.first_column, chunks(k), held);
    }
    void make(std::int64_t k) {
        factor(k);
        start(k);
    }

    // Ranks are numbered as in the part.
    Schedule renumbered(Schedule s) const;
    // Posts the sends of a part of step k, or its receives.
    void post_down(std::int64_t k, Part part, bool sends);
    // The messages of a step: those that come from others are expected.
    void open(std::int64_t k);
    void close(std::int64_t k);

    PanelRing ring_;
    std::optional<PanelRing> down_;  // of several rows of ranks
};

}  // namespace tilewave
