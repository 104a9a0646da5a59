// Contexts on which calls are only planned.
#pragma once
#include "tilewave/context.hpp"

namespace tilewave {

/// What a context has of it, as a component.
struct PlansOnly {
    bool wanted = false;
};

/// Whether runs of schedules and moves of arrays do nothing here, and take no time.
inline bool plans_only(Context& context) {
    return !context.transport().connected() && context.component<PlansOnly>().wanted;
}

}  // namespace tilewave
