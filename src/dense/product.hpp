// The life of a product, from its arguments to its report.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "dense/plans.hpp"
#include "execute/blas/library.hpp"
#include "plan/products/product_plan.hpp"
#include "tilewave/linalg.hpp"

namespace tilewave {

/// A product with all plans that keep to what its caller has chosen. Making it is local; then the ranks agree that all
/// have made it with equal text(), and call the rest together.
class Multiplication {
public:
    /// `name`: what errors begin with. The matrices must live on.
    /// @pre as multiply() (ConfigError)
    Multiplication(const std::string& name, const MatrixStorage& a, const MatrixStorage& b, MatrixStorage& c,
                   const ProductOptions& options, std::shared_ptr<const Blas> library);

    /// What must be equal on all ranks, but for the matrices.
    const std::string& text() const { return text_; }
    /// Whether there is a choice, so that the machine's numbers matter.
    bool compares() const { return plans_.size() > 1; }
    double flops() const;
    /// Its plans, the fastest first; with weights of the machine where nobody gave any. Collective, before run().
    std::shared_ptr<RankedPlans<ProductPlan>> ranked();
    /// By the first of them. Collective.
    /// @throws as run_schedule(); Interrupted
    ProductReport run(const RankedPlans<ProductPlan>& ranked) const;

private:
    struct Prepared;

    std::string name_, text_;
    const MatrixStorage &a_, &b_;
    MatrixStorage& c_;
    ProductOptions options_;
    ProductRequest request_;
    std::shared_ptr<const Blas> library_;
    std::vector<ProductPlan> plans_;
};

}  // namespace tilewave
