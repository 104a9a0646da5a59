// Memory of the arrays that panels of matrices travel in.
#pragma once
#include <cstddef>
#include <vector>

#include "tilewave/engine/kernel.hpp"
#include "tilewave/engine/layout.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// All that a schedule of matrices needs beyond them: the arrays with time buffers.
class MovingMemory {
public:
    explicit MovingMemory(const Schedule& s) {
        for (const Array& array : s.arrays) {
            if (array.time_buffers == 0) {
                bindings_.push_back({});
                continue;
            }
            const Index strides = row_major_strides(array.storage, array.item_bytes);
            const std::int64_t panels = std::min<std::int64_t>(array.time_buffers, array.storage.extent(0));
            memory_.emplace_back(static_cast<std::size_t>(array.storage.empty() ? 0 : strides[0] * panels));
            bindings_.push_back({memory_.back().data(), strides});
        }
    }
    /// The bindings of all arrays, with those of the matrices in their order.
    /// @pre as many as there are other arrays (std::out_of_range)
    std::vector<Binding> with(const std::vector<Binding>& matrices) const {
        std::vector<Binding> all = bindings_;
        std::size_t next = 0;
        for (Binding& b : all)
            if (b.stride_bytes.n == 0) b = matrices.at(next++);
        return all;
    }

    std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const auto& each : memory_) sum += static_cast<std::int64_t>(each.size());
        return sum;
    }

private:
    std::vector<std::vector<std::byte>> memory_;
    std::vector<Binding> bindings_;
};

}  // namespace tilewave
