// Tuning constants of halo updates, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

/// Bytes of a message of packed pieces, at most: what is packed is then still in a core's cache when it leaves, and the
/// other rank unpacks it while the next one is packed.
inline constexpr std::int64_t halo_piece_bytes = 32 << 10;
/// Messages to and from a neighbour that are posted before the first is waited for: where ranks share CPUs, each
/// wait for the other may take a time slice. With their buffers they fit in a core's second-level cache.
inline constexpr std::size_t halo_rounds_ahead = 4;

}  // namespace tilewave::tuning
