// Proves a set of schedules without running them: one process, no MPI.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// The first thing wrong with a set of schedules.
struct Violation {
    int rank = 0, lane = 0;
    std::size_t step = 0;
    std::string why;
};
std::string to_string(const Violation& violation);

/// Plays the schedules of all ranks and proves, for every timing:
///
/// - each send meets one receive of equal tag, size and region (or equal pieces), and every request is waited for once;
/// - no cyclic wait, even where every send is synchronous;
/// - by happens-before: nothing is read before its value is there, nothing changes while it is read or in flight, no
///   buffer is reused too early;
/// - every point of the space is computed once, with the values that plain loops would read. Points of arrays with time
///   buffers may be computed by several ranks, by each once (redundant halo computation);
/// - at the end each rank holds the values that it owns, and every Result is in its place.
///
/// With a repeated block all this for any number of repetitions, by induction: it is checked once and twice.
///
/// Empty when all holds. Costs O(steps x cells); cells are the boxes' compressed coordinates.
/// @pre schedules[r].rank == r and all have equal ranks and arrays (else that is the violation)
std::optional<Violation> check(std::span<const Schedule> schedules);

/// What one rank's schedule shows without the others': that all numbers name something, that tasks and messages stay
/// within the storage of their arrays, that peers are ranks, and that each message that is posted is waited for, once.
/// It proves no order. Costs O(steps + works).
std::optional<Violation> check_rank(const Schedule& schedule);

}  // namespace tilewave
