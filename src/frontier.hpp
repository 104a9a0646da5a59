// Arrays of which a run keeps only what later points read.
//
// A rank's points lie in planes (Schedule::across, slant), a plane in rows (Schedule::along). Rows are cut
// into strips so short that the planes of a strip stay in the nearest cache. Of each strip an array keeps
// the last Array::planes planes, in turn in the same memory; between strips, Array::reach elements of each
// row. Where planes are slanted, a tile is no whole number of them: what it has computed next to the following
// tile of its column is kept beside them, and put back when their rows begin.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "tilewave/executor.hpp"

namespace tilewave {

/// The elements begin <= z[along] < begin + count of a row that points read and none computes; `value` counts
/// those before them.
struct Segment {
    std::int64_t begin = 0, value = 0;
    std::int32_t count = 0;
};

/// How many components along a row a strip has: less at the end of a column of tiles.
/// @pre schedule.along >= 0
std::int64_t strip_width(const Schedule& schedule);

/// Where the planes of a rank are: a pure function of its schedule. A row is named by an Index that has the
/// plane's number as component `across` and any component `along`.
class Frontier {
public:
    /// @pre schedule.along >= 0
    explicit Frontier(const Schedule& schedule);

    struct Strip {
        std::int64_t lo = 0, hi = 0;       ///< of z[along]
        int number = 0;                    ///< among the rank's
        bool first = false, last = false;  ///< of its column of tiles
    };
    /// One array's memory, in items.
    struct Part {
        int array = 0;
        int planes = 1;
        std::int64_t item_bytes = 0;
        Index reach;
        std::int64_t lead = 0;                       ///< from the start of a row in memory to the strip's first element
        std::int64_t row = 0, plane = 0, strip = 0;  ///< from one to the next
        std::vector<std::int64_t> first;             ///< by row: its first segment; then the end
        std::vector<Segment> segments;
    };

    int dims() const { return space_.dims(); }
    int along() const { return along_; }
    int across() const { return across_; }
    int slant() const { return slant_; }
    const std::vector<int>& others() const { return others_; }
    const Box& block() const { return block_; }
    const Box& space() const { return space_; }
    const std::vector<Part>& parts() const { return parts_; }
    const Part* part(int array) const {
        const int p = part_of_[static_cast<std::size_t>(array)];
        return p < 0 ? nullptr : &parts_[static_cast<std::size_t>(p)];
    }
    /// Elements of a row that the next strip reads, and of a line across that the next tile does.
    std::int64_t reads_along(const Part& part) const { return part.reach[along_]; }
    std::int64_t reads_across(const Part& part) const { return part.reach[across_]; }
    int columns() const { return static_cast<int>(columns_.size()) - 1; }
    /// The column of tiles that has component z along the rows.
    int column_of(std::int64_t z) const;
    /// Where a column begins; of the one after the last, where the block ends.
    std::int64_t column_begin(int column) const { return columns_[static_cast<std::size_t>(column)]; }
    /// The strips of the column of tiles that begins at `lo`.
    std::span<const Strip> strips(std::int64_t lo) const;
    std::int64_t strip_count() const { return static_cast<std::int64_t>(strips_.size()); }
    std::int64_t tallest_tile() const { return tallest_; }
    /// The furthest that points read back, of all arrays; the most planes.
    const Index& reach() const { return reach_; }
    int most_planes() const { return most_planes_; }
    /// Rows of a plane along dimension k, those before the block too.
    std::int64_t extent(const Part& part, int k) const { return block_.extent(k) + part.reach[k]; }
    /// Elements of the other dimensions, those of the whole space.
    std::int64_t across_others() const { return others_count_; }
    /// Plane of a point.
    std::int64_t plane(const Index& z) const { return z[across_] + slant_ * z[along_]; }

