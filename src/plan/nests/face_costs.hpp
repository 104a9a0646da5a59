// What the messages of a process grid cost, by direction.
#pragma once
#include <cstdint>
#include <vector>

#include "tilewave/plan.hpp"

namespace tilewave {

/// What a rank in the middle of the process grid sends to the next rank in one direction, over a whole run.
struct FaceCost {
    Index direction;             ///< steps in the process grid from the sender to the receiver
    std::int64_t messages = 0;   ///< aggregated messages count once
    std::int64_t bytes = 0;      ///< of all messages
    std::int64_t run_bytes = 0;  ///< contiguous bytes in the array; of several messages those of the longest
    bool packed = false;         ///< goes through a buffer; else straight from the array
    double copy_s = 0;           ///< seconds to pack and to unpack all
    double transfer_s = 0;       ///< seconds of all messages one after the other, posting included
};

/// The faces of `plan`, in the order of their directions; empty for one rank. Makes one rank's schedule. Pure.
/// @pre plan.validate(problem, product of plan.grid) passes (ConfigError)
std::vector<FaceCost> face_costs(const SweepProblem& problem, const Plan& plan, const Machine& machine);

}  // namespace tilewave
