// How fast a library's products and copies of blocks are, by shape.
#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include "execute/blas/library.hpp"
#include "plan/products/product_plan.hpp"
#include "tilewave/engine/predict.hpp"

namespace tilewave {

/// Products of this shape on one lane, measured at first use of about this shape.
///
/// Pieces that follow each other are measured, one call each. A piece that is repeated finds its operands in the cache:
/// pieces of 62 x 128 x 3000 out of 1500 x 128 x 3000 ran at 34 GFlop/s where that gave 42.
struct ProductShape {
    std::array<std::int64_t, 3> piece{};  ///< rows, columns and depth
    std::array<std::int64_t, 2> whole{};  ///< rows and columns of the product that it is a piece of
    bool b_by_rows = false;               ///< how the second operand lies
    bool adds = false;                    ///< to what the result holds
    bool a_by_rows = false;               ///< how the first operand lies
    bool c_by_rows = false;               ///< how the result lies
};
OperationRate product_rate(const std::shared_ptr<const Blas>& blas, Dtype type, ProductShape shape);
/// Copies that turn a block: seconds a call, and a byte.
OperationRate copy_rate(Dtype type);

/// Seconds of a piece, the median of some. CPU time: other programs take none of it.
double time_piece(const Blas& blas, Dtype type, const ProductShape& shape);

/// Rates for plans of products, measured at first use of a shape.
ProductRates measured_products(std::shared_ptr<const Blas> blas, Dtype type);

}  // namespace tilewave
