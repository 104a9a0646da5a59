// How matrices are multiplied and factored: the choices, each declared once. Options, plans, the bindings, and Python's
// keywords, checks and documentation are made from these lists.
#pragma once
#include <array>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>

#include "tilewave/engine/matrix.hpp"
#include "tilewave/engine/plan_choices.hpp"

namespace tilewave {

/// How the blocks of a product travel. summa: panels of the common dimension, on any grid.
enum class ProductAlgorithm : std::uint8_t { broadcast, wavefront, summa };
/// How the panels of a factor travel.
enum class FactorAlgorithm : std::uint8_t { broadcast, wavefront };
/// The route of a broadcast. ring: each rank to the next, so that every link carries a panel once, in chunks.
/// least_rounds: a binomial tree, ceil(log2 ranks) messages one after another.
enum class BroadcastTree : std::uint8_t { ring, least_rounds };

template <>
inline constexpr std::array choice_names<ProductAlgorithm>{"broadcast", "wavefront", "summa"};
template <>
inline constexpr std::array choice_names<FactorAlgorithm>{"broadcast", "wavefront"};
template <>
inline constexpr std::array choice_names<BroadcastTree>{"ring", "least_rounds"};

// clang-format off
/// X(type, name, default, least value, documentation). To add a choice, add a line, and read `plan.name` where it
/// decides.
#define TILEWAVE_PRODUCT_CHOICES(X) \
    X(ProductAlgorithm, algorithm, ProductAlgorithm::broadcast, unbounded, \
      "broadcast: panels go to all that need them, by rings or trees. wavefront: blocks of B go from rank to rank, " \
      "part i of C meets block j in wave i + j (wolfmann2010). summa: panels of the common dimension, on any grid.") \
    X(int, lookahead, 1, 0, \
      "Panels that travel while another one is used.") \
    X(std::int64_t, panel, 256, 1, \
      "Columns, or common elements, of a panel at most.") \
    X(BroadcastTree, tree, BroadcastTree::ring, unbounded, \
      "The route of broadcasts.") \
    X(bool, pending, false, unbounded, \
      "Of wavefront: one receive for every other rank is open; blocks are used in order of arrival.") \
    X(double, task_flops, 5e7, 1, \
      "Flops of a task at most: a lane looks at the messages after each.") \
    X(bool, wide_blocks, false, unbounded, \
      "Operands whose blocks of the common dimension are narrow are redistributed in wider ones.")

#define TILEWAVE_FACTOR_CHOICES(X) \
    X(Index, grid, Index(), unbounded, \
      "Ranks along the rows and the columns of the matrix. Ranks beyond the grid have nothing to do.") \
    X(std::int64_t, block, 128, 1, \
      "Columns of a panel; rows of a block, too, where the grid has several rows.") \
    X(int, lookahead, 1, 0, \
      "Panels that travel while another one is used.") \
    X(BroadcastTree, tree, BroadcastTree::ring, unbounded, \
      "The route of broadcasts.") \
    X(FactorAlgorithm, algorithm, FactorAlgorithm::broadcast, unbounded, \
      "broadcast: a panel is used when all of it is there. wavefront: it goes from rank to rank, and each chunk is " \
      "used as it comes.") \
    X(std::int64_t, chunk_bytes, 256 << 10, 1, \
      "Of a panel's messages.")
// clang-format on

#define TILEWAVE_CHOICE(type, name, otherwise, least, text) std::optional<type> name = {};
/// How a product goes; what is not given is predicted.
struct ProductOptions {
    std::complex<double> alpha = 1, beta = 0;  ///< with beta 0 what C holds is not read
    Transpose op_a = Transpose::none, op_b = Transpose::none;
    TILEWAVE_PRODUCT_CHOICES(TILEWAVE_CHOICE)
    std::optional<std::int64_t> memory_bytes = {};  ///< that each rank may use beyond the three matrices
    /// In proportion to which ranks have parts of C; empty: as C lies.
    std::optional<Weights> weights = {};
};

/// How a factorization or a triangular solve goes; what is not given is predicted.
struct FactorOptions {
    TILEWAVE_FACTOR_CHOICES(TILEWAVE_CHOICE)
    std::optional<std::int64_t> memory_bytes = {};  ///< that each rank may use beyond the matrices
    /// In proportion to which ranks have blocks; empty: parts take turns. Not given: as the matrix lies, else those of
    /// the machine where that is predicted faster.
    std::optional<Weights> weights = {};
};
#undef TILEWAVE_CHOICE

#define TILEWAVE_CHOICE(type, name, otherwise, least, text) type name = otherwise;
/// The choices of a product.
struct ProductPlan {
    TILEWAVE_PRODUCT_CHOICES(TILEWAVE_CHOICE)
    std::array<bool, 3> moved{};    ///< of A, B and C: redistributed first
    bool in_proportion = false;     ///< ranks have parts of C in proportion to their weights
    std::int64_t memory_bytes = 0;  ///< of the rank that needs most, beyond the matrices: panels and copies
    double predicted_s = -1;        ///< -1: nothing was compared
    std::string text() const;
};

/// The choices of a factorization.
struct FactorPlan {
    TILEWAVE_FACTOR_CHOICES(TILEWAVE_CHOICE)
    bool in_proportion = false;     ///< ranks have blocks in proportion to their weights
    std::int64_t memory_bytes = 0;  ///< of a rank beyond the matrices: panels in flight
    std::int64_t sent_bytes = 0;    ///< by rank 0
    /// What each of P ranks with memory for M elements must send at least, to leading order: LU 2 n^3 / (3 P sqrt(M))
    /// elements, Cholesky half of it (kwasniewski2021). 0: not known.
    std::int64_t least_sent_bytes = 0;
    double predicted_s = -1;  ///< -1: nothing was compared
    double moving_s = 0;      ///< predicted, of redistributing the matrix first
    std::string text() const;
};
#undef TILEWAVE_CHOICE

/// "lookahead=2, panel=3": the choices that are given, without alpha, beta and op.
std::string text_of(const ProductOptions& options);
std::string text_of(const FactorOptions& options);
/// @pre what is given is no less than the least value of the choice, with a weight from 1 to most_weight for each of
/// `ranks` ranks (ConfigError, which begins with `call`)
void check_choices(const std::string& call, const ProductOptions& options, int ranks);
void check_choices(const std::string& call, const FactorOptions& options, int ranks);

}  // namespace tilewave
