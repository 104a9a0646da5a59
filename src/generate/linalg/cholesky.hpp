// Cholesky factors of matrices by block columns: one rank's schedule.
#pragma once
#include "generate/linalg/factor.hpp"

namespace tilewave {

/// A = L L^H in place, of the lower triangle. A panel has the tiles below the diagonal.
/// @pre a matrix of square shape by block columns, all its ranks the first of `ranks` (ConfigError)
Schedule cholesky(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                  int ranks);

}  // namespace tilewave
