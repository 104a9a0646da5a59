// What computes: a function for a row of points, and where arrays lie in memory.
#pragma once
#include <vector>

#include "tilewave/index.hpp"
#include "tilewave/reduction.hpp"

namespace tilewave {

/// Computes one row of n points. ptr[p] is place p of the schedule at the first point, step[p] the
/// bytes from there to the next point's; index is the loop index of the first point and direction
/// what it changes by from point to point. In order, unless the rows are known to be independent.
/// Returns 0, or q * error_sites + site (site >= 1) when the body raised at point q, the points before it
/// being stored. Must not throw.
using RowFunction = std::int64_t (*)(char* const* ptr, const std::int64_t* step, std::int64_t n,
                                     const std::int64_t* index, const std::int64_t* direction, const void* env);

/// One row of a call of several: row `number`, its points from `begin` on.
struct Span {
    std::int64_t number = 0, begin = 0, points = 0;
};

/// Computes `count` rows in turn, each as a RowFunction does. ptr and index are point 0 of row number 0;
/// next[p] bytes and `turn` lead from a row to the next number. Returns 0, or what the row function
/// returned, with the place of the row among the spans in the bits from 32 on.
using RowsFunction = std::int64_t (*)(char* const* ptr, const std::int64_t* step, std::int64_t count, const Span* spans,
                                      const std::int64_t* next, const std::int64_t* index,
                                      const std::int64_t* direction, const std::int64_t* turn, const void* env);

struct Kernel {
    RowFunction row = nullptr;
    const void* env = nullptr;
    bool uses_index = true;                  ///< else what it is given as index may be any
    std::vector<char*> tables;               ///< follow the places in ptr, the same for every row
    std::vector<PointReduction> reductions;  ///< of the values at places that it writes
    RowsFunction rows = nullptr;             ///< used in place of `row` where it is given
    /// So many of its reductions' largest or smallest values the kernel finds itself: it stores the row's, an element
    /// each, where the pointers after the tables' say (PointReduction::best).
    int bests() const {
        int n = 0;
        for (const PointReduction& r : reductions) n = r.best >= n ? r.best + 1 : n;
        return n;
    }
};

/// Where a rank's part of an array lies: the address of storage.lo and bytes between neighbours
/// along each dimension, as Array::stride says where the array has messages. Of an array with time
/// time_buffers, stride_bytes[0] lies between time buffers: storage.lo is in buffer `first_time_buffer`, each later
/// time in the buffer before.
struct Binding {
    std::byte* data = nullptr;
    Index stride_bytes;
    int first_time_buffer = 0;
};

/// The first point at which the kernel raised on this rank.
struct Failure {
    std::int64_t site = 0;
    Index point;
};

}  // namespace tilewave
