// Moving a matrix from one layout to another.
#pragma once
#include "generate/linalg/redistribute.hpp"
#include "tilewave/context.hpp"
#include "tilewave/kernel.hpp"

namespace tilewave {

/// Moves a matrix: `from` and `to` say where this rank's first element of either lies. Collective; the ranks must have
/// agreed before.
/// @throws Interrupted where a rank was interrupted
void run_move(Context& context, const MatrixMove& move, const Binding& from, const Binding& to);

}  // namespace tilewave
