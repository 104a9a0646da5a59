// Moving a matrix from one block-cyclic layout to another.
#pragma once
#include <vector>

#include "tilewave/engine/block_cyclic.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// Elements of one rank that another one gets, along one dimension: `count` elements next to each other on both.
struct CommonRun {
    std::int64_t from = 0, to = 0, count = 0;  ///< first local elements of either
};
/// The runs in ascending order of the elements that part `p` of `from` and part `q` of `to` both have.
std::vector<CommonRun> common_runs(const Axis& from, int p, const Axis& to, int q);

/// How elements move between any two ranks, and in which pieces.
///
/// Round q moves from every rank to the rank q above it, round 0 within each rank. A piece is some columns of what
/// moves, of at most chunk_bytes where one column is not more. Memory beyond the two matrices: four pieces a rank.
class MatrixMove {
public:
    /// @pre equal extents; both grids on at most `ranks` ranks (ConfigError)
    MatrixMove(const BlockCyclic& from, const BlockCyclic& to, std::int64_t item_bytes, int ranks,
               std::int64_t chunk_bytes = 1 << 20);

    struct Piece {
        int source = 0, target = 0;
        std::int64_t columns_lo = 0, columns_hi = 0;  ///< of the common columns, counted
        std::int64_t items = 0;
    };
    std::vector<Piece> pieces(int source, int target) const;
    std::vector<CommonRun> rows(int source, int target) const;
    std::vector<CommonRun> columns(int source, int target) const;

    BlockCyclic from, to;
    std::int64_t item_bytes;
    int ranks;
    std::int64_t chunk_bytes;

    /// The number of the work that packs, unpacks or copies a piece; and back.
    std::int64_t pack_number(const Piece& piece, std::int64_t index) const;
    std::int64_t result_number(const Piece& piece, std::int64_t index) const;
    std::int64_t unpack_number(const Piece& piece, std::int64_t index) const;
    struct Named {
        int source = 0, target = 0;
        std::int64_t index = 0;
    };
    Named named(std::int64_t number) const;
};

/// Arrays and operations of a schedule that moves a matrix.
enum class MoveArray { from, to, out, in };
enum class MoveTask { pack, unpack, copy };

/// The part of one rank. Arrays are those of MoveArray; the matrices are in the coordinates of BlockCyclic::owned.
Schedule move_matrix(const MatrixMove& move, int rank);

}  // namespace tilewave
