// Arrays of which a run keeps only what later points read.
//
// A rank's points lie in planes (along Schedule::across), a plane in rows (along Schedule::along). Rows are cut
// into strips so short that the planes of a strip stay in the nearest cache. Of each strip an array keeps
// the last Array::planes planes, in turn in the same memory; between strips, Array::reach elements of each row.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "tilewave/executor.hpp"

namespace tilewave {

/// The elements begin <= z < begin + count of a row that points read and none computes; `value` counts
/// those before them.
struct Segment {
    std::int64_t begin = 0, value = 0;
    std::int32_t count = 0;
};

/// Where the planes of a rank are: a pure function of its schedule.
class Frontier {
public:
    /// @pre schedule.along >= 0
    explicit Frontier(const Schedule& schedule);

    struct Strip {
        std::int64_t lo = 0, hi = 0;
        int number = 0;               ///< among the rank's
        bool first = false, last = false;  ///< of its column of tiles
    };
    /// One array's memory, in items.
    struct Part {
        int array = 0;
        int planes = 1;
        std::int64_t item_bytes = 0;
        Index reach;
        std::int64_t lead = 0;                    ///< from the start of a row in memory to the strip's first element
        std::int64_t row = 0, plane = 0, strip = 0;  ///< from one to the next
        std::int64_t reads = 0;                   ///< elements of a row that the next strip reads
        std::vector<std::int64_t> first;          ///< by row: its first segment; then the end
        std::vector<Segment> segments;
    };

    int dims() const { return space_.dims(); }
    int along() const { return along_; }
    int across() const { return across_; }
    const std::vector<int>& others() const { return others_; }
    const Box& block() const { return block_; }
    const Box& space() const { return space_; }
    const std::vector<Part>& parts() const { return parts_; }
    const Part* part(int array) const { return part_of_[static_cast<std::size_t>(array)] < 0 ? nullptr : &parts_[static_cast<std::size_t>(part_of_[static_cast<std::size_t>(array)])]; }
    int columns() const { return static_cast<int>(columns_.size()) - 1; }
    int column_of(std::int64_t lo) const;
    /// The strips of the column of tiles that begins at `lo`.
    std::span<const Strip> strips(std::int64_t lo) const;
    std::int64_t strip_count() const { return static_cast<std::int64_t>(strips_.size()); }
    std::int64_t tallest_tile() const { return tallest_; }
    /// The furthest that points read back, of all arrays.
    const Index& reach() const { return reach_; }
    /// Rows of a plane along dimension k, those before the block too.
    std::int64_t extent(const Part& part, int k) const { return block_.extent(k) + part.reach[k]; }
    /// Elements of the other dimensions, those of the whole space.
    std::int64_t across_others() const { return others_count_; }

    /// Which points of the row through z (whatever its component along the row) are computed.
    std::pair<std::int64_t, std::int64_t> computed(const Index& z) const;
    /// Whether the array has a row through z: others may read further back.
    bool has_row(const Part& part, const Index& z) const;
    /// Number of the row through z, which may be `reach` before the block, among the array's rows.
    std::int64_t row_number(const Part& part, const Index& z) const {
        std::int64_t number = z[across_] - block_.lo[across_] + part.reach[across_];
        for (int k : others_) number = number * extent(part, k) + z[k] - block_.lo[k] + part.reach[k];
        return number;
    }
    /// Whether elements of the row that nobody computes are in the strip or next before it.
    bool has_segments(const Part& part, const Strip& strip, const Index& z) const {
        const auto number = static_cast<std::size_t>(row_number(part, z));
        for (std::int64_t i = part.first[number]; i < part.first[number + 1]; ++i) {
            const Segment& s = part.segments[static_cast<std::size_t>(i)];
            if (s.begin < strip.hi && s.begin + s.count > strip.lo - part.reads) return true;
        }
        return false;
    }
    /// The elements of all segments of an array: coordinates z, one point after the other.
    std::vector<std::int64_t> elements(int array) const;
    /// Bytes of the memory of a run.
    std::int64_t bytes() const;
    std::int64_t planes_bytes(const Part& part) const { return strip_count() * part.strip * part.item_bytes; }
    std::int64_t face_bytes(const Part& part) const;

private:
    void find_segments(Part& part, std::span<const Access> places);
    template <class F>
    void for_each_row(const Part& part, F f) const;

    int along_, across_;
    Box space_;
    std::vector<Bound> bounds_;
    Box block_;                        // holds the rank's points
    std::vector<int> others_;          // dimensions that neither rows nor planes go along
    std::vector<std::int64_t> columns_;  // where columns of tiles begin along the rows; then the end
    std::vector<Strip> strips_;
    std::vector<std::size_t> first_strip_;  // by column; then the end
    std::vector<Part> parts_;
    std::vector<int> part_of_;         // by array; -1: not kept in planes
    std::int64_t tallest_ = 0, others_count_ = 1;
    Index reach_;
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
    std::byte* strip(std::size_t part, const Frontier::Strip& strip) const {
        return memory_[part].aligned + (strip.number * where_.parts()[part].strip + where_.parts()[part].lead) * where_.parts()[part].item_bytes;
    }
    /// What the elements of a row hold that nobody computes. `to`: the strip's first element of the row through z.
    void fill(std::size_t part, const Frontier::Strip& strip, const Index& z, char* to) const;
    /// The elements before column `column` of tiles, of the row through z.
    std::byte* face(std::size_t part, int column, const Index& z) const;
    /// The elements before strip `strip` of such a column, in the `plane`th plane of a tile; of its first row.
    std::byte* between(std::size_t part, int column, int strip, std::int64_t plane) const;
    /// Bytes from a plane to the next in both.
    std::int64_t face_plane(std::size_t part) const { return where_.across_others() * where_.parts()[part].reads * where_.parts()[part].item_bytes; }
    /// Bytes from the first row of a plane in both to that through z.
    std::int64_t face_row(std::size_t part, const Index& z) const {
        std::int64_t row = 0;
        for (int k : where_.others()) row = row * where_.space().extent(k) + z[k] - where_.space().lo[k];
        return row * where_.parts()[part].reads * where_.parts()[part].item_bytes;
    }
    /// Where a message's region is: before the first column, or the last ones of the last column.
    std::byte* message(int array, const Index& z) const;

private:
    const Frontier& where_;
    std::vector<FrontierValues> values_;
    struct Memory {
        std::unique_ptr<std::byte[]> planes, faces, strips;  // strips: two by column, of one tile's planes
        std::byte* aligned = nullptr;
    };
    std::vector<Memory> memory_;
};

}  // namespace tilewave
