#include "generate/linalg/redistribute.hpp"

#include <algorithm>

#include "core/concat.hpp"
#include "generate/linalg/task_list.hpp"

namespace tilewave {

namespace {

constexpr std::int64_t most_pieces = std::int64_t{1} << 20;  // between two ranks: numbers of works leave room for them

std::int64_t total(const std::vector<CommonRun>& runs) {
    std::int64_t n = 0;
    for (const CommonRun& r : runs) n += r.count;
    return n;
}

}  // namespace

std::vector<CommonRun> common_runs(const Axis& from, int p, const Axis& to, int q) {
    std::vector<CommonRun> runs;
    if (p < 0 || q < 0) return runs;
    for (std::int64_t l = 0; l < from.count(p);) {
        const GlobalElement g = from.global_of(p, {l});
        const std::int64_t from_end = from.block_end(g).at;
        for (std::int64_t at = g.at; at < from_end;) {
            const std::int64_t end = std::min(from_end, to.block_end({at}).at);
            if (to.part_of({at}) == q) {
                const std::int64_t here = l + at - g.at, there = to.local_of({at}).at;
                if (!runs.empty() && runs.back().from + runs.back().count == here &&
                    runs.back().to + runs.back().count == there)
                    runs.back().count += end - at;
                else
                    runs.push_back({here, there, end - at});
            }
            at = end;
        }
        l += from_end - g.at;
    }
    return runs;
}

MatrixMove::MatrixMove(const BlockCyclic& from, const BlockCyclic& to, std::int64_t item_bytes, int ranks,
                       std::int64_t chunk_bytes)
    : from(from), to(to), item_bytes(item_bytes), ranks(ranks), chunk_bytes(chunk_bytes) {
    if (from.rows.extent != to.rows.extent || from.columns.extent != to.columns.extent)
        throw ConfigError(concat("redistribute: a matrix of ", from.rows.extent, " x ", from.columns.extent,
                                 " and a layout of ", to.rows.extent, " x ", to.columns.extent,
                                 " were given; equal extents are allowed"));
    if (from.ranks() > ranks || to.ranks() > ranks || item_bytes < 1)
        throw ConfigError(concat("redistribute: layouts on ", from.ranks(), " and ", to.ranks(),
                                 " ranks were given for ", ranks, " ranks"));
}

std::vector<CommonRun> MatrixMove::rows(int source, int target) const {
    return common_runs(from.rows, from.row_of(source), to.rows, to.row_of(target));
}

std::vector<CommonRun> MatrixMove::columns(int source, int target) const {
    return common_runs(from.columns, from.column_of(source), to.columns, to.column_of(target));
}

std::vector<MatrixMove::Piece> MatrixMove::pieces(int source, int target) const {
    const std::int64_t high = total(rows(source, target)), wide = high == 0 ? 0 : total(columns(source, target));
    std::vector<Piece> all;
    if (wide == 0) return all;
    std::int64_t step = source == target ? wide : std::max<std::int64_t>(1, chunk_bytes / (high * item_bytes));
    step = std::max(step, (wide + most_pieces - 1) / most_pieces);
    for (std::int64_t c = 0; c < wide; c += step) {
        const std::int64_t end = std::min(wide, c + step);
        all.push_back({source, target, c, end, high * (end - c)});
    }
    return all;
}

// Numbers grow with the round, then the piece; within these: all packs, the results, all unpacks.
std::int64_t MatrixMove::pack_number(const Piece& piece, std::int64_t index) const {
    const std::int64_t round = (piece.target - piece.source + ranks) % ranks;
    return (round * most_pieces + index) * 2 * ranks + piece.source;
}
std::int64_t MatrixMove::unpack_number(const Piece& piece, std::int64_t index) const {
    return pack_number(piece, index) - piece.source + ranks + piece.target;
}
std::int64_t MatrixMove::result_number(const Piece& piece, std::int64_t index) const {
    return pack_number(piece, index) - piece.source + ranks;
}
MatrixMove::Named MatrixMove::named(std::int64_t number) const {
    const std::int64_t place = number / (2 * ranks), within = number % (2 * ranks);
    const int round = static_cast<int>(place / most_pieces), rank = static_cast<int>(within % ranks);
    if (within < ranks) return {rank, (rank + round) % ranks, place % most_pieces};
    return {(rank - round + ranks) % ranks, rank, place % most_pieces};
}

Schedule move_matrix(const MatrixMove& move, int rank) {
    TaskList list(rank, move.ranks, 1);
    Schedule& s = list.schedule();
    const Box before = move.from.owned(rank), after = move.to.owned(rank);
    // Every rank has the same slots of the largest piece that it sends or receives.
    std::int64_t slot = 0;
    for (int other = 0; other < move.ranks; ++other) {
        if (other == rank) continue;
        for (const auto& list_of : {move.pieces(rank, other), move.pieces(other, rank)})
            if (!list_of.empty()) slot = std::max(slot, list_of.front().items);
    }
    const Box slots{{0, 0}, {slot > 0 ? 2 : 0, slot}};
    s.arrays = {{move.item_bytes, before, before},
                {move.item_bytes, after, after},
                {move.item_bytes, slots, slots, {}, true},
                {move.item_bytes, slots, slots, {}, true}};
    const auto of = [](MoveArray a) { return static_cast<std::int32_t>(a); };
    const auto task = [](MoveTask t) { return static_cast<std::int32_t>(t); };
    const Region from{of(MoveArray::from), before}, to{of(MoveArray::to), after};
    const auto part = [&](std::int64_t index, const MatrixMove::Piece& piece) {
        return Box{{index % 2, 0}, {index % 2 + 1, piece.items}};
    };
    for (const MatrixMove::Piece& piece : move.pieces(rank, rank))
        list.task(0, move.pack_number(piece, 0), task(MoveTask::copy), {from, to}, {to},
                  static_cast<double>(piece.items * move.item_bytes));
    for (int round = 1; round < move.ranks; ++round) {
        const int target = (rank + round) % move.ranks, source = (rank - round + move.ranks) % move.ranks;
        const auto out = move.pieces(rank, target), in = move.pieces(source, rank);
        const auto n = static_cast<std::int64_t>(std::max(out.size(), in.size()));
        std::vector<int> sent, received;
        // A piece is waited for when the next one is posted.
        for (std::int64_t c = 0; c <= n; ++c) {
            const auto at = static_cast<std::size_t>(c);
            if (at < in.size())
                received.push_back(
                    list.post(false, source, static_cast<int>(c % 2), of(MoveArray::in), part(c, in[at])));
            if (at < out.size()) {
                list.task(0, move.pack_number(out[at], c), task(MoveTask::pack), {from},
                          {{of(MoveArray::out), part(c, out[at])}},
                          static_cast<double>(out[at].items * move.item_bytes));
                sent.push_back(list.post(true, target, static_cast<int>(c % 2), of(MoveArray::out), part(c, out[at])));
            }
            if (c >= 1 && at - 1 < in.size()) {
                const MatrixMove::Piece& piece = in[at - 1];
                list.add(0, Op::wait, received[at - 1]);
                s.results.push_back({of(MoveArray::in),
                                     part(c - 1, piece),
                                     of(MoveArray::out),
                                     {source},
                                     move.result_number(piece, c - 1)});
                list.task(0, move.unpack_number(piece, c - 1), task(MoveTask::unpack),
                          {{of(MoveArray::in), part(c - 1, piece)}, to}, {to},
                          static_cast<double>(piece.items * move.item_bytes));
            }
            if (c >= 1 && at - 1 < out.size()) list.add(0, Op::wait, sent[at - 1]);
        }
    }
    return list.finish();
}

}  // namespace tilewave
