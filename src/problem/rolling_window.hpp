// Rolling windows: arrays of which a run stores only what later points still read.
//
//   rows go along ->                     A plane holds points that do not depend on each other. Its rows go `along`;
//   planes |  panel 0   | panel 1 |             follow each other `across`. A tile is cut into pieces so narrow that
//   their planes |oooooooooooo|ooooooooo|  plane 0    stay in the nearest cache. A piece is computed plane after plane.
//   |oooooooooooo|ooooooooo|  plane 1
//   |oooooooooooo|ooooooooo|  plane 2    Memory holds the last Array::planes planes of a panel, in a ring: plane p lies
//   |............|.........|  plane 3    where plane p - planes lay.
//
// Three things outlive a piece, each Array::reach elements wide: the end of each row for the next panel (between),
// the same for the next column of tiles or the next rank (face), and the last lines across for the next tile (back).
//
// Planes may be slanted: plane z[across] + z[along] holds z. The rows of a piece are then shorter at both ends. A tile
// that is longer along than across is cut into panels across its rows, which have the fewest short rows.
#pragma once
#include <span>
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// Elements begin <= z[along] < begin + count of a row: points read them, and no point computes them. `value` counts
/// such elements in the rows before.
struct Segment {
    std::int64_t begin = 0, value = 0;
    std::int32_t count = 0;
};

/// How tiles are cut into pieces: panels of at most `width` components; panels across have a multiple of `unit`.
struct PieceCut {
    std::int64_t width = 1, unit = 1;
    friend bool operator==(const PieceCut&, const PieceCut&) = default;
};
/// @pre a schedule of one nest with a rolling window (ConfigError where it is none)
PieceCut piece_cut(const Schedule& schedule);
/// The pieces of a tile in the order in which they are computed: panels across the rows where planes are slanted and
/// the tile is at least as long along the rows as across them; else panels along the rows.
std::vector<Box> cut_into_pieces(int along, int across, int slant, const PieceCut& cut, const Box& tile);

/// Where the planes of a rank lie: a pure function of its schedule. An Index names a row: its component `across` is the
/// plane's number, its component `along` does not matter.
class RollingWindow {
public:
    /// @pre as piece_cut()
    explicit RollingWindow(const Schedule& schedule);

    /// One panel of a tile, computed plane after plane.
    struct Piece {
        std::int64_t lo = 0, hi = 0;       ///< of z[along]
        std::int64_t begin = 0, end = 0;   ///< of z[across]
        std::int64_t panel = 0;            ///< whose memory it uses
        bool first = false, last = false;  ///< of its column of tiles, along the rows
        int drift = 0;  ///< how far the stored part of a row moves from plane to plane: 1 in panels across the rows
        /// z[along] of the first element in memory of a plane's row.
        std::int64_t origin(std::int64_t plane) const { return drift ? plane - end + 1 : lo; }
    };
    /// The ring of planes of one array, in items.
    struct Ring {
        int array = 0;
        int planes = 1;
        std::int64_t item_bytes = 0;
        Index reach;
        std::int64_t lead = 0;                       ///< from the start of a row in memory to the panel's first element
        std::int64_t row = 0, plane = 0, panel = 0;  ///< from one to the next
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
    const std::vector<Ring>& rings() const { return rings_; }
    const Ring* ring(int array) const {
        const int p = ring_of_[array];
        return p < 0 ? nullptr : &rings_[p];
    }
    /// Elements of a row that the next panel reads, and of a line across that the next tile does.
    std::int64_t reads_along(const Ring& ring) const { return ring.reach[along_]; }
    std::int64_t reads_across(const Ring& ring) const { return ring.reach[across_]; }
    int columns() const { return static_cast<int>(columns_.size()) - 1; }
    /// The column of tiles that has component z along the rows.
    int column_of(std::int64_t z) const;
    /// Where a column begins; of the one after the last, where the block ends.
    std::int64_t column_begin(int column) const { return columns_[column]; }
    /// The pieces of a tile, in the order in which they are computed.
    std::vector<Piece> pieces(const Box& tile) const;
    std::int64_t panel_count() const { return first_panel_.back(); }
    /// The furthest that points read back, of all arrays; the most planes.
    const Index& reach() const { return reach_; }
    int most_planes() const { return most_planes_; }
    /// Rows of a plane along dimension k, those before the block too.
    std::int64_t extent(const Ring& ring, int k) const { return block_.extent(k) + ring.reach[k]; }
    /// Elements of the other dimensions, those of the whole space.
    std::int64_t across_others() const { return others_count_; }
    /// Plane of a point.
    std::int64_t plane(const Index& z) const { return z[across_] + slant_ * z[along_]; }

    /// Which points of a row are computed: a range of z[along].
    std::pair<std::int64_t, std::int64_t> computed(const Index& row) const;
    /// Whether the array has a row: others may read further back.
    bool has_row(const Ring& ring, const Index& row) const;
    /// Number of a row among the array's.
    std::int64_t row_number(const Ring& ring, const Index& row) const {
        std::int64_t number = row[across_] - first_plane_ + ring.planes - 1;
        for (int k : others_) number = number * extent(ring, k) + row[k] - block_.lo[k] + ring.reach[k];
        return number;
    }
    /// Which z[along] of a row a piece has in memory: of its points and of what these read.
    std::pair<std::int64_t, std::int64_t> stored(const Ring& ring, const Piece& piece, const Index& row) const {
        const std::int64_t lo = piece.lo - reads_along(ring), plane = row[across_];
        if (!slant_) return {lo, piece.hi};
        return {std::max(lo, plane - piece.end + 1), std::min(piece.hi, plane - piece.begin + reads_across(ring) + 1)};
    }
    /// Whether elements of the row that nobody computes are among them.
    bool has_segments(const Ring& ring, const Piece& piece, const Index& row) const {
        const auto number = static_cast<std::size_t>(row_number(ring, row));
        if (ring.first[number] == ring.first[number + 1]) return false;
        const auto [lo, hi] = stored(ring, piece, row);
        for (std::int64_t i = ring.first[number]; i < ring.first[number + 1]; ++i) {
            const Segment& s = ring.segments[i];
            if (s.begin < hi && s.begin + s.count > lo) return true;
        }
        return false;
    }
    /// The elements of all segments of an array: coordinates z, one point after the other.
    std::vector<std::int64_t> elements(int array) const;
    /// Bytes of the memory of a run.
    std::int64_t bytes() const;
    std::int64_t window_bytes(const Ring& ring) const { return panel_count() * ring.panel * ring.item_bytes; }
    std::int64_t face_bytes(const Ring& ring) const;
    std::int64_t between_bytes(const Ring& ring) const;
    std::int64_t back_bytes(const Ring& ring) const;

private:
    void find_segments(Ring& ring, std::span<const Access> places);
    template <class F>
    void for_each_row(const Ring& ring, F f) const;

    int along_, across_, slant_;
    Box space_;
    std::vector<Bound> bounds_;
    Box block_;                              // holds the rank's points
    std::vector<int> others_;                // dimensions that neither rows nor planes go along
    std::vector<std::int64_t> columns_;      // where columns of tiles begin along the rows; then the end
    std::vector<std::int64_t> first_panel_;  // by column; then how many there are
    PieceCut cut_;
    std::vector<Ring> rings_;
    std::vector<int> ring_of_;  // by array; -1: not in planes
    std::int64_t tallest_ = 0, others_count_ = 1;
    std::int64_t first_plane_ = 0, end_plane_ = 0;  // of the block
    Index reach_;
    int most_planes_ = 1;
};

}  // namespace tilewave
