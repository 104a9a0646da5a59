// Dense linear algebra on distributed matrices: products, factorizations and solutions. What the caller leaves free is
// chosen by prediction, as in Python's tilewave.linalg.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <numbers>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewave/context.hpp"
#include "tilewave/dtype.hpp"
#include "tilewave/engine/block_cyclic.hpp"
#include "tilewave/engine/linalg_plan.hpp"
#include "tilewave/engine/predict.hpp"
#include "tilewave/engine/run_schedule.hpp"

namespace tilewave {

/// Uses a BLAS and LAPACK library with 32-bit integers from now on: its path, or a name that the loader finds. Without:
/// the environment variable TILEWAVE_BLAS, else libopenblas.so.0. Local; a library runs one thread in each lane.
/// @throws ConfigError where it cannot be loaded or lacks a function
void use_blas(const std::string& library);

/// Blocks of rows go round all ranks; with block 0 each has one.
BlockCyclic by_block_rows(std::int64_t rows, std::int64_t columns, int ranks, std::int64_t block = 0);
/// Blocks of columns go round all ranks; with block 0 each has one.
BlockCyclic by_block_columns(std::int64_t rows, std::int64_t columns, int ranks, std::int64_t block = 0);

/// A rank's part of a matrix, of a type that is known at run time: column by column. Making it is local.
class MatrixStorage {
public:
    /// Elements are not set.
    /// @pre a real or complex type of 32 or 64 bits a part; a grid of at most the context's ranks; at most 2^60 bytes
    /// (ConfigError)
    MatrixStorage(Context& context, const BlockCyclic& layout, Dtype type);
    MatrixStorage(const MatrixStorage& other);
    MatrixStorage(MatrixStorage&&) = default;
    MatrixStorage& operator=(MatrixStorage other) noexcept;
    ~MatrixStorage() = default;

    Context& context() const { return *context_; }
    const BlockCyclic& layout() const { return layout_; }
    /// In proportion to which all ranks have blocks; empty: they do not, or it is not on all of them.
    Weights weights() const;
    Dtype type() const { return type_; }
    std::int64_t rows() const { return owned_.extent(0); }     ///< of this rank
    std::int64_t columns() const { return owned_.extent(1); }  ///< of this rank
    std::byte* data() { return memory_.get(); }
    const std::byte* data() const { return memory_.get(); }
    std::int64_t bytes() const { return rows() * columns() * item_bytes(type_); }  ///< of this rank
    const std::shared_ptr<std::byte[]>& memory() const { return memory_; }
    /// The same matrix: elements of either are those of both.
    MatrixStorage shared() const { return shared(layout_); }
    /// @pre layout.same(this layout): blocks may be cut in another manner that leaves all elements where they are (not
    /// checked)
    MatrixStorage shared(const BlockCyclic& layout) const { return {*context_, layout, type_, memory_}; }
    /// The number in the whole matrix of a row or a column of this rank.
    GlobalElement row(LocalElement l) const { return layout_.rows.global_of(layout_.row_of(context_->rank()), l); }
    GlobalElement column(LocalElement l) const {
        return layout_.columns.global_of(layout_.column_of(context_->rank()), l);
    }
    /// A copy in another layout. Collective.
    /// @pre equal extents and layouts on all ranks (ConfigError on every rank)
    MatrixStorage redistributed(const BlockCyclic& layout) const;
    /// Rank 0 gets the whole matrix, column by column, in the memory that place() gives and whose lack it throws as
    /// std::bad_alloc; it is called on every rank. Collective.
    /// @throws OutOfResources on every rank where one has not the memory
    void gather(const std::function<std::byte*()>& place) const;
    Binding binding() const;
    /// "a matrix of 5 x 4 float64 on 2 x 1 ranks, blocks of 3 x 0": what must be equal on all ranks.
    std::string text() const;

private:
    MatrixStorage(Context& context, const BlockCyclic& layout, Dtype type, std::shared_ptr<std::byte[]> memory);

    Context* context_;
    BlockCyclic layout_;
    Dtype type_;
    Box owned_;
    std::shared_ptr<std::byte[]> memory_;
};

/// Rows or columns: first, first + step, ... before `end`, which with a negative step is below them.
struct Slice {
    std::int64_t first = 0, end = 0, step = 1;

