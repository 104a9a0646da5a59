// How matrices are multiplied and factored: what callers may choose, and what has been chosen.
#pragma once
#include <array>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>

#include "tilewave/matrix.hpp"

namespace tilewave {

/// How the blocks of a product travel.
enum class ProductAlgorithm : std::uint8_t {
    broadcast,  ///< panels go to all that need them, around rings or down trees
    wavefront,  ///< blocks of B go from rank to rank: part i of C meets block j in wave i + j (wolfmann2010)
    summa       ///< panels of the common dimension, on any grid
};

/// How a product goes; what is not given is predicted.
struct ProductOptions {
    std::complex<double> alpha = 1, beta = 0;  ///< with beta 0 what C holds is not read
    Transpose op_a = Transpose::none, op_b = Transpose::none;
    std::optional<ProductAlgorithm> algorithm = {};
    std::optional<bool> pending = {};               ///< wavefront: a pending block for every other rank
    std::optional<bool> least_rounds = {};          ///< panels go down a tree; else around a ring
    std::optional<int> lookahead = {};              ///< panels that travel beside the one in use
    std::optional<std::int64_t> panel = {};         ///< columns, or common elements, of a panel at most
    std::optional<double> task_flops = {};          ///< of a task at most: after each a lane looks at its messages
    std::optional<bool> wide_blocks = {};           ///< operands in narrow blocks are redistributed in wider ones first
    std::optional<std::int64_t> memory_bytes = {};  ///< that each rank may use beyond the three matrices
};

/// The choices of a product.
struct ProductPlan {
    ProductAlgorithm algorithm = ProductAlgorithm::broadcast;
    bool least_rounds = false, pending = false;
    int lookahead = 1;
    std::int64_t panel = 256;
    double task_flops = 5e7;
    std::array<bool, 3> moved{};    ///< of A, B and C: redistributed first
    std::int64_t memory_bytes = 0;  ///< of the rank that needs most, beyond the matrices: panels and copies
    double predicted_s = -1;        ///< -1: nothing was compared
    bool wide_blocks = false;       ///< narrow blocks of the common dimension are made wider by that
    std::string text() const;
};

/// How a factorization goes; what is not given is predicted.
struct FactorOptions {
    std::optional<std::int64_t> block = {};         ///< columns of a panel
    std::optional<int> lookahead = {};              ///< panels that travel beside the one in use
    std::optional<bool> least_rounds = {};          ///< panels go down a tree; else around a ring
    std::optional<bool> wavefront = {};             ///< chunks of a panel are used as they come; else whole panels
    std::optional<std::int64_t> memory_bytes = {};  ///< that each rank may use beyond the matrices
};

/// The choices of a factorization.
struct FactorPlan {
    bool wavefront = false, least_rounds = false;
    int lookahead = 1;
    std::int64_t block = 128;
    std::int64_t chunk_bytes = 256 << 10;  ///< of a panel's messages
    std::int64_t memory_bytes = 0;         ///< of a rank beyond the matrices: panels on their way
    double predicted_s = -1;               ///< -1: nothing was compared
    std::string text() const;
};

}  // namespace tilewave
