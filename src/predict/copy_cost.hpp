// What packing a message costs, by how its region lies in memory.
#pragma once
#include <cstdint>

#include "tilewave/engine/schedule.hpp"
#include "tilewave/machine.hpp"

namespace tilewave {

/// Bytes of `region` that are contiguous in the memory of `array`.
std::int64_t contiguous_bytes(const Array& array, const Box& region);
/// Seconds to pack message `m` of `array`, or to unpack it.
double copy_s(const Array& array, const Message& m, const Machine& machine);

}  // namespace tilewave
