// Tuning constants of transports, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

/// Seconds between looks for alarms while a collective waits.
inline constexpr double meanwhile_s = 0.05;
/// Seconds without a message after which each rank that is waited for is asked whether it has ended; after as long
/// again a wait for an ended rank fails.
inline constexpr double look_for_ended_s = 1;

}  // namespace tilewave::tuning
