// Memory of arrays is placed by the lanes that compute it: the system puts a page near the CPU that touches it first.
#pragma once
#include <vector>

#include "tilewave/context.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// Who touches the pages of some memory first.
struct FirstTouch {
    std::int64_t bytes = 0;  ///< of the memory, of one time buffer where it has several
    std::int64_t page = 1;   ///< bytes
    std::vector<int> lanes;  ///< by page

    /// Each page is the lane's that computes most of it, in the first time step of the schedule; one that none computes
    /// goes with the page before it. `memory`: of the array, in the schedule's coordinates; it has `bytes` from
    /// `begin`.
    static FirstTouch by_tiles(const Schedule& schedule, int array, const Binding& memory, const std::byte* begin,
                               std::int64_t bytes, std::int64_t page);
    /// Lanes divide the pages evenly, in their order.
    static FirstTouch evenly(int lanes, std::int64_t bytes, std::int64_t page);
    /// Every lane writes a byte into each small page of its pages, of `buffers` time buffers.
    /// @pre the memory is fresh: its values do not matter
    void make(Lanes& with, std::byte* begin, int buffers) const;
};

/// Bytes of the pages of memory of `bytes`, as aligned_memory() asks for them.
std::int64_t page_of(std::int64_t bytes);

/// Whether it matters who touches memory first: several lanes, CPUs on several NUMA nodes, and many pages.
bool touch_matters(Context& context, std::int64_t bytes);

}  // namespace tilewave