    std::int64_t count() const;
    /// @pre count() > 0
    std::int64_t last() const { return first + step * (count() - 1); }
    /// Which one of them an element is; -1: none.
    std::int64_t place_of(std::int64_t element) const;
};

/// Some rows and columns as a matrix in blocks as those of `a`; nothing is gathered. Collective.
/// @pre rows and columns that there are (ConfigError on every rank)
MatrixStorage part(const MatrixStorage& a, const Slice& rows, const Slice& columns);
/// Their elements, column by column, on every rank. Collective.
/// @pre as part()
std::vector<std::complex<double>> elements(const MatrixStorage& a, const Slice& rows, const Slice& columns);
/// The elements whose column is `offset` beyond their row, on every rank. Collective.
std::vector<std::complex<double>> diagonal(const MatrixStorage& a, std::int64_t offset);

/// A distributed matrix of T: float, double, or complex numbers of these.
template <class T>
class Matrix {
public:
    /// Zeros. Local.
    Matrix(Context& context, const BlockCyclic& layout) : storage_(context, layout, dtype_of<T>()) {
        std::fill_n(local(), storage_.rows() * storage_.columns(), T{});
    }
    /// init(row, column), numbers in the whole matrix. Local.
    template <class Init>
    Matrix(Context& context, const BlockCyclic& layout, Init init) : Matrix(context, layout) {
        for (std::int64_t j = 0; j < storage_.columns(); ++j)
            for (std::int64_t i = 0; i < storage_.rows(); ++i)
                at({i}, {j}) = static_cast<T>(init(storage_.row({i}).at, storage_.column({j}).at));
    }
    explicit Matrix(MatrixStorage storage) : storage_(std::move(storage)) {}

    MatrixStorage& storage() { return storage_; }
    const MatrixStorage& storage() const { return storage_; }
    T& at(LocalElement row, LocalElement column) { return local()[row.at + column.at * storage_.rows()]; }
    /// This rank's part, column by column.
    T* local() { return reinterpret_cast<T*>(storage_.data()); }
    /// A copy in another layout. Collective.
    Matrix redistributed(const BlockCyclic& layout) const { return Matrix(storage_.redistributed(layout)); }
    /// The whole matrix, column by column, on rank 0; empty elsewhere. Collective.
    /// @throws OutOfResources on every rank where one has not the memory
    std::vector<T> gather() const {
        std::vector<T> whole;
        storage_.gather([&] {
            if (storage_.context().rank() == 0)
                whole.resize(storage_.layout().rows.extent * storage_.layout().columns.extent);
            return reinterpret_cast<std::byte*>(whole.data());
        });
        return whole;
    }
    /// A new matrix of some rows and columns, A.part({0, 9}, {3, n}), in blocks as those of this one. Collective.
    /// @pre rows and columns that there are (ConfigError on every rank)
    Matrix part(const Slice& rows, const Slice& columns) const {
        return Matrix(tilewave::part(storage_, rows, columns));
    }
    /// Their elements, column by column, on every rank. Collective.
    /// @pre as part()
    std::vector<T> elements(const Slice& rows, const Slice& columns) const {
        return numbers(tilewave::elements(storage_, rows, columns));
    }
    /// The elements whose column is `offset` beyond their row, on every rank. Collective.
    std::vector<T> diagonal(std::int64_t offset = 0) const { return numbers(tilewave::diagonal(storage_, offset)); }
    /// The sum of the diagonal, on every rank. Collective.
    T trace() const {
        T sum{};
        for (const T& each : diagonal()) sum += each;
        return sum;
    }

