// How an array is spread over the ranks: a process grid, each dimension cut into blocks, even ones or in proportion.
#pragma once
#include <array>
#include <vector>

#include "tilewave/index.hpp"

namespace tilewave {

/// Start of block `part` of `parts` even blocks of `extent` points; the first extent % parts
/// blocks have one point more, and blocks are empty where parts > extent.
std::int64_t block_start(std::int64_t extent, std::int64_t parts, std::int64_t part);
/// Of a box that is cut into such blocks along dimension k, one.
Box even_part(const Box& box, int k, std::int64_t parts, std::int64_t part);
/// The block that holds point `at`.
/// @pre 0 <= at < extent
std::int64_t block_with(std::int64_t extent, std::int64_t parts, std::int64_t at);

/// A number for each rank, in proportion to which it has points.
struct Weights : std::vector<std::int64_t> {
    using vector::vector;
};
inline constexpr std::int64_t most_weight = 1'000'000;
std::string to_string(const Weights& weights);

/// Where an array is cut into blocks along one dimension.
///
/// Block c begins where block c of `of` points begins, in even blocks: at element shift + ceil(scale p / per) for point
/// p. So blocks of a coarse grid (per elements fewer) and of a fine one (scale elements for each point) lie together,
/// whatever lies around the cells. What is before the first point belongs to block 0, what is behind the last one to
/// the last block that has elements of points.
struct Cut {
    std::int64_t of = -1;  ///< below 0: no cut is given
    std::int64_t scale = 1, per = 1, shift = 0;
    std::int64_t every = 1;  ///< the first of so many blocks has the points of all of them, the others have none
    /// Elements are every `step`-th of those, from `first` on, counted from `moved`; and `times` as many.
    std::int64_t first = 0, step = 1, moved = 0, times = 1;
    /// Where each block of points begins, and the last one ends; empty, or for another number of blocks: even blocks.
    std::vector<std::int64_t> begins = {};

    /// Even blocks.
    static Cut even(std::int64_t extent) { return Cut{extent}; }
    /// The same of the array that has every `step`-th element from `first` on.
    Cut part(std::int64_t first, std::int64_t step) const;
    /// The same with elements counted from `by`.
    Cut moved_by(std::int64_t by) const;
    /// The same with so many elements for each.
    Cut times_of(std::int64_t times) const;
    /// The same with a block of points for each weight, in proportion; even blocks where weights are equal.
    /// @pre weights >= 1
    Cut in_proportion(const std::vector<std::int64_t>& weights) const;
    /// Where block c of `parts` begins in an array of `extent` elements; c may be the number of blocks.
    std::int64_t start(std::int64_t parts, std::int64_t c, std::int64_t extent) const;
    /// The block that has element `at` of the array.
    std::int64_t block_at(std::int64_t parts, std::int64_t at) const;
    friend bool operator==(const Cut&, const Cut&) = default;

private:
    std::int64_t point_start(std::int64_t parts, std::int64_t block) const;
    std::int64_t block_of(std::int64_t parts, std::int64_t point) const;
};

/// A block distribution: array extents, ranks along each dimension (row-major rank order) and
/// the halo widths of each block's storage below and above its owned points. Ranks beyond the grid have no points.
struct Layout {
    Index shape, grid, halo_lo, halo_hi;
    Index wraps = {};  ///< 1 for periodic dimensions: halos go on beyond the array's ends there; empty: none is
    std::array<Cut, max_dims> cuts = {};  ///< by dimension; by default even blocks
    bool beside_nothing = false;          ///< empty blocks have halos, too: their ranks may compute there

    /// @pre shape, grid and halos have equal dims, 1 to max_dims (ConfigError)
    /// @pre every extent >= 0, every grid entry >= 1, every halo >= 0 (ConfigError)
    Layout(Index shape, Index grid, Index halo_lo, Index halo_hi);
    /// The same with blocks that follow even blocks of `of` points, `scale` to 1.
    /// @pre of and scale have the dimensions of shape, of >= 0, scale >= 1 (ConfigError)
    Layout following(const Index& of, const Index& scale) const;
    /// The same with these cuts, one for each dimension.
    Layout cut_as(const std::vector<Cut>& others) const;
    /// The same without halos where a rank has all of a dimension, and no neighbour there. So what nests read of an
    /// array decides nothing of its layout on one rank.
    Layout without_idle_halos() const;
    /// Without halos.
    Layout(Index shape, Index grid) : Layout(shape, grid, Index::filled(shape.n, 0), Index::filled(shape.n, 0)) {}

    int dims() const { return shape.n; }
    /// Ranks that have a block.
    int ranks() const;
    /// @pre 0 <= rank < ranks()
    Index coords(int rank) const;
    Box whole() const { return {Index::filled(shape.n, 0), shape}; }
    /// What `rank` owns; blocks of all ranks cover the array once.
    Box owned(int rank) const;
    /// Owned points and halo, clipped to the array but along periodic dimensions; empty where nothing is owned, unless
    /// empty blocks have halos.
    Box storage(int rank) const;
    /// The owners of points of `region`, ascending; costs O(their number).
    std::vector<int> owners(const Box& region) const;
    /// The ranks of a box of grid coordinates, ascending.
    /// @pre `coords` lies inside the grid
    std::vector<int> ranks_at(const Box& coords) const;
    /// Where the block of grid coordinate `c` begins along dimension k; c may be the number of blocks.
    std::int64_t start(int k, std::int64_t c) const { return cuts[k].start(grid[k], c, shape[k]); }
    /// The grid coordinate of the block that has point `at` along dimension k.
    /// @pre 0 <= at < shape[k]
    std::int64_t block_at(int k, std::int64_t at) const { return cuts[k].block_at(grid[k], at); }
    /// Equal shape and grid, and the same points are owned by the same ranks.
    bool same_blocks(const Layout& other) const;
    /// Each rank owns the same points and has the same halos, however the blocks are described.
    bool same_storage(const Layout& other) const;
    friend bool operator==(const Layout&, const Layout&) = default;
};

/// The process grid of `ranks` ranks over the dimensions other than `fixed` (-1: over all) that
/// gives blocks of `shape` the least surface; ties go to the earlier dimensions.
/// A 1-D shape is cut along its only dimension.
Index default_grid(const Index& shape, int ranks, int fixed);
/// The same, where any number of dimensions stay whole.
/// @pre some dimension is not whole, or there is one rank (ConfigError)
Index default_grid(const Index& shape, int ranks, const std::vector<bool>& whole);

/// How a box of an array lies in memory: items between neighbours along each dimension, from the
/// first item of memory to the box's first point, and of memory in all.
struct MemoryOrder {
    Index stride;
    std::int64_t first = 0, items = 0;

    /// Large boxes whose points are a large power of two, or a multiple of one, have items behind their last point.
    /// Time buffers, which lie one behind the other, would otherwise share the banks of the memory.
    static MemoryOrder row_major(const Box& storage);
    friend bool operator==(const MemoryOrder&, const MemoryOrder&) = default;
};

/// Bytes between neighbours along each dimension of a row-major box.
Index row_major_strides(const Box& storage, std::int64_t item_bytes);
/// Whether `region` is one run of memory in the row-major `storage`.
bool contiguous(const Box& region, const Box& storage);

}  // namespace tilewave
