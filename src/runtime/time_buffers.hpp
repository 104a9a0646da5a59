// The buffers of memory in which an array keeps time buffers.
#pragma once
#include "execute/executor.hpp"
#include "tilewave/problem.hpp"

namespace tilewave {

/// Outside of a run buffer k holds the level k before the current one. In a run of n steps each level keeps one buffer,
/// chosen so that the last level ends up in the first one: views of it stay right.
struct TimeBuffers {
    std::byte* memory;
    std::int64_t bytes;  ///< of one
    int count;
    /// In a run: that of the level so many steps before the last one.
    std::byte* of(std::int64_t before_last) const { return memory + floor_mod(before_last, count) * bytes; }
};

/// Moves the time_buffers from where they are outside of a run to where a run of `steps` steps has them, and copies the
/// current one to where the first step's level will be: what no point writes stays.
/// @pre buffers.count > 1, steps > 0
void turn(const TimeBuffers& buffers, std::int64_t steps);

/// What is outside the space takes the current level's value in those buffers of earlier time_buffers that later ones
/// will have: for array `a`, whose element at `held.lo` is where `own` says in the first buffer. Before turn().
/// @pre points read earlier time_buffers at their own place only, or what is outside has had the current level's value
/// before
void keep_outside(const SweepProblem& problem, int a, const TimeBuffers& buffers, const Binding& own, const Box& held,
                  std::int64_t steps);

}  // namespace tilewave
