// Elements of matrices of a type that is known at run time, and questions about them.
#pragma once
#include <complex>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tilewave/linalg.hpp"

namespace tilewave {

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
/// They, on every rank. Collective, after an agreement.
std::vector<std::complex<double>> column_of(const MatrixStorage& m);
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
