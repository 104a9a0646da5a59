// The buffers of memory in which an array keeps time buffers.
#pragma once
#include "execute/executor.hpp"
#include "tilewave/engine/problem.hpp"
#include "tilewave/engine/task.hpp"

namespace tilewave {

/// Outside of a run buffer k holds the time step k before the current one. In a run of n steps each time step keeps one
/// buffer, chosen so that the last one ends up in the first buffer: views of it stay right.
struct TimeBuffers {
    std::byte* memory;
    std::int64_t bytes;  ///< of one
    int count;
    /// In a run: the buffer of the time step so many steps before the last one.
    std::byte* of(std::int64_t before_last) const { return memory + floor_mod(before_last, count) * bytes; }
};

/// Of arrays that are turned in a schedule: buffers, and bytes of an item, at most.
inline constexpr int most_time_buffers = 16;
inline constexpr std::int64_t most_item_bytes = 16;

/// Moves the time_buffers from where they are outside of a run to where a run of `steps` steps has them, and copies the
/// current one to where the first step's values will be: what no point writes stays.
/// @pre buffers.count > 1, steps > 0
void turn(const TimeBuffers& buffers, std::int64_t steps);

/// Elements outside the space take their current value in those buffers of earlier times that later steps
/// will have: for array `a`, whose element at `held.lo` is where `own` says in the first buffer. Before turn().
/// @pre points read earlier times at their own place only, or elements outside have had their current value
/// before
void keep_outside(const SweepProblem& problem, int a, const TimeBuffers& buffers, const Binding& own, const Box& held,
                  std::int64_t steps);

/// The operation that does both in a schedule, for turned_arrays(problem) (src/generate/chain/chain.hpp): on the box of
/// buffers and elements that each region of a call is.
TaskFunction turn_in_schedule(const SweepProblem& problem, std::int64_t steps);

}  // namespace tilewave
