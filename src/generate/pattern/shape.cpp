#include "generate/pattern/shape.hpp"

#include "generate/copy/copy.hpp"
#include "schedule/lane_builder.hpp"

namespace tilewave {

PatternShape::PatternShape(const PatternProblem& problem, int rank, const PatternStrides& strides) : problem_(problem) {
    const std::int64_t item = problem.item_bytes, b = problem.block, p = problem.ranks;
    for (std::int64_t at = 0; std::int64_t n : problem.columns) {
        offsets_.push_back(at);
        at += n;
    }
    if (b > 0) {
        full_rounds_ = problem.total_columns() / (p * b);
        rest_ = problem.total_columns() % (p * b) != 0;
    }
    const bool spread = problem.kind == PatternKind::spread;
    const Box none = {Index::filled(b > 0 ? 3 : 2, 0), Index::filled(b > 0 ? 3 : 2, 0)};
    auto add = [&](const Box& storage, bool given, std::int64_t row_bytes, std::int64_t round) {
        Array a{item, storage, given ? storage : none, {}, true};
        // Of a single row no stride matters, this one overlaps nothing; of an empty array none does.
        const std::int64_t row = storage.extent(0) > 1 ? row_bytes / item : storage.points();
        if (!storage.empty()) a.stride = b > 0 ? Index{row, round, 1} : Index{row, 1};
        arrays_.push_back(a);
    };
    for (int rest = 0; rest <= (rest_ ? 1 : 0); ++rest) {
        if (has_parts(problem.kind)) {
            add(spread ? part(rank, rest) : all(rest), true, strides.in, spread ? b : b * p);
            add(spread ? all(rest) : part(rank, rest), false, strides.out, spread ? b * p : b);
        } else {
            add(all(rest), problem.kind == PatternKind::reduce || rank == problem.root, strides.in, 0);
            if (problem.kind == PatternKind::reduce)
                add(rank == problem.root ? all(rest) : none, false, strides.out, 0);
        }
    }
}

Box PatternShape::all(bool rest) const {
    const PatternProblem& q = problem_;
    if (q.block == 0) return {{0, 0}, {q.rows, q.total_columns()}};
    const std::int64_t round = q.block * q.ranks;
    if (rest) return {{0, full_rounds_, 0}, {q.rows, full_rounds_ + 1, q.total_columns() - full_rounds_ * round}};
    return {{0, 0, 0}, {q.rows, full_rounds_, round}};
}

Box PatternShape::part(int r, bool rest) const {
    const PatternProblem& q = problem_;
    if (q.block == 0) return {{0, offsets_[r]}, {q.rows, offsets_[r] + q.columns[r]}};
    const std::int64_t at = r * q.block;
    if (rest) return {{0, full_rounds_, at}, {q.rows, full_rounds_ + 1, at + q.columns[r] - full_rounds_ * q.block}};
    return {{0, 0, at}, {q.rows, full_rounds_, at + q.block}};
}

std::vector<Chunk> PatternShape::pieces(int r) const {
    std::vector<Chunk> all_pieces;
    for (int rest = 0; rest <= (rest_ ? 1 : 0); ++rest) {
        const Box box = has_parts(problem_.kind) ? part(r, rest) : all(rest);
        if (box.empty()) continue;
        const int first = 2 * rest;
        all_pieces.push_back({first, problem_.kind == PatternKind::broadcast ? first : first + 1, box});
    }
    return all_pieces;
}

std::vector<Chunk> PatternShape::chunks(int r, std::int64_t chunk_bytes) const {
    std::vector<Chunk> list;
    for (const Chunk& piece : pieces(r))
        for (const Box& box : tilewave::chunks(piece.box, problem_.item_bytes, chunk_bytes))
            list.push_back({piece.give, piece.get, box});
    return list;
}

int PatternLane::buffers(int count, std::int64_t bytes) {
    const int first = static_cast<int>(s_.buffers.size());
    s_.buffers.resize(s_.buffers.size() + static_cast<std::size_t>(count), bytes);
    return first;
}

int PatternLane::message(bool send, int peer, int array, const Box& region, int buffer, bool always_staged) {
    const int id = add_message(s_, send, peer, tag_, array, region);
    if (always_staged || !one_run(region, s_.arrays[array])) s_.messages[id].buffer = buffer;
    return id;
}

int PatternLane::forward(int other, int peer) {
    Message m = s_.messages[other];
    m.send = true;
    m.peer = peer;
    s_.messages.push_back(m);
    return static_cast<int>(s_.messages.size()) - 1;
}

void PatternLane::unpack_to(int other, int array) {
    Message m = s_.messages[other];
    m.send = false;
    m.peer = s_.rank;
    m.array = array;
    s_.messages.push_back(m);
    step(Op::unpack, static_cast<int>(s_.messages.size()) - 1);
}

void PatternLane::copy(const Chunk& chunk, int buffer) {
    const int out = message(true, s_.rank, chunk.give, chunk.box, buffer, true);
    step(Op::pack, out);
    unpack_to(out, chunk.get);
}

}  // namespace tilewave
