#include "runtime/matrix_move.hpp"

#include <algorithm>

#include "data/rows.hpp"
#include "execute/executor.hpp"
#include "runtime/run_schedule.hpp"

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
    return move.pieces(named.source, named.target).at(static_cast<std::size_t>(named.index));
}

}  // namespace

void run_move(Context& context, const MatrixMove& move, const Binding& from, const Binding& to) {
    const std::int64_t item = move.item_bytes;
    const Side here{from}, there{to};
    const TaskFunction pack = [&](const TaskCall& call) {
        each_run(move, piece_of(move, call.number), [&](auto& r, auto& c, std::int64_t at, std::int64_t high) {
            copy_box(call.writes[0].data + at * item, {item, high * item}, here.at(r.from, c.from), from.stride_bytes,
                     {r.count, c.count}, item);
        });
    };
    const TaskFunction unpack = [&](const TaskCall& call) {
        each_run(move, piece_of(move, call.number), [&](auto& r, auto& c, std::int64_t at, std::int64_t high) {
            copy_box(there.at(r.to, c.to), to.stride_bytes, call.reads[0].data + at * item, {item, high * item},
                     {r.count, c.count}, item);
        });
    };
    const TaskFunction copy = [&](const TaskCall& call) {
        each_run(move, piece_of(move, call.number), [&](auto& r, auto& c, std::int64_t, std::int64_t) {
            copy_box(there.at(r.to, c.to), to.stride_bytes, here.at(r.from, c.from), from.stride_bytes,
                     {r.count, c.count}, item);
        });
    };
    const Schedule schedule = move_matrix(move, context.rank());
    std::vector<std::vector<std::byte>> slots;
    std::vector<Binding> bindings{from, to};
    for (std::size_t a = bindings.size(); a < schedule.arrays.size(); ++a) {
        const Box& box = schedule.arrays[a].storage;
        slots.emplace_back(static_cast<std::size_t>(box.points() * item));
        bindings.push_back({slots.back().data(), {box.extent(1) * item, item}});
    }
    const TaskFunction tasks[] = {pack, unpack, copy};
    const bool record = context.options().record;
    context.options().record = false;  // its steps are of no interest
    try {
        const ScheduleReport report = execute_agreed(context, schedule, bindings, {tasks, {}});
        context.options().record = record;
        if (report.interrupted) throw Interrupted("moving a matrix was interrupted");
    } catch (...) {
        context.options().record = record;
        throw;
    }
}

}  // namespace tilewave
