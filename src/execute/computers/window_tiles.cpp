// Tiles of nests with rolling windows: piece after piece, and in each piece plane after plane.
#include <algorithm>

#include "core/clock.hpp"
#include "execute/computers/nests.hpp"
#include "execute/tuning.hpp"
#include "execute/window/window_rows.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// A move of a run of planes in which it is always made.
struct RunMove {
    char* stored;
    std::int64_t stored_step, at, at_step, item_bytes;  // at: bytes from the row's first computed element
    std::size_t place;                                  // that writes the array
    void next() {
        stored += stored_step;
        at += at_step;
    }
};

}  // namespace

// Computes the planes of one piece, one after another.
class NestComputer::PieceWalk {
public:
    PieceWalk(NestComputer& computer, Run& run, Nest& nest, const Kernel& kernel, bool reduces, int lane,
              const Tile& tile)
        : computer_(computer),
          run_(run),
          nest_(nest),
          work_(*nest.work),
          kernel_(kernel),
          reduces_(reduces),
          memory_(run.memory(lane)),
          window_(*memory_.window()),
          f_(window_.where()),
          tile_(tile),
          lane_(lane),
          places_(work_.places.size()),
          same_loops_(work_.loops.n == 0 || work_.loops.is_identity()),
          x_(tile.box.lo) {
        char** argument = ptr_ + places_;
        for (std::size_t k = 0; k < kernel_.values.size(); ++k) {
            *argument++ = reinterpret_cast<char*>(nest_.row_value(lane, k));
            step_[places_ + k] = kernel_.values[k];
        }
        std::fill(step_ + (argument - ptr_), step_ + (argument - ptr_) + kernel_.tables.size(), 0);
        argument = std::copy(kernel_.tables.begin(), kernel_.tables.end(), argument);
        nest_.place_bests(kernel_, lane, reduces, argument);
        const Index along = work_.window.row(f_.dims());
        direction_ = same_loops_ ? along : work_.loops * along;
        begin_ = now_s();
        for (const RollingWindow::Ring& ring : f_.rings())
            for (std::size_t p = 0; p < places_; ++p)
                if (work_.places[p].array == ring.array && work_.places[p].writes) writer_.push_back(p);
    }

    // False where computing is to end.
    bool piece(const RollingWindow::Piece& piece) {
        open(piece);
        const std::vector<std::int64_t> ends = run_ends();
        for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
            std::int64_t first = ends[i], end = ends[i + 1];
            // What is computed is convex: what holds for the first and the last plane holds for those between.
            const bool even = steps_[0].usable() && f_.others().empty() && end - first >= shortest_run;
            if (!even) first = end;
            while (first < end && !whole(first)) first += std::max<std::int64_t>((end - first) / 64, 1);
            while (first < end && !whole(end - 1)) end -= std::max<std::int64_t>((end - first) / 64, 1);
            for (; row_[f_.across()] < first; next_layer())
                if (!any_rows()) return false;
            if (first < end && !even_rows(end)) return false;
            for (; row_[f_.across()] < ends[i + 1]; next_layer())
                if (!any_rows()) return false;
        }
        return true;
    }
    double begin() const { return begin_; }

