// Tuning constants of halo updates, with their units and where they come from.
#pragma once
#include <cstdint>

namespace tilewave::tuning {

/// Bytes of a message of packed pieces, at most: what is packed is then still in a core's cache when it leaves, and the
/// other rank unpacks it while the next one is packed.
inline constexpr std::int64_t halo_piece_bytes = 32 << 10;

}  // namespace tilewave::tuning
