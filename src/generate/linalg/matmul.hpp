// Matrix products on block distributions: one rank's schedule.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "tilewave/engine/block_cyclic.hpp"
#include "tilewave/engine/linalg_plan.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// How the blocks of a product travel.
enum class MatmulAlgorithm : std::uint8_t {
    broadcast,  ///< panels are broadcast, each to those who need it, some panels ahead
    wavefront,  ///< blocks of B go from rank to rank: part i of C meets block j in wave i + j
};
/// C = A B, each as it enters the product: transposed already where the user's is.
///
/// Either C and A have the same rows and B's columns meet C's, on one grid (panels along the common dimension), or C
/// and A lie by rows on all ranks and B by columns (panels of B's columns, wolfmann2010). See fits().
struct MatmulProblem {
    BlockCyclic a, b, c;
    std::int64_t item_bytes = 8;
    bool adds = false;              ///< to what C holds (beta is not 0)
    std::array<bool, 3> flipped{};  ///< memory of a, b, c goes along columns fast (false) or rows (true)
};

struct MatmulChoices {
    MatmulAlgorithm algorithm = MatmulAlgorithm::broadcast;
    BroadcastTree tree = BroadcastTree::ring;
    int lookahead = 1;         ///< panels that travel while another one is used
    std::int64_t panel = 256;  ///< common elements of a panel at most; of narrow blocks of B, columns
    bool pending = false;      ///< wavefront: a pending block for every other rank, a lane each; whichever is there
    int lanes = 1;             ///< that share the work on each panel
    std::int64_t chunk_bytes = 256 << 10;  ///< of messages
    double task_flops = 5e7;               ///< of one task: a lane polls after each
};

/// Arrays of the schedule. Of many pending blocks there is a moving array for each rank that sends.
enum MatmulArray : std::int32_t { array_a, array_b, array_c, moving_a, moving_b };
/// Operations of its tasks.
enum MatmulTask : std::int32_t { copy_a, copy_b, first_product, add_product, scale_c };

/// What the layouts do not allow; empty where they fit the algorithm.
std::string fits(const MatmulProblem& problem, const MatmulChoices& choices);

/// One rank's part. Amounts: flops of products (2 m n k), bytes of copies.
/// @pre fits(); lookahead >= 0, panel >= 1, lanes >= 1 (ConfigError)
Schedule matmul(const MatmulProblem& problem, const MatmulChoices& choices, int rank, int ranks);

/// How panels of B lie in a moving array: [panel, common dimension, columns] (true) or [panel, columns, common
/// dimension]. Panels of A: [panel, common dimension, rows].
bool moving_b_by_rows(const MatmulProblem& problem, const MatmulChoices& choices);

/// Rows, columns and depth of the product that takes most of the flops in a schedule; empty without products.
Index product_shape(const Schedule& schedule);

/// Bytes of the arrays of a schedule beyond the three matrices: what the rank has for moving panels.
std::int64_t moving_bytes(const Schedule& schedule);

}  // namespace tilewave
