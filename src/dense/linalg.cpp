// The front of C++ programs: what is checked on a rank alone, agreed on, and then done by the calls of this folder.
#include "tilewave/linalg.hpp"

#include <bit>
#include <cstdlib>
#include <limits>
#include <mutex>

#include "dense/elements.hpp"
#include "dense/factor.hpp"
#include "dense/least_squares.hpp"
#include "dense/product.hpp"
#include "dense/sides.hpp"

namespace tilewave {

namespace {

std::mutex blas_lock;
std::shared_ptr<const Blas> chosen_blas;

std::shared_ptr<const Blas> blas() {
    const std::scoped_lock guard(blas_lock);
    if (!chosen_blas) {
        const char* name = std::getenv("TILEWAVE_BLAS");
        try {
            chosen_blas = Blas::load(name && *name ? name : "libopenblas.so.0");
        } catch (const ConfigError& problem) {
            throw ConfigError(problem.what() + std::string("; use_blas(path) or TILEWAVE_BLAS choose another library"));
        }
    }
    return chosen_blas;
}

FactorStorage factored(FactorKind kind, const MatrixStorage& a, const FactorOptions& options, bool in_place) {
    static constexpr const char* names[] = {"cholesky", "lu", "qr"};
    const char* const name = names[static_cast<int>(kind)];
    std::optional<Factorization> call;
    begin_call(a.context(), name, [&] {
        call.emplace(name, kind, a, options, blas());
        return a.text() + ", " + call->text() + (in_place ? ", in place" : "");
    });
    return call->run(*call->ranked(), in_place);
}

// make() gives what is to be run with right-hand sides.
template <class Make>
MatrixStorage changed(const char* name, const FactorStorage& f, const MatrixStorage& b, Make make) {
    std::unique_ptr<SidesRun> call;
    begin_call(f.matrix.context(), name, [&] {
        call = make();
        return f.matrix.text() + ", " + b.text();
    });
    return call->run().x;
}

void require_no_zero(const std::string& call, std::int64_t info) {
    require(info == 0, call + ": element " + std::to_string(info - 1) +
                           " of the diagonal, counted from 0, is 0 or as good as 0: there is no unique solution; "
                           "allowed: independent columns");
}

}  // namespace

void use_blas(const std::string& library) {
    std::shared_ptr<const Blas> found = Blas::load(library);
    const std::scoped_lock guard(blas_lock);
    chosen_blas = std::move(found);
}

ProductReport multiply(const MatrixStorage& a, const MatrixStorage& b, MatrixStorage& c,
                       const ProductOptions& options) {
    std::optional<Multiplication> call;
    begin_call(c.context(), "multiply", [&] {
        call.emplace("multiply", a, b, c, options, blas());
        return a.text() + ", " + b.text() + ", " + c.text() + ", " + call->text();
    });
    return call->run(*call->ranked());
}

FactorStorage factor(FactorKind kind, const MatrixStorage& a, const FactorOptions& options) {
    return factored(kind, a, options, false);
}

FactorStorage factor(FactorKind kind, MatrixStorage&& a, const FactorOptions& options) {
    return factored(kind, a, options, true);
}

MatrixStorage solve(FactorKind kind, const FactorStorage& f, const MatrixStorage& b, Transpose op) {
    return changed("solve", f, b, [&] { return solving(kind, f, b, blas(), op); });
}

MatrixStorage inverse(const MatrixStorage& a, const FactorOptions& options) {
    const FactorStorage f = factored(FactorKind::lu, a, options, false);
    return changed("inv", f, a, [&] {
        require(f.info == 0, "inv: pivot " + std::to_string(f.info) + " is 0: the matrix is singular");
        return inverting(f, a, blas());
    });
}

MatrixStorage apply(const FactorStorage& f, const MatrixStorage& b, bool adjoint) {
    return changed("apply", f, b, [&] { return applying(f, b, adjoint, blas()); });
}

std::pair<std::complex<double>, std::int64_t> determinant(const FactorStorage& f) {
    begin_call(f.matrix.context(), "determinant", [&] {
        require(f.matrix.layout().rows.extent == static_cast<std::int64_t>(f.pivots.size()),
                "determinant: a factor without pivots was given; allowed: that of lu()");
        return f.matrix.text();
    });
    return determinant_of(f);
}

namespace {

void begin_part(const char* name, const MatrixStorage& a, const Slice& rows, const Slice& columns) {
    begin_call(a.context(), name, [&] {
        std::string text = a.text();
        for (const auto& [slice, axis] : {std::pair{&rows, &a.layout().rows}, {&columns, &a.layout().columns}}) {
            const std::string given = to_string(Index{slice->first, slice->end}) + " by " + std::to_string(slice->step);
            const std::int64_t most = axis->extent;
            require(slice->step != 0 && (slice->count() == 0 || (slice->first >= 0 && slice->first < most &&
                                                                 slice->last() >= 0 && slice->last() < most)),
                    std::string(name) + ": " + given +
                        " was given; allowed: a step that is not 0, elements from 0 to " + std::to_string(most - 1));
            text += ", " + given;
        }
        return text;
    });
}

}  // namespace

MatrixStorage part(const MatrixStorage& a, const Slice& rows, const Slice& columns) {
    begin_part("part", a, rows, columns);
    std::optional<MatrixStorage> made;
    agree_after(a.context(), "ready", [&] {
        const BlockCyclic& of = a.layout();
        made.emplace(
            a.context(),
            BlockCyclic{of.rows.resized(rows.count()), of.columns.resized(columns.count()), of.ranks_by_column},
            a.type());
    });
    take_part(a, rows, columns, *made);
    return std::move(*made);
}

std::vector<std::complex<double>> elements(const MatrixStorage& a, const Slice& rows, const Slice& columns) {
    begin_part("elements", a, rows, columns);
    return elements_of(a, rows, columns);
}

std::vector<std::complex<double>> diagonal(const MatrixStorage& a, std::int64_t offset) {
    begin_call(a.context(), "diagonal", [&] { return a.text() + ", " + std::to_string(offset); });
    return diagonal_of(a, offset);
}

double norm(const MatrixStorage& a, Norm kind) {
    begin_call(a.context(), "norm", [&] { return a.text() + ", " + std::to_string(static_cast<int>(kind)); });
    return norm_of(a, kind);
}

double condition(const MatrixStorage& a, Norm kind, const FactorOptions& options) {
    const double size = norm(a, kind);
    const FactorStorage f = factored(FactorKind::lu, a, options, false);
    begin_call(a.context(), "cond", [&] {
        require(kind == Norm::one || kind == Norm::infinity,
                "cond: another norm was given; allowed: Norm::one, Norm::infinity; singular values are not computed");
        return a.text();
    });
    if (f.info) return std::numeric_limits<double>::infinity();
    if (!std::isfinite(size) || size == 0) return size;
    const std::int64_t n = a.layout().rows.extent;
    const auto solved = [&](const std::vector<std::complex<double>>& b, bool adjoint) {
        MatrixStorage sides(a.context(), by_block_columns(n, 1, a.context().size()), a.type());
        set_column(sides, b);
        const Transpose op = adjoint == (kind == Norm::one) ? Transpose::adjoint : Transpose::none;
        return elements_of(solve(FactorKind::lu, f, sides, op), {0, n}, {0, 1});
    };
    return size * norm_of_inverse(n, is_complex(a.type()), solved);
}

MatrixStorage solve_triangular(const MatrixStorage& a, const MatrixStorage& b, const Triangle& triangle,
                               const FactorOptions& options) {
    std::optional<TriangularSolution> call;
    const TriangularSystem system{triangle.upper, triangle.op, triangle.unit_diagonal};
    begin_call(a.context(), "solve_triangular", [&] {
        call.emplace("solve_triangular", a, b, system, options, blas());
        return a.text() + ", " + b.text() + ", " + std::to_string(system.number()) + ", " + call->text();
    });
    require_no_zero("solve_triangular", call->info());
    return call->run(*call->ranked()).x;
}

LeastSquares least_squares(const FactorStorage& f, const MatrixStorage& b) {
    std::optional<LeastSquaresRun> call;
    begin_call(f.matrix.context(), "lstsq", [&] {
        const std::int64_t m = f.matrix.layout().rows.extent, n = f.matrix.layout().columns.extent;
        require(m >= n, "lstsq: " + f.matrix.text() + " was given; allowed: at least as many rows as columns");
        call.emplace("lstsq", f, b, even_columns(n, b.layout().columns.extent, b.context().size()),
                     least_cond(f.matrix), false, 0, blas());
        return f.matrix.text() + ", " + b.text();
    });
    LeastSquaresFound found = call->run();
    require_no_zero("lstsq", found.info);
    return found;
}

LeastSquares least_squares(const MatrixStorage& a, const MatrixStorage& b, const FactorOptions& options,
                           std::optional<double> cond) {
    std::optional<LeastSquaresCall> call;
    begin_call(a.context(), "lstsq", [&] {
        const double bound = cond.value_or(least_cond(a));
        require(bound >= 0 && std::isfinite(bound),
                "lstsq: cond " + std::to_string(bound) + " was given; allowed: a number >= 0");
        call.emplace("lstsq", a, b,
                     even_columns(a.layout().columns.extent, b.layout().columns.extent, b.context().size()), bound,
                     options, blas());
        return a.text() + ", " + b.text() + ", " + text_of(options) + ", cond " +
               std::to_string(std::bit_cast<std::int64_t>(bound));
    });
    return call->run();
}

}  // namespace tilewave
