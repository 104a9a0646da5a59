// A chain whose nests take turns tile by tile, over several repetitions.
#pragma once
#include "generate/chain/chain.hpp"

namespace tilewave {

/// How far the nests of a chain take turns.
struct ChainFusion {
    std::int64_t rows = 0;         ///< of a slice of a tile, at most; 0: nests follow each other whole
    std::int64_t repetitions = 1;  ///< that take turns; with `cycle` above 1 a multiple of it
    std::int64_t cycle = 1;        ///< after so many repetitions time buffers are where they were
    std::int64_t pieces = 1;       ///< slices of a lane
};

/// What is predicted to be best, equal on all ranks: slices of all nests whose elements fit in a core's cache together,
/// over as many repetitions as do, where the arrays of a rank do not fit.
ChainFusion chain_fusion(std::span<const ChainPart> parts);

/// The part of `rank` in so many repetitions of the chain, its nests taking turns (schedule/fuse.hpp). Pure.
/// @pre as chain()
Schedule fused_chain(std::span<const ChainPart> parts, int rank, int ranks, std::int32_t tags,
                     const ChainFusion& fusion, std::int64_t repetitions);

/// The parts of so many repetitions.
std::vector<ChainPart> repeated_parts(std::span<const ChainPart> parts, std::int64_t repetitions);

}  // namespace tilewave
