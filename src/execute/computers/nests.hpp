// Tiles of nests: rows of points, several to a call of a kernel; rolling-window rows where arrays have planes.
#pragma once
#include <span>
#include <vector>

#include "data/rows.hpp"
#include "execute/computer.hpp"
#include "execute/computers/reduced_rows.hpp"
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
    struct Nest : ReducedRows {  // one nest, as its tiles are computed
        const NestWork* work = nullptr;
    };
    struct alignas(64) LaneLayers {
        LayerRows rows[2];  // of a tile's layers, the most together and the rest; reused from tile to tile
    };
    class PieceWalk;

    // `kernel`: that of the nest, or its unreduced one; `reduces`: values are reduced, too. False where computing ends.
    bool compute_steps(Run& run, int lane, const Tile& tile, Nest& nest, bool reduces);
    bool compute_rows(Run& run, int lane, const Tile& tile, Nest& nest, const Kernel& kernel, bool reduces);
    bool compute_in_window(Run& run, int lane, const Tile& tile, Nest& nest, const Kernel& kernel, bool reduces);
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
