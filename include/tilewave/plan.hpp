// Every choice that turns a nest into schedules, as one value; and the rules that pick them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tilewave/grouping.hpp"
#include "tilewave/layout.hpp"
#include "tilewave/linear_schedule.hpp"
#include "tilewave/schedule.hpp"

namespace tilewave {

/// The costs a plan is made from, in seconds. The defaults serve until they are measured.
struct Machine {
    double latency_s = 5e-6;          ///< one small message, one way
    double byte_s = 1e-10;            ///< one more byte of a large message
    double chunk_s = 5e-6;      ///< what a message in a stream costs beyond its bytes
    double hand_over_s = 1e-6;        ///< from one lane's signal to the end of another's await
    double point_s = 2e-9;            ///< one point of the kernel
};

/// One array of a nest. A replicated array is read only and whole on every rank.
struct NestArray {
    std::int64_t item_bytes = 4;
    bool replicated = false;
};

/// What a sweep computes: every point of `space` once, reading `reads`, writing arrays[0].
struct SweepProblem {
    Index shape;                    ///< extents of all arrays
    Box space;                      ///< points to compute, inside the arrays
    std::vector<NestArray> arrays;  ///< arrays[0] is written
    std::vector<Access> reads;

    /// Flow dependences: -offset for each read of arrays[0] at a non-zero offset.
    std::vector<Index> dependences() const;
    /// The distribution of array `a` over `grid`, with the ghosts its reads need.
    Layout layout(int a, const Index& grid) const;
    /// @pre shape 1-D to 4-D and space inside the arrays (ConfigError)
    /// @pre at most max_reads reads (ConfigError)
    /// @pre arrays[0] is not replicated; every read names an array, stays inside it (ConfigError)
    /// @pre no flow dependence has a negative component (ConfigError)
    void validate() const;
};

/// How a sweep is cut and ordered. Plain data; every field can be set by the user.
struct Plan {
    Index grid;             ///< ranks along each dimension
    int mapping_dim = 0;    ///< tiles along it stay on one CPU
    Index tile;             ///< extents of a tile
    Index factors;          ///< lanes of a rank along each dimension (m of athanasaki2002)
    GroupingKind grouping = GroupingKind::hyperplane;
    ScheduleKind schedule = ScheduleKind::overlapping;
    int lookahead = 1;      ///< tiles that receives are posted ahead (overlapping)
    int slices = 1;         ///< parts of a tile that lanes pipeline (vertical)
    std::int64_t chunk_bytes = 256 << 10;  ///< most bytes of a packed message

    int lanes() const;
    /// @pre grid multiplies to `ranks`; factors >= 1, 1 at mapping_dim (ConfigError)
    /// @pre factors multiply to at most max_lanes (ConfigError)
    /// @pre 1 <= tile <= largest block, componentwise (ConfigError)
    /// @pre lookahead, slices, chunk_bytes >= 1 (ConfigError)
    void validate(const SweepProblem& problem, int ranks) const;
    std::string to_string() const;
};

/// The choices a user fixes; the others are picked.
struct PlanRequest {
    std::optional<Index> grid, tile, factors;
    std::optional<int> mapping_dim, lookahead, slices;
    std::optional<GroupingKind> grouping;
    std::optional<ScheduleKind> schedule;
    std::optional<std::int64_t> chunk_bytes;
    int threads = 1;
};

/// The plan for `ranks` ranks: mapping along the longest dimension, the grid of least surface
/// over the others, one tile column a lane, the tile height that minimises P(z)(t + V z), and
/// for vertical grouping the slice count sqrt(alpha / t_sync_in) (athanasaki2002).
/// Pure: equal arguments give equal plans on every rank.
Plan make_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine);

}  // namespace tilewave
