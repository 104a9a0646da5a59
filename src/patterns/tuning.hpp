// Tuning constants of communication patterns, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

/// Idle transfers that one context keeps for later calls, and their bytes, at most.
inline constexpr std::size_t most_idle = 16;
inline constexpr std::int64_t most_idle_bytes = 16 << 20;

// --- sends.cpp: buffered sends

/// Bytes of a piece, at least. Two ranks, 64 KB to 8 MB: 128 to 512 KB were about equal, 64 KB and 1 MB slower.
inline constexpr std::int64_t least_piece_bytes = 256 << 10;
/// Pieces of a message, and bytes of a piece, at most. With more pieces the receiver's answers fill the sender's queue:
/// the rest then waits for calls that a receiver which has everything may not make.
inline constexpr std::int64_t most_pieces = 32, most_piece_bytes = 2 << 20;
/// Pieces that a receiver of strided rows stages.
inline constexpr std::size_t staged_pieces = 4;

}  // namespace tilewave::tuning
