// From one order in memory to another.
#pragma once
#include "tilewave/context.hpp"
#include "tilewave/index.hpp"

namespace tilewave {

/// copy_box, a large one in parts along its first dimension, one a thread of the context.
void copy_on_lanes(Context& context, std::byte* to, const Index& to_stride, const std::byte* from,
                   const Index& from_stride, const Index& extents, std::int64_t item_bytes);

}  // namespace tilewave