    /// Each element becomes f(element, that of `other`), which is redistributed first where it lies elsewhere.
    /// Collective.
    /// @pre equal shapes (ConfigError on every rank)
    template <class F>
    Matrix& combine(const Matrix& other, F f) {
        if (!other.storage_.layout().same(storage_.layout())) return combine(other.redistributed(storage_.layout()), f);
        const T* const given = reinterpret_cast<const T*>(other.storage_.data());
        std::transform(local(), local() + storage_.rows() * storage_.columns(), given, local(), f);
        return *this;
    }
    Matrix& operator+=(const Matrix& other) { return combine(other, std::plus<T>()); }
    Matrix& operator-=(const Matrix& other) { return combine(other, std::minus<T>()); }
    /// Local.
    Matrix& operator*=(T factor) {
        for (T* at = local(); at != local() + storage_.rows() * storage_.columns(); ++at) *at *= factor;
        return *this;
    }
    friend Matrix operator+(Matrix a, const Matrix& b) { return std::move(a += b); }
    friend Matrix operator-(Matrix a, const Matrix& b) { return std::move(a -= b); }
    friend Matrix operator-(Matrix a) { return std::move(a *= T(-1)); }
    friend Matrix operator*(T factor, Matrix a) { return std::move(a *= factor); }
    friend Matrix operator*(Matrix a, T factor) { return std::move(a *= factor); }
    /// The product of matrices, by blocks of rows as even as can be. Collective.
    friend Matrix operator*(const Matrix& a, const Matrix& b) {
        Context& context = a.storage_.context();
        Matrix c(context,
                 by_block_rows(a.storage_.layout().rows.extent, b.storage_.layout().columns.extent, context.size()));
        multiply(a, b, c);
        return c;
    }

private:
    static std::vector<T> numbers(const std::vector<std::complex<double>>& given) {
        std::vector<T> found;
        for (const std::complex<double>& each : given)
            if constexpr (std::is_floating_point_v<T>)
                found.push_back(static_cast<T>(each.real()));
            else
                found.push_back(T(each));
        return found;
    }

