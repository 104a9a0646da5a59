// How a matrix is meant.
#pragma once
#include <cstdint>

namespace tilewave {

/// As it is, transposed, or transposed and conjugate.
enum class Transpose : std::uint8_t { none, transposed, adjoint };

}  // namespace tilewave
