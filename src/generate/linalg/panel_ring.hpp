// The panels of a factor travel to the ranks of a group, all or a row or column of a grid: in chunks, around a ring or
// down a tree.
#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "generate/linalg/panels.hpp"
#include "generate/linalg/task_list.hpp"

namespace tilewave {

/// Ranks that follow each other in equal steps, such as a row or a column of a grid.
struct RankGroup {
    int size = 1;
    int me = -1;  ///< this rank's place; -1: it is not among them
    int first = 0, step = 1;
    int rank(int place) const { return first + place * step; }
};
RankGroup grid_row(const BlockCyclic& layout, int rank);
RankGroup grid_column(const BlockCyclic& layout, int rank);

/// How a matrix is cut into tiles; panel k is block column k, with the tiles from the diagonal down. Tile rows go round
/// the parts of a grid, as `dealt` says. Its array is [panel, place, row, column]: whole tiles lie together, short ones
/// have room to spare. The places of a part lie together, in the order of its tiles, and behind them its `more` places.
struct PanelTiles {
    std::int64_t rows = 0, columns = 0, block = 1;
    std::int64_t more = 0;       ///< places of each part in addition to those of the matrix
    Axis dealt = Axis(0, 1, 1);  ///< tile rows, in blocks of one
    int parts() const { return dealt.parts; }
    std::int64_t tile_rows() const { return dealt.extent; }
    std::int64_t block_columns() const { return (columns + block - 1) / block; }
    /// Block columns that hold a part of the diagonal.
    std::int64_t panels() const { return std::min(tile_rows(), block_columns()); }
    /// The part that has a tile; and tile i of a part.
    int part_of(std::int64_t t) const { return dealt.part_of({t}); }
    std::int64_t tile(int part, std::int64_t i) const { return dealt.global_of(part, {i}).at; }
    /// Tiles of a part, and its first place.
    std::int64_t count(int part) const { return dealt.count(part); }
    std::int64_t first(int part) const { return part * more + dealt.first(part); }
    /// Tiles of a part before tile t. Tile number tile_rows() + e stands for the e-th of its further places.
    std::int64_t before(int part, std::int64_t t) const {
        return t >= tile_rows() ? count(part) + t - tile_rows() : dealt.before(part, {t});
    }
    std::int64_t place(int part, std::int64_t t) const { return first(part) + before(part, t); }
    std::int64_t lo(std::int64_t t) const { return t * block; }
    std::int64_t hi(std::int64_t t) const { return std::min(rows, (t + 1) * block); }
    std::int64_t width(std::int64_t j) const { return std::min(columns, (j + 1) * block) - j * block; }
    Box region(std::int64_t panel, std::int64_t first, std::int64_t end) const {
        return {{panel, first, 0, 0}, {panel + 1, end, block, block}};
    }
    /// Places [first, end) of a panel in pieces of at most so many items, but of a whole tile at least.
    std::vector<Box> pieces(std::int64_t panel, std::int64_t first, std::int64_t end, std::int64_t items) const;
    /// The moving array, with so many buffers, of the places of a part; of part -1 nothing.
    Array array(std::int64_t item_bytes, int buffers, int part) const;
};

/// The messages of lane 0 by panel: chunks that are received and handed on, or sent by the rank that has them.
class ChunkRelay {
public:
    explicit ChunkRelay(TaskList& list) : list_(list) {}

    /// Posts the receive of a chunk from the parent; or its sends to the children, where there is no parent. A `held`
    /// chunk is sent when it "arrives", as it is made.
    void start(std::int64_t panel, const BroadcastPlace& place, int tag, std::int32_t array, const Box& region,
               bool held = false);
    /// Waits for some more chunks, and hands them on.
    void arrive(std::int64_t panel, std::size_t count = all);
    /// Its buffer is no longer sent from.
    void finish(std::int64_t panel);
    /// Chunks that have not arrived.
    std::size_t missing(std::int64_t panel) const;
    /// Whether chunks of a panel are received and handed on.
    bool relays(std::int64_t panel) const;

    static constexpr std::size_t all = static_cast<std::size_t>(-1);

private:
    struct Chunk {
        int receive, tag;
        bool held;
        std::int32_t array;
        Box region;
        std::vector<int> children, sends;
    };
    struct Panel {
        std::vector<Chunk> chunks;
        std::size_t arrived = 0;
    };
    void hand_on(Chunk& chunk);

    TaskList& list_;
    std::map<std::int64_t, Panel> panels_;
};

/// The panels of a factor on the ranks of a group.
class PanelRing {
public:
    PanelRing(TaskList& list, const PanelTiles& tiles, BroadcastTree tree, const RankGroup& group, int buffers,
              std::int32_t array, std::int64_t chunk_bytes, int kinds = 1)
        : list_(list),
          relay_(list),
          tiles_(tiles),
          tree_(tree),
          group_(group),
          buffers_(buffers),
          kinds_(kinds),
          array_(array),
          chunk_bytes_(chunk_bytes) {}

    /// Chunks of a panel that `root`, a place of the group, has, each one run of memory: posts the sends there, the
    /// receives elsewhere. With `held` as ChunkRelay::start(). `number`: of the first one, among those of the panel.
    void start(std::int64_t panel, int root, const std::vector<Box>& chunks, bool held = false, int number = 0);
    /// Places [first, end) of a panel as chunks.
    std::vector<Box> chunks(std::int64_t panel, std::int64_t first, std::int64_t end) const;
    void arrive(std::int64_t panel, std::size_t count = ChunkRelay::all) { relay_.arrive(panel, count); }
    void finish(std::int64_t panel) { relay_.finish(panel); }

private:
    TaskList& list_;
    ChunkRelay relay_;
    PanelTiles tiles_;
    BroadcastTree tree_;
    RankGroup group_;
    int buffers_, kinds_;  // of tags: each of several kinds of messages has every kinds-th
    std::int32_t array_;
    std::int64_t chunk_bytes_;
};

}  // namespace tilewave
