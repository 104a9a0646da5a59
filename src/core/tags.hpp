// The tags of messages, by what they carry. Tags separate kinds of messages; within a kind, messages between two
// ranks are posted in the same order on both.
#pragma once

namespace tilewave::tags {

inline constexpr int collective = 1;      ///< small collectives of the transport itself
inline constexpr int clocks = 2;          ///< experiments of a new context
inline constexpr int alarm = 4;           ///< a rank stops
inline constexpr int experiment = 5;      ///< experiments of `measure`, and the next one
inline constexpr int initial_halo = 64;   ///< values from before the run; see initial_halo_tag
inline constexpr int return_home = 4352;  ///< values that go back to their owner
inline constexpr int first_face = 8192;   ///< faces of tiles, and all tags after it

/// The tag of an initial halo by its number: there are 4096, used in turn.
inline constexpr int initial_halo_tag(int number) {
    return initial_halo + number % 4096;
}

}  // namespace tilewave::tags
