// The life of a factorization, from its arguments to its report.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "dense/plans.hpp"
#include "execute/blas/library.hpp"
#include "plan/panels/panel_plan.hpp"

namespace tilewave {

/// What a factorization and a triangular solve have in common: the plans of their panels. Making it is local; then the
/// ranks agree that all have made it with equal text(), and call the rest together.
class PanelCall {
public:
    /// `name`: what errors begin with. The matrix must live on.
    PanelCall(const std::string& name, const MatrixStorage& a, const PanelProblem& problem,
              const FactorOptions& options, std::shared_ptr<const Blas> library);

    /// What must be equal on all ranks, but for the matrices.
    std::string text() const { return tilewave::text_of(options_); }
    /// Whether there is a choice, so that the machine's numbers matter.
    bool compares() const { return plans_.size() > 1; }
    /// Its plans, the fastest first; with weights of the machine where nobody gave any. Collective, before run().
    std::shared_ptr<RankedPlans<FactorPlan>> ranked();

protected:
    Context& context() const { return a_.context(); }

    std::string name_;
    const MatrixStorage& a_;
    PanelProblem problem_;
    FactorOptions options_;
    std::shared_ptr<const Blas> library_;
    std::vector<FactorPlan> plans_;
};

/// A factorization with all plans that keep to what its caller has chosen.
class Factorization : public PanelCall {
public:
    /// @pre as factor() (ConfigError)
    Factorization(const std::string& name, FactorKind kind, const MatrixStorage& a, const FactorOptions& options,
                  std::shared_ptr<const Blas> library);

    /// By the first plan; `in_place`: in the memory of the matrix, where it lies as the factor does. Collective.
    /// @throws as run_schedule(); Interrupted
    FactorStorage run(const RankedPlans<FactorPlan>& ranked, bool in_place) const;
};

}  // namespace tilewave
