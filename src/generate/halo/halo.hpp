// Which points a rank gets from which rank, and gives to which, so that halos hold the values of their owners.
#pragma once
#include <vector>

#include "tilewave/engine/layout.hpp"

namespace tilewave {

/// A box of points of one owner that lies in the halo of one rank.
struct HaloPiece {
    int peer = 0;  ///< of a piece to send: the rank that needs it; else its owner
    Box owned;     ///< as the owner counts it: within its block
    Box halo;  ///< as the rank that needs it counts it: within its storage; lies beyond the array where an axis wraps
    int axes = 0;  ///< along how many axes it lies outside the block: 1 of a face, 2 of an edge, 3 of a corner in space
    friend bool operator==(const HaloPiece&, const HaloPiece&) = default;
};

/// One rank's part in an update of halos. Pieces are in the order of peers. Pieces of equal peers are in the order of
/// the first points of `halo`, so that the two ranks list the pieces between them in the same order.
struct HaloPieces {
    std::vector<HaloPiece> sends;
    std::vector<HaloPiece> receives;
    std::vector<HaloPiece> copies;  ///< from this rank's block to its halo, where an axis wraps around

    bool empty() const { return sends.empty() && receives.empty() && copies.empty(); }
};

/// The pieces of `rank`. Together `receives` and `copies` cover each point of its halo once: of storage(rank) without
/// owned(rank), and of that only what lies outside the block along at most `axes` axes. axes 1: faces, as a star needs;
/// 2: edges, too; the number of dimensions: all.
///
/// Widths may differ by axis and side. They may be larger than blocks, whose halo then has several owners along that
/// axis, and, where the axis wraps, larger than the array. Ranks without points have no pieces.
/// Costs O(pieces of the rank), however many ranks there are.
/// @pre rank >= 0, axes >= 0 (ConfigError)
HaloPieces halo_pieces(const Layout& layout, int rank, int axes = max_dims);

}  // namespace tilewave
