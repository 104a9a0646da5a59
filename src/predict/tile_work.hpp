// How many rows and points a tile has, without computing it.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "problem/rolling_window.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// What a tile has of both.
struct RowCount {
    std::int64_t rows = 0, points = 0;
    friend RowCount operator+(RowCount a, const RowCount& b) { return {a.rows + b.rows, a.points + b.points}; }
};

/// Exact numbers for tiles of one nest: closed forms for tiles that no bound cuts; the others are walked
/// once for all that are cut equally.
class TileWork {
public:
    /// Of nest `nest`, one of the works of `schedule`.
    TileWork(const Schedule& schedule, const NestWork& nest);

    RowCount of(const Box& tile);
    /// Whether tiles of a nest of another schedule have the same rows.
    bool serves(const Schedule& other, const NestWork& nest) const;

private:
    enum class Rows { unit, pair, other };
    struct Key {
        Index extents;
        std::vector<std::int64_t> at_corner;  // each bound's value at the tile's first point
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };

    RowCount part(const Box& box);  // of one piece
    RowCount uncut(const Box& box) const;
    RowCount walk(const Box& box) const;

    const NestWork& nest_;
    Rows rows_ = Rows::unit;
    int up_ = 0, down_ = 0;
    std::optional<PieceCut> cut_;  // of arrays in planes: rows end where pieces do
    std::unordered_map<Key, RowCount, Hash> walked_;
};

}  // namespace tilewave
