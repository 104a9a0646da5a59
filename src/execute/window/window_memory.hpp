// The memory of rolling windows: planes in a ring, and what outlives a piece (problem/rolling_window.hpp).
#pragma once
#include <memory>
#include <vector>

#include "problem/rolling_window.hpp"

namespace tilewave {

/// Values of the elements that no point computes: one for all, or one for each in the order of elements().
struct WindowValues {
    const std::byte* data = nullptr;
    bool same = true;
};

/// The memory of one run.
class WindowMemory {
public:
    /// `values` by ring.
    WindowMemory(const RollingWindow& where, std::vector<WindowValues> values);

    const RollingWindow& where() const { return where_; }
    /// As new, for another run.
    void restart() {
        for (Side& side : sides_) side.value = 0;
    }
    /// The memory of panel `number`: the element at the origin of the first row of the first plane.
    char* panel(std::size_t ring, std::int64_t number) const;
    /// Writes the values of a row's elements that no point computes. `to`: the element at the piece's lo.
    void fill(std::size_t ring, const RollingWindow::Piece& piece, const Index& row, char* to) const;

    // What outlives a piece. Add the bytes of the other dimensions' rows: others().

    /// For column `column` of tiles, at z[across]: the elements from z[along] = the column's first - reads_along on.
    char* face(std::size_t ring, int column, std::int64_t across) const;
    /// For panel `panel` of a tile of that column, at the tile's z[across] number `plane`.
    char* between(std::size_t ring, int column, std::int64_t panel, std::int64_t plane) const;
    /// For the next tile or panel across, at z[along]: the elements from z[across] = its first - reads_across on. There
    /// are two such memories: one is read while the other, `side`, is written.
    char* back(std::size_t ring, int side, std::int64_t along) const;
    /// Number of a row among those of the other dimensions.
    std::int64_t others(const Index& row) const {
        std::int64_t at = 0;
        for (int k : where_.others()) at = at * where_.space().extent(k) + row[k] - where_.space().lo[k];
        return at;
    }
    /// Which of the two memories of back() is written: changes with every tile or panel across of a column.
    int& write_side(int column) { return sides_[column].value; }

    /// Where a message's region lies: before the first column, or among the last elements of the column that computes
    /// it. A later column may be narrower than what the next rank reads.
    std::byte* message(int array, const Index& z) const;

private:
    const RollingWindow& where_;
    std::vector<WindowValues> values_;
    struct Memory {
        std::unique_ptr<std::byte[]> planes, faces, panels, backs;  // panels: two by column; backs: two
        std::byte* aligned = nullptr;
    };
    std::vector<Memory> memory_;
    struct alignas(64) Side {
        int value = 0;
    };
    std::vector<Side> sides_;  // by column
};

}  // namespace tilewave
