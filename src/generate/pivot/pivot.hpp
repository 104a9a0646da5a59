// Nests with a pivot: loops k, i, j whose step k reads row k and column k of what it writes.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "problem/bounded_loops.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// What a problem with a pivot is to its generator: loops k, i, j, and the matrices that are written at [i, j].
struct PivotProblem : BoundedLoops {
    struct Matrix {
        std::int32_t array = 0;  ///< of the problem
        std::int64_t item_bytes = 0;
        bool pivots = false;  ///< read at [k, j], [i, k] or [k, k], too
    };
    std::array<bool, 3> down{};          ///< loops that run downwards
    std::int64_t rows = 0, columns = 0;  ///< of all matrices
    std::vector<Matrix> matrices;

    explicit PivotProblem(const SweepProblem& problem);
    /// Whether a step may change its own row k: else the row's values of before and after the step are the same.
    bool changes_row() const;
};

/// Steps [lo, hi), whose rows one rank has.
struct PivotBlock {
    std::int64_t lo = 0, hi = 0;
    int owner = 0;
    std::int64_t steps() const { return hi - lo; }
};

/// The tasks of a schedule, as TaskWork::operation numbers them.
enum PivotTask : std::int32_t { pivot_panel, pivot_update };

/// The steps in their order, in blocks. Ranks have even blocks of rows.
std::vector<PivotBlock> pivot_blocks(const PivotProblem& problem, const Plan& plan);

/// One rank's schedule; 0: as many ranks as plan.grid has. For each block of steps the owner of its rows carries them
/// through these steps (the panel) and keeps each row k as it is before and after step k. The kept rows travel to all
/// ranks, down a tree. Then the other rows do all steps of the block from the kept rows alone, without another message.
/// The owner of the next panel updates its rows first and makes that panel, which travels while the others compute
/// (look-ahead).
///
/// Arrays: those of the problem; then for each matrix with pivots its kept rows: [block, row, column], first those
/// before their steps, then, where steps change them, those after. `coord` of a task: (block, first row).
/// @pre plan.validate(problem, ranks) passes, plan.generator is pivot
Schedule pivot_schedule(const SweepProblem& problem, const Plan& plan, int rank, int ranks = 0);

/// Columns of kept rows: their bytes are an odd number of cache lines, so that rows do not meet in a cache's set.
std::int64_t kept_columns(const PivotProblem& problem, std::int64_t item_bytes);

}  // namespace tilewave