    /// Which points of a row are computed: a range of z[along].
    std::pair<std::int64_t, std::int64_t> computed(const Index& row) const;
    /// Whether the array has a row: others may read further back.
    bool has_row(const Part& part, const Index& row) const;
    /// Number of a row among the array's.
    std::int64_t row_number(const Part& part, const Index& row) const {
        std::int64_t number = row[across_] - first_plane_ + part.planes - 1;
        for (int k : others_) number = number * extent(part, k) + row[k] - block_.lo[k] + part.reach[k];
        return number;
    }
    /// Whether elements of the row that nobody computes are in the strip or next before it.
    bool has_segments(const Part& part, const Strip& strip, const Index& row) const {
        const auto number = static_cast<std::size_t>(row_number(part, row));
        for (std::int64_t i = part.first[number]; i < part.first[number + 1]; ++i) {
            const Segment& s = part.segments[static_cast<std::size_t>(i)];
            if (s.begin < strip.hi && s.begin + s.count > strip.lo - reads_along(part)) return true;
        }
        return false;
    }
    /// The elements of all segments of an array: coordinates z, one point after the other.
    std::vector<std::int64_t> elements(int array) const;
    /// Bytes of the memory of a run.
    std::int64_t bytes() const;
    std::int64_t planes_bytes(const Part& part) const { return strip_count() * part.strip * part.item_bytes; }
    std::int64_t face_bytes(const Part& part) const;
    std::int64_t between_bytes(const Part& part) const;
    std::int64_t back_bytes(const Part& part) const;

private:
    void find_segments(Part& part, std::span<const Access> places);
    template <class F>
    void for_each_row(const Part& part, F f) const;

    int along_, across_, slant_;
    Box space_;
    std::vector<Bound> bounds_;
    Box block_;                          // holds the rank's points
    std::vector<int> others_;            // dimensions that neither rows nor planes go along
    std::vector<std::int64_t> columns_;  // where columns of tiles begin along the rows; then the end
    std::vector<Strip> strips_;
    std::vector<std::size_t> first_strip_;  // by column; then the end
    std::vector<Part> parts_;
    std::vector<int> part_of_;           // by array; -1: not kept in planes
    std::int64_t tallest_ = 0, others_count_ = 1;
    std::int64_t first_plane_ = 0, end_plane_ = 0;  // of the block
    Index reach_;
    int most_planes_ = 1;
};

/// What elements that nobody computes hold: one value for all, or one for each in the order of elements().
struct FrontierValues {
    const std::byte* data = nullptr;
    bool same = true;
};

/// The memory of one run.
class FrontierMemory {
public:
    /// `values` by part.
    FrontierMemory(const Frontier& where, std::vector<FrontierValues> values);

    const Frontier& where() const { return where_; }
    /// Where the memory of a strip begins: its element lo in the first row of the first plane.
    char* strip(std::size_t part, const Frontier::Strip& strip) const;
    /// What the elements of a row hold that nobody computes. `to`: the strip's first element of it.
    void fill(std::size_t part, const Frontier::Strip& strip, const Index& row, char* to) const;

    // What columns of tiles, strips and tiles leave for those after them; of z, with its neighbours before it.
    // The bytes of the other dimensions' rows come on top: others().

    /// Before column `column`, at z[across]: the elements from z[along] = the column's first - reads_along on.
    char* face(std::size_t part, int column, std::int64_t across) const;
    /// Before strip `strip` of a tile of that column, at the `plane`th of the tile's z[across].
    char* between(std::size_t part, int column, int strip, std::int64_t plane) const;
    /// Before a tile, at z[along]: the elements from z[across] = the tile's first - reads_across on; what the tile
    /// before has left (`turn` of it), or this one leaves.
    char* back(std::size_t part, int turn, std::int64_t along) const;
    std::int64_t others_along(std::size_t part, const Index& row) const { return others(row) * where_.reads_along(where_.parts()[part]) * where_.parts()[part].item_bytes; }
    std::int64_t others_across(std::size_t part, const Index& row) const { return others(row) * where_.reads_across(where_.parts()[part]) * where_.parts()[part].item_bytes; }
    /// Changes from 0 to 1 and back from tile to tile of a column.
    int& turn(int column) { return turns_[static_cast<std::size_t>(column)].value; }

    /// Where a message's region is: before the first column, or among the last elements of the column that computes
    /// it (a later one may be narrower than what the next rank reads).
    std::byte* message(int array, const Index& z) const;

private:
    std::int64_t others(const Index& row) const {
        std::int64_t at = 0;
        for (int k : where_.others()) at = at * where_.space().extent(k) + row[k] - where_.space().lo[k];
        return at;
    }

    const Frontier& where_;
    std::vector<FrontierValues> values_;
    struct Memory {
        std::unique_ptr<std::byte[]> planes, faces, strips, backs;  // strips: two by column; backs: two
        std::byte* aligned = nullptr;
    };
    std::vector<Memory> memory_;
    struct alignas(64) Turn {
        int value = 0;
    };
    std::vector<Turn> turns_;  // by column
};

}  // namespace tilewave
