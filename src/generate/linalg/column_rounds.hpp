// What the ranks of a column of the grid say to each other at each column of a panel: a value of each rank is joined
// with those of all others.
#pragma once
#include <vector>

#include "generate/linalg/panel_ring.hpp"

namespace tilewave {

/// As many rounds as the number of ranks has prime factors. In a round each rank exchanges its value with the other
/// ranks of a set of f, f the factor, and all of them join the f values in one order. So all ranks end with the same
/// bits, after log2 of their number messages where it is a power of two.
///
/// Values lie in an array [column of the matrix, round and rank, row, item], of two columns at a time.
class ColumnRounds {
public:
    /// Adds the array, for values of rows x items. @pre group.size > 1
    ColumnRounds(TaskList& list, const RankGroup& group, std::int64_t item_bytes, std::int64_t columns,
                 std::int64_t rows, std::int64_t items, int tag_kind, int tag_kinds);

    int rounds() const { return static_cast<int>(factors_.size()); }
    /// Works of a column on all ranks at most, and the number of this rank's for a round among them.
    std::int64_t works() const { return rounds() * group_.size; }
    std::int64_t work(int round) const { return round * group_.size + group_.me; }
    /// The values that a round joins on this rank, and the place of its own value in a round.
    std::vector<Region> values(std::int64_t column, int round) const;
    Region value(std::int64_t column, int round) const { return at(column, round, group_.me); }
    /// Sends this rank's value of a round to the others of its set, and waits for theirs.
    void exchange(std::int64_t column, int round);

private:
    std::vector<int> members(int round) const;
    Region at(std::int64_t column, int round, int rank) const {
        const std::int64_t place = round * group_.size + rank;
        return {array_, {{column, place, 0, 0}, {column + 1, place + 1, rows_, items_}}};
    }

    TaskList& list_;
    RankGroup group_;
    std::int64_t rows_, items_;
    int tag_kind_, tag_kinds_;
    std::int32_t array_;
    std::vector<int> factors_;
};

}  // namespace tilewave
