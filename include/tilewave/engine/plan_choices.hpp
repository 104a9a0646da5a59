// The choices of a plan, each declared once. Plan, PlanRequest, their checks and texts, the bindings, and Python's
// tilewave.Plan with the names that plan= takes are all made from this list.
#pragma once
#include <array>
#include <cstdint>

#include "tilewave/engine/layout.hpp"
#include "tilewave/engine/scheme.hpp"

namespace tilewave {

/// How an array lies in a rank's memory. plain: row-major in the array's indices. skewed: the points of a kernel's
/// row are neighbours.
enum class StorageKind { plain, skewed };

/// What makes a plan's schedules. sweep: tiles in the order of dependences, also of points that depend on others of
/// their time step. stencil: every time step as a whole, its border first; only where points of a step are independent.
/// pivot: blocks of steps of a loop whose step k reads row k and column k, by rows that are kept; only of such a loop.
/// gather: each time step is computed by all ranks, and goes to all of them; only where it reads nothing of its own.
enum class GeneratorKind { sweep, stencil, pivot, gather };

/// What planning a call may spend beyond compiling. quick: a hundredth of a second, and nothing where a rate of the
/// body is known. automatic: the longer of a twentieth of a second, one run, and a tenth of all runs so far. thorough:
/// until tiles like those of the best plan are measured.
enum class Planning { quick, automatic, thorough };

/// What the values of an enumeration are called, in order.
template <class Kind>
inline constexpr std::array<const char*, 0> choice_names{};
template <>
inline constexpr std::array choice_names<GroupingKind>{"hyperplane", "vertical"};
template <>
inline constexpr std::array choice_names<ScheduleKind>{"blocking", "overlapping"};
template <>
inline constexpr std::array choice_names<StorageKind>{"plain", "skewed"};
template <>
inline constexpr std::array choice_names<GeneratorKind>{"sweep", "stencil", "pivot", "gather"};
template <>
inline constexpr std::array choice_names<Planning>{"quick", "auto", "thorough"};

/// No least value of a choice.
inline constexpr double unbounded = -1e300;

// clang-format off
/// X(type, name, default, least value, documentation). To add a choice, add a line, and read `plan.name` where it
/// decides.
#define TILEWAVE_PLAN_CHOICES(X) \
    X(Index, grid, Index(), unbounded, \
      "Ranks along each dimension. Ranks beyond the grid have nothing to do.") \
    X(int, mapping_dim, 0, unbounded, \
      "The mapping dimension: tiles along it stay on one CPU.") \
    X(Index, tile, Index(), unbounded, \
      "Points of a tile along each dimension.") \
    X(Index, factors, Index(), unbounded, \
      "Lanes of a rank along each dimension (m of athanasaki2002).") \
    X(Weights, weights, Weights(), unbounded, \
      "For each rank an integer: ranks have points in proportion to them. Empty: as many as others.") \
    X(GroupingKind, grouping, GroupingKind::hyperplane, unbounded, \
      "How tiles are grouped onto the CPUs of a rank (athanasaki2002).") \
    X(ScheduleKind, schedule, ScheduleKind::overlapping, unbounded, \
      "Whether a tile is computed while messages travel (athanasaki2002).") \
    X(int, lookahead, 1, 1, \
      "Tiles that receives are posted ahead, in an overlapping schedule.") \
    X(int, slices, 1, 1, \
      "Slices of a tile that lanes pipeline, in vertical grouping.") \
    X(std::int64_t, chunk_bytes, 256 << 10, 1, \
      "Most bytes of a packed message.") \
    X(Index, row, Index(), unbounded, \
      "From one point of a kernel's row to the next: a unit vector, or one with a 1 and a -1. Empty: along the last " \
      "dimension. Rows of independent points become vectors.") \
    X(StorageKind, storage, StorageKind::plain, unbounded, \
      "plain: arrays are row-major. skewed: the points of a row are neighbours in memory.") \
    X(Index, skew, Index(), unbounded, \
      "(k, l): tiles are cut along the sum of loops k and l instead of l. Empty: along the loops.") \
    X(int, temporal_block, 1, 1, \
      "Temporal blocking: time steps that a tile takes before its neighbours do, so that each step finds in the " \
      "caches what the step before has computed. Only where tiles are one point along time. Of the stencil " \
      "generator: time steps for one exchange of halos, which ranks compute redundantly meanwhile.") \
    X(GeneratorKind, generator, GeneratorKind::sweep, unbounded, \
      "sweep: tiles follow their dependences from rank to rank. stencil: the points of a time step are independent; " \
      "each rank computes its border, sends it, and computes the rest meanwhile. pivot: the rows and columns that steps " \
      "of the first loop read are kept for a block of steps, from which all other rows do these steps at once. gather: " \
      "ranks and lanes divide one loop in each time step, and what it computes goes to all ranks.") \
    X(int, aggregate, 1, 1, \
      "Tiles whose messages to a rank go as one aggregated message. Only on one lane, where ranks read nothing of " \
      "later ones.") \
    X(double, poll_period_s, 50e-6, 0, \
      "Seconds between polls of the transport inside a tile. 0: only lanes that wait poll.") \
    X(bool, helper, false, unbounded, \
      "One more thread of each rank moves messages while its lanes compute.") \
    X(bool, synchronous, false, unbounded, \
      "A send is complete only when its receive has begun. By rule true in blocking schedules.")
// clang-format on

}  // namespace tilewave
