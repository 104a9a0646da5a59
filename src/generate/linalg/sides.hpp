// What a factor or a triangle does to right-hand sides by columns: every rank works on the columns that it owns while
// the panels of the matrix go round. One rank's schedule.
#pragma once
#include "generate/linalg/factor.hpp"

namespace tilewave {

/// B becomes op(T)^-1 B.
/// @pre as cholesky(); sides of as many rows, by columns on at least the ranks of the matrix (ConfigError)
Schedule triangular_solve(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes,
                          const TriangularSystem& system, const FactorChoices& choices, int rank, int ranks);

/// Which product of reflectors.
struct Reflection {
    bool adjoint = false;   ///< Q^H, else Q
    bool identity = false;  ///< of Q: B is the identity, and columns that a panel leaves as they are are left out
};

/// B becomes Q B or Q^H B, with Q of qr(): the matrix holds its reflectors, triangles_of() their triangles.
/// @pre as qr(); sides of as many rows, by columns on at least the ranks of the matrix (ConfigError)
Schedule apply_reflectors(const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item_bytes,
                          const Reflection& what, const FactorChoices& choices, int rank, int ranks);

}  // namespace tilewave
