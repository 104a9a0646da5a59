// The two choices that make the four schemes of athanasaki2002.
#pragma once

namespace tilewave {

/// hyperplane: the tiles of a group have equal coordinate sums, so none depends on another.
/// vertical: they are neighbours with equal mapping coordinate, and depend on each other.
enum class GroupingKind { hyperplane, vertical };

/// blocking: a step receives, computes, then sends. overlapping: a step computes while it
/// receives what the next one needs and sends what the last one made, so that a value takes
/// two steps from node to node.
enum class ScheduleKind { blocking, overlapping };

}  // namespace tilewave
