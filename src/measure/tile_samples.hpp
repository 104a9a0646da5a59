// How fast a kernel is: tiles of a schedule, computed on memory like the arrays' by all lanes at once, without
// messages.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "execute/window/window_memory.hpp"
#include "predict/rate.hpp"
#include "tilewave/context.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// Memory that looks like a run's arrays and is not them.
struct SampleMemory {
    std::vector<Binding> bindings;  ///< by array, in z coordinates
    std::vector<std::shared_ptr<std::byte[]>> memory;
    std::vector<std::vector<std::byte>> values;  ///< by array: an element of it
    std::vector<bool> replaced;                  ///< by array: its binding is not the array's memory
    std::vector<bool> filled;                    ///< by array: all of it has that value
    std::vector<WindowValues> initial;           ///< by rolling window

    /// What points of a tile read and write becomes the arrays' usual values, where that was not done for the whole
    /// array.
    void fill_around(const Schedule& schedule, const Box& tile) const;
};

/// Every element of `part` of an array becomes `value`; `first` is where the array's memory begins.
void fill(const Binding& array, const Index& first, const Box& part, std::int64_t item_bytes, const std::byte* value);

/// Bytes of the elements that a rank has of the arrays that are not replicated, without what lies between them.
std::int64_t element_bytes(const SweepProblem& problem, const Plan& plan);

/// The problem and the plan, or smaller ones where arrays are large or rows short: what tiles take is about the same.
std::pair<SweepProblem, Plan> sample_case(const SweepProblem& problem, const Plan& plan, int rank);

/// Times of a kernel on tiles, for fit_rate, in about `budget_s` seconds. Where there are several lanes, a fourth
/// sample is of one lane while the others rest. `run_bytes`: of all arrays of a run. Local; ranks that call it at the
/// same time see what they cost each other. Empty where the kernel raised.
/// @pre a schedule with tiles
std::vector<RateSample> sample_tiles(const Schedule& schedule, const SampleMemory& memory, const Kernel& kernel,
                                     Context& context, double budget_s, std::int64_t run_bytes);
/// The same of a nest with a rolling window, whose schedule by the plan is `schedule`.
std::vector<RateSample> sample_window(const SweepProblem& problem, const Plan& plan, const Schedule& schedule,
                                      const SampleMemory& memory, const Kernel& kernel, Context& context,
                                      double budget_s);

}  // namespace tilewave
