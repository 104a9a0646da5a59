// The rows of a kernel and what their values are reduced to, lane by lane: of tiles, and of tasks.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "data/memory.hpp"
#include "execute/tuning.hpp"
#include "tilewave/engine/kernel.hpp"

namespace tilewave {

struct ReducedRows {
    struct alignas(64) LaneReduced {
        Reduced value;
        bool any = false;  // some points have been reduced
    };
    /// The points from `lo` to `lo` + `width` of each row: values of row after row follow each other.
    struct RowValues {
        std::int64_t lo = 0, width = 0;
    };
    /// Rows that a kernel has computed; ptr and index are those of point 0 of row 0, as a RowsFunction is given them.
    struct Computed {
        char* const* ptr;
        const std::int64_t *step, *next;
        std::span<const Span> spans;
        RowValues values;
        const Index &index, &direction, &turn;
    };

    const Kernel* kernel = nullptr;
    std::size_t places = 0;                                // of the kernel, before values, tables and bests
    std::vector<std::vector<LaneReduced>> reduced;         // by reduction, lane
    std::vector<std::shared_ptr<std::byte[]>> row_values;  // by lane
    // By lane: best after best, of all rows, or of each row of a batch.
    std::vector<std::vector<std::int64_t>> bests;

    /// Takes a kernel, of which no row has been computed.
    /// @pre at most max_places places, tables and bests (ConfigError)
    void begin(const Kernel& of, std::size_t places, std::size_t lanes);
    /// As new: nothing has been computed.
    void restart();
    /// What the lanes' rows have been reduced to, by reduction.
    std::vector<Reduced> all() const;
    /// Calls the kernel for a row, and reduces it. `at`, `along`: pointers and steps of the places. Returns what the
    /// kernel does.
    std::int64_t compute(int lane, char* const* at, const std::int64_t* along, std::int64_t points, const Index& index,
                         const Index& direction);

    /// Bytes of the memory of some row values, each a cache line further than the rows before it: not all at the same
    /// place of their pages.
    static std::int64_t value_room(std::size_t values) {
        return static_cast<std::int64_t>(values) * (tuning::most_row_values * 8 + cache_line_bytes);
    }
    std::byte* row_value(int lane, std::size_t k) const { return row_values[lane].get() + value_room(k); }
    std::int64_t* best(int lane, int k) { return bests[lane].data() + static_cast<std::size_t>(k) * best_room; }
    void place_bests(const Kernel& kernel, int lane, bool reduces, char** to);
    void begin_bests(int lane, int row, bool of_rows);
    RowValues place_values(int lane, std::span<const Span> spans, char** ptr, const std::int64_t* step,
                           std::int64_t* next) const;
    void reduce(int lane, const Computed& rows);

private:
    // One more: where a best goes that nobody looks at.
    static constexpr std::size_t best_room = tuning::most_rows_of_a_call + 1;
    Reduced found(const LaneReduced& of, int lane) const;
};

}  // namespace tilewave
