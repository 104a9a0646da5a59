// QR factors by Householder reflections, of matrices by block columns: one rank's schedule.
#pragma once
#include "generate/linalg/factor.hpp"

namespace tilewave {

/// A = Q R in place, of any shape, as LAPACK has it: R, and below the diagonal the reflectors V. Of each panel Q is
/// I - V T V^H (compact WY); the triangles T stay beside the matrix, in triangles_of(). A panel has the tiles of V from
/// the diagonal down, whose upper triangle is 0 with ones on the diagonal, and one more with T.
/// @pre a matrix by block columns, all its ranks the first of `ranks` (ConfigError)
Schedule qr(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks);

}  // namespace tilewave
