// What becomes of right-hand sides: solving with factors and triangles, applying reflectors.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays/matrix_move.hpp"
#include "dense/factor.hpp"
#include "dense/matrix_run.hpp"
#include "generate/linalg/sides.hpp"

namespace tilewave {

/// What has become of right-hand sides, and how.
struct SidesResult {
    MatrixStorage x;
    std::vector<FactorReport> reports;  ///< of each schedule
};

/// Right-hand sides by columns, on which each rank works alone while the panels of a factor go round. Making it is
/// local; the ranks agree between that and run().
class SidesRun {
public:
    /// `given`: what the sides begin with, null for the identity. `made`: where they end; they are worked on there
    /// where it lies as `working`, else in a copy. Of either the rows may be fewer than the factor's: these are the
    /// first, and the others begin as 0. What is given and the factor must live on.
    SidesRun(const FactorStorage& factor, const MatrixStorage* given, MatrixStorage made,
             std::shared_ptr<const Blas> library, const std::optional<BlockCyclic>& working = {});

    /// One more thing that is done with them, by a schedule of each rank. Those of one kind share their panels' memory.
    void solve(const TriangularSystem& system);
    void apply(const Reflection& reflection);
    /// Rows are interchanged as the factor's were, but at the end and the last first.
    void interchange_rows_last() { rows_last_ = true; }
    /// Where they are worked on.
    MatrixStorage& sides() { return copy_ ? *copy_ : made_; }
    /// The reports say `moved` and the bytes of copies besides those of the sides. Collective.
    /// @throws as run_schedule(); Interrupted
    SidesResult run(const std::string& moved = "", std::int64_t copies_bytes = 0);

private:
    void add(std::function<Schedule(int rank)> schedule_of, bool triangles);

    const FactorStorage& factor_;
    const MatrixStorage* given_;
    std::shared_ptr<const Blas> library_;
    MatrixStorage made_;
    std::optional<MatrixStorage> copy_;
    std::optional<ReadyMove> in_, out_;
    std::deque<FactorRun> runs_;
    std::vector<bool> triangles_;  // whether each run has them
    bool rows_last_ = false;
};

/// @pre b of so many rows, of the factor's type and context (ConfigError)
void require_sides(const std::string& name, const FactorStorage& factor, const MatrixStorage& b, std::int64_t rows);
/// x of op(A) x = b by a factor of LU, or of A x = b by Cholesky's. Local.
/// @pre as solve() (ConfigError)
std::unique_ptr<SidesRun> solving(FactorKind kind, const FactorStorage& factor, const MatrixStorage& b,
                                  std::shared_ptr<const Blas> library, Transpose op = Transpose::none);
/// The inverse in the layout of `like`, by a factor of LU. Local.
std::unique_ptr<SidesRun> inverting(const FactorStorage& factor, const MatrixStorage& like,
                                    std::shared_ptr<const Blas> library);
/// Q b or Q^H b. Local.
/// @pre as apply() (ConfigError)
std::unique_ptr<SidesRun> applying(const FactorStorage& factor, const MatrixStorage& b, bool adjoint,
                                   std::shared_ptr<const Blas> library);
/// The first columns of Q, in a matrix by columns. Local.
std::unique_ptr<SidesRun> forming(const FactorStorage& factor, const MatrixStorage& q,
                                  std::shared_ptr<const Blas> library);

/// x of op(T) x = b with a triangle of a matrix of any layout.
class TriangularSolution : public PanelCall {
public:
    /// @pre as solve_triangular() (ConfigError)
    TriangularSolution(const std::string& name, const MatrixStorage& a, const MatrixStorage& b,
                       const TriangularSystem& system, const FactorOptions& options,
                       std::shared_ptr<const Blas> library);

    /// 0, or the number from 1 of the first element of the diagonal that is 0 and read. Collective.
    std::int64_t info() const;
    /// Collective.
    /// @throws as run_schedule(); Interrupted
    SidesResult run(const RankedPlans<FactorPlan>& ranked) const;

private:
    const MatrixStorage& b_;
};

}  // namespace tilewave
