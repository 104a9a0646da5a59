// One layout of the fields that the nests of a chain share.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tilewave/engine/problem.hpp"

namespace tilewave {

/// By array: the least halo before and behind a block, in the array's own dimensions.
using LeastHalos = std::vector<std::pair<Index, Index>>;

/// By nest: the halos with which arrays of one memory keep as much as any of them wants, where `grids` cut the nests.
/// A wider halo of one array may widen that of another of its nest: so until nothing changes. `memories`: by nest and
/// array a number, equal for arrays that are one field.
/// @pre a grid and the memories for each problem, and no halos in the problems (not checked)
std::vector<LeastHalos> common_halos(std::vector<SweepProblem> problems, std::span<const Index> grids,
                                     const std::vector<std::vector<std::int32_t>>& memories);

/// Gives the arrays of a problem these halos at least.
void widen(SweepProblem& problem, const LeastHalos& halos);

}  // namespace tilewave
