// Where the elements of a rank's arrays lie.
#pragma once
#include <span>

#include "execute/window/window_memory.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

class ArrayMemory {
public:
    ArrayMemory(const Schedule& schedule, std::span<const Binding> bindings, WindowMemory* window)
        : s_(&schedule), bindings_(bindings), window_(window) {}

    const Binding& binding(int array) const { return bindings_[array]; }
    /// Null where no array has planes.
    WindowMemory* window() const { return window_; }
    /// The address of an element in memory; of an array with planes, as messages find it.
    std::byte* address(int array, const Index& point) const {
        const Binding& b = bindings_[array];
        const Array& a = s_->arrays[array];
        if (a.planes > 0) return window_->message(array, point);
        std::int64_t at = a.time_buffers > 0 ? time_buffer(array, point[0]) * b.stride_bytes[0]
                                             : (point[0] - a.storage.lo[0]) * b.stride_bytes[0];
        for (int k = 1; k < point.n; ++k) at += (point[k] - a.storage.lo[k]) * b.stride_bytes[k];
        return b.data + at;
    }
    /// The buffer in which an array keeps time `t`.
    std::int64_t time_buffer(int array, std::int64_t t) const {
        const Array& a = s_->arrays[array];
        return floor_mod(bindings_[array].first_time_buffer - (t - a.storage.lo[0]), a.time_buffers);
    }

private:
    const Schedule* s_;
    std::span<const Binding> bindings_;
    WindowMemory* window_;
};

}  // namespace tilewave
