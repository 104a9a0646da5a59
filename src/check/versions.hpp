// What the values in a cell are made of, as numbers: equal numbers mean equal values at one point.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// What a cell holds: nothing, the value given in memory m before the run (on whatever rank: parts of one array), a
/// value that a work gives (below `missing`), or a number of the VersionTable.
using Version = std::int32_t;
constexpr Version missing = -1;
constexpr Version given(int memory) {
    return memory;
}
/// Value `i` of those that works give.
constexpr Version computed(std::int64_t i) {
    return static_cast<Version>(missing - 1 - i);
}
using Versions = std::vector<Version>;

/// Numbers the values of separate arrays and what combine steps make of them. A pair that was combined before gets its
/// old number, so that a tree of any size is one number and cells that share it share its memory.
class VersionTable {
public:
    VersionTable(int memories, int ranks) : arrays_(memories), first_pair_(memories * (ranks + 1)) {}

    /// The value given in the memory of separate array `array` of `rank`.
    Version leaf(int rank, int array) const { return arrays_ * (rank + 1) + array; }
    Version combine(Version left, Version right);
    /// Whether `version` joins exactly `leaves` from left to right, in whatever association.
    bool joins(Version version, const Versions& leaves);
    /// "nothing", "the values of array 0 of rank 2", "the values of array 0 of ranks 0, 1, 1 combined".
    std::string text(Version version) const;
    /// The same for leaves not combined yet.
    std::string text(const Versions& leaves, std::int64_t count) const;
    /// How many values are combined in it.
    std::int64_t count(Version v) const { return v < first_pair_ ? 1 : pairs_[v - first_pair_].leaves; }
    /// The first `most` of them from the left.
    Versions leaves(Version version, std::size_t most) const;

private:
    struct Pair {
        Version left, right;
        std::int64_t leaves;  // up to most_leaves: a slip may double the tree at every step
    };
    static constexpr std::int64_t most_leaves = std::int64_t{1} << 40;

    int arrays_;
    Version first_pair_;
    std::vector<Pair> pairs_;
    std::unordered_map<std::uint64_t, Version> known_;  // by (left, right)
    // Asked once for every cell of every result: answered once for every version and list.
    std::map<Versions, std::uint32_t> lists_;
    std::unordered_map<std::uint64_t, bool> joins_;  // by (version, list)
};

}  // namespace tilewave