    MatrixStorage storage_;
};

/// How a product went.
struct ProductReport : ScheduleReport {
    ProductPlan plan;
    /// What the run was predicted to take, without redistributions; simulated when it is called. Empty on other ranks
    /// than 0.
    std::function<Prediction()> prediction;
};

/// C = alpha op(A) op(B) + beta C, with the plan that is predicted fastest. What it needs in another layout is
/// redistributed first. Collective.
/// @pre one context and type; extents that fit; real alpha and beta of real matrices; choices as check_choices() wants
/// them; a memory that a plan keeps within; layouts that the algorithm takes (ConfigError on every rank, before
/// anything is allocated)
ProductReport multiply(const MatrixStorage& a, const MatrixStorage& b, MatrixStorage& c,
                       const ProductOptions& options = {});
template <class T>
ProductReport multiply(const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& c, const ProductOptions& options = {}) {
    return multiply(a.storage(), b.storage(), c.storage(), options);
}

/// How a factorization or a solve went.
struct FactorReport : ScheduleReport {
    FactorPlan plan;
    std::string moved;  ///< "a", "b", "ab": what was redistributed first
    /// Memory of this rank beyond arguments and results: panels in flight, copies of what is redistributed.
    std::int64_t memory_bytes = 0;
    std::function<Prediction()> prediction;  ///< as of a product; of a sample its time alone
    std::string sample = {};                 ///< what the prediction simulates; empty: all
};

/// What became of a matrix, by block columns or in square blocks on the grid of the plan.
struct FactorStorage {
    MatrixStorage matrix;
    MatrixStorage triangles;           ///< of QR: T of each panel
    std::int64_t info = 0;             ///< LAPACK's, on every rank
    std::vector<std::int64_t> pivots;  ///< of LU: row i was interchanged with row pivots[i]; on every rank
    FactorPlan plan;
    FactorReport report;
};
enum class FactorKind : std::uint8_t { cholesky, lu, qr };
/// Factors a copy of a matrix of any layout. Collective.
/// @pre square, but for QR; choices as check_choices() wants them; a memory that a plan keeps within (ConfigError on
/// every rank, before anything is allocated)
FactorStorage factor(FactorKind kind, const MatrixStorage& a, const FactorOptions& options);
/// The same in the memory of `a`, where it lies as the factor does.
FactorStorage factor(FactorKind kind, MatrixStorage&& a, const FactorOptions& options);
/// x of A x = b, in the layout of b: of Cholesky's and LU's factors. Collective.
/// @pre b of as many rows, of the same type and context; info 0 (ConfigError on every rank)
/// `op`: of op(A) x = b, of LU's.
MatrixStorage solve(FactorKind kind, const FactorStorage& factor, const MatrixStorage& b,
                    Transpose op = Transpose::none);
/// The inverse of a matrix, in its layout. A system is solved faster and more accurately by its factors. Collective.
/// @pre as factor(); no pivot that is 0 (ConfigError on every rank)
MatrixStorage inverse(const MatrixStorage& a, const FactorOptions& options);
/// Q b or Q^H b, in the layout of b. Collective.
/// @pre b of as many rows, of the same type and context (ConfigError on every rank)
MatrixStorage apply(const FactorStorage& factor, const MatrixStorage& b, bool adjoint);

/// The determinant of the matrix of an LU factor: first 2^second, on every rank. Collective.
std::pair<std::complex<double>, std::int64_t> determinant(const FactorStorage& factor);

/// The root of the sum of squares; the largest sum of magnitudes of a column, of a row; the largest magnitude.
enum class Norm : std::uint8_t { frobenius, one, infinity, max };
/// A norm, on every rank; NaN if any element is. Collective.
double norm(const MatrixStorage& a, Norm kind);
/// An estimate of the condition number in the norm `one` or `infinity`, a lower bound: by a few solves with LU factors,
/// as LAPACK's gecon; infinite for a singular matrix. Collective.
/// @pre square; one of the two norms (ConfigError on every rank)
double condition(const MatrixStorage& a, Norm kind, const FactorOptions& options);

/// Which triangle of a matrix is meant, and how.
struct Triangle {
    bool upper = true;
    Transpose op = Transpose::none;
    bool unit_diagonal = false;  ///< ones, whatever the matrix has there
};
/// x of op(T) x = b with a triangle of a matrix, in the layout of b; the rest of the matrix is not read. Collective.
/// @pre square; b of as many rows, of the same type and context; a diagonal without 0; options as of a factor, no
/// wavefront (ConfigError on every rank)
MatrixStorage solve_triangular(const MatrixStorage& a, const MatrixStorage& b, const Triangle& triangle = {},
                               const FactorOptions& options = {});
/// What least squares give.
struct LeastSquares {
    MatrixStorage x;
    std::int64_t rank = 0;
    /// Of each right-hand side the squared norm of A x - b, on every rank; empty where A has no more rows than columns,
    /// or not full rank.
    std::vector<double> residues;
    std::vector<FactorReport> reports;  ///< of the factorizations, then of the parts of the solution
};
/// x with the least norm of A x - b, by block columns, by a QR factor. Collective.
/// @pre at least as many rows as columns; b of as many rows, of the same type and context; columns that do not depend
/// on each other, beyond rounding (ConfigError on every rank)
LeastSquares least_squares(const FactorStorage& factor, const MatrixStorage& b);
/// The same of a matrix of any shape and rank; of several such x the least one. Diagonal elements of R with column
/// pivoting count as 0 up to `cond` times the largest one; not given: the type's epsilon times the larger side. Where R
/// of a QR without pivoting shows that `a` may not have full rank, R is factored again, column by column. Collective.
/// @pre b of as many rows, of the same type and context; a finite cond >= 0; as factor() (ConfigError on every rank)
LeastSquares least_squares(const MatrixStorage& a, const MatrixStorage& b, const FactorOptions& options,
                           std::optional<double> cond);

/// A = L L^H: L in the lower triangle, zeros above it.
template <class T>
struct CholeskyFactor {
    FactorStorage factor;
    /// LAPACK's info: 0, or the order of the first leading minor that is not positive definite.
    std::int64_t info() const { return factor.info; }
    Matrix<T> solve(const Matrix<T>& b) const {
        return Matrix<T>(tilewave::solve(FactorKind::cholesky, factor, b.storage()));
    }
    /// The logarithm of the determinant of A. Collective.
    double logdet() const {
        double sum = 0;
        for (const auto& each : diagonal(factor.matrix, 0)) sum += std::log(each.real());
        return 2 * sum;
    }
};
/// P A = L U, both in one matrix as LAPACK has them.
template <class T>
struct LuFactor {
    FactorStorage factor;
    /// LAPACK's info: 0, or the number from 1 of the first pivot that is 0.
    std::int64_t info() const { return factor.info; }
    /// x of op(A) x = b.
    Matrix<T> solve(const Matrix<T>& b, Transpose op = Transpose::none) const {
        return Matrix<T>(tilewave::solve(FactorKind::lu, factor, b.storage(), op));
    }
    /// The determinant of A, infinite or 0 where it leaves the type's range. Collective.
    T det() const {
        const auto [value, exponent] = determinant(factor);
        const auto e = static_cast<int>(std::clamp<std::int64_t>(exponent, -100000, 100000));
        if constexpr (std::is_floating_point_v<T>)
            return static_cast<T>(std::ldexp(value.real(), e));
        else
            return T(static_cast<typename T::value_type>(std::ldexp(value.real(), e)),
                     static_cast<typename T::value_type>(std::ldexp(value.imag(), e)));
    }
    /// (sign, logarithm of the magnitude) of the determinant, as NumPy's: the sign of a complex one has magnitude 1;
    /// (0, -infinity) of a singular matrix. Collective.
    std::pair<T, double> slogdet() const {
        const auto [value, exponent] = determinant(factor);
        const double size = std::abs(value);
        const std::complex<double> sign = size == 0 ? 0 : value / size;
        const double log = std::log(size) + static_cast<double>(exponent) * std::numbers::ln2;
        if constexpr (std::is_floating_point_v<T>)
            return {static_cast<T>(sign.real()), log};
        else
            return {T(sign), log};
    }
};
/// A = Q R: R in the upper triangle, below it the reflectors.
template <class T>
struct QrFactor {
    FactorStorage factor;
    Matrix<T> apply(const Matrix<T>& b, bool adjoint = false) const {
        return Matrix<T>(tilewave::apply(factor, b.storage(), adjoint));
    }
    /// x with the least norm of A x - b, by block columns.
    Matrix<T> solve(const Matrix<T>& b) const { return Matrix<T>(least_squares(factor, b.storage()).x); }
};

template <class T>
CholeskyFactor<T> cholesky(const Matrix<T>& a, const FactorOptions& options = {}) {
    return {factor(FactorKind::cholesky, a.storage(), options)};
}
template <class T>
CholeskyFactor<T> cholesky(Matrix<T>&& a, const FactorOptions& options = {}) {
    return {factor(FactorKind::cholesky, std::move(a.storage()), options)};
}
template <class T>
LuFactor<T> lu(const Matrix<T>& a, const FactorOptions& options = {}) {
    return {factor(FactorKind::lu, a.storage(), options)};
}
template <class T>
LuFactor<T> lu(Matrix<T>&& a, const FactorOptions& options = {}) {
    return {factor(FactorKind::lu, std::move(a.storage()), options)};
}
template <class T>
QrFactor<T> qr(const Matrix<T>& a, const FactorOptions& options = {}) {
    return {factor(FactorKind::qr, a.storage(), options)};
}
template <class T>
QrFactor<T> qr(Matrix<T>&& a, const FactorOptions& options = {}) {
    return {factor(FactorKind::qr, std::move(a.storage()), options)};
}
/// x of A x = b. Collective.
/// @pre square; no pivot that is 0 (ConfigError on every rank)
template <class T>
Matrix<T> solve(const Matrix<T>& a, const Matrix<T>& b, const FactorOptions& options = {}) {
    return lu(a, options).solve(b);
}
template <class T>
double norm(const Matrix<T>& a, Norm kind = Norm::frobenius) {
    return norm(a.storage(), kind);
}
template <class T>
double cond(const Matrix<T>& a, Norm kind = Norm::one, const FactorOptions& options = {}) {
    return condition(a.storage(), kind, options);
}
template <class T>
Matrix<T> solve_triangular(const Matrix<T>& a, const Matrix<T>& b, const Triangle& triangle = {},
                           const FactorOptions& options = {}) {
    return Matrix<T>(solve_triangular(a.storage(), b.storage(), triangle, options));
}
/// The x of least squares.
template <class T>
struct LeastSquaresMatrix : Matrix<T> {
    std::int64_t rank;             ///< of A
    std::vector<double> residues;  ///< as of LeastSquares
    std::vector<FactorReport> reports;
};
/// x with the least norm of A x - b, and of several such x the least one; see least_squares().
template <class T>
LeastSquaresMatrix<T> lstsq(const Matrix<T>& a, const Matrix<T>& b, const FactorOptions& options = {},
                            std::optional<double> cond = {}) {
    LeastSquares found = least_squares(a.storage(), b.storage(), options, cond);
    return {Matrix<T>(std::move(found.x)), found.rank, std::move(found.residues), std::move(found.reports)};
}
template <class T>
Matrix<T> inv(const Matrix<T>& a, const FactorOptions& options = {}) {
    return Matrix<T>(inverse(a.storage(), options));
}

}  // namespace tilewave
