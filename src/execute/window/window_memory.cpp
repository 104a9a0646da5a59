#include "execute/window/window_memory.hpp"

#include <algorithm>
#include <cstring>

#include "data/memory.hpp"

namespace tilewave {

WindowMemory::WindowMemory(const RollingWindow& where, std::vector<WindowValues> values)
    : where_(where), values_(std::move(values)), sides_(static_cast<std::size_t>(where.columns())) {
    auto bytes = [](std::int64_t n) {
        return std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(n));
    };
    for (const RollingWindow::Ring& ring : where.rings()) {
        Memory m;
        m.planes = bytes(where.window_bytes(ring) + cache_line_bytes);
        const auto at = reinterpret_cast<std::uintptr_t>(m.planes.get());
        m.aligned = m.planes.get() + (cache_line_bytes - at % cache_line_bytes) % cache_line_bytes;
        m.faces = bytes((where.columns() + 1) * where.face_bytes(ring));
        m.panels = bytes(2 * where.columns() * where.between_bytes(ring));
        m.backs = bytes(2 * where.back_bytes(ring));
        memory_.push_back(std::move(m));
    }
}

char* WindowMemory::panel(std::size_t p, std::int64_t number) const {
    const RollingWindow::Ring& ring = where_.rings()[p];
    return reinterpret_cast<char*>(memory_[p].aligned + (number * ring.panel + ring.lead) * ring.item_bytes);
}

char* WindowMemory::face(std::size_t p, int column, std::int64_t across) const {
    const RollingWindow::Ring& ring = where_.rings()[p];
    const std::int64_t line = across - where_.block().lo[where_.across()] + ring.reach[where_.across()];
    return reinterpret_cast<char*>(memory_[p].faces.get() + column * where_.face_bytes(ring) +
                                   line * where_.across_others() * where_.reads_along(ring) * ring.item_bytes);
}

char* WindowMemory::between(std::size_t p, int column, std::int64_t panel, std::int64_t plane) const {
    const RollingWindow::Ring& ring = where_.rings()[p];
    return reinterpret_cast<char*>(memory_[p].panels.get() + (2 * column + panel % 2) * where_.between_bytes(ring) +
                                   plane * where_.across_others() * where_.reads_along(ring) * ring.item_bytes);
}

char* WindowMemory::back(std::size_t p, int side, std::int64_t along) const {
    const RollingWindow::Ring& ring = where_.rings()[p];
    return reinterpret_cast<char*>(memory_[p].backs.get() + side * where_.back_bytes(ring) +
                                   (along - where_.block().lo[where_.along()]) * where_.across_others() *
                                       where_.reads_across(ring) * ring.item_bytes);
}

std::byte* WindowMemory::message(int array, const Index& z) const {
    const RollingWindow::Ring* ring = where_.ring(array);
    const auto p = static_cast<std::size_t>(ring - where_.rings().data());
    const std::int64_t at = z[where_.along()];
    const int column = at < where_.block().lo[where_.along()] ? 0 : where_.column_of(at) + 1;
    const std::int64_t first = where_.column_begin(column) - where_.reads_along(*ring);
    return reinterpret_cast<std::byte*>(face(p, column, z[where_.across()])) +
           (others(z) * where_.reads_along(*ring) + at - first) * ring->item_bytes;
}

void WindowMemory::fill(std::size_t p, const RollingWindow::Piece& piece, const Index& row, char* to) const {
    const RollingWindow::Ring& ring = where_.rings()[p];
    const auto number = static_cast<std::size_t>(where_.row_number(ring, row));
    const auto [begin, end] = where_.stored(ring, piece, row);
    for (std::int64_t i = ring.first[number]; i < ring.first[number + 1]; ++i) {
        const Segment& s = ring.segments[i];
        const std::int64_t lo = std::max(s.begin, begin), hi = std::min(s.begin + s.count, end);
        for (std::int64_t q = lo; q < hi; ++q) {
            const std::byte* value =
                values_[p].data + (values_[p].same ? 0 : (s.value + q - s.begin) * ring.item_bytes);
            std::memcpy(to + (q - piece.lo) * ring.item_bytes, value, static_cast<std::size_t>(ring.item_bytes));
        }
    }
}

}  // namespace tilewave
