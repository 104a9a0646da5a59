// What computes: a function for a row of points, and where arrays lie in memory.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "tilewave/index.hpp"
#include "tilewave/reduction.hpp"

namespace tilewave {

/// Computes a row of n points in order; in any order where points of a row are independent.
///
/// ptr[p]: place p of the schedule at the first point. step[p]: bytes to the next point. index: the loop index of the
/// first point. direction: its change from point to point. Must not throw. Returns 0, or q * error_sites + site (site
/// >= 1) where the body raised at point q; the points before q have been stored.
using RowFunction = std::int64_t (*)(char* const* ptr, const std::int64_t* step, std::int64_t n,
                                     const std::int64_t* index, const std::int64_t* direction, const void* env);

/// One row of a call with several rows: row `number`, its points from `begin` on.
struct Span {
    std::int64_t number = 0, begin = 0, points = 0;
};

/// Computes `count` rows one after another, each as a RowFunction does. ptr and index belong to point 0 of row number
/// 0. next[p] (bytes) and `next_index` (loop indices) lead from a row to the next number. Returns 0, or the error of a
/// RowFunction, with the position of its row among the spans in the bits from 32 on.
using RowsFunction = std::int64_t (*)(char* const* ptr, const std::int64_t* step, std::int64_t count, const Span* spans,
                                      const std::int64_t* next, const std::int64_t* index,
                                      const std::int64_t* direction, const std::int64_t* next_index, const void* env);

struct Kernel {
    RowFunction row = nullptr;
    const void* env = nullptr;
    bool uses_index = true;                  ///< false: any index may be given
    std::vector<char*> tables;               ///< come after places and values in ptr, the same for every row
    std::vector<PointReduction> reductions;  ///< of values that the kernel writes
    RowsFunction rows = nullptr;             ///< used instead of `row` where it is given
    /// Bytes of an item of each row value, 0 where the kernel only finds its best and stores nothing: a place of no
    /// array, where the kernel stores a value a point, to be reduced and forgotten. They come right after the places of
    /// the schedule in ptr and step; each lane has memory for a row.
    std::vector<std::int64_t> values = {};
    /// Without values and reductions, for repetitions whose reductions nobody looks at; null: `this` computes these,
    /// too. It has the same tables and raises at the same sites.
    std::shared_ptr<Kernel> unreduced = nullptr;
    /// Reductions whose largest or smallest value of a row the kernel finds itself. The pointers after the tables say
    /// where the best so far is, which it makes the best of that and the row's values (PointReduction::best).
    int bests() const {
        int n = 0;
        for (const PointReduction& r : reductions) n = std::max({n, r.best + 1, r.counted + 1});
        return n;
    }
    /// Whether some of them are wanted row by row.
    bool bests_by_row() const {
        return std::ranges::any_of(reductions, [](const PointReduction& r) { return r.best >= 0 && r.positions; });
    }
    bool stores_values() const {
        return std::ranges::any_of(values, [](std::int64_t bytes) { return bytes > 0; });
    }
};

/// Where a rank stores its block of an array: the address of storage.lo, and bytes between neighbours along each
/// dimension (as Array::stride where the array has messages). Of an array with time buffers stride_bytes[0] leads from
/// buffer to buffer: storage.lo is in buffer `first_time_buffer`, each later time in the buffer before.
struct Binding {
    std::byte* data = nullptr;
    Index stride_bytes;
    int first_time_buffer = 0;
    std::int64_t advance_bytes = 0;  ///< data lies so much further on in each repetition of a block of time steps
};

/// The first point at which the kernel raised on this rank.
struct Failure {
    std::int64_t site = 0;
    Index point;
    std::int32_t work = 0;  ///< of the schedule's works
};

}  // namespace tilewave
