// Least squares by QR factors, of matrices of any shape and rank.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "dense/factor.hpp"
#include "dense/sides.hpp"

namespace tilewave {

/// What least squares have found, and by which plans.
struct LeastSquaresFound : LeastSquares {
    std::int64_t info = 0;  ///< LAPACK's, the number from 1 of the first column that depends on those before it
    std::vector<std::shared_ptr<RankedPlans<FactorPlan>>> ranked = {};  ///< of each factorization
};

/// The type's epsilon times the larger side: the bound of what counts as 0 where none is given.
double least_cond(const MatrixStorage& a);

/// x with the least norm of A x - b by a QR factor of A; `wide`: the least x of A x = b by one of A^H.
class LeastSquaresRun {
public:
    /// `cond`: a column depends on those before it where its part beyond them has at most this part of its norm.
    /// `held_bytes`: what the caller has beyond the factor, for the reports. Local.
    /// @pre b of as many rows as A, of the factor's type and context; x of the solution's shape (ConfigError)
    LeastSquaresRun(const std::string& name, const FactorStorage& factor, const MatrixStorage& b,
                    const BlockCyclic& layout_of_x, double cond, bool wide, std::int64_t held_bytes,
                    const std::shared_ptr<const Blas>& library);
    /// With info of no x. Collective.
    /// @throws as run_schedule(); Interrupted
    LeastSquaresFound run();

private:
    const FactorStorage& factor_;
    double cond_;
    bool wide_;
    std::int64_t held_bytes_;
    MatrixStorage made_;
    SidesRun run_;
};

/// x with the least norm of A x - b of any A, and of several such x the least one.
class LeastSquaresCall {
public:
    /// `known`: A has full rank. Local.
    /// @pre as least_squares(), x of the solution's shape (ConfigError)
    LeastSquaresCall(const std::string& name, const MatrixStorage& a, const MatrixStorage& b,
                     const BlockCyclic& layout_of_x, double cond, const FactorOptions& options,
                     std::shared_ptr<const Blas> library, bool known = false);

    /// Whether there is a choice, so that the machine's numbers matter.
    bool compares() const { return call_.compares(); }
    /// Collective.
    /// @throws as run_schedule(); Interrupted
    LeastSquaresFound run();

private:
    LeastSquaresFound by_pivots(const FactorStorage& factor) const;

    std::string name_;
    MatrixStorage given_, b_;  // or copies that are scaled
    BlockCyclic layout_;
    double cond_;
    FactorOptions options_;
    std::shared_ptr<const Blas> library_;
    bool wide_, known_;
    MatrixStorage works_;  // what is factored: A, or A^H where A is wide
    Factorization call_;
};

}  // namespace tilewave
