// Which boxes of a schedule a rate is measured on.
#pragma once
#include <cstdint>
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

using Pieces = std::vector<std::vector<Box>>;  // by lane

/// The schedule that computes these boxes and does nothing else.
Schedule computing(const Schedule& s, const Pieces& boxes);

/// Whether a row goes along a dimension, too.
std::vector<bool> varied_by_rows(const Schedule& s);

/// The tiles of each lane, from the one at a third on and from where they are whole.
Pieces tiles_by_lane(const Schedule& s);

/// What all lanes have, in turn, for the first of them: about `total` points.
Pieces on_one_lane(const Pieces& tiles, std::int64_t total);

/// Tiles, those of more than `limit` points cut into layers of the dimensions that `keep` does not name, or else into
/// halves; `total` points a lane.
Pieces cut(const Pieces& tiles, std::int64_t limit, std::int64_t total, const std::vector<bool>& keep);

/// The boxes cut into strips of `most` points along a row, or a quarter of it, up to `total` points a lane: what they
/// hold streams from where long rows have it, too.
Pieces strips(const Pieces& boxes, const std::vector<bool>& rows, std::int64_t most, std::int64_t total);

/// The middle of each of a few boxes: at most `most` points, or a quarter, along what `dims` says, the whole of it
/// along the rest.
Pieces middles(const Pieces& boxes, const std::vector<bool>& dims, std::int64_t most);

}  // namespace tilewave
