// Nests whose points of one time step are independent of each other, and the deep halos of ranks that compute them.
#pragma once
#include <string>
#include <vector>

#include "tilewave/plan.hpp"

namespace tilewave {

/// What a point reads of values that the nest writes: offset[0] < 0 is the earlier time step.
struct StencilRead {
    int array = 0;
    Index offset;
};

/// A nest as the stencil generator sees it. Coordinates are the loop indices.
struct Stencil {
    bool timed = true;  ///< loop 0 is time; without, all points are of one step
    std::vector<StencilRead> reads;
    Index lo, hi;              ///< how far reads go beyond a point, of all time steps
    Index step_lo, step_hi;    ///< the same for one time step: a read of d steps ago counts a d-th
    std::int64_t deepest = 1;  ///< time steps that reads go back, at most

    /// The first loop index that is space.
    int first() const { return timed ? 1 : 0; }
};

/// Why the stencil generator cannot take the nest; empty where it can.
std::string why_no_stencil(const SweepProblem& problem);

/// @pre why_no_stencil(problem) is empty
Stencil stencil_of(const SweepProblem& problem);

/// What a rank computes beyond its block so that ranks exchange halos once in `steps` time steps: nothing in the last
/// of these, most in the first. The last steps of a run are whole, the first ones may be fewer.
struct StencilHalo {
    Index lo, hi;            ///< points of halo for each step that follows before the next exchange
    std::int64_t steps = 1;  ///< time steps for one exchange
    std::int64_t end = 0;    ///< the time at which the run ends
    std::int64_t begin = 0;

    /// Steps that follow the one of time `t` before the next exchange.
    std::int64_t left(std::int64_t t) const { return steps > 1 ? floor_mod(end - 1 - t, steps) : 0; }
    std::int64_t most_left() const { return std::max<std::int64_t>(std::min(steps, end - begin) - 1, 0); }
    Index most_lo() const { return times(lo, most_left()); }
    Index most_hi() const { return times(hi, most_left()); }
    static Index times(Index widths, std::int64_t n) {
        for (auto& w : widths.v) w *= n;
        return widths;
    }
};

/// @pre plan.generator is stencil, which takes the problem
StencilHalo stencil_halo(const SweepProblem& problem, const Plan& plan);

/// @throws ConfigError for choices of a plan that the stencil generator has no use for
void check_stencil_plan(const SweepProblem& problem, const Plan& plan);

}  // namespace tilewave
