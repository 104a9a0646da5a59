// What LU and QR have in common on grids of several rows of ranks: panels that a column of ranks makes together, and
// tiles that pass all ranks of a column.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "generate/linalg/column_rounds.hpp"
#include "generate/linalg/factor.hpp"

namespace tilewave {

class FactorOnColumns : public RightLooking {
protected:
    /// A rank tells of each column of a panel two rows of so many items more than the panel has columns.
    FactorOnColumns(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                    int ranks, std::int64_t more, std::int64_t items_more);

    bool several_rows() const { return tiles_.parts() > 1; }
    /// Numbers of a panel's works, and of what becomes of passing tiles.
    std::int64_t panel_numbers() const { return several_rows() ? (tiles_.block + 1) * rounds_->works() : 1; }
    std::int64_t passing_numbers() const { return (tiles_.parts() + 2) * tiles_.block_columns(); }

    /// What one rank does with passing tiles: where they begin, at each rank, and where they end. `chunk`: of the array
    /// that passes, the tiles for this column's block columns from j on; `within`: the number of the work.
    enum Hop { begins, meets, ends };
    virtual void hop(std::int64_t k, Hop what, std::int64_t within, const Box& chunk, std::int64_t j) = 0;
    /// Tiles for block columns [j0, j1) of this column of ranks go once around it, from the row of ranks that has
    /// block row k, which sends what they have become down the column then.
    void pass(std::int64_t k, Part part, std::vector<std::pair<std::int64_t, std::int64_t>> columns);
    void end_of(std::int64_t k) override;
    /// This rank's rows of tiles [t0, t1), of the block columns of a chunk.
    Region under(const Box& chunk, std::int64_t j, std::int64_t t0, std::int64_t t1) const;

    RankGroup column_;
    std::int32_t array_passing_ = -1;
    std::optional<ColumnRounds> rounds_;

private:
    std::map<std::int64_t, std::vector<int>> passed_;  // sends of a step
};

}  // namespace tilewave
