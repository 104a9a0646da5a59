// How a product's blocks travel: what may be chosen, and what is predicted fastest. Pure functions of the operands, the
// machine and the rates of operations.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generate/linalg/matmul.hpp"
#include "tilewave/engine/linalg_plan.hpp"
#include "tilewave/engine/predict.hpp"

namespace tilewave {

/// op(A) as it enters a product.
struct ProductOperand {
    BlockCyclic blocks;      ///< of op(A)
    bool turned = false;     ///< op(A) is the transposed of what is stored
    bool conjugate = false;  ///< and conjugate

    static ProductOperand of(const BlockCyclic& stored, Transpose op, Dtype type) {
        const bool turned = op != Transpose::none;
        return {turned ? stored.transposed() : stored, turned, op == Transpose::adjoint && is_complex(type)};
    }
    ProductOperand transposed() const { return {blocks.transposed(), !turned, conjugate}; }
    BlockCyclic stored() const { return turned ? blocks.transposed() : blocks; }
};

/// What is computed, and what the caller has chosen.
struct ProductRequest {
    ProductOperand a, b, c;
    Dtype type = Dtype::f8;
    bool adds = false;  ///< to what C holds
    int ranks = 1, threads = 1;
    ProductOptions wish;   ///< without alpha, beta and op
    Weights weights = {};  ///< of plans in proportion; empty: there are none
};

/// A product with one set of choices.
struct ProductCase {
    std::array<ProductOperand, 3> operands;  ///< of the problem: where C lies by columns, of the transposed product
    bool mirrored = false;
    std::array<bool, 3> moved{};  ///< of the user's A, B, C
    MatmulProblem problem;
    MatmulChoices choices;
    int ranks = 1;

    Schedule schedule(int rank) const { return matmul(problem, choices, rank, ranks); }
    bool b_by_rows() const { return moving_b_by_rows(problem, choices); }
    /// Where the user's A, B and C lie while the product runs.
    std::array<BlockCyclic, 3> stored() const;
    /// Bytes of redistributed operands of a rank.
    std::int64_t copies_bytes(int rank) const;
    /// Rows and columns of C that a rank computes with one panel, of the rank that has most.
    std::array<std::int64_t, 2> whole() const;
};

/// @pre layouts that fit the algorithm after moving (ConfigError, which begins with `call`)
ProductCase product_case(const std::string& call, const ProductRequest& request, const ProductPlan& plan);

/// All plans that keep to the wish, with what they move and their memory; nothing is simulated.
/// @pre as check_choices(); a memory that one of them keeps within (ConfigError)
std::vector<ProductPlan> product_plans(const std::string& call, const ProductRequest& request);

/// The rates of a case's operations, by number, from the schedules of some ranks.
using ProductRates = std::function<std::vector<OperationRate>(const ProductCase&, const std::vector<Schedule>&)>;
/// What predictions of plans need, from this rank's schedules.
void measure_products(const std::string& call, const ProductRequest& request, const std::vector<ProductPlan>& plans,
                      int rank, const ProductRates& rates);

/// The plans simulated, the fastest first; one plan alone as it is.
std::vector<ProductPlan> played_products(const std::string& call, const ProductRequest& request,
                                         std::vector<ProductPlan> plans, const Machine& machine,
                                         const ProductRates& rates);

}  // namespace tilewave
