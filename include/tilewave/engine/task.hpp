// What a task calls: a function of regions of arrays.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "tilewave/dtype.hpp"
#include "tilewave/engine/matrix.hpp"
#include "tilewave/index.hpp"

namespace tilewave {

/// A region of an array as an operation sees it: the address of box.lo, and bytes between neighbours.
struct RegionView {
    std::byte* data = nullptr;  ///< null where the box is empty
    Box box;
    Index stride_bytes;
    std::int64_t item_bytes = 0;
};

/// One call: the regions are those of TaskWork::reads and TaskWork::writes, in their order.
struct TaskCall {
    std::int64_t number = 0;  ///< of the work
    int lane = 0;             ///< that calls; several lanes may call at once
    double amount = 0;        ///< TaskWork::amount
    std::vector<RegionView> reads, writes;
};

/// Reads and writes what the task declares, and nothing else. What it throws ends the run on every rank with that
/// error.
using TaskFunction = std::function<void(const TaskCall& call)>;

/// How combine steps join the values of an array: left op right. @pre op is not Reduction::user
struct Combining {
    Reduction op = Reduction::sum;
    Dtype type = Dtype::f8;
    friend bool operator==(const Combining&, const Combining&) = default;
};

}  // namespace tilewave
