#include "arrays/time_buffers.hpp"

#include <algorithm>
#include <cstring>

#include "data/rows.hpp"

namespace tilewave {

void rotate_time_buffers(const TimeBuffers& buffers, std::int64_t steps) {
    const auto [memory, bytes, count] = buffers;
    if (count == 2) {  // no point reads the time before the current one
        std::memcpy(memory + bytes, memory, static_cast<std::size_t>(bytes));
        return;
    }
    constexpr std::int64_t piece = 1 << 14;
    std::vector<std::byte> saved(static_cast<std::size_t>(count * piece));
    for (std::int64_t at = 0; at < bytes; at += piece) {
        const auto n = static_cast<std::size_t>(std::min(piece, bytes - at));
        for (int k = 0; k < count - 1; ++k) std::memcpy(saved.data() + k * piece, memory + k * bytes + at, n);
        for (int k = 0; k < count - 1; ++k) std::memcpy(buffers.of(steps + k) + at, saved.data() + k * piece, n);
        std::memcpy(buffers.of(steps - 1) + at, saved.data(), n);
    }
}

// What points of the space write of array `a`, or of the part of its field that begins with `residue`.
static Box written_part(const SweepProblem& problem, int a, const Index& residue, const Box& all) {
    for (int b = 0; b < static_cast<int>(problem.arrays.size()); ++b) {
        const NestArray& n = problem.arrays[b];
        const bool same = b == a || (n.field >= 0 && n.field == problem.arrays[a].field);
        if (!same || !problem.written(b) || (n.scale.n && n.residue != residue)) continue;
        Box written = all;
        const Index shift = problem.shift(b);
        for (int d = 0; d < n.axes.n; ++d) {
            const int k = static_cast<int>(n.axes[d]);
            written.lo[d] = problem.space.lo[k] + shift[k];
            written.hi[d] = problem.space.hi[k] + shift[k];
        }
        return written;
    }
    return {all.lo, all.lo};
}

void keep_unwritten(const SweepProblem& problem, int a, const TimeBuffers& buffers, const Binding& first_buffer,
                    const Box& held, std::int64_t steps) {
    const NestArray& n = problem.arrays[a];
    const std::int64_t first =
        std::max<std::int64_t>(buffers.count - steps, 1);  // of the time_buffers whose buffers are used again
    if (first > buffers.count - 2 || held.empty()) return;
    const Index scale = n.scale.n ? n.scale : Index::filled(held.dims(), 1);
    Index strides = first_buffer.stride_bytes;
    for (int d = 0; d < strides.n; ++d) strides[d] *= scale[d];
    Box firsts{held.lo, held.lo};  // of each part that has elements here
    for (int d = 0; d < scale.n; ++d) firsts.hi[d] += std::min(scale[d], held.extent(d));
    Index from = firsts.lo;
    do {
        Index residue = from;
        Box all = held;  // in the part's dimensions
        for (int d = 0; d < all.dims(); ++d) {
            residue[d] = floor_mod(from[d], scale[d]);
            all.lo[d] = floor_div(from[d], scale[d]);
            all.hi[d] = ceil_div(held.hi[d] - residue[d], scale[d]);
        }
        for (const Box& part : subtract(all, written_part(problem, a, residue, all))) {
            std::int64_t at = 0;
            for (int d = 0; d < part.dims(); ++d)
                at += (scale[d] * part.lo[d] + residue[d] - held.lo[d]) * first_buffer.stride_bytes[d];
            for (std::int64_t back = first; back <= buffers.count - 2; ++back)
                copy_box(first_buffer.data + back * buffers.bytes + at, strides, first_buffer.data + at, strides,
                         part.hi - part.lo, n.item_bytes);
        }
    } while (next_point(from, firsts));
}

namespace {

// Buffer k goes where buffer k + steps was, row by row.
void turn_buffers(const RegionView& all, std::int64_t steps) {
    const std::int64_t buffers = all.box.extent(0);
    Box row = all.box, rows = all.box;
    const int last = row.dims() - 1;
    row.hi[0] = row.lo[0] + 1;
    rows.hi[0] = rows.lo[0] + 1;
    if (last > 0) rows.hi[last] = rows.lo[last] + 1;
    for (int k = 1; k < last; ++k) row.hi[k] = row.lo[k] + 1;
    const Index extent = row.hi - row.lo, packed = row_major_strides(row, all.item_bytes);
    const std::int64_t bytes = row.points() * all.item_bytes;
    std::vector<std::byte> saved(static_cast<std::size_t>(buffers * bytes));
    Index at = rows.lo;
    do {
        std::byte* data = all.data;
        for (int k = 1; k < at.n; ++k) data += (at[k] - rows.lo[k]) * all.stride_bytes[k];
        for (std::int64_t k = 0; k < buffers; ++k)
            copy_box(saved.data() + k * bytes, packed, data + k * all.stride_bytes[0], all.stride_bytes, extent,
                     all.item_bytes);
        for (std::int64_t k = 0; k < buffers; ++k)
            copy_box(data + (k + steps) % buffers * all.stride_bytes[0], all.stride_bytes, saved.data() + k * bytes,
                     packed, extent, all.item_bytes);
    } while (next_point(at, rows));
}

}  // namespace

std::vector<TaskFunction> buffer_tasks(std::int32_t most) {
    std::vector<TaskFunction> all;
    for (std::int32_t steps = 0; steps <= most; ++steps)  // 0: carry_operation
        all.push_back([steps](const TaskCall& call) {
            for (std::size_t i = 0; i < call.writes.size(); ++i) {
                const RegionView &from = call.reads[i], &to = call.writes[i];
                if (to.box.extent(0) > 1)
                    turn_buffers(to, steps);
                else if (!to.box.empty())
                    copy_box(to.data, to.stride_bytes, from.data, from.stride_bytes, to.box.hi - to.box.lo,
                             to.item_bytes);
            }
        });
    return all;
}

}  // namespace tilewave
