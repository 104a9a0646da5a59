// Tuning constants of patterns, with their units and where they come from.
#pragma once
#include <cstdint>

#include "tilewave/machine.hpp"

namespace tilewave::tuning {

/// Chunks of a matrix, at most: so schedules stay short.
inline constexpr std::int64_t most_chunks = std::int64_t{1} << 22;
/// Bytes of a matrix that gains nothing by a pipeline; "direct" needs the fewest buffers.
inline constexpr std::int64_t small_bytes = 64 << 10;
/// Bytes of all pieces together that go directly from rank to rank, one message each. 6 hosts at 1 Gb/s: 64 KB 1.2 ms,
/// by ring 1.55; 256 KB 2.2 and 2.7; 512 KB 4.6 and 4.3.
inline constexpr std::int64_t largest_direct_pieces = 256 << 10;
/// Bytes of a chunk, at least, except for short_bytes; and at most, as MPI counts bytes in an int.
inline constexpr std::int64_t least_chunk = 16 << 10, most_chunk_bytes = std::int64_t{1} << 30;
/// Bytes of the largest chunk: through a staging buffer, and straight between the matrices.
inline constexpr std::int64_t largest_staged = 256 << 10, largest_direct = 16 << 20;
/// Over a network the receiver of a larger message is asked first, which costs a round trip. UCX over TCP on 8 hosts:
/// 32 KB were the best of 16 to 256. From network_chunks chunks on they grow, so that schedules stay short.
inline constexpr std::int64_t network_chunk = 32 << 10, network_chunks = 2048, crowded_network_chunk = 128 << 10,
                              largest_network = 256 << 10;
/// Seconds a byte from which a link counts as a network.
inline constexpr double network_byte_s = 1e-9;
/// Seconds that a wait takes for each rank which shares the core: the others first look for their own messages. 8 ranks
/// on 2 cores, 1 MB: 0.1 to 0.15 ms a wait, more than small chunks save in the caches.
inline constexpr double turn_of_one_s = 40e-6;
/// Bytes of the largest chunk where ranks share cores.
inline constexpr std::int64_t largest_shared = 1 << 20;
/// Short messages that the MPI library's buffers take, at least.
inline constexpr int buffered_short = 16;
/// CPU seconds a byte by TCP, sender and receiver together: 17 ms of two cores for the 7 MB of 1 MB's pieces on 8
/// hosts.
inline constexpr double tcp_byte_s = 2.4e-9;
/// Bytes of the staging buffers of one call. Direct exchanges stage a chunk of every rank at a time.
inline constexpr std::int64_t most_staged = 16 << 20;
/// How much longer least rounds take than their closed form: in lockstep each rank feels the others' delays. 6 and 8
/// hosts: 1.2 to 1.35; the ring takes its closed form.
inline constexpr double lockstep_factor = 1.3;
/// Bytes. Through the MPI library's buffers all bytes are copied twice, straight between two ranks' memory once. From
/// 32 KB a rank direct messages were faster on the whole, then in chunks of 64 to 256 KB: 64 KB broadcast 13 against
/// 25 us, reduced 32 against 50; 1 MB reduced 0.37 against 0.64 ms, 8 MB 2.5 against 5.9.
inline constexpr std::int64_t most_copied_twice = 16 << 10, least_copied_once = 64 << 10;
/// Bytes up to which short messages gain where data is packed meanwhile, as long as short rows fill them: 256 KB
/// broadcast 66 against 90 us, reduced 127 against 160; 512 KB 182 and 218, 308 and 304. With rows of 4 KB, 64 KB: 18
/// and 23, 60 and 51.
inline constexpr std::int64_t most_packed_meanwhile = 512 << 10, most_long_rows_meanwhile = 64 << 10,
                              longest_filling_row = short_bytes / 4;

/// Bytes of a chunk, at most: staged chunks stay in a core's cache; what goes straight from the matrix need not.
inline constexpr std::int64_t largest_staged_chunk = 256 << 10, largest_direct_chunk = 16 << 20;

}  // namespace tilewave::tuning
