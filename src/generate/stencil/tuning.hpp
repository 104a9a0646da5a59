// Tuning constants of the stencil generator, with their units and where they come from.
#pragma once
#include <cstdint>

namespace tilewave::tuning {

/// Bytes of a message, at most; larger ones go in pieces: MPI counts are 32-bit in older libraries.
inline constexpr std::int64_t most_message_bytes = std::int64_t{1} << 30;
/// Bytes of a piece that is one run of memory, from which it goes by itself, unpacked: packing and unpacking so many
/// takes as long as another message, about 10 us each.
inline constexpr std::int64_t least_in_place_bytes = 64 << 10;

}  // namespace tilewave::tuning
