// Cholesky factors of matrices by block columns, and solving with them: one rank's schedule.
#pragma once
#include "generate/linalg/panel_ring.hpp"

namespace tilewave {

struct FactorChoices {
    BroadcastTree tree = BroadcastTree::ring;
    int lookahead = 1;  ///< panels that may travel beside the one in use
    int lanes = 1;
    std::int64_t chunk_bytes = 256 << 10;
    double task_flops = 5e7;
};

/// Arrays of the schedules: the matrix, or the right-hand sides beside it; and the panel on its way.
enum FactorArray : std::int32_t { factor_matrix, factor_panels, factor_sides };
/// Operations: factor_panel updates a block column and writes its tiles below the diagonal; update_column subtracts
/// what a panel contributes from some tiles of a block column; copy_panel copies a block column's tiles; then the steps
/// of solving with a panel, by TriangularSolve, and those of generate/linalg/lu.hpp.
enum FactorTask : std::int32_t {
    factor_panel,
    update_column,
    copy_panel,
    solve_lower,
    solve_lower_adjoint,
    solve_unit_lower,
    solve_upper,
    lu_panel,
    lu_swap,
    lu_row,
    lu_update
};
/// Which triangle of the matrix, and whether its conjugate transposed is meant.
enum class TriangularSolve : std::uint8_t { lower, lower_adjoint, unit_lower, upper };

/// The array of a matrix by columns.
Array by_columns(std::int64_t item_bytes, const Box& owned);
/// @throws ConfigError where it is not square, by block columns on at most so many ranks
void require_block_columns(const BlockCyclic& layout, int ranks);

/// A = L L^H in place, of the lower triangle. Panel k goes to all ranks; its owner has updated block column k first, so
/// that it travels while all others are updated (look-ahead).
/// @pre a matrix of square shape by block columns, all its ranks the first of `ranks` (ConfigError)
Schedule cholesky(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                  int ranks);

/// B becomes op(T)^-1 B, B by columns: every rank solves for its own columns while the panels of T go round.
/// @pre as cholesky(); sides of as many rows, by columns on ranks of its own (ConfigError)
Schedule triangular_solve(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes,
                          TriangularSolve kind, const FactorChoices& choices, int rank, int ranks);

}  // namespace tilewave
