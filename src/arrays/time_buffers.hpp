// The memory of arrays with time buffers.
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

/// Moves the time buffers from their places outside of a run to those of a run of `steps` steps, and copies the current
/// one to where the first step's values will be, so that elements that no point writes keep their values.
/// @pre buffers.count > 1, steps > 0
void rotate_time_buffers(const TimeBuffers& buffers, std::int64_t steps);

/// Gives elements that no point of the space writes their current value in all buffers that later steps will use: of
/// array `a`, or of the field that it is part of. `first_buffer`: where element `held.lo` lies in the first buffer.
/// Before rotate_time_buffers().
/// @pre points read earlier times at their own index only, or elements outside had their current value before
void keep_unwritten(const SweepProblem& problem, int a, const TimeBuffers& buffers, const Binding& first_buffer,
                    const Box& held, std::int64_t steps);

/// The operations of a chain's schedule (src/generate/chain/chain.hpp): carry_operation, and turns by up to `most`
/// steps.
std::vector<TaskFunction> buffer_tasks(std::int32_t most);

}  // namespace tilewave
