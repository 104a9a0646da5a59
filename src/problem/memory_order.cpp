#include <algorithm>

#include "data/memory.hpp"
#include "problem/tuning.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// Rows of a power of two bytes would share few sets of the cache: one line more.
std::int64_t padded(std::int64_t items, std::int64_t item_bytes) {
    const std::int64_t line = std::max<std::int64_t>(cache_line_bytes / item_bytes, 1);
    const std::int64_t lines = ceil_div(items, line);
    return items * item_bytes < 1024 ? items : (lines % 2 ? lines : lines + 1) * line;
}

}  // namespace

// By dimension of z, -1 where skewed storage goes against it: along loops that run downwards, so that nests in both
// directions have one order of memory. A row then still goes along memory, up one dimension and perhaps down another.
static Index storage_signs(const SweepProblem& problem, const Index& row) {
    Index signs = Index::filled(problem.dims(), 1);
    for (int k = 0; k < signs.n; ++k)
        if (problem.loops.keeps(k)) signs[k] = problem.loops.row[k][k];
    int first = -1, second = -1;
    for (int k = 0; k < row.n; ++k)
        if (row[k] != 0) (first < 0 ? first : second) = k;
    if (first < 0) return signs;
    const bool both = second >= 0 && problem.loops.keeps(first) && problem.loops.keeps(second);
    const std::int64_t sign = both ? signs[first] : 1;
    signs[first] = sign;
    if (second >= 0) signs[second] = sign;
    return signs;
}

// Coordinates in which skewed storage is row-major.
static IndexMatrix storage_order(const SweepProblem& problem, const Plan& plan) {
    const Index signs = storage_signs(problem, plan.row);
    Plan stored = plan;
    for (int k = 0; k < plan.row.n; ++k) stored.row[k] *= signs[k];
    IndexMatrix order = stored.order(problem.dims());
    for (int k = 0; k < signs.n; ++k)
        for (int c = 0; c < signs.n; ++c) order.row[k][c] *= signs[c];
    return order;
}

Index row_of_blocks(const SweepProblem& problem, const Plan& plan) {
    if (plan.storage != StorageKind::skewed) return plan.row;
    const Index signs = storage_signs(problem, plan.row);
    int up = -1, down = -1;
    for (int k = 0; k < plan.row.n; ++k) {
        if (plan.row[k] * signs[k] == 1) up = k;
        if (plan.row[k] * signs[k] == -1) down = k;
    }
    const auto block = [&](int k) { return static_cast<double>(largest_block(problem, plan.grid, k)); };
    if (up < 0 || down < 0 || block(up) <= clearly_longer * block(down)) return plan.row;
    Plan other = plan;
    std::swap(other.row[up], other.row[down]);
    try {
        other.validate(problem, plan.ranks());
    } catch (const ConfigError&) {
        return plan.row;
    }
    return other.row;
}

bool lies_in_boxes(const SweepProblem& problem, const Plan& plan, int a) {
    bool whole_loops = true;  // z coordinates are loop indices
    for (int k = 0; k < problem.dims(); ++k) whole_loops = whole_loops && problem.loops.keeps(k);
    const bool carried =
        problem.arrays[a].time_buffers > 1 &&
        std::ranges::any_of(problem.accesses, [&](const Access& p) { return p.array == a && p.writes && p.keeps; });
    return !whole_loops && (plan.ranks() > 1 || carried);
}

// Every scale-th element of a field that lies row by row.
static MemoryOrder order_in_field(const SweepProblem& problem, const Plan& plan, int a, int rank) {
    const NestArray& n = problem.arrays[a];
    const Box part = held(problem, plan, a, rank), field = field_layout(problem, plan, a).storage(rank);
    MemoryOrder m = MemoryOrder::row_major(field);
    for (int d = 0; d < part.dims(); ++d) {
        m.first += m.stride[d] * (n.scale[d] * part.lo[d] + n.residue[d] - field.lo[d]);
        m.stride[d] *= n.scale[d];
    }
    return m;
}

MemoryOrder field_order(const SweepProblem& problem, const Plan& plan, int a, int rank) {
    if (problem.arrays[a].scale.n == 0) return memory_order(problem, plan, a, rank);
    return MemoryOrder::row_major(field_layout(problem, plan, a).storage(rank));
}

