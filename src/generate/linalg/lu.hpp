// LU factors with partial pivoting, of matrices by block columns: one rank's schedule.
#pragma once
#include "generate/linalg/factor.hpp"

namespace tilewave {

/// P A = L U in place, rows interchanged in all columns. A panel has all tiles from the diagonal down, and one more
/// with its pivots.
/// @pre as cholesky() (ConfigError)
Schedule lu(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks);

}  // namespace tilewave
