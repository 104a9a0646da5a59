// The rows of a tile in the order that its nest says: which points follow each other in one call
// of the kernel, and where the next row is.
#pragma once
#include <algorithm>
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// Walks y = order·z, the last component within a row. A row is begin() <= q < end() of the points
/// point() + q along(); point() itself may be outside the tile. For orders as Plan::order makes them:
/// along() has no entries but -1, 0 and 1.
class TileRows {
public:
    TileRows(const NestWork& nest, const Box& tile);

    /// To the first row that has points; false if there is none.
    bool first();
    bool next() {
        const int last = dims() - 2;
        if ((!equal_ && !pair_) || at_[last] + 1 >= y_.hi[last]) return seek(last, false);
        ++at_[last];
        ++point_[equal_ ? last : down_];
        fresh_ = false;
        if (!equal_) meet();
        return true;
    }

    /// Whether rows go along e_up - e_down and the tile alone bounds them: all layers of the tile have the
    /// same rows, one for each sum.
    bool layers() const { return pair_; }
    /// Of the two dimensions that a row goes along; the same one's where it goes along one. No row has more points than
    /// either.
    std::int64_t extent_up() const { return tile_.extent(up_); }
    std::int64_t extent_down() const { return tile_.extent(down_); }
    /// Where row 0 of the present layer begins. @pre layers(), and at that row
    Index layer() const {
        Index corner = point_;
        for (int k = 0; k < corner.n; ++k) corner[k] += tile_.lo[up_] * along_[k];
        return corner;
    }
    /// How many layers follow each other that differ by beyond() from the one before, and how many of them are left,
    /// this one among them. @pre layers()
    std::int64_t layers_in_line() const { return dims() < 3 ? 1 : y_.extent(dims() - 3); }
    std::int64_t layers_left() const { return dims() < 3 ? 1 : y_.hi[dims() - 3] - at_[dims() - 3]; }
    /// Change of the point from a layer to the next one of those; 0 with less than three dimensions.
    const Index& beyond() const { return beyond_; }
    /// To the first row of the next layer; false if there is none.
    bool next_layer() {
        at_[dims() - 2] = y_.hi[dims() - 2] - 1;
        return seek(dims() - 2, false);
    }

    int dims() const { return tile_.dims(); }
    const Index& point() const { return point_; }
    const Index& along() const { return along_; }
    /// The point moved by this from the row before, unless fresh().
    const Index& across() const { return across_; }
    bool fresh() const { return fresh_; }
    std::int64_t begin() const { return begin_; }
    std::int64_t end() const { return end_; }
    /// Loop index of point q of the row.
    Index index(std::int64_t q) const { return index(point_, q); }
    /// Loop index of the point q along() from `point`.
    Index index(const Index& point, std::int64_t q) const;
    /// Change of the loop index from point to point.
    const Index& direction() const { return direction_; }
    /// Change of the loop index from row to row, unless fresh().
    const Index& turn() const { return turn_; }

private:
    bool seek(int k, bool fresh);
    void narrow(int k);
    // Points of a row along e_up - e_down where only the tile bounds it: there are some for every sum.
    void meet() {
        begin_ = std::max(tile_.lo[up_], point_[down_] - tile_.hi[down_] + 1);
        end_ = std::min(tile_.hi[up_], point_[down_] - tile_.lo[down_] + 1);
    }
    bool find();
    void start();

    const NestWork& nest_;
    const Box& tile_;
    bool plain_, same_loops_;  // order and loops are the identity
    IndexMatrix back_;         // z = back·y
    Box y_;                    // holds order·z of the tile
    Index at_;                 // y, the last component 0
    Index point_, along_, across_, beyond_, direction_, turn_;
    Index from_, to_;                           // of each component of y, the ones before it being as they are
    std::vector<Bound> bounds_;                 // of y
    std::vector<std::int64_t> slope_;           // of each along a row
    bool fresh_ = true, pair_ = false, equal_;  // equal_: all rows have the same points
    int up_ = 0, down_ = 0;
    std::int64_t begin_ = 0, end_ = 0;
};

}  // namespace tilewave
