// How matrices are factored: what callers may choose, and what has been chosen.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tilewave {

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
    std::int64_t memory_bytes = 0;  ///< of a rank beyond the matrices: panels on their way
    double predicted_s = -1;        ///< -1: nothing was compared
    std::string text() const;
};

}  // namespace tilewave
