// How many rows and points a tile has, without computing it.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "execute/rolling_window.hpp"
#include "tilewave/schedule.hpp"

namespace tilewave {

struct Work {
    std::int64_t rows = 0, points = 0;
    friend Work operator+(Work a, const Work& b) { return {a.rows + b.rows, a.points + b.points}; }
};

/// Exact numbers for tiles of one schedule: closed forms for tiles that no bound cuts; the others are walked
/// once for all that are cut alike.
class TileWork {
public:
    explicit TileWork(const Schedule& schedule);

    Work of(const Box& tile);
    /// Whether tiles of the other schedule have the same rows.
    bool serves(const Schedule& other) const;

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

    Work part(const Box& box);  // of one piece
    Work uncut(const Box& box) const;
    Work walk(const Box& box) const;

    const Schedule& s_;
    Rows rows_ = Rows::unit;
    int up_ = 0, down_ = 0;
    std::optional<PieceCut> cut_;  // of arrays kept in planes: rows end where pieces do
    std::unordered_map<Key, Work, Hash> walked_;
};

}  // namespace tilewave
