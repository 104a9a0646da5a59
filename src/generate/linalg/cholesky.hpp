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
/// what a panel contributes from some tiles of a block column; copy_panel copies a block column's tiles; and the two
/// steps of solving with a panel.
enum FactorTask : std::int32_t { factor_panel, update_column, copy_panel, solve_down, solve_up };

/// A = L L^H in place, of the lower triangle. Panel k goes to all ranks; its owner has updated block column k first, so
/// that it travels while all others are updated (look-ahead).
/// @pre a matrix of square shape by block columns, all its ranks the first of `ranks` (ConfigError)
Schedule cholesky(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                  int ranks);

/// X = L^-1 B (`up` false) or X = L^-H B (`up` true) in place, B by columns: every rank solves for its own columns
/// while the panels of L go round.
/// @pre as cholesky(); sides of as many rows, by columns on ranks of its own (ConfigError)
Schedule triangular_solve(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes, bool up,
                          const FactorChoices& choices, int rank, int ranks);

}  // namespace tilewave
