// Proves a set of schedules without running them: one process, no MPI.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "tilewave/schedule.hpp"

namespace tilewave {

/// The first thing wrong with a set of schedules.
struct Violation {
    int rank = 0, lane = 0;
    std::size_t step = 0;
    std::string why;
};
std::string to_string(const Violation& violation);

/// Plays the schedules of all ranks and proves, whatever the timing:
/// each send meets one receive of equal tag, size and region, or equal parts; no cyclic wait (every send counted
/// as synchronous); nothing read before what it needs is there, nothing changed while it is read
/// or in flight, no buffer reused too early (by happens-before); every request waited for once;
/// every point of the space computed, with the values plain loops would read, once; by several ranks, each once, where
/// all it gives are time buffers; and what a rank owns there at the end; every Result in its place at the end: values
/// of the ranks it names, combined in that order. Empty when all holds. Costs O(steps x cells), cells being the boxes'
/// compressed coordinates.
/// @pre schedules[r].rank == r and all have equal ranks and arrays (else that is the violation)
std::optional<Violation> check(std::span<const Schedule> schedules);

}  // namespace tilewave
