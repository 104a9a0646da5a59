// The factors of matrices by block columns: one rank's schedule.
#pragma once
#include "generate/linalg/matmul.hpp"

namespace tilewave {

/// A part of a factor, for predictions: some steps on some columns of the grid, whose ranks are numbered anew, row by
/// row. Of a panel that a column of ranks makes, some columns; tasks stand for those left out.
struct FactorPart {
    std::int64_t first_step = 0, steps = 0;  ///< 0 steps: all; -1: the first panel alone
    int first_column = 0, columns = 0;       ///< 0 columns: all
    std::int64_t panel_columns = 0;          ///< 0: all
};

struct FactorChoices {
    bool wavefront = false;  ///< of factors: block columns wait for the chunks of a panel one by one
    BroadcastTree tree = BroadcastTree::ring;
    int lookahead = 1;  ///< panels that may travel while another one is used
    int lanes = 1;
    std::int64_t chunk_bytes = 256 << 10;
    double task_flops = 5e7;
    FactorPart part = {};
};

/// A = L L^H in place, of the lower triangle. A panel has the tiles below the diagonal.
/// @pre a matrix of square shape by block columns, all its ranks the first of `ranks` (ConfigError)
Schedule cholesky(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                  int ranks);

/// P A = L U in place, rows interchanged in all columns. A panel has all tiles from the diagonal down, and one more
/// with its pivots.
/// @pre as cholesky() (ConfigError)
Schedule lu(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks);

/// A = Q R in place, of any shape, as LAPACK has it: R, and below the diagonal the reflectors V. Of each panel Q is
/// I - V T V^H (compact WY); the triangles T have another array, in triangles_of(). A panel has the tiles of V from
/// the diagonal down, whose upper triangle is 0 with ones on the diagonal, and one more with T.
/// @pre a matrix by block columns, all its ranks the first of `ranks` (ConfigError)
Schedule qr(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks);

}  // namespace tilewave
