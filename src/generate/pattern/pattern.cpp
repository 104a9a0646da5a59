#include "tilewave/engine/pattern.hpp"

#include <algorithm>
#include <numeric>

#include "core/binomial.hpp"
#include "core/concat.hpp"
#include "generate/pattern/lanes.hpp"
#include "generate/pattern/tuning.hpp"

namespace tilewave {

using namespace tuning;

namespace {

Schedule start(const PatternProblem& problem, int rank, const PatternShape& shape) {
    Schedule s;
    s.rank = rank;
    s.ranks = problem.ranks;
    s.arrays = shape.arrays();
    return s;
}

// Ranks first, first + 1, ... once around.
std::vector<std::int32_t> around(int first, int ranks) {
    std::vector<std::int32_t> order(ranks);
    for (int i = 0; i < ranks; ++i) order[i] = (first + i) % ranks;
    return order;
}

void write_tree(Schedule& s, const PatternProblem& problem, const PatternPlan& plan, const PatternShape& shape,
                int tag) {
    const int p = problem.ranks, root = problem.root, v = (s.rank - root + p) % p;
    const bool ring = plan.algorithm == Algorithm::ring, reduce = problem.kind == PatternKind::reduce;
    const auto chunks = shape.chunks(0, plan.chunk_bytes);
    const std::int64_t bytes = std::max(plan.chunk_bytes, problem.item_bytes);
    PatternLane lane(s, tag);
    auto rank = [&](int w) { return (w + root) % p; };
    if (plan.algorithm == Algorithm::rounds) return exchange_rounds(lane, chunks, s.rank, p, root, plan.buffers, bytes);
    // Down a ring: root, root + 1, ...; up a ring: root + 1, ..., root. Direct: all are the root's children.
    const bool direct = plan.algorithm == Algorithm::direct;
    int parent = v ? rank(direct ? 0 : ring ? v - 1 : binomial::parent(v)) : -1;
    std::vector<int> children;
    if (direct) {
        for (int child = p - 1; child > 0 && v == 0; --child) children.push_back(rank(child));
    } else if (!ring) {
        binomial::for_children(v, p, [&](int child) { children.push_back(rank(child)); });
    } else if (reduce) {
        parent = v ? rank(v + 1 == p ? 0 : v + 1) : -1;
        if (v != 1 && p > 1) children = {rank(v ? v - 1 : p - 1)};
    } else if (v + 1 < p) {
        children = {rank(v + 1)};
    }
    if (reduce) return collect(lane, chunks, parent, children, !ring, plan.buffers, bytes);
    std::ranges::reverse(children);  // the largest subtree first
    relay(lane, chunks, parent, children, plan.buffers, bytes);
}

void add_results(Schedule& s, const PatternProblem& problem, const PatternPlan& plan, const PatternShape& shape) {
    switch (problem.kind) {
        case PatternKind::broadcast:
            for (const Chunk& c : shape.pieces(0)) s.results.push_back({c.get, c.box, c.give, {problem.root}});
            break;
        case PatternKind::reduce: {
            if (s.rank != problem.root) break;
            const int first = plan.algorithm == Algorithm::ring ? (problem.root + 1) % problem.ranks : problem.root;
            for (const Chunk& c : shape.pieces(0))
                s.results.push_back({c.get, c.box, c.give, around(first, problem.ranks)});
            break;
        }
        case PatternKind::spread:
            for (int r = 0; r < problem.ranks; ++r)
                for (const Chunk& c : shape.pieces(r)) s.results.push_back({c.get, c.box, c.give, {r}});
            break;
        case PatternKind::multi_reduce:
            for (const Chunk& c : shape.pieces(s.rank))
                s.results.push_back({c.get, c.box, c.give, around((s.rank + 1) % problem.ranks, problem.ranks)});
            break;
    }
}

}  // namespace

const char* to_string(Algorithm algorithm) {
    static constexpr const char* names[] = {"auto", "tree", "ring", "rounds", "direct", "mpi"};
    return names[static_cast<int>(algorithm)];
}

std::int64_t PatternProblem::total_columns() const {
    return std::accumulate(columns.begin(), columns.end(), std::int64_t{0});
}

std::int64_t dealt_columns(std::int64_t columns, std::int64_t block, int ranks, int rank) {
    if (block == 0) return columns / ranks + (rank < columns % ranks ? 1 : 0);
    const std::int64_t round = block * ranks;
    return columns / round * block + std::clamp<std::int64_t>(columns % round - rank * block, 0, block);
}

void PatternProblem::validate() const {
    const std::string name = tilewave::to_string(kind);
    if (ranks < 1) throw ConfigError(concat(name, ": ", ranks, " ranks were given; at least 1 is allowed"));
    if (root < 0 || root >= ranks)
        throw ConfigError(concat(name, ": root ", root, " was given; allowed: 0 to ", ranks - 1));
    if (rows < 0 || item_bytes < 1)
        throw ConfigError(concat(name, ": ", rows, " rows of items of ", item_bytes, " bytes were given"));
    const std::size_t wanted = has_parts(kind) ? static_cast<std::size_t>(ranks) : 1;
    if (columns.size() != wanted || std::ranges::any_of(columns, [](auto n) { return n < 0; }))
        throw ConfigError(concat(name, ": needs ", wanted, " numbers of columns >= 0, got ", columns.size()));
    if (block < 0 || (block > 0 && !has_parts(kind)))
        throw ConfigError(concat(name, ": block ", block,
                                 " was given; allowed: 0 (parts side by side), or a block of "
                                 "columns for spread and multi_reduce"));
    for (int r = 0; block > 0 && r < ranks; ++r)
        if (const std::int64_t n = dealt_columns(total_columns(), block, ranks, r); columns[r] != n)
            throw ConfigError(concat(name, ": rank ", r, " has ", columns[r], " columns; ", total_columns(),
                                     " columns dealt in blocks of ", block, " over ", ranks, " ranks give it ", n));
}

std::string PatternPlan::to_string() const {
    std::string text = tilewave::to_string(algorithm);
    if (algorithm != Algorithm::native) text += concat(", chunks of ", chunk_bytes, " bytes, ", buffers, " buffers");
    return text;
}

Schedule pattern_schedule(const PatternProblem& problem, const PatternPlan& plan, int rank,
                          const PatternStrides& strides, int tag) {
    problem.validate();
    if (plan.algorithm == Algorithm::automatic || plan.algorithm == Algorithm::native)
        throw ConfigError(concat("pattern_schedule: algorithm ", plan.algorithm, " makes no schedule"));
    if (problem.bytes() / std::max<std::int64_t>(plan.chunk_bytes, 1) > most_chunks)
        throw ConfigError(concat("chunks of ", plan.chunk_bytes, " bytes cut ", problem.bytes(),
                                 " bytes into more than ", most_chunks, " chunks; take larger chunks"));
    const PatternShape shape(problem, rank, strides);
    Schedule s = start(problem, rank, shape);
    if (has_parts(problem.kind)) {
        std::vector<std::vector<Chunk>> parts;
        for (int r = 0; r < problem.ranks; ++r) parts.push_back(shape.chunks(r, plan.chunk_bytes));
        PatternLane lane(s, tag);
        const bool reduce = problem.kind == PatternKind::multi_reduce;
        const auto write = plan.algorithm == Algorithm::direct ? exchange_all : shift;
        write(lane, parts, rank, reduce, plan.buffers, std::max(plan.chunk_bytes, problem.item_bytes));
    } else {
        write_tree(s, problem, plan, shape, tag);
    }
    // Small messages do not need whole chunks of staging.
    std::vector<std::int64_t> needed(s.buffers.size(), 0);
    for (const Message& m : s.messages)
        if (m.buffer >= 0) needed[m.buffer] = std::max(needed[m.buffer], m.bytes);
    s.buffers = std::move(needed);
    add_results(s, problem, plan, shape);
    return s;
}

std::vector<std::byte*> pattern_addresses(const PatternProblem& problem, int, const PatternMemory& memory) {
    if (problem.kind == PatternKind::broadcast) return {memory.in};
    std::vector<std::byte*> all{memory.in, memory.out};
    const std::int64_t round = problem.block * problem.ranks;
    if (round == 0 || problem.total_columns() % round == 0) return all;
    // The last round lies behind the full ones: a block of each in a part, a whole round in the matrix.
    const std::int64_t rounds = problem.total_columns() / round;
    const bool spread = problem.kind == PatternKind::spread;
    all.push_back(memory.in + rounds * (spread ? problem.block : round) * problem.item_bytes);
    all.push_back(memory.out + rounds * (spread ? round : problem.block) * problem.item_bytes);
    return all;
}

}  // namespace tilewave
