// Tuning constants of contexts, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

/// Bytes that every rank must have when a call begins, for what it makes on its way: lists of messages, texts, numbers
/// of all ranks. Below 32 KB, so that it comes from where small memory comes from.
inline constexpr std::size_t memory_left_bytes = 24 << 10;
/// Looks of a blocking call at whether it is over before it waits as longer waits do: some 10 us.
inline constexpr int quick_turns = 200;

}  // namespace tilewave::tuning
