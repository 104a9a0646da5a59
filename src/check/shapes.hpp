// What the checker asks of schedules before it runs them.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "tilewave/engine/check.hpp"

namespace tilewave {

/// What is wrong where a step `does` something to elements of an array that this rank does not store.
std::optional<std::string> inside_storage(const Schedule& schedule, const std::string& does, int array, const Box& box);

/// The part of check_shapes() that one rank's schedule shows.
std::optional<Violation> check_rank_shapes(const Schedule& schedule);
/// What the executor takes on trust: equal arrays and space on all ranks, numbers that name
/// something, strides and sizes of memory.
std::optional<Violation> check_shapes(std::span<const Schedule> schedules);

}  // namespace tilewave
