// Reductions as Python gives them.
#pragma once
#include <tuple>

#include "casters.hpp"
#include "tilewave/reduction.hpp"

namespace tilewave {

// Operation, dtype, place, the element's subscripts: loop indices, and what is added to each; the row value of which
// points count; whether positions are wanted; numbers among the kernel's bests: its own, and that of which points
// count.
using ReductionTuple = std::tuple<std::string, std::string, int, Index, Index, int, bool, int, int>;

Dtype real_dtype(const std::string& name, bool or_complex = false);
PointReduction to_reduction(const ReductionTuple& t);

}  // namespace tilewave
