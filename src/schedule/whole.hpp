// Whether a schedule is whole: the one place where plain data from anywhere, a file or a program, is looked through
// before code that indexes by it.
#pragma once
#include <optional>
#include <string>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// What is wrong with the data of a schedule.
struct Damage {
    std::string entry;     ///< where, as in a file: "messages[3].buffer"
    std::string why;       ///< what stands there and what is allowed, as a sentence
    int lane = 0;          ///< of an entry of a lane
    std::size_t step = 0;  ///< of an entry of a lane
};

/// The first thing in the data that the checker, the predictor or the executor could not work with: a number that names
/// nothing, a box or a list of another length than the others, numbers whose sums or products overflow. It says nothing
/// of what the steps bring about: that is check(). Costs O(entries).
std::optional<Damage> damage(const Schedule& schedule);

}  // namespace tilewave
