// An array in memory of a run's own: copied there before the run, and back after it where the run writes it.
#pragma once
#include <memory>

#include "tilewave/context.hpp"
#include "tilewave/kernel.hpp"
#include "tilewave/problem.hpp"

namespace tilewave {

/// Stands in for a whole array of one rank whose own memory order the plan cannot use.
class ConvertedArray {
public:
    /// `order`: where elements lie in the run's memory, in items. `box` begins at 0.
    ConvertedArray(Context& context, int array, const Binding& whole, const NestArray& n, const Box& box,
                   const MemoryOrder& order, int time_buffers);

    void copy_in(Context& context) const;
    /// Nothing, where `problem` does not write the array.
    void copy_back(Context& context, const SweepProblem& problem) const;
    /// Seconds of copy_in() and copy_back(), estimated by copying part of the array. The array is not changed.
    double copy_s(Context& context, const SweepProblem& problem);

    const Binding& binding() const { return binding_; }
    std::byte* memory() const { return memory_.get(); }

private:
    int array_;
    std::int64_t item_bytes_;
    Index extents_;
    Binding whole_, binding_;
    std::shared_ptr<std::byte[]> memory_;
};

}  // namespace tilewave
