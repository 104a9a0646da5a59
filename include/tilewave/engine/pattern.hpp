// Communication patterns on matrices as schedules: pure functions of a problem, a plan and a rank.
// The patterns and their rules are those of papers/dawson2000.md.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tilewave/engine/matrix.hpp"
#include "tilewave/engine/schedule.hpp"
#include "tilewave/machine.hpp"

namespace tilewave {

/// native: MPI's collective, which is no schedule.
enum class Algorithm : std::uint8_t { automatic, tree, ring, rounds, direct, native };
/// "auto", "tree", "ring", "rounds", "direct", "mpi".
const char* to_string(Algorithm algorithm);

/// The matrices of a pattern: the same on all ranks. Every matrix has `rows` rows. broadcast and reduce: matrices
/// of columns[0] columns. spread and multi_reduce: rank r's part has columns[r], the whole matrix
/// their sum; block 0 puts the parts one after another, block b > 0 deals blocks of b columns cyclically.
struct PatternProblem {
    PatternKind kind = PatternKind::broadcast;
    int ranks = 1, root = 0;
    std::int64_t rows = 0, item_bytes = 8;
    std::vector<std::int64_t> columns;
    std::int64_t block = 0;

    std::int64_t total_columns() const;
    /// Bytes of the whole matrix.
    std::int64_t bytes() const { return rows * total_columns() * item_bytes; }
    /// @pre ranks >= 1, 0 <= root < ranks, rows >= 0, item_bytes >= 1 (ConfigError)
    /// @pre columns: one entry, or one a rank for spread and multi_reduce, each >= 0 (ConfigError)
    /// @pre block >= 0; block > 0 only with the columns that dealing gives each rank (ConfigError)
    void validate() const;
};

/// Columns of rank `rank` when `columns` are dealt in blocks of `block`; block 0: even parts.
std::int64_t dealt_columns(std::int64_t columns, std::int64_t block, int ranks, int rank);

/// How the matrices move: chunks of about chunk_bytes (whole rows where they fit), `buffers` of them staged
/// in each direction at a time.
struct PatternPlan {
    Algorithm algorithm = Algorithm::ring;
    std::int64_t chunk_bytes = 32 << 10;
    int buffers = 4;
    std::string why;      ///< "asked for", "predicted to be the fastest of 3 algorithms"
    std::string numbers;  ///< the machine's, by which algorithms were compared; else empty
    std::vector<std::pair<Algorithm, double>> compared;  ///< seconds predicted, where they decided
    std::int64_t bytes = 0;                              ///< of the whole matrix
    bool with_comparison = false;  ///< so small that all goes with the comparison of the arguments

    std::string to_string() const;
};

/// The choices that a caller fixes; 0 and automatic leave them to make_pattern_plan().
struct PatternRequest {
    Algorithm algorithm = Algorithm::automatic;
    std::int64_t chunk_bytes = 0;
    int buffers = 0;
};

/// Other conditions of the choice, the same on all ranks.
struct PatternConditions {
    bool contiguous = true;  ///< every rank's matrix
    bool native = false;     ///< MPI has a collective for it; used on request only
};

/// Chooses what the request leaves open: the least time by the closed forms below.
/// @pre the algorithm exists for the pattern, native only where the library has it and it
///   gives the right result (ConfigError)
/// @pre 0 <= chunk_bytes <= 2^30, buffers 0 or 2..64 (ConfigError)
PatternPlan make_pattern_plan(const PatternProblem& problem, const PatternRequest& request,
                              const PatternConditions& conditions, const Machine& machine);

/// Seconds by the closed forms, for p ranks, n chunks of c bytes, latency L, k seconds for each chunk
/// of a stream in addition to its bytes, b seconds a byte. tree: ceil(log2 p) (L + n (k + c b));
/// ring: (p - 1)(L - k) + (n + p - 2)(k + c b); rounds: (n - 1 + ceil(log2 p))(L + c b);
/// spread and multi_reduce: ring (p - 1) n (k + c b) with n chunks a part, n = 1: (p - 1)(L + c b);
/// direct, also of a broadcast, L + (p - 1) n (k + c b). A chunk of at most short_bytes
/// costs short_s (twice that where ranks send and receive alternately) in place of k + c b where that is less. Packing
/// is not counted. With r > 1 ranks on a core it is at least the r-fold copies of a rank, (p - 1) n (k + c b), of a
/// broadcast the p-th part of that (in shared memory), and each of the waits one after another takes 40 us (r - 1)
/// more; with w buffers and g = ceil(n / (w / 2)) groups of chunks (16 in place of w / 2 for short ones): tree
/// ceil(log2 p) + g - 1, ring p - 2 + g, rounds n - 1 + ceil(log2 p), direct g, ring of spread and multi_reduce (p - 1)
/// g. Not for reduce, and over a network only for spread and multi_reduce where r x 2.4 ns > b: where processors are
/// slower than links.
double pattern_time(const PatternProblem& problem, const PatternPlan& plan, const Machine& machine);

/// Bytes between the starts of rows of this rank's send and receive matrix.
struct PatternStrides {
    std::int64_t in = 0, out = 0;
};

/// The schedule of `rank`. Arrays: 0 is its send matrix, 1 its receive matrix (broadcast: 0 is both); with
/// dealt columns that do not fill the last round of blocks, 2 and 3 are their rest.
/// All messages have tag `tag`: their order on each link is the same at both ends.
/// Reductions combine from left to right: tree and ranks from the root on (root, root+1, ...);
/// ring: root+1, ..., root; multi_reduce: for the part of rank r from r+1 on, r last, by ring as
/// by direct.
/// @pre problem.validate(); plan.algorithm neither automatic nor native (ConfigError)
/// @pre the plan makes at most 2^22 chunks (ConfigError)
Schedule pattern_schedule(const PatternProblem& problem, const PatternPlan& plan, int rank,
                          const PatternStrides& strides, int tag = 8);

/// Where the arrays of pattern_schedule() lie in memory.
struct PatternMemory {
    std::byte *in = nullptr, *out = nullptr;
};
std::vector<std::byte*> pattern_addresses(const PatternProblem& problem, int rank, const PatternMemory& memory);

}  // namespace tilewave
