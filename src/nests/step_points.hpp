// Sources and receivers: elements that a run changes or records after each time step.
#pragma once
#include <span>

#include "data/rows.hpp"

namespace tilewave {

/// Elements of one array, whose values a run records, or to which it adds, after each time step. Of a field each rank
/// has those that it owns; of memory that is whole on every rank rank 0 has all.
struct StepPoints {
    int array = 0;
    std::span<const std::int64_t> subscripts = {};  ///< point after point
    std::byte* values = nullptr;                    ///< a row a time step, an item a point
    CombineRow add = nullptr;                       ///< null: values are recorded

    std::int64_t count(int dims) const { return static_cast<std::int64_t>(subscripts.size()) / dims; }
};

}  // namespace tilewave
