// Nests whose points read along a whole axis what earlier time steps have written.
#pragma once
#include <cstdint>
#include <vector>

#include "tilewave/plan.hpp"

namespace tilewave {

/// Time steps, each of which computes what others read later: planes. One loop besides time, the cut, is divided among
/// ranks and lanes.
struct GatherProblem {
    struct Matrix {
        std::int32_t array = 0;       ///< of the problem
        std::int64_t item_bytes = 0;  ///< of its elements with one value of the cut loop
        int depth = 0;                ///< so many steps back it is read; 0: only at the point itself
        bool travels = false;         ///< read at other values of the cut loop: each rank gets its planes whole
    };
    std::int64_t steps = 0;
    std::int64_t extent = 0;  ///< elements along the cut loop, of all matrices
    std::vector<Matrix> matrices;
    int time = 0, cut = 1;  ///< loops
    int arrays = 0;         ///< of the problem

    GatherProblem() = default;
    GatherProblem(const SweepProblem& problem, const Plan& plan);
    /// Planes that are kept: those that a step reads, and the one that it makes.
    int planes() const;
    bool travels() const;
};

/// How a step is divided.
struct GatherPlan {
    GatherPlan() = default;
    GatherPlan(const GatherProblem& problem, const Plan& plan) : chunk(plan.tile[problem.cut]), lanes(plan.lanes()) {}
    std::int64_t chunk = 1 << 20;  ///< elements along the cut loop that travel at once
    int lanes = 1;
    int radix = 8;  ///< up to so many ranks send to each other; more in rounds, to radix - 1 ranks in each
};

/// Elements [lo, hi) along the cut loop.
struct GatherRange {
    std::int64_t lo = 0, hi = 0;
    std::int64_t size() const { return hi - lo; }
};

/// The tasks of a schedule, as TaskWork::operation numbers them: a part of a plane from before the first step, or of
/// what a step computes.
enum GatherTask : std::int32_t { gather_load, gather_step };

/// A rank's elements, even blocks; and those that a lane computes at once in each step, chunk by chunk.
GatherRange gather_part(const GatherProblem& problem, int rank, int ranks);
std::vector<GatherRange> gather_ranges(const GatherProblem& problem, const Plan& plan, int rank, int lane);
/// Repetitions of the schedule's block of steps; 1 where it has none.
std::int64_t gather_repetitions(const GatherProblem& problem);

/// One rank's schedule. In each step it computes its part chunk by chunk, and each chunk leaves as soon as it is there,
/// while the next is computed: an allgather, in which each rank has radix^k ranks' parts after round k (J. Bruck et
/// al., "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing Systems", IEEE TPDS 8, 1997).
/// Up to `radix` ranks that is one message to each.
///
/// Arrays: those of the problem, matrices by the cut loop; then for each one with a depth its planes: [plane, cut].
/// `coord` of a task: (step, first element), steps of the block counted within it. Steps beyond the first few are a
/// block that repeats.
/// @pre ranks >= 1, plan.chunk, plan.lanes >= 1, plan.radix >= 2
Schedule gather_steps(const GatherProblem& problem, const GatherPlan& plan, int rank, int ranks);
/// The same of a nest; 0: as many ranks as plan.grid has.
/// @pre plan.validate(problem, ranks) passes, plan.generator is gather
Schedule gathered_schedule(const SweepProblem& problem, const Plan& plan, int rank, int ranks = 0);

}  // namespace tilewave
