// Panels of a factor on their way to all ranks of a one-dimensional grid: in chunks, around a ring or down a tree.
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
    std::int64_t more = 0;  ///< tiles of a panel beside those of the matrix, behind them
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

/// The messages of lane 0.
class PanelRing {
public:
    PanelRing(TaskList& list, const PanelTiles& tiles, BroadcastTree tree, int ranks, int me, int buffers,
              std::int32_t array, std::int64_t chunk_bytes)
        : list_(list),
          tiles_(tiles),
          tree_(tree),
          ranks_(ranks),
          me_(me),
          buffers_(buffers),
          array_(array),
          chunk_bytes_(chunk_bytes) {}

    /// Chunks of a panel that `root` has, each one run of memory: posts the sends there, the receives elsewhere. With
    /// `held` the root sends a chunk when it "arrives", as it is made.
    void start(std::int64_t panel, int root, const std::vector<Box>& chunks, bool held = false);
    /// Tiles [t0, t1) of a panel as chunks.
    std::vector<Box> chunks(std::int64_t panel, std::int64_t t0, std::int64_t t1) const;
    /// Waits for some more chunks, and hands them on.
    void arrive(std::int64_t panel, std::size_t count = static_cast<std::size_t>(-1));
    /// Its buffer is no longer sent from.
    void finish(std::int64_t panel);

private:
    struct Chunk {
        int receive = -1;
        bool held = false;
        std::vector<int> children, sends = {};
        int tag = 0;
        Box region;
    };
    struct Way {
        std::vector<Chunk> chunks;
        std::size_t arrived = 0;
    };
    void hand_on(Chunk& chunk);

    TaskList& list_;
    PanelTiles tiles_;
    BroadcastTree tree_;
    int ranks_, me_, buffers_;
    std::int32_t array_;
    std::int64_t chunk_bytes_;
    std::map<std::int64_t, Way> ways_;
};

}  // namespace tilewave
