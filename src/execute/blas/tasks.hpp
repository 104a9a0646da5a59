// What the tasks of matrix schedules call.
#pragma once
#include <complex>
#include <memory>
#include <span>
#include <vector>

#include "execute/blas/library.hpp"
#include "tilewave/engine/task.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

/// Arguments of a product besides its schedule.
struct ProductCall {
    Dtype type = Dtype::f8;
    Complex alpha{1, 0}, beta{0, 0};
    bool conjugate_a = false, conjugate_b = false;
    bool moving_b_by_rows = false;  ///< generate/linalg/matmul.hpp
};

/// The operations of a product, by MatmulTask.
std::vector<TaskFunction> product_tasks(std::shared_ptr<const Blas> blas, const ProductCall& call);

/// f(zero) with the type of a matrix's elements.
template <class F>
void with_type(Dtype type, F f) {
    switch (type) {
        case Dtype::f4: return f(float{});
        case Dtype::f8: return f(double{});
        case Dtype::c8: return f(std::complex<float>{});
        case Dtype::c16: return f(std::complex<double>{});
        default: throw InternalError("a matrix of another type");
    }
}

/// to = from, or its conjugate; of any steps.
void copy_matrix(Dtype type, const BlasMatrix& from, const BlasMatrix& to);

/// Row i with row others[i], one after another or the last first, of a matrix by columns.
void interchange_rows(Dtype type, const BlasMatrix& m, std::span<const std::int64_t> others, bool last_first = false);

}  // namespace tilewave
