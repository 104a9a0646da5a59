// Tiles of nests: rows of points, several to a call of a kernel; rolling-window rows where arrays have planes.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "data/memory.hpp"
#include "data/rows.hpp"
#include "execute/computer.hpp"
#include "execute/tuning.hpp"
#include "schedule/tile_rows.hpp"
#include "tilewave/engine/fast_paths.hpp"

namespace tilewave {

/// The rows of some planes of equal extents that are computed together.
struct LayerRows {
    std::int64_t up = 0, down = 0, count = 0, distance = 0;  // extents, layers, rows from layer to layer
    std::vector<Span> spans;
};

class NestComputer final : public Computer {
public:
    /// @pre a kernel with a row function for every nest that has tiles (ConfigError)
    /// @pre at most max_places places, tables and bests (ConfigError)
    NestComputer(const Schedule& schedule, std::span<const Kernel> kernels, PathsOff off = 0);

    void compute(Run& run, int lane, const Tile& tile) override;
    std::vector<Reduced> reduced() const override;
    void restart() override;

private:
    struct alignas(64) LaneReduced {
        Reduced value;
        bool any = false;  // some points have been reduced
    };
    // One nest, as its tiles are computed.
    struct Nest {
        const NestWork* work = nullptr;
        const Kernel* kernel = nullptr;
        std::vector<std::vector<LaneReduced>> reduced;         // by reduction, lane
        std::vector<std::shared_ptr<std::byte[]>> row_values;  // by lane
        // By lane: best after best, of all rows, or of each row of a batch.
        std::vector<std::vector<std::int64_t>> bests;
        std::byte* row_value(int lane, std::size_t k) const { return row_values[lane].get() + value_room(k); }
        std::int64_t* best(int lane, int k) { return bests[lane].data() + static_cast<std::size_t>(k) * best_room; }
        void place_bests(const Kernel& kernel, int lane, bool reduces, char** to);
        void begin_bests(int lane, int row, bool of_rows);
        Reduced found(const LaneReduced& of, int lane) const;
    };
    // One more: where a best goes that nobody looks at.
    static constexpr std::size_t best_room = tuning::most_rows_of_a_call + 1;
    // The points from `lo` to `lo` + `width` of each row: values of row after row follow each other.
    struct RowValues {
        std::int64_t lo = 0, width = 0;
    };
    // Rows that a kernel has computed; ptr and index are those of point 0 of row 0, as a RowsFunction is given them.
    struct Computed {
        char* const* ptr;
        const std::int64_t *step, *next;
        std::span<const Span> spans;
        RowValues values;
        const Index &index, &direction, &turn;
    };
    // Bytes of the memory of some row values, each a cache line further than the rows before it: not all at the same
    // place of their pages.
    static std::int64_t value_room(std::size_t values) {
        return static_cast<std::int64_t>(values) * (tuning::most_row_values * 8 + cache_line_bytes);
    }
    struct alignas(64) LaneLayers {
        LayerRows rows[2];  // of a tile's layers, the most together and the rest; reused from tile to tile
    };
    class PieceWalk;

    // `kernel`: that of the nest, or its unreduced one; `reduces`: values are reduced, too. False where computing ends.
    bool compute_rows(Run& run, int lane, const Tile& tile, Nest& nest, const Kernel& kernel, bool reduces);
    void compute_in_window(Run& run, int lane, const Tile& tile, Nest& nest, const Kernel& kernel, bool reduces);
    static RowValues place_values(const Nest& nest, int lane, std::span<const Span> spans, char** ptr,
                                  const std::int64_t* step, std::int64_t* next);
    static void reduce(Nest& nest, int lane, const Computed& rows);
    void carry_time_buffers(const ArrayMemory& memory, const NestWork& nest, const Tile& tile) const;
    std::intptr_t place_at(const ArrayMemory& memory, const Access& place, const Index& point) const;
    std::int64_t rows_of_layer(const ArrayMemory& memory, const NestWork& work, const Kernel& kernel,
                               const TileRows& rows, const std::int64_t* next) const;

    const Schedule& s_;
    PathsOff off_;             // fast paths that are switched off
    std::vector<Nest> nests_;  // by work; those of tasks stay empty
    std::vector<LaneLayers> layers_;
};

}  // namespace tilewave
