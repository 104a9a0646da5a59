// Sources and receivers: elements that a run changes or records after each time step.
#pragma once
#include <span>

#include "execute/step_visitor.hpp"
#include "nests/off_grid.hpp"

namespace tilewave {

/// For elements of `type`. The sum and the value have the type `sum`: `type`, or double for floats, also of parts.
AddItem add_item(Dtype type, Dtype sum);

/// Elements of one array, whose values a run records, or to which it adds, after each time step. Of a field each rank
/// has those that it owns; of memory that is whole on every rank rank 0 has all.
struct StepPoints {
    int array = 0;
    std::span<const std::int64_t> subscripts = {};  ///< point after point
    std::byte* values = nullptr;                    ///< a row a time step, an item a point
    std::int64_t value_bytes = 0;                   ///< of an item
    AddItem add = nullptr;                          ///< null: values are recorded
    /// Each element is visited by the lanes and ranks that compute it, when they do, and lanes do not meet for it.
    /// @pre of an array with time buffers; no bound of the loops depends on time; what is added is added to elements
    /// that points write, and that no other point reads in the same time step; off the grid: added, and does not move
    bool by_lanes = false;
    OffGrid* off_grid = nullptr;  ///< instead of `subscripts`, `values` and `add`

    std::int64_t count(int dims) const { return static_cast<std::int64_t>(subscripts.size()) / dims; }
    Index at(std::int64_t k, int dims) const {
        return Index(subscripts.subspan(static_cast<std::size_t>(k * dims), static_cast<std::size_t>(dims)));
    }
};

}  // namespace tilewave
