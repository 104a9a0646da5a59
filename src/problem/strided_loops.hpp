// Loops with strides as loops over their points alone.
#pragma once
#include "problem/make_problem.hpp"

namespace tilewave {

struct StridedNest {
    LoopNest nest;
    std::vector<int> arrays;  ///< by array: the one of the given nest that it is, or is part of
};

/// A nest over every strides[k]-th index of loop k from first[k] on, with loops that count these points. What points
/// access are parts of the arrays, every so many elements: points that are apart by less than a stride share none.
/// @pre strides >= 1; no array is in time, and no place is read along a whole axis; first has a component for each loop
StridedNest strided(const LoopNest& nest, const Index& first, const Index& strides);

}  // namespace tilewave
