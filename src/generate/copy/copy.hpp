// Moving whole arrays between layouts: redistribution and gather as schedules.
#pragma once
#include <vector>

#include "tilewave/engine/layout.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// `region` cut along its outer dimensions into boxes of at most `chunk_bytes` (a single row
/// of the last dimension is cut too); the region itself where it is small enough.
std::vector<Box> chunks(const Box& region, std::int64_t item_bytes, std::int64_t chunk_bytes);

/// The part of `rank` of `ranks` in moving an array from layout `from` to layout `to` (same shape); array 0
/// is the source, array 1 the target; only owned points move. The strides are those of the two
/// storages, in items (empty: row-major). Staging is bounded by about 8 chunks whatever the size.
/// Costs O(chunks, and ranks that own a point of what `rank` has or gets).
/// @pre from.shape == to.shape (ConfigError)
/// @pre 0 <= rank < ranks, from.ranks() <= ranks, to.ranks() <= ranks (ConfigError)
Schedule redistribute(const Layout& from, const Layout& to, std::int64_t item_bytes, int rank, int ranks,
                      std::int64_t chunk_bytes = 1 << 20, const Index& from_stride = {}, const Index& to_stride = {});

/// The part of `rank` of `ranks` in bringing the owned points of all ranks together in a whole array on
/// rank 0 (array 1 there; empty elsewhere). Staging is bounded as in redistribute().
/// @pre 0 <= rank < ranks, from.ranks() <= ranks (ConfigError)
Schedule gather_schedule(const Layout& from, std::int64_t item_bytes, int rank, int ranks,
                         std::int64_t chunk_bytes = 1 << 20, const Index& stride = {});
/// The part of `rank` of `ranks` in giving every rank the owned points of all, in a whole array (array 1). Staging is
/// bounded as in redistribute().
/// @pre 0 <= rank < ranks, from.ranks() <= ranks (ConfigError)
Schedule spread_schedule(const Layout& from, std::int64_t item_bytes, int rank, int ranks,
                         std::int64_t chunk_bytes = 1 << 20, const Index& stride = {});
/// The `number`-th of the parts of so many points into which a block is cut from its first point on, in row-major
/// order; empty behind the last.
/// @pre extents >= 1, number >= 0
Box part_of(const Box& block, const Index& extents, std::int64_t number);
/// The part of `rank` of `ranks` in giving every rank the `number`-th part of its block in layout `to`, row-major
/// (array 1). Staging is bounded as in redistribute().
/// @pre as redistribute(), and as part_of()
Schedule collect_schedule(const Layout& from, const Layout& to, const Index& extents, std::int64_t number,
                          std::int64_t item_bytes, int rank, int ranks, std::int64_t chunk_bytes = 1 << 20,
                          const Index& stride = {});
/// The reverse of gather_schedule(): rank 0's whole array (array 0 there) to the blocks of all ranks (array 1).
/// @pre 0 <= rank < ranks, to.ranks() <= ranks (ConfigError)
Schedule scatter_schedule(const Layout& to, std::int64_t item_bytes, int rank, int ranks,
                          std::int64_t chunk_bytes = 1 << 20, const Index& stride = {});

}  // namespace tilewave
