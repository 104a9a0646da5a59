#include "arrays/matrix_move.hpp"

#include <algorithm>
#include <utility>

#include "data/rows.hpp"

namespace tilewave {

namespace {

// One side of a move on this rank.
struct Side {
    const Binding& memory;
    std::byte* at(std::int64_t row, std::int64_t column) const {
        return memory.data + row * memory.stride_bytes[0] + column * memory.stride_bytes[1];
    }
};

// f(row run, column run, items before it in the piece) for what a piece moves; a piece lies column by column.
template <class F>
void each_run(const MatrixMove& move, const MatrixMove::Piece& piece, F f) {
    const std::vector<CommonRun> rows = move.rows(piece.source, piece.target);
    std::int64_t high = 0, before = 0;  // rows in all; columns before this run
    for (const CommonRun& r : rows) high += r.count;
    for (CommonRun c : move.columns(piece.source, piece.target)) {
        const std::int64_t lo = std::max(piece.columns_lo - before, std::int64_t{0}),
                           hi = std::min(piece.columns_hi - before, c.count);
        const std::int64_t first = before + lo - piece.columns_lo;
        before += c.count;
        if (lo >= hi) continue;
        c = {c.from + lo, c.to + lo, hi - lo};
        std::int64_t above = 0;
        for (const CommonRun& r : rows) {
            f(r, c, first * high + above, high);
            above += r.count;
        }
    }
}

MatrixMove::Piece piece_of(const MatrixMove& move, std::int64_t number) {
    const MatrixMove::Named named = move.named(number);
    return move.pieces(named.source, named.target).at(named.index);
}

}  // namespace

TaskFunction ReadyMove::pack() {
    return [this](const TaskCall& call) {
        const std::int64_t item = move_.item_bytes;
        each_run(move_, piece_of(move_, call.number), [&](auto& r, auto& c, std::int64_t at, std::int64_t high) {
            copy_box(call.writes[0].data + at * item, {item, high * item}, Side{from_}.at(r.from, c.from),
                     from_.stride_bytes, {r.count, c.count}, item);
        });
    };
}

TaskFunction ReadyMove::unpack() {
    return [this](const TaskCall& call) {
        const std::int64_t item = move_.item_bytes;
        each_run(move_, piece_of(move_, call.number), [&](auto& r, auto& c, std::int64_t at, std::int64_t high) {
            copy_box(Side{to_}.at(r.to, c.to), to_.stride_bytes, call.reads[0].data + at * item, {item, high * item},
                     {r.count, c.count}, item);
        });
    };
}

TaskFunction ReadyMove::copy() {
    return [this](const TaskCall& call) {
        each_run(move_, piece_of(move_, call.number), [&](auto& r, auto& c, std::int64_t, std::int64_t) {
            copy_box(Side{to_}.at(r.to, c.to), to_.stride_bytes, Side{from_}.at(r.from, c.from), from_.stride_bytes,
                     {r.count, c.count}, move_.item_bytes);
        });
    };
}

ReadyMove::ReadyMove(Context& context, MatrixMove move)
    : move_(std::move(move)),
      schedule_(move_matrix(move_, context.rank())),
      bindings_(2),
      tasks_{pack(), unpack(), copy()},
      ready_(context, schedule_, {tasks_, {}}, 1, false) {
    for (std::size_t a = bindings_.size(); a < schedule_.arrays.size(); ++a) {
        const Box& box = schedule_.arrays[a].storage;
        slots_.emplace_back(static_cast<std::size_t>(box.points() * move_.item_bytes));
        bindings_.push_back({slots_.back().data(), {box.extent(1) * move_.item_bytes, move_.item_bytes}});
    }
}

void ReadyMove::run(const Binding& from, const Binding& to) {
    bindings_[0] = from_ = from;
    bindings_[1] = to_ = to;
    if (ready_.run(bindings_).interrupted) throw Interrupted("moving a matrix was interrupted");
}

}  // namespace tilewave
