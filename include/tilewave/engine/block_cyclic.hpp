// How a matrix is spread over a grid of ranks, block by block; and a type for each kind of index.
#pragma once
#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "tilewave/engine/layout.hpp"

namespace tilewave {

/// An element counted over the whole matrix, along one dimension.
struct GlobalElement {
    std::int64_t at = 0;
    friend auto operator<=>(const GlobalElement&, const GlobalElement&) = default;
};
/// An element counted among those of one part of the grid, along one dimension.
struct LocalElement {
    std::int64_t at = 0;
    friend auto operator<=>(const LocalElement&, const LocalElement&) = default;
};
/// A block counted over the whole matrix, along one dimension.
struct BlockNumber {
    std::int64_t at = 0;
    friend auto operator<=>(const BlockNumber&, const BlockNumber&) = default;
};

/// Who has which block of a period, where parts have blocks in proportion to weights.
struct Dealt;

/// One dimension of a matrix on `parts` parts of the grid: blocks of `block` elements go round the parts, as in
/// ScaLAPACK with its first block on part 0. With block 0 each part has one even block, as fields have them. With
/// weights, a part has blocks in proportion to its own in each period, as evenly among those of others as can be:
/// blocks of a heterogeneous block-cyclic distribution (kalinov2001).
struct Axis {
    std::int64_t extent = 0;
    int parts = 1;
    std::int64_t block = 0;

    /// Equal weights are none.
    /// @pre extent >= 0, parts >= 1, block >= 0, a period of blocks below 2^63; of `parts` weights from 1 to
    /// most_weight, with block >= 1 (ConfigError)
    Axis(std::int64_t extent, int parts, std::int64_t block, const Weights& weights = {});

    /// Of each part; empty: parts take turns.
    Weights weights() const;
    /// The same of another extent.
    Axis resized(std::int64_t n) const { return {n, parts, block, weights()}; }
    /// Blocks after which those of all parts repeat, and which of them a part has. @pre block >= 1
    std::int64_t period() const;
    std::vector<std::int64_t> blocks_of(int part) const;

    /// @pre 0 <= g < extent
    int part_of(GlobalElement g) const;
    LocalElement local_of(GlobalElement g) const;
    BlockNumber block_of(GlobalElement g) const;
    /// The end of the block that holds `g`: up to there elements lie next to each other on one part.
    GlobalElement block_end(GlobalElement g) const;
    /// @pre 0 <= l < count(part)
    GlobalElement global_of(int part, LocalElement l) const;
    /// Elements of a part; and those of them before `g`.
    std::int64_t count(int part) const { return before(part, {extent}); }
    std::int64_t before(int part, GlobalElement g) const;
    /// Elements of all parts before it: with them the elements of a part are one interval [first, first + count).
    /// Schedules use these coordinates, in which every part is a box.
    std::int64_t first(int part) const;
    /// Whether elements lie on the same parts.
    bool same(const Axis& other) const;

private:
    std::shared_ptr<const Dealt> dealt_;  // null: parts take turns
};

/// A matrix on a grid of ranks: part (i, j) of its two axes lies on rank i * columns.parts + j, or with
/// `ranks_by_column` on rank i + j * rows.parts. Ranks beyond the grid have nothing.
struct BlockCyclic {
    Axis rows, columns;
    bool ranks_by_column = false;

    int ranks() const { return rows.parts * columns.parts; }
    int rank_of(int row, int column) const {
        return ranks_by_column ? row + column * rows.parts : row * columns.parts + column;
    }
    /// The part of a rank along the rows and along the columns; (-1, -1) beyond the grid.
    int row_of(int rank) const {
        return rank >= ranks() ? -1 : ranks_by_column ? rank % rows.parts : rank / columns.parts;
    }
    int column_of(int rank) const {
        return rank >= ranks() ? -1 : ranks_by_column ? rank / rows.parts : rank % columns.parts;
    }
    /// What a rank has, in the coordinates of Axis::first.
    Box owned(int rank) const;
    BlockCyclic transposed() const { return {columns, rows, !ranks_by_column}; }
    /// The same grid and blocks with as much for each rank as its weight says: a row and a column of the grid have the
    /// sums of those of their ranks. Without weights parts take turns.
    /// @pre as Axis; a weight for each rank of the grid, and maybe for others
    BlockCyclic in_proportion(const Weights& weights) const;
    /// Weights with which in_proportion() gives this layout; empty: parts take turns.
    Weights weights() const;
    /// Whether elements lie on the same ranks.
    bool same(const BlockCyclic& other) const;
};

}  // namespace tilewave
