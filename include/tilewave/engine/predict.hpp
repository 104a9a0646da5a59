// Plays the schedules of all ranks against a machine's numbers: what the executor would take, step by step.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "tilewave/engine/schedule.hpp"
#include "tilewave/engine/timeline.hpp"
#include "tilewave/machine.hpp"

namespace tilewave {

/// Times of a kernel on one lane while all lanes of the host compute. Seconds.
struct KernelRate {
    double point_s = 2e-9;  ///< a point of a row
    double row_s = 2e-8;    ///< a row, in addition to its points
    double tile_s = 2e-7;   ///< a tile, in addition to its rows
    /// Standard deviation of a tile's time over its mean. Above 0, tiles take different times of that mean and spread,
    /// by rank, lane and step, the same in every prediction: lanes that wait for each other pay for the slowest.
    double spread = 0;
    /// Ratio of these times where only one lane of each rank computes; 0: not measured. And the lanes of a rank that
    /// the other numbers were measured with.
    double one_lane_factor = 0;
    int lanes = 0;
};

/// What the operation of a task takes on one lane, in seconds.
struct OperationRate {
    double call_s = 1e-6;    ///< a call
    double amount_s = 1e-9;  ///< a unit of TaskWork::amount
};

/// The rates of what a schedule's works name, by number. One kernel alone stands for all kernels.
struct Rates {
    std::vector<KernelRate> kernels;
    std::vector<OperationRate> operations = {};
    Rates(const KernelRate& kernel = {}) : kernels{kernel} {}
    Rates(std::vector<KernelRate> kernels, std::vector<OperationRate> operations)
        : kernels(std::move(kernels)), operations(std::move(operations)) {}
};

struct PredictOptions {
    double poll_period_s = 50e-6;  ///< between polls inside compute; 0: never inside compute
    bool record = true;            ///< keep every step's event (else the timeline has none)
    /// The most threads of a rank, which more lanes share as in the executor. 0: a lane a thread.
    int threads = 0;
    /// So often a block runs. Repetitions are simulated until each takes as long as those before; the others take as
    /// long.
    std::int64_t times = 1;
};

struct Prediction {
    double time_s = 0;
    Parts parts;
    Timeline timeline;
};

/// The predicted time of `schedules` (one a rank, in order) by event simulation: posts, transfers that share
/// their hosts' links, polls, packing, waits, hand-overs, tiles at the rates of their kernels and operations. Pure;
/// time linear in the number of steps. With many repetitions of a block the parts are scaled, and the timeline has the
/// simulated ones.
/// @pre schedules of ranks 0 to n - 1 in order (ConfigError)
/// @pre threads >= 0, times >= 1 (ConfigError)
/// @pre the schedules end: no cyclic wait (ConfigError)
/// @pre a rate for every kernel and operation that has tiles (ConfigError)
/// @pre rates, times and hidden parts make sense (ConfigError)
Prediction predict(std::span<const Schedule> schedules, const Machine& machine, const Rates& rates,
                   const PredictOptions& options = {});

/// Rows of the kernel and points of each tile of a schedule: exact, without computing them.
/// @pre all works are nests (ConfigError)
std::vector<std::pair<std::int64_t, std::int64_t>> tile_work(const Schedule& schedule);

}  // namespace tilewave
