#include "execute/window/window_rows.hpp"

#include <numeric>

namespace tilewave {

PlaneRows rows_in_window(const WindowMemory& memory, std::size_t p, const RollingWindow::Piece& piece,
                         std::int64_t plane, const Index& offset) {
    const RollingWindow& f = memory.where();
    const RollingWindow::Ring& ring = f.rings()[p];
    const std::int64_t of_element = plane + f.plane(offset);
    PlaneRows r;
    r.step = ring.item_bytes;
    r.ring_bytes = ring.planes * ring.plane * ring.item_bytes;
    r.planes = ring.planes;
    r.plane = static_cast<std::int32_t>(floor_mod(of_element, ring.planes));
    const std::int64_t slot = ring.plane * ring.item_bytes;
    r.at = reinterpret_cast<std::intptr_t>(memory.panel(p, piece.panel)) + r.plane * slot +
           (offset[f.along()] - piece.origin(of_element)) * r.step;
    r.plane_bytes = slot - piece.drift * r.step;
    r.row_bytes = Index::filled(f.dims(), 0);
    std::int64_t bytes = ring.row * ring.item_bytes;
    for (auto k = f.others().rbegin(); k != f.others().rend(); ++k) {
        r.row_bytes[*k] = bytes;
        r.at += (offset[*k] - f.block().lo[*k] + ring.reach[*k]) * bytes;
        bytes *= f.extent(ring, *k);
    }
    return r;
}

PlaneRows rows_in_array(const RollingWindow& f, std::byte* data, const Index& stride_bytes, const Index& storage_lo,
                        std::int64_t plane, const Index& offset) {
    PlaneRows r;
    r.step = stride_bytes[f.along()] - f.slant() * stride_bytes[f.across()];
    r.plane_bytes = stride_bytes[f.across()];
    r.row_bytes = stride_bytes;
    r.at = reinterpret_cast<std::intptr_t>(data) + plane * r.plane_bytes;
    for (int k = 0; k < offset.n; ++k) r.at += (offset[k] - storage_lo[k]) * stride_bytes[k];
    return r;
}

RingSteps::RingSteps(const PlaneRows* rows, std::size_t count, std::int64_t along) {
    for (std::size_t p = 0; p < count; ++p)
        if (rows[p].planes > 1 && usable()) phases_ = std::lcm(phases_, rows[p].planes);
    if (!usable()) return;
    for (std::size_t p = 0; p < count; ++p) {
        PlaneRows r = rows[p];
        for (int k = 0; k < phases_; ++k) {
            const std::intptr_t before = r.at;
            r.advance(1);
            by_[k][p] = r.at - before + along * r.step;
        }
    }
}

namespace {

// The moves of one ring.
class Edges {
public:
    Edges(const WindowMemory& memory, std::size_t p, const RollingWindow::Piece& piece, int column, int side)
        : memory_(memory),
          f_(memory.where()),
          part_(f_.rings()[p]),
          p_(p),
          piece_(piece),
          column_(column),
          side_(side),
          item_(part_.item_bytes),
          reads_(f_.reads_along(part_)),
          back_reads_(f_.slant() ? f_.reads_across(part_) : 0) {}

    void add_to(Moves& moves) const {
        const int across = f_.across();
        const char* before =
            back_reads_ > 0 && piece_.begin > f_.block().lo[across] ? memory_.back(p_, 1 - side_, 0) : nullptr;
        const char* after =
            back_reads_ > 0 && piece_.end < f_.block().hi[across] ? memory_.back(p_, side_, 0) : nullptr;
        if (reads_ > 0 && piece_.lo > f_.space().lo[f_.along()]) {
            const char* in = piece_.first ? memory_.face(p_, column_, piece_.begin)
                                          : memory_.between(p_, column_, piece_.panel - 1, 0);
            // A face has the lines before the piece too: of the rank before, or of its pieces before.
            const bool more = piece_.first && (f_.slant() || (column_ == 0 && piece_.begin == f_.block().lo[across]));
            const std::int64_t from = more ? piece_.begin - f_.reads_across(part_) : piece_.begin;
            for (std::int64_t i = piece_.lo - reads_; i < piece_.lo; ++i) {
                moves.take.push_back(along_rows(in, i, i - piece_.lo, from));
                if (before && !piece_.first)
                    for (std::int64_t j = piece_.begin - back_reads_; j < piece_.begin; ++j)
                        moves.take.push_back(across_rows(before, j, j - piece_.begin, i, i + 1));
            }
        }
        if (reads_ > 0 && piece_.hi < f_.space().hi[f_.along()]) {
            const char* out = piece_.last ? memory_.face(p_, column_ + 1, piece_.begin)
                                          : memory_.between(p_, column_, piece_.panel, 0);
            for (std::int64_t i = piece_.hi - reads_; i < piece_.hi; ++i)
                moves.leave.push_back(along_rows(out, i, i - piece_.hi, piece_.begin));
        }
        for (std::int64_t j = -back_reads_; j < 0; ++j) {
            if (before) moves.take.push_back(across_rows(before, piece_.begin + j, j, piece_.lo, piece_.hi));
            if (after) moves.leave.push_back(across_rows(after, piece_.end + j, j, piece_.lo, piece_.hi));
        }
    }

private:
    // The elements of z[along] = i from z[across] = `from` on, stored line by line; `behind` (below 0): from the end of
    // those stored.
    Move along_rows(const char* stored, std::int64_t i, std::int64_t behind, std::int64_t from) const {
        const std::int64_t line = f_.across_others() * reads_ * item_, shift = f_.slant() * i;
        return {p_,
                from + shift,
                piece_.end + shift,
                i,
                0,
                reinterpret_cast<std::intptr_t>(stored) + (behind + reads_) * item_ - (piece_.begin + shift) * line,
                line,
                reads_ * item_,
                item_};
    }
    // The elements of z[across] = j with lo <= z[along] < hi; `behind` as above.
    Move across_rows(const char* stored, std::int64_t j, std::int64_t behind, std::int64_t lo, std::int64_t hi) const {
        const std::int64_t line = f_.across_others() * back_reads_ * item_;
        return {p_,     lo + j,
                hi + j, -j,
                1,      reinterpret_cast<std::intptr_t>(stored) + (behind + back_reads_) * item_ - j * line,
                line,   back_reads_ * item_,
                item_};
    }

    const WindowMemory& memory_;
    const RollingWindow& f_;
    const RollingWindow::Ring& part_;
    std::size_t p_;
    const RollingWindow::Piece& piece_;
    int column_, side_;
    std::int64_t item_, reads_, back_reads_;
};

}  // namespace

Moves moves_of(const WindowMemory& memory, const RollingWindow::Piece& piece, int column, int side) {
    Moves moves;
    for (std::size_t p = 0; p < memory.where().rings().size(); ++p) Edges(memory, p, piece, column, side).add_to(moves);
    return moves;
}

}  // namespace tilewave
