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

void keep_unwritten(const SweepProblem& problem, int a, const TimeBuffers& buffers, const Binding& first_buffer,
                    const Box& held, std::int64_t steps) {
    const NestArray& n = problem.arrays[a];
    const std::int64_t first =
        std::max<std::int64_t>(buffers.count - steps, 1);  // of the time_buffers whose buffers are used again
    if (first > buffers.count - 2 || held.empty()) return;
    Box written = held;
    const Index shift = problem.shift(a);
    for (int d = 0; d < n.axes.n; ++d) {
        const int k = static_cast<int>(n.axes[d]);
        written.lo[d] = problem.space.lo[k] + shift[k];
        written.hi[d] = problem.space.hi[k] + shift[k];
    }
    for (const Box& part : subtract(held, written)) {
        std::int64_t at = 0;
        for (int d = 0; d < part.dims(); ++d) at += (part.lo[d] - held.lo[d]) * first_buffer.stride_bytes[d];
        for (std::int64_t back = first; back <= buffers.count - 2; ++back)
            copy_box(first_buffer.data + back * buffers.bytes + at, first_buffer.stride_bytes, first_buffer.data + at,
                     first_buffer.stride_bytes, part.hi - part.lo, n.item_bytes);
    }
}

namespace {

// keep_unwritten() and rotate_time_buffers() for the buffers of one element, with a stride of `stride` bytes.
void rotate_element(std::byte* at, std::int64_t stride, std::int64_t count, std::size_t item, bool outside,
                    std::int64_t steps) {
    std::byte saved[most_time_buffers][most_item_bytes];
    for (std::int64_t k = 0; k < count - 1; ++k) std::memcpy(saved[k], at + k * stride, item);
    for (std::int64_t k = std::max<std::int64_t>(count - steps, 1); outside && k <= count - 2; ++k)
        std::memcpy(saved[k], saved[0], item);
    for (std::int64_t k = 0; k < count - 1; ++k) std::memcpy(at + floor_mod(steps + k, count) * stride, saved[k], item);
    std::memcpy(at + floor_mod(steps - 1, count) * stride, saved[0], item);
}

}  // namespace

TaskFunction rotation_task(const SweepProblem& problem, std::int64_t steps) {
    return [space = image(problem.loops, problem.space), steps](const TaskCall& call) {
        for (std::size_t i = 0; i < call.writes.size(); ++i) {
            const RegionView &from = call.reads[i], &to = call.writes[i];
            if (to.box.empty()) continue;
            if (to.box.extent(0) == 1) {
                copy_box(to.data, to.stride_bytes, from.data, from.stride_bytes, to.box.hi - to.box.lo, to.item_bytes);
                continue;
            }
            Box elements = to.box, written = space;
            elements.hi[0] = elements.lo[0] + 1;
            written.lo[0] = elements.lo[0];
            written.hi[0] = elements.hi[0];
            Index at = elements.lo;
            do {
                std::byte* data = to.data;
                for (int k = 1; k < at.n; ++k) data += (at[k] - elements.lo[k]) * to.stride_bytes[k];
                rotate_element(data, to.stride_bytes[0], to.box.extent(0), static_cast<std::size_t>(to.item_bytes),
                               !written.contains(at), steps);
            } while (next_point(at, elements));
        }
    };
}

}  // namespace tilewave
