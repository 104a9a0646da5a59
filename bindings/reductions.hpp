// Reductions as Python gives them.
#pragma once
#include <tuple>

#include "casters.hpp"
#include "tilewave/reduction.hpp"

namespace tilewave {

// Operation, dtype, place, the element's subscripts: loop indices, and what is added to each; number among the kernel's
// bests; the row value of which points count.
using ReductionTuple = std::tuple<std::string, std::string, int, Index, Index, int, int>;

Dtype real_dtype(const std::string& name, bool or_complex = false);
PointReduction to_reduction(const ReductionTuple& t);

}  // namespace tilewave
