// A copy of an array in another memory order, for the time of a run.
#pragma once
#include <memory>

#include "tilewave/context.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/engine/problem.hpp"

namespace tilewave {

/// Replaces a whole array of one rank whose memory order the plan cannot use. Elements are copied in before the run,
/// and back after it where the run writes the array.
class ConvertedArray {
public:
    /// `layout`: of one rank; its halo beyond the ends of periodic dimensions gets copies of the elements. `order`:
    /// where elements lie in the run's memory, in items.
    ConvertedArray(Context& context, int array, const Binding& whole, const NestArray& n, const Layout& layout,
                   const MemoryOrder& order, int time_buffers);

    void copy_in(Context& context) const;
    /// Nothing, where `problem` does not write the array.
    void copy_back(Context& context, const SweepProblem& problem) const;
    /// Seconds of copy_in() and copy_back(), estimated by copying part of the array. The array is not changed.
    double copy_s(Context& context, const SweepProblem& problem);

    /// Where the first element of the halo is; of the array, without one.
    Binding binding() const { return {at(stored_.lo), binding_.stride_bytes}; }
    std::byte* memory() const { return memory_.get(); }

private:
    std::byte* at(const Index& element) const;
    void wrap() const;

    int array_;
    std::int64_t item_bytes_;
    Index extents_;
    Box stored_;               // with the halo
    Binding whole_, binding_;  // of element 0
    std::shared_ptr<std::byte[]> memory_;
};

}  // namespace tilewave
