// The functions of a BLAS and LAPACK library that is found at run time, called by one thread each.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "schedule/operations.hpp"
#include "tilewave/dtype.hpp"

namespace tilewave {

/// A matrix in memory: items between neighbours along either dimension, one of them 1. `conjugate`: what is meant is
/// the conjugate of what is there.
struct BlasMatrix {
    std::byte* data = nullptr;
    std::int64_t rows = 0, columns = 0;
    std::int64_t row_step = 1, column_step = 1;
    bool conjugate = false;

    BlasMatrix transposed() const { return {data, columns, rows, column_step, row_step, conjugate}; }
};

struct Complex {
    double real = 0, imaginary = 0;
};

/// What a library offers, for float32, float64, complex64 and complex128. Calls are safe from several threads at once.
class Blas {
public:
    /// Loads a shared library whose integers have 32 bits, such as libscipy_openblas.so, libopenblas.so or
    /// libmkl_rt.so, and sets it to one thread; MKL is set so for calls from here alone, as the program may use it,
    /// too. Symbols of libraries that other modules have loaded are not replaced.
    /// @throws ConfigError where it cannot be loaded or lacks a function
    static std::shared_ptr<const Blas> load(const std::string& path);

    const std::string& path() const { return path_; }

    /// c = alpha a b + beta c; with beta 0 c is not read.
    /// @pre a.columns == b.rows, c of a.rows x b.columns; c is not conjugate; extents below 2^31 (ConfigError)
    void gemm(Dtype type, Complex alpha, const BlasMatrix& a, const BlasMatrix& b, Complex beta,
              const BlasMatrix& c) const;

    /// The Cholesky factor of a's lower triangle, in place: LAPACK's info, 0 or the order of the leading minor that is
    /// not positive definite.
    /// @pre a is square, its columns lie one after another (ConfigError)
    std::int64_t potrf(Dtype type, const BlasMatrix& a) const;

    /// P a = L U in place; `pivots`: of each row the row that it was interchanged with, counted from 1. LAPACK's info.
    /// @pre its columns lie one after another (ConfigError)
    std::int64_t getrf(Dtype type, const BlasMatrix& a, int* pivots) const;

    /// a = Q R in place: R, and below its diagonal the reflectors V of Q = I - V t V^H; of t the upper triangle is
    /// written.
    /// @pre the columns of both lie one after another; t has min(rows, columns) of a (ConfigError)
    void geqrt(Dtype type, const BlasMatrix& a, const BlasMatrix& t) const;

    /// The side of X on which the triangle stands: op(a) X = b, X op(a) = b.
    enum class Side : std::uint8_t { left, right };
    /// b becomes the solution X.
    /// @pre b's columns lie one after another, a's columns or rows; a is square and fits; op of a complex a by rows is
    /// not what lies in memory with its signs changed, which BLAS does not take (ConfigError)
    void trsm(Dtype type, Side side, const TriangularSystem& system, const BlasMatrix& a, const BlasMatrix& b) const;

private:
    Blas() = default;
    // The same, where C's columns lie one after another.
    void product(Dtype type, Complex alpha, const BlasMatrix& a, const BlasMatrix& b, Complex beta,
                 const BlasMatrix& c) const;
    // By type: s, d, c, z.
    void *gemm_[4] = {}, *potrf_[4] = {}, *trsm_[4] = {}, *getrf_[4] = {}, *geqrt_[4] = {};
    int (*set_local_)(int) = nullptr;  // MKL's: threads of this thread's calls; returns those of before
    std::string path_;
};

}  // namespace tilewave
