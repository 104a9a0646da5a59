// The residues that the points of integer space leave in a tile.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "polyhedral/rational.hpp"

namespace tilewave {

/// Basis, as the columns of a lower triangular matrix with a positive diagonal (Hermite
/// normal form), of the lattice of all A j + diag(moduli) z with integer j and z.
/// @pre moduli > 0 (not checked)
IntMatrix residue_basis(const IntMatrix& a, std::span<const std::int64_t> moduli);

}  // namespace tilewave
