// Rows of a rolling window: where they lie in memory, and what is copied to them and from them between pieces.
#pragma once
#include <cstring>
#include <vector>

#include "execute/window/window_memory.hpp"

namespace tilewave {

/// Where a place of the kernel finds its rows: in a ring of planes, or in an array that is stored whole.
struct PlaneRows {
    std::intptr_t at = 0;   ///< address of the element whose components in the plane are 0
    std::int64_t step = 0;  ///< bytes from element to element
    std::int64_t plane_bytes = 0, ring_bytes = 0;
    std::int32_t plane = 0, planes = 0;
    Index row_bytes = {};  ///< along the other dimensions

    /// To a later plane.
    void advance(std::int64_t by) {
        at += by * plane_bytes;
        if (planes == 0) return;
        const std::int64_t to = plane + by;
        at -= to / planes * ring_bytes;
        plane = static_cast<std::int32_t>(to % planes);
    }
    /// The element at component `along` of a row of the plane that has been reached.
    char* element(const std::vector<int>& others, const Index& row, std::int64_t along) const {
        std::intptr_t to = at + along * step;
        for (int k : others) to += row[k] * row_bytes[k];
        return reinterpret_cast<char*>(to);
    }
};

/// The rows of a place of a rolling-window array while plane `plane` is computed.
PlaneRows rows_in_window(const WindowMemory& memory, std::size_t ring, const RollingWindow::Piece& piece,
                         std::int64_t plane, const Index& offset);
/// The same for an array that is stored whole: `data` is its element `storage_lo`.
PlaneRows rows_in_array(const RollingWindow& f, std::byte* data, const Index& stride_bytes, const Index& storage_lo,
                        std::int64_t plane, const Index& offset);

/// The bytes from each row to its successor in the next plane, where rings have different lengths.
class RingSteps {
public:
    static constexpr int most_phases = 12;
    RingSteps() = default;
    /// Each row begins `along` elements further on than the row before. @pre at most max_places
    RingSteps(const PlaneRows* rows, std::size_t count, std::int64_t along);
    /// Whether the steps repeat within most_phases planes.
    bool usable() const { return phases_ <= most_phases; }
    int phases() const { return phases_; }
    /// The steps to the next plane, from a plane that is `phase` planes (modulo phases()) after the first. @pre
    /// usable()
    const std::ptrdiff_t* by(int phase) const { return by_[phase]; }

private:
    int phases_ = 1;
    std::ptrdiff_t by_[most_phases][max_places];
};

/// One element of each row of some planes, and where it is stored between pieces.
struct Move {
    std::size_t ring = 0;
    std::int64_t begin = 0, end = 0;         ///< of the planes
    std::int64_t along = 0, along_step = 0;  ///< its z[along] in plane 0; from plane to plane
    std::intptr_t stored = 0;                ///< in plane 0, for the first of the other dimensions' rows
    std::int64_t stored_step = 0;            ///< bytes from plane to plane
    std::int64_t stored_row = 0;             ///< and from row to row of the other dimensions
    std::int64_t item_bytes = 0;

    char* element(std::int64_t plane, std::int64_t row) const {
        return reinterpret_cast<char*>(stored + plane * stored_step + row * stored_row);
    }
    bool in(std::int64_t plane) const { return begin <= plane && plane < end; }
};

/// What a piece takes from earlier pieces and leaves for later ones.
struct Moves {
    std::vector<Move> take, leave;
};
/// The moves of all rings. `side`: which memory of WindowMemory::back this piece writes.
Moves moves_of(const WindowMemory& memory, const RollingWindow::Piece& piece, int column, int side);

inline void copy_item(char* to, const char* from, std::int64_t bytes) {
    switch (bytes) {
        case 1: *to = *from; break;
        case 2: std::memcpy(to, from, 2); break;
        case 4: std::memcpy(to, from, 4); break;
        case 8: std::memcpy(to, from, 8); break;
        default: std::memcpy(to, from, 16);
    }
}

}  // namespace tilewave