private:
    // Before the first plane that has anything of the piece.
    void open(const RollingWindow::Piece& piece) {
        const int across = f_.across();
        piece_ = &piece;
        const int column = f_.column_of(tile_.box.lo[f_.along()]);
        int& side = window_.write_side(column);
        if (piece.first) side ^= 1;
        moves_ = moves_of(window_, piece, column, side);
        box_ = tile_.box;
        for (int k : f_.others()) box_.lo[k] -= f_.reach()[k];
        box_.lo[across] = piece.begin + f_.slant() * piece.lo;
        box_.hi[across] = piece.end + f_.slant() * (piece.hi - 1);
        first_ = box_.lo[across];
        // Nobody here computes the planes before the first, but points read them.
        if (f_.slant() || piece.begin == f_.block().lo[across]) box_.lo[across] -= f_.most_planes() - 1;
        row_ = box_.lo;
        row_[f_.along()] = 0;
        for (std::size_t p = 0; p < places_; ++p) {
            const Access& place = work_.places[p];
            const RollingWindow::Ring* ring = f_.ring(place.array);
            rows_[p] =
                ring ? rows_in_window(window_, static_cast<std::size_t>(ring - f_.rings().data()), piece, row_[across],
                                      place.offset)
                     : rows_in_array(f_, memory_.binding(place.array).data, memory_.binding(place.array).stride_bytes,
                                     computer_.s_.arrays[place.array].storage.lo, row_[across], place.offset);
            step_[p] = rows_[p].step;
        }
        for (int along : {0, f_.slant()}) steps_[along] = RingSteps(rows_, places_, along);
    }

    // The planes of a run: the same moves are made in all of them, the ends of rows move by the same number of
    // elements, and either all or none may have elements that no point computes.
    std::vector<std::int64_t> run_ends() const {
        const int across = f_.across();
        const RollingWindow::Piece& piece = *piece_;
        std::vector<std::int64_t> ends{box_.lo[across], first_, box_.hi[across]};
        if (f_.others().empty()) {
            for (const auto* moves : {&moves_.take, &moves_.leave})
                for (const Move& m : *moves) ends.insert(ends.end(), {m.begin, m.end});
            if (f_.slant()) ends.insert(ends.end(), {piece.lo + piece.end - 1, piece.hi + piece.begin - 1});
            ends.push_back(filled_until());
        }
        for (std::int64_t& plane : ends) plane = std::clamp(plane, box_.lo[across], box_.hi[across]);
        std::ranges::sort(ends);
        ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
        return ends;
    }
    // The first plane from which on the piece meets no element that nobody computes.
    std::int64_t filled_until() const {
        const int a = f_.along(), across = f_.across();
        const RollingWindow::Piece& piece = *piece_;
        if (!work_.bounds.empty()) return box_.hi[across];
        std::int64_t plane = box_.lo[across];
        if (piece.lo - f_.reach()[a] < f_.space().lo[a])
            plane = f_.slant() ? piece.end + f_.space().lo[a] : box_.hi[across];
        if (f_.slant() && piece.begin - f_.reach()[across] < f_.space().lo[across])
            plane = std::max(plane, piece.hi + f_.space().lo[across]);
        return plane;
    }

    // The piece's part of the rows of a plane: a range of z[along].
    std::pair<std::int64_t, std::int64_t> limits(std::int64_t plane) const {
        if (!f_.slant()) return {piece_->lo, piece_->hi};
        return {std::max(piece_->lo, plane - piece_->end + 1), std::min(piece_->hi, plane - piece_->begin + 1)};
    }
    // Whether all of it is computed, and something.
    bool whole(std::int64_t plane) const {
        if (plane < first_) return false;
        Index row = row_;
        row[f_.across()] = plane;
        const auto [lo, hi] = f_.computed(row);
        const auto [first, end] = limits(plane);
        return first < end && lo <= first && end <= hi;
    }

    void next_layer(std::int64_t by = 1) {
        row_[f_.across()] += by;
        for (std::size_t p = 0; p < places_; ++p) rows_[p].advance(by);
    }

    // All rows of the present plane, whatever they meet.
    bool any_rows() {
        const std::vector<int>& others = f_.others();
        for (int k : others) row_[k] = box_.lo[k];
        do {
            if (!any_row()) return false;
        } while (next_point(row_, box_, 1u << f_.along() | 1u << f_.across()));
        return true;
    }
    bool any_row() {
        const std::vector<int>& others = f_.others();
        const std::int64_t plane = row_[f_.across()];
        bool inside = true, in_tile = f_.slant() || plane >= piece_->begin;
        for (int k : others) {
            inside = inside && row_[k] >= f_.space().lo[k];
            in_tile = in_tile && row_[k] >= tile_.box.lo[k];
        }
        auto element = [&](std::size_t ring, std::int64_t along) {
            return rows_[writer_[ring]].element(others, row_, along);
        };
        const std::int64_t number = window_.others(row_);
        if (inside)
            for (const Move& m : moves_.take)
                if (m.in(plane) && f_.has_row(f_.rings()[m.ring], row_))
                    copy_item(element(m.ring, m.along + plane * m.along_step), m.element(plane, number), m.item_bytes);
        for (std::size_t p = 0; p < f_.rings().size(); ++p) {
            const RollingWindow::Ring& ring = f_.rings()[p];
            if (f_.has_row(ring, row_) && f_.has_segments(ring, *piece_, row_))
                window_.fill(p, *piece_, row_, element(p, piece_->lo));
        }
        if (!in_tile) return true;
        const auto [first, end] = limits(plane);
        const auto [least, most] = f_.computed(row_);
        const std::int64_t lo = std::max(first, least), hi = std::min(end, most);
        if (lo < hi) {
            for (std::size_t p = 0; p < places_; ++p) ptr_[p] = rows_[p].element(others, row_, lo);
            if (!compute_row(lo, hi)) return false;
        }
        for (const Move& m : moves_.leave)
            if (m.in(plane))
                copy_item(m.element(plane, number), element(m.ring, m.along + plane * m.along_step), m.item_bytes);
        return true;
    }

    // The rows up to plane `end`, whose moves are equal (run_ends), with little work for each.
    bool even_rows(std::int64_t end) {
        std::int64_t& plane = row_[f_.across()];
        auto [lo, hi] = limits(plane);
        const auto [then_lo, then_hi] = limits(plane + 1);
        const std::int64_t lo_step = plane + 1 < end ? then_lo - lo : 0, hi_step = plane + 1 < end ? then_hi - hi : 0;
        const std::int64_t from = plane;
        const RingSteps& steps = steps_[lo_step];
        const bool fills = plane < filled_until();
        int phase = static_cast<int>((plane - box_.lo[f_.across()]) % steps.phases());
        list_run(moves_.take, lo, lo_step, take_);
        list_run(moves_.leave, lo, lo_step, leave_);
        for (std::size_t p = 0; p < places_; ++p) ptr_[p] = reinterpret_cast<char*>(rows_[p].at + lo * step_[p]);
        for (; plane < end; ++plane, lo += lo_step, hi += hi_step) {
            for (RunMove& m : take_) {
                copy_item(ptr_[m.place] + m.at, m.stored, m.item_bytes);
                m.next();
            }
            if (fills) fill(lo);
            if (!compute_row(lo, hi)) return false;
            for (RunMove& m : leave_) {
                copy_item(m.stored, ptr_[m.place] + m.at, m.item_bytes);
                m.next();
            }
            const std::ptrdiff_t* by = steps.by(phase);
            phase = phase + 1 == steps.phases() ? 0 : phase + 1;
            for (std::size_t p = 0; p < places_; ++p) ptr_[p] += by[p];
        }
        for (std::size_t p = 0; p < places_; ++p) rows_[p].advance(end - from);
        return true;
    }
    // Those of `moves` that are made in the present plane, and so in all of its run.
    void list_run(const std::vector<Move>& moves, std::int64_t lo, std::int64_t lo_step,
                  std::vector<RunMove>& run) const {
        const std::int64_t plane = row_[f_.across()];
        run.clear();
        for (const Move& m : moves)
            if (m.in(plane))
                run.push_back({m.element(plane, 0), m.stored_step, (m.along + plane * m.along_step - lo) * m.item_bytes,
                               (m.along_step - lo_step) * m.item_bytes, m.item_bytes, writer_[m.ring]});
    }
    void fill(std::int64_t lo) const {
        for (std::size_t p = 0; p < f_.rings().size(); ++p) {
            const RollingWindow::Ring& ring = f_.rings()[p];
            char* first = ptr_[writer_[p]] + (piece_->lo - lo) * ring.item_bytes;
            if (f_.has_segments(ring, *piece_, row_)) window_.fill(p, *piece_, row_, first);
        }
    }

    Index point(std::int64_t i) const {
        Index z = row_;
        z[f_.along()] = i;
        z[f_.across()] -= f_.slant() * i;
        return same_loops_ ? z : work_.loops * z;
    }

    // A row; where it has values of no array, part by part of what their memory is for.
    bool compute_row(std::int64_t lo, std::int64_t hi) {
        if (!kernel_.stores_values() || hi - lo <= longest_value_row) return compute_part(lo, hi);
        char* first[max_places];
        std::copy(ptr_, ptr_ + places_, first);
        bool on = true;
        for (std::int64_t at = lo; on && at < hi; at += longest_value_row) {
            for (std::size_t p = 0; p < places_; ++p) ptr_[p] = first[p] + (at - lo) * step_[p];
            on = compute_part(at, std::min(at + longest_value_row, hi));
        }
        std::copy(first, first + places_, ptr_);
        return on;
    }
    bool compute_part(std::int64_t lo, std::int64_t hi) {
        if (kernel_.uses_index) x_ = point(lo);
        if (kernel_.bests_by_row()) nest_.begin_bests(lane_, 0, true);
        if (const std::int64_t code = kernel_.row(ptr_, step_, hi - lo, x_.begin(), direction_.begin(), kernel_.env);
            code != 0) {
            run_.fail({code % error_sites, point(lo + code / error_sites), tile_.work});
            return false;
        }
        if (reduces_) {
            const Span row{0, 0, hi - lo};
            nest_.reduce(lane_, {ptr_, step_, step_, {&row, 1}, {0, row.points}, point(lo), direction_, direction_});
        }
        return (run_.points_to_poll(lane_) -= hi - lo) > 0 || run_.pace(lane_, 0, begin_);
    }

    NestComputer& computer_;
    Run& run_;
    Nest& nest_;
    const NestWork& work_;
    const Kernel& kernel_;
    const bool reduces_;
    const ArrayMemory& memory_;
    WindowMemory& window_;
    const RollingWindow& f_;
    const Tile& tile_;
    const RollingWindow::Piece* piece_ = nullptr;
    int lane_;
    std::size_t places_;
    bool same_loops_;
    Index direction_, x_, row_;  // row_: component across is the plane
    Box box_;                    // of planes and of the other dimensions' rows
    std::int64_t first_ = 0;     // plane that has points of the piece
    Moves moves_;
    std::vector<RunMove> take_, leave_;
    std::vector<std::size_t> writer_;  // by ring: the place that writes it
    double begin_ = 0;
    char* ptr_[max_places];
    std::int64_t step_[max_places];
    PlaneRows rows_[max_places];
    RingSteps steps_[2];  // by how much further on a row begins than the one before
};

bool NestComputer::compute_in_window(Run& run, int l, const Tile& tile, Nest& nest, const Kernel& kernel,
                                     bool reduces) {
    PieceWalk walk(*this, run, nest, kernel, reduces, l, tile);
    for (const RollingWindow::Piece& piece : run.memory(l).window()->where().pieces(tile.box))
        if (!walk.piece(piece)) return false;
    run.spent(l, walk.begin());
    return true;
}

}  // namespace tilewave
