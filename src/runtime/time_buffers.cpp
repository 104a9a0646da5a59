#include "runtime/time_buffers.hpp"

#include <algorithm>
#include <cstring>

#include "data/rows.hpp"

namespace tilewave {

void turn(const TimeBuffers& buffers, std::int64_t steps) {
    const auto [memory, bytes, count] = buffers;
    if (count == 2) {  // no point reads the time before the current one
        std::memcpy(memory + bytes, memory, static_cast<std::size_t>(bytes));
        return;
    }
    constexpr std::int64_t piece = 1 << 14;
    std::vector<std::byte> kept(static_cast<std::size_t>(count * piece));
    for (std::int64_t at = 0; at < bytes; at += piece) {
        const auto n = static_cast<std::size_t>(std::min(piece, bytes - at));
        for (int k = 0; k < count - 1; ++k) std::memcpy(kept.data() + k * piece, memory + k * bytes + at, n);
        for (int k = 0; k < count - 1; ++k) std::memcpy(buffers.of(steps + k) + at, kept.data() + k * piece, n);
        std::memcpy(buffers.of(steps - 1) + at, kept.data(), n);
    }
}

void keep_outside(const SweepProblem& problem, int a, const TimeBuffers& buffers, const Binding& own, const Box& held,
                  std::int64_t steps) {
    const NestArray& n = problem.arrays[static_cast<std::size_t>(a)];
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
        for (int d = 0; d < part.dims(); ++d) at += (part.lo[d] - held.lo[d]) * own.stride_bytes[d];
        for (std::int64_t back = first; back <= buffers.count - 2; ++back)
            copy_box(own.data + back * buffers.bytes + at, own.stride_bytes, own.data + at, own.stride_bytes,
                     part.hi - part.lo, n.item_bytes);
    }
}

}  // namespace tilewave
