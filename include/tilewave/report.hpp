// The report of a run.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewave/engine/predict.hpp"
#include "tilewave/plan.hpp"
#include "tilewave/reduction.hpp"

namespace tilewave {

/// The report of a run. Equal on all ranks but for the timeline, which rank 0 has.
struct Report {
    Plan plan;
    int ranks = 1, threads = 1;     ///< that the plan has work for
    std::int64_t points = 0;        ///< computed over all ranks
    std::int64_t waves = 0;         ///< of tiles: steps of the linear schedule, not time steps of a problem
    std::int64_t buffer_bytes = 0;  ///< staging memory of this rank, and its rolling windows
    double time_s = 0;              ///< slowest rank: from the first step of the schedule to the last
    double moving_s = 0;       ///< slowest rank: bringing arrays into the plan's layout and order, and NumPy's back
    double call_s = 0;         ///< slowest rank: the whole call, to the end of its part of the run
    double overlap_ratio = 0;  ///< NaN without messages
    bool interrupted = false;
    std::vector<Reduced> reduced;  ///< by reduction of the kernel, of all ranks' points
    Parts parts;                   ///< rank 0: where the lanes' time went, on average; 0 where nothing was recorded
    std::vector<LaneSplit> lanes;  ///< rank 0: the same of each lane
    /// Rank 0: all ranks' events; empty elsewhere. Of a run in blocks of time steps, those of its first and last
    /// blocks. Made at first use, which costs as much as making the ranks' schedules.
    const Timeline& timeline() const;
    std::function<Timeline()> make_timeline = {};

    double points_per_s() const { return time_s > 0 ? static_cast<double>(points) / time_s : 0; }
    std::string to_string() const;

private:
    mutable std::optional<Timeline> timeline_;
};

}  // namespace tilewave