MemoryOrder memory_order(const SweepProblem& problem, const Plan& plan, int a, int rank) {
    const NestArray& n = problem.arrays[a];
    if (n.scale.n) return order_in_field(problem, plan, a, rank);
    const Box local = held(problem, plan, a, rank);
    const bool boxes = lies_in_boxes(problem, plan, a);
    bool has_row = true;  // the row varies only what the array has
    for (int k = 0; k < plan.row.n; ++k) has_row = has_row && (plan.row[k] == 0 || !problem.lacks(a, k));
    if (local.empty() || n.replicated || (!boxes && (plan.storage == StorageKind::plain || !has_row)))
        return MemoryOrder::row_major(local);
    MemoryOrder m;
    // Row-major in the coordinates of the row order, over the box of them that holds the array's z box.
    Box z = problem.box_of(a, local);
    if (n.time_buffers > 0) z.hi[0] = z.lo[0] + 1;
    const IndexMatrix order = plan.storage == StorageKind::skewed && has_row ? storage_order(problem, plan)
                                                                             : IndexMatrix::identity(problem.dims());
    Box y = image(order, z);
    y.hi[y.dims() - 1] = y.lo[y.dims() - 1] + padded(y.extent(y.dims() - 1), n.item_bytes);
    const Index y_stride = row_major_strides(y, 1), z_stride = y_stride * order, x_stride = z_stride * problem.loops;
    Index first = Index::filled(problem.dims(), 0);  // loop indices of the first element
    const Index shift = problem.shift(a);
    m.stride = local.lo;
    for (int d = 0; d < local.dims(); ++d) {
        const int k = static_cast<int>(n.axes[d]);
        m.stride[d] = x_stride[k];
        first[k] = local.lo[d] - shift[k];
    }
    if (n.time_buffers > 0) first[0] = z.lo[0];
    const Index at = order * (problem.loops * first) - y.lo;
    for (int k = 0; k < at.n; ++k) m.first += y_stride[k] * at[k];
    m.items = y.points();
    return m;
}

std::uint64_t memory_orders(const SweepProblem& problem, const Plan& plan, int a, int ranks) {
    constexpr std::uint64_t row_major = 1;
    std::uint64_t h = 14695981039346656037u;  // FNV-1a, number by number
    const auto add = [&](std::int64_t n) { h = (h ^ static_cast<std::uint64_t>(n)) * 1099511628211u; };
    bool all = true;
    const int looked = std::min(ranks, most_ranks_compared);
    for (int i = 0; i < looked; ++i) {
        const int rank = static_cast<int>(std::int64_t{i} * (ranks - 1) / std::max(looked - 1, 1));
        const MemoryOrder order = field_order(problem, plan, a, rank);
        const Layout field = field_layout(problem, plan, a);
        const Box local = problem.arrays[a].replicated ? field.whole() : field.storage(rank);
        all = all && order == MemoryOrder::row_major(local);
        for (auto s : order.stride) add(s);
        add(order.first);
        add(order.items);
    }
    return all ? row_major : std::max(h, row_major + 1);
}

std::int64_t array_bytes(const SweepProblem& problem, const Plan& plan, int a, int rank) {
    const NestArray& n = problem.arrays[a];
    if (n.field >= 0 && n.field != a) return 0;
    return field_order(problem, plan, a, rank).items * n.item_bytes * std::max(n.time_buffers, 1);
}

std::int64_t held_bytes(const SweepProblem& problem, const Plan& plan, int rank) {
    std::int64_t bytes = 0;
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        if (const NestArray& n = problem.arrays[a];
            !n.replicated && !(uses_window(problem, plan) && problem.in_window(a)))
            bytes += array_bytes(problem, plan, a, rank);
    return bytes;
}

bool mostly_padding(const SweepProblem& problem, const Plan& plan) {
    std::int64_t elements = 0;
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        if (const NestArray& n = problem.arrays[a]; !n.replicated)
            elements += held(problem, plan, a, 0).points() * n.item_bytes * std::max(n.time_buffers, 1);
    const std::int64_t bytes = held_bytes(problem, plan, 0);
    return bytes > little_padding_bytes && bytes > most_padding * elements;
}

}  // namespace tilewave
