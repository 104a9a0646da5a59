// The panels of a factor travel to all ranks of a one-dimensional grid: in chunks, around a ring or down a tree.
#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "generate/linalg/panels.hpp"
#include "generate/linalg/task_list.hpp"

namespace tilewave {

/// How a matrix by block columns is cut into tiles; panel k is block column k, with the tiles from the diagonal down.
/// Its array is [panel, tile row, row, column]: whole tiles lie together, short ones have room to spare.
struct PanelTiles {
    std::int64_t rows = 0, columns = 0, block = 1;
    std::int64_t more = 0;  ///< tiles of a panel in addition to those of the matrix, after them
    std::int64_t tile_rows() const { return (rows + block - 1) / block; }
    std::int64_t block_columns() const { return (columns + block - 1) / block; }
    /// Block columns that hold a part of the diagonal.
    std::int64_t panels() const { return std::min(tile_rows(), block_columns()); }
    std::int64_t lo(std::int64_t t) const { return t * block; }
    std::int64_t hi(std::int64_t t) const { return std::min(rows, (t + 1) * block); }
    std::int64_t width(std::int64_t j) const { return std::min(columns, (j + 1) * block) - j * block; }
    Box region(std::int64_t panel, std::int64_t t0, std::int64_t t1) const {
        return {{panel, t0, 0, 0}, {panel + 1, t1, block, block}};
    }
    /// Tiles [t0, t1) of a panel in pieces of at most so many items, but of a whole tile at least.
    std::vector<Box> pieces(std::int64_t panel, std::int64_t t0, std::int64_t t1, std::int64_t items) const;
    /// The moving array, with so many buffers.
    Array array(std::int64_t item_bytes, int buffers) const;
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

/// The panels of a factor on all ranks of a one-dimensional grid.
class PanelRing {
public:
    PanelRing(TaskList& list, const PanelTiles& tiles, BroadcastTree tree, int ranks, int me, int buffers,
              std::int32_t array, std::int64_t chunk_bytes)
        : list_(list),
          relay_(list),
          tiles_(tiles),
          tree_(tree),
          ranks_(ranks),
          me_(me),
          buffers_(buffers),
          array_(array),
          chunk_bytes_(chunk_bytes) {}

    /// Chunks of a panel that `root` has, each one run of memory: posts the sends there, the receives elsewhere. With
    /// `held` as ChunkRelay::start().
    void start(std::int64_t panel, int root, const std::vector<Box>& chunks, bool held = false);
    /// Tiles [t0, t1) of a panel as chunks.
    std::vector<Box> chunks(std::int64_t panel, std::int64_t t0, std::int64_t t1) const;
    void arrive(std::int64_t panel, std::size_t count = ChunkRelay::all) { relay_.arrive(panel, count); }
    void finish(std::int64_t panel) { relay_.finish(panel); }

private:
    TaskList& list_;
    ChunkRelay relay_;
    PanelTiles tiles_;
    BroadcastTree tree_;
    int ranks_, me_, buffers_;
    std::int32_t array_;
    std::int64_t chunk_bytes_;
};

}  // namespace tilewave
