// Elements of matrices of a type that is known at run time, and questions about them.
#pragma once
#include <complex>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tilewave/linalg.hpp"

namespace tilewave {

/// f(zero of the type): what it gives.
template <class F>
auto for_type(Dtype type, F f) {
    switch (type) {
        case Dtype::f4: return f(float{});
        case Dtype::f8: return f(double{});
        case Dtype::c8: return f(std::complex<float>{});
        default: return f(std::complex<double>{});
    }
}
/// f(items of a column, its number in the whole matrix) for each column of this rank.
template <class F>
void each_column(const MatrixStorage& m, F f) {
    for_type(m.type(), [&](auto zero) {
        auto* const items = reinterpret_cast<decltype(zero)*>(const_cast<std::byte*>(m.data()));
        for (std::int64_t j = 0; j < m.columns(); ++j) f(items + j * m.rows(), m.column({j}).at);
    });
}
/// Ones on the diagonal, zeros elsewhere. Local.
void set_identity(MatrixStorage& m);
/// Zeros in the rows of this rank from `first` on. Local.
void clear_rows(MatrixStorage& m, std::int64_t first);
/// Zeros above the diagonal. Local.
void clear_above_diagonal(MatrixStorage& m);
/// The number from 1 of this rank's first element of the diagonal that is 0; 0: there is none. Local.
std::int64_t first_zero(const MatrixStorage& m);
/// The number from 1 of the first column of a triangle R that depends on those before it: its diagonal has at most the
/// part `cond` of its norm. 0: there is none. Collective.
std::int64_t first_dependent(const MatrixStorage& r, double cond);
/// The least number above 0 of all ranks; 0: none has one. Collective.
std::int64_t least_number(Context& context, std::int64_t here);
/// The elements whose column is `offset` beyond their row, on every rank. Collective, after an agreement.
std::vector<std::complex<double>> diagonal_of(const MatrixStorage& m, std::int64_t offset);
/// The elements of a matrix of one column. Local.
void set_column(MatrixStorage& m, const std::vector<std::complex<double>>& values);
/// Those of some rows and columns, column by column, on every rank. Collective, after an agreement.
std::vector<std::complex<double>> elements_of(const MatrixStorage& m, const Slice& rows, const Slice& columns);
/// The same rows and columns become those of `part`. Collective, after an agreement.
/// @pre part of that shape, and of the type and context of m (not checked)
void take_part(const MatrixStorage& m, const Slice& rows, const Slice& columns, MatrixStorage& part);
/// A norm, on every rank; NaN if any element is. Collective, after an agreement.
double norm_of(const MatrixStorage& m, Norm kind);
/// An estimate of the 1-norm of the inverse of a matrix of n rows, by Hager's and Higham's method, as LAPACK's lacn2.
/// solve(b, adjoint): x of A x = b or of A^H x = b, on every rank.
double norm_of_inverse(std::int64_t n, bool complex_numbers,
                       const std::function<std::vector<std::complex<double>>(const std::vector<std::complex<double>>& b,
                                                                             bool adjoint)>& solve);
/// The determinant of the matrix of an LU factor: first 2^second, on every rank. Collective, after an agreement.
std::pair<std::complex<double>, std::int64_t> determinant_of(const FactorStorage& factor);
/// The layout with another number of rows, whose first ones lie where they lay.
BlockCyclic rows_of(const BlockCyclic& layout, std::int64_t rows);

}  // namespace tilewave
