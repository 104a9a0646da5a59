// A kernel that leaves points out, by strides and bounds that the problem of a nest does not know, and numbers them as
// the loops were given.
#pragma once
#include "tilewave/engine/kernel.hpp"
#include "tilewave/nest.hpp"

namespace tilewave {

/// Calls a kernel for the points of rows that LoopPoints keeps, with their indices.
class SomePoints {
public:
    /// `all` computes every point; what it refers to must live on.
    SomePoints(const Kernel& all, const NestProblem& nest);
    /// It refers to this.
    Kernel kernel() const;
    SomePoints(const SomePoints&) = delete;
    SomePoints& operator=(const SomePoints&) = delete;

private:
    // Points begin, begin + period, ... of a row.
    struct Part {
        std::int64_t begin = 0, period = 1, count = 0;
    };
    Part part(std::int64_t n, const std::int64_t* index, const std::int64_t* direction) const;
    std::int64_t compute(char* const* ptr, const std::int64_t* step, std::int64_t n, const std::int64_t* index,
                         const std::int64_t* direction) const;
    bool counts() const { return !all_.reductions.empty() && (points_.left_out || !points_.bounds.empty()); }

    Kernel all_;
    LoopPoints points_;
    int dims_;
    std::size_t places_;
};

}  // namespace tilewave
