// Which elements of memory a step reads and writes.
#pragma once
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// A box of elements of one memory, in the memory's coordinates (View).
struct Touch {
    std::int32_t memory = 0;  ///< equal where arrays share memory; below 0: not shared
    Box box;
    bool writes = false;
};

/// What a step touches in arrays; buffers do not count. The box of a nest's tile may hold more than it touches.
std::vector<Touch> touches(const Schedule& schedule, const Step& step);

/// Add a touch to hulls: one box for each memory and kind of touch.
void extend(std::vector<Touch>& hulls, const Touch& more);

/// Whether it touches an element that one of `all` touches, and either writes it.
bool conflict(const std::vector<Touch>& all, const Touch& touch);

}  // namespace tilewave
