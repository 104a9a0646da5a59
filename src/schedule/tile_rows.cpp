#include "schedule/tile_rows.hpp"

#include <limits>

namespace tilewave {

TileRows::TileRows(const NestWork& nest, const Box& tile)
    : nest_(nest),
      tile_(tile),
      plain_(nest.order.n == 0 || nest.order.is_identity()),
      same_loops_(nest.loops.n == 0 || nest.loops.is_identity()) {
    const int n = tile.dims();
    back_ = plain_ ? IndexMatrix::identity(n) : inverse(nest_.order);
    y_ = plain_ ? tile : image(nest_.order, tile);
    at_ = along_ = across_ = beyond_ = Index::filled(n, 0);
    for (int k = 0; k < n; ++k) {
        along_[k] = back_.row[k][n - 1];
        across_[k] = n > 1 ? back_.row[k][n - 2] : 0;
        beyond_[k] = n > 2 ? back_.row[k][n - 3] : 0;
    }
    direction_ = same_loops_ ? along_ : nest_.loops * along_;
    turn_ = same_loops_ ? across_ : nest_.loops * across_;
    for (const Bound& b : nest_.bounds) {
        bounds_.push_back({b.coefficients * back_, b.constant});
        slope_.push_back(bounds_.back().coefficients[n - 1]);
    }
    from_ = y_.lo;
    to_ = y_.hi;
    for (int k = 0; k < n; ++k) {
        if (along_[k] == 1) up_ = k;
        if (along_[k] == -1) down_ = k;
        pair_ = pair_ || along_[k] == -1;
    }
    if (!pair_) down_ = up_;
    pair_ = pair_ && nest_.bounds.empty();
    equal_ = plain_ && nest_.bounds.empty() && n > 1;
}

bool TileRows::first() {
    if (tile_.empty()) return false;
    at_ = y_.lo;
    at_[dims() - 1] = 0;
    if (dims() == 1) {
        start();
        return find();
    }
    narrow(0);
    at_[0] = from_[0] - 1;
    start();  // one before the first
    return seek(0, true);
}

// Between which values of component k, the ones before it being what they are, there can be points.
void TileRows::narrow(int k) {
    from_[k] = y_.lo[k];
    to_[k] = y_.hi[k];
    for (const Bound& b : bounds_) {
        const std::int64_t by = b.coefficients[k];
        if (by == 0) continue;
        std::int64_t most = b.constant;  // of the rest
        for (int j = 0; j < dims(); ++j)
            if (j != k)
                most += j < k ? b.coefficients[j] * at_[j]
                              : std::max(b.coefficients[j] * y_.lo[j], b.coefficients[j] * (y_.hi[j] - 1));
        if (by > 0) from_[k] = std::max(from_[k], ceil_div(-most, by));
        if (by < 0) to_[k] = std::min(to_[k], floor_div(most, -by) + 1);
    }
}

void TileRows::start() {
    point_ = plain_ ? at_ : back_ * at_;
    fresh_ = true;
}

// To the next row that has points: on along component k, the ones after it from their beginning.
bool TileRows::seek(int k, bool fresh) {
    const int last = dims() - 2;
    while (true) {
        while (k >= 0 && ++at_[k] >= to_[k]) --k;
        if (k < 0) return false;
        const bool following = k == last;
        while (k < last) {
            narrow(++k);
            at_[k] = from_[k];
            if (from_[k] >= to_[k]) break;
        }
        if (from_[k] >= to_[k]) {
            --k;
            continue;
        }
        if (following) {
            // In place: a copy would be stored by elements and loaded by vectors, which waits.
            for (int j = 0; j < point_.n; ++j) point_[j] += across_[j];
            fresh_ = fresh;
        } else {
            start();
        }
        if (find()) return true;
        fresh = true;
    }
}

// The points of the row that are in the tile and within the bounds.
bool TileRows::find() {
    const int n = dims();
    if (plain_) {
        begin_ = tile_.lo[n - 1];
        end_ = tile_.hi[n - 1];
    } else {
        begin_ = std::numeric_limits<std::int64_t>::min();
        end_ = std::numeric_limits<std::int64_t>::max();
        for (int k = 0; k < n; ++k) {
            if (along_[k] == 0) {
                if (point_[k] < tile_.lo[k] || point_[k] >= tile_.hi[k]) return false;
            } else if (along_[k] > 0) {
                begin_ = std::max(begin_, tile_.lo[k] - point_[k]);
                end_ = std::min(end_, tile_.hi[k] - point_[k]);
            } else {
                begin_ = std::max(begin_, point_[k] - tile_.hi[k] + 1);
                end_ = std::min(end_, point_[k] - tile_.lo[k] + 1);
            }
        }
    }
    for (std::size_t i = 0; i < slope_.size(); ++i) {
        const Bound& b = bounds_[i];
        std::int64_t value = b.constant;
        for (int k = 0; k < n - 1; ++k) value += b.coefficients[k] * at_[k];
        if (slope_[i] == 0 && value < 0) return false;
        if (slope_[i] > 0) begin_ = std::max(begin_, ceil_div(-value, slope_[i]));
        if (slope_[i] < 0) end_ = std::min(end_, floor_div(value, -slope_[i]) + 1);
    }
    return begin_ < end_;
}

Index TileRows::index(const Index& point, std::int64_t q) const {
    Index z = point;
    for (int k = 0; k < z.n; ++k) z[k] += q * along_[k];
    return same_loops_ ? z : nest_.loops * z;
}

}  // namespace tilewave
