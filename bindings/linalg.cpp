// Dense matrices: layouts, schedules of products and of moving, and running them.
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/complex.h>

#include <algorithm>
#include <array>
#include <complex>
#include <tuple>
#include <vector>

#include "arrays/matrix_move.hpp"
#include "casters.hpp"
#include "choices.hpp"
#include "dense/elements.hpp"
#include "dense/least_squares.hpp"
#include "dense/product.hpp"
#include "dense/sides.hpp"
#include "execute/blas/factor_tasks.hpp"
#include "execute/blas/tasks.hpp"
#include "generate/linalg/factors.hpp"
#include "generate/linalg/matmul.hpp"
#include "generate/linalg/redistribute.hpp"
#include "generate/linalg/sides.hpp"
#include "measure/product_rates.hpp"
#include "measure/task_rates.hpp"
#include "plan/panels/panel_plan.hpp"
#include "plan/products/product_plan.hpp"

namespace {

Dtype dtype_named(const std::string& name) {
    return by_name(name, all_dtypes, "dtype");
}

Transpose transpose_named(char name) {
    return name == 'C' ? Transpose::adjoint : name == 'T' ? Transpose::transposed : Transpose::none;
}

// Where this rank's part of a matrix lies: its address, and items between neighbours along either dimension.
using MatrixPlace = std::tuple<std::uintptr_t, std::int64_t, std::int64_t>;

Binding binding_of(const MatrixPlace& place, std::int64_t item) {
    const auto [address, row, column] = place;
    return {reinterpret_cast<std::byte*>(address), {row * item, column * item}};
}

void bind_layouts(nb::module_& m) {
    nb::class_<Axis>(m, "Axis", "One dimension of a matrix on parts of a grid: blocks go round the parts.")
        .def(nb::init<std::int64_t, int, std::int64_t, const Weights&>(), "extent"_a, "parts"_a, "block"_a,
             "weights"_a = Weights())
        .def(READ_ONLY(extent, parts, block))
        .def("global_of", [](const Axis& a, int part, std::int64_t l) { return a.global_of(part, {l}).at; })
        .def("count", &Axis::count)
        .def("before", [](const Axis& a, int part, std::int64_t g) { return a.before(part, {g}); })
        .def_prop_ro("period", &Axis::period)
        .def("blocks_of", &Axis::blocks_of, "part"_a, "Those that a part has, of the blocks of a period.")
        .def(METHODS(first, same));
    nb::class_<BlockCyclic>(m, "BlockCyclic", "A matrix on a grid of ranks.")
        .def(Made<Axis, Axis, bool>(), "rows"_a, "columns"_a, "ranks_by_column"_a = false)
        .def(READ_ONLY(rows, columns, ranks_by_column))
        .def_prop_ro("ranks", &BlockCyclic::ranks)
        .def(METHODS(row_of, column_of, owned, transposed))
        .def("in_proportion", &BlockCyclic::in_proportion, "weights"_a)
        .def_prop_ro("weights", &BlockCyclic::weights)
        .def("same", &BlockCyclic::same);
}

// (least, most) of a number, the names of a kind, None of another choice.
template <class T>
nb::object values_of(double least) {
    if constexpr (is_kind<T>) {
        nb::list names;
        for (const char* name : choice_names<T>) names.append(name);
        return nb::tuple(names);
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        return nb::make_tuple(static_cast<T>(least), std::numeric_limits<T>::max());
    } else if constexpr (std::is_same_v<T, double>) {
        return nb::make_tuple(least, nb::none());
    } else {
        return nb::none();
    }
}

template <class Plan>
void bind_ranked(nb::module_& m, const char* name) {
    nb::class_<RankedPlans<Plan>>(m, name, "Plans, the fastest first.")
        .def(READ_ONLY(plans, weights))
        .def_prop_rw(
            "shown",
            [](const RankedPlans<Plan>& r) { return r.shown ? *static_cast<nb::object*>(r.shown.get()) : nb::none(); },
            [](RankedPlans<Plan>& r, nb::object made) { r.shown = hold(std::move(made)); },
            "What Python has made of them.");
}

std::optional<double> predicted(double seconds) {
    return seconds < 0 ? std::nullopt : std::optional(seconds);
}

void bind_matrix(nb::module_& m) {
    nb::class_<MatrixStorage>(m, "Matrix", "A rank's part of a matrix; making it is local.")
        .def(
            "__init__",
            [](MatrixStorage* s, Context& context, const BlockCyclic& layout, const std::string& type) {
                new (s) MatrixStorage(context, layout, dtype_named(type));
            },
            "context"_a, "layout"_a, "dtype"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("layout", &MatrixStorage::layout)
        .def(
            "array",
            [](const MatrixStorage& s) {
                const auto kind =
                    is_complex(s.type()) ? nb::dlpack::dtype_code::Complex : nb::dlpack::dtype_code::Float;
                const nb::dlpack::dtype type{static_cast<std::uint8_t>(kind),
                                             static_cast<std::uint8_t>(8 * item_bytes(s.type())), 1};
                const nb::capsule owner(new std::shared_ptr<std::byte[]>(s.memory()),
                                        [](void* p) noexcept { delete static_cast<std::shared_ptr<std::byte[]>*>(p); });
                const std::array shape{static_cast<std::size_t>(s.rows()), static_cast<std::size_t>(s.columns())};
                const std::array strides{std::int64_t{1}, std::max<std::int64_t>(1, s.rows())};
                return nb::ndarray<nb::numpy>(s.memory().get(), 2, shape.data(), owner, strides.data(), type);
            },
            "This rank's elements, in Fortran order.");
}

void bind_products(nb::module_& m) {
    nb::class_<MatmulProblem>(m, "MatmulProblem", "C = A B, each as it enters the product.")
        .def(Made<BlockCyclic, BlockCyclic, BlockCyclic, std::int64_t, bool, std::array<bool, 3>>(), "a"_a, "b"_a,
             "c"_a, "item_bytes"_a, "adds"_a, "flipped"_a);
    nb::class_<MatmulChoices>(m, "MatmulChoices", "How the blocks of a product travel.")
        .def(
            "__init__",
            [](MatmulChoices* c, bool wavefront, bool least_rounds, int lookahead, std::int64_t panel, bool pending,
               int lanes) {
                new (c) MatmulChoices;
                c->algorithm = wavefront ? MatmulAlgorithm::wavefront : MatmulAlgorithm::broadcast;
                c->tree = least_rounds ? BroadcastTree::least_rounds : BroadcastTree::ring;
                c->lookahead = lookahead;
                c->panel = panel;
                c->pending = pending;
                c->lanes = lanes;
            },
            "wavefront"_a = false, "least_rounds"_a = false, "lookahead"_a = 1, "panel"_a = MatmulChoices().panel,
            "pending"_a = false, "lanes"_a = 1)
        .def(READ_WRITE(chunk_bytes, task_flops));
    m.def("fits", &fits, "problem"_a, "choices"_a, "What the layouts do not allow; empty where they fit.");
    m.def("matmul", &matmul, "problem"_a, "choices"_a, "rank"_a, "ranks"_a, Release(), "One rank's part of a product.");
}

void bind_product_plans(nb::module_& m) {
    nb::class_<ProductPlan> plan(m, "ProductPlan", "The choices of a product.");
    nb::class_<ProductOptions> options(m, "ProductOptions", "What is asked of a product; None is chosen.");
    nb::list all, values;
#define TILEWAVE_CHOICE(type, name, otherwise, least, text)                                        \
    bind_choice<type>(plan, options, all, #name, &ProductPlan::name, &ProductOptions::name, text); \
    values.append(values_of<type>(least));
    TILEWAVE_PRODUCT_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    m.attr("product_choices") = nb::tuple(all);
    m.attr("product_values") = nb::tuple(values);
    plan.def(nb::init<>())
        .def(READ_WRITE(moved, in_proportion))
        .def_ro("memory_bytes", &ProductPlan::memory_bytes)
        .def_prop_ro("predicted_s", [](const ProductPlan& p) { return predicted(p.predicted_s); })
        .def("__str__", &ProductPlan::text);
    options.def(nb::init<>())
        .def(READ_WRITE(alpha, beta))
        .def_prop_rw(
            "op_a", [](const ProductOptions& o) { return static_cast<int>(o.op_a); },
            [](ProductOptions& o, char op) { o.op_a = transpose_named(op); })
        .def_prop_rw(
            "op_b", [](const ProductOptions& o) { return static_cast<int>(o.op_b); },
            [](ProductOptions& o, char op) { o.op_b = transpose_named(op); })
        .def_rw("memory", &ProductOptions::memory_bytes, nb::arg().none())
        .def_rw("weights", &ProductOptions::weights, nb::arg().none());
    bind_ranked<ProductPlan>(m, "RankedProducts");
    nb::class_<ProductReport, ScheduleReport>(m, "ProductReport", "How a product went.")
        .def(READ_ONLY(plan, prediction));
    nb::class_<Multiplication>(m, "Multiplication",
                               "A product with all plans that keep to what is chosen; making it is local.")
        .def(nb::init<const std::string&, const MatrixStorage&, const MatrixStorage&, MatrixStorage&,
                      const ProductOptions&, std::shared_ptr<const Blas>>(),
             "name"_a, "a"_a, "b"_a, "c"_a, "options"_a, "blas"_a, nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
             nb::keep_alive<1, 5>())
        .def(PROPERTIES(text, compares, flops))
        .def("ranked", &Multiplication::ranked, Release(), "Collective.")
        .def("run", &Multiplication::run, "ranked"_a, Release(), "Collective.");
    m.def(
        "product_rate",
        [](std::shared_ptr<const Blas> blas, const std::string& type, std::array<std::int64_t, 3> piece,
           std::array<std::int64_t, 2> whole, bool b_by_rows,
           bool adds) { return product_rate(blas, dtype_named(type), {piece, whole, b_by_rows, adds}); },
        "blas"_a, "dtype"_a, "piece"_a, "whole"_a, "b_by_rows"_a = false, "adds"_a = false, Release(),
        "The rate of products of a shape, measured at first use.");
    m.def("copy_rate", [](const std::string& type) { return copy_rate(dtype_named(type)); }, "dtype"_a);
}

void bind_panels(nb::module_& m) {
    nb::class_<FactorPlan> plan(m, "FactorPlan", "How the panels of a factor travel.");
    nb::class_<FactorOptions> options(m, "FactorOptions", "What is asked of a factorization; None is chosen.");
    nb::list all, values;
#define TILEWAVE_CHOICE(type, name, otherwise, least, text)                                      \
    bind_choice<type>(plan, options, all, #name, &FactorPlan::name, &FactorOptions::name, text); \
    values.append(values_of<type>(least));
    TILEWAVE_FACTOR_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    m.attr("factor_choices") = nb::tuple(all);
    m.attr("factor_values") = nb::tuple(values);
    plan.def(nb::init<>())
        .def(READ_ONLY(memory_bytes, sent_bytes, least_sent_bytes))
        .def(READ_WRITE(moving_s, in_proportion))
        .def_prop_ro("predicted_s", [](const FactorPlan& p) { return predicted(p.predicted_s); })
        .def("__str__", &FactorPlan::text);
    options.def(nb::init<>())
        .def_rw("memory", &FactorOptions::memory_bytes, nb::arg().none())
        .def_rw("weights", &FactorOptions::weights, nb::arg().none())
        .def("__str__", [](const FactorOptions& o) { return text_of(o); });
    nb::class_<PanelProblem>(m, "PanelProblem", "A factorization or a triangular solve.")
        .def(
            "__init__",
            [](PanelProblem* p, const std::string& work, const BlockCyclic& matrix, std::int64_t item, int ranks,
               int threads, const std::optional<BlockCyclic>& sides, const TriangularSystem& system) {
                static constexpr const char* names[] = {"cholesky", "lu", "qr", "solve"};
                const auto at = std::ranges::find(names, work) - std::begin(names);
                new (p) PanelProblem{static_cast<PanelWork>(at),
                                     matrix,
                                     item,
                                     ranks,
                                     threads,
                                     sides.value_or(BlockCyclic{{0, 1, 0}, {0, 1, 0}}),
                                     system};
            },
            "work"_a, "matrix"_a, "item_bytes"_a, "ranks"_a, "threads"_a, "sides"_a = nb::none(),
            "system"_a = TriangularSystem())
        .def(
            "plans",
            [](const PanelProblem& p, const std::string& call, const FactorOptions& options) {
                return panel_plans(call, p, options);
            },
            "call"_a, "options"_a, "All plans that keep to what is given.")
        .def(
            "played",
            [](const PanelProblem& p, std::shared_ptr<const Blas> blas, const std::string& type,
               const std::vector<FactorPlan>& plans, const Machine& machine) {
                return played_panels(p, plans, machine, measured_panels(std::move(blas), dtype_named(type), p));
            },
            "blas"_a, "dtype"_a, "plans"_a, "machine"_a, Release(), "The plans, the fastest by prediction first.");
}

using Generator = Schedule (*)(const BlockCyclic&, std::int64_t, const FactorChoices&, int, int);

void bind_factors(nb::module_& m) {
    nb::class_<FactorChoices>(m, "FactorChoices", "How the panels of a factor travel.")
        .def(
            "__init__",
            [](FactorChoices* c, bool least_rounds, int lookahead, int lanes, bool wavefront) {
                new (c) FactorChoices;
                c->wavefront = wavefront;
                c->tree = least_rounds ? BroadcastTree::least_rounds : BroadcastTree::ring;
                c->lookahead = lookahead;
                c->lanes = lanes;
            },
            "least_rounds"_a = false, "lookahead"_a = 1, "lanes"_a = 1, "wavefront"_a = false)
        .def(READ_WRITE(chunk_bytes, task_flops));
    m.def("cholesky", static_cast<Generator>(&cholesky), "layout"_a, "item_bytes"_a, "choices"_a, "rank"_a, "ranks"_a,
          Release(), "One rank's part of a Cholesky factorization.");
    m.def("lu", static_cast<Generator>(&lu), "layout"_a, "item_bytes"_a, "choices"_a, "rank"_a, "ranks"_a, Release(),
          "One rank's part of an LU factorization.");
    m.def("qr", static_cast<Generator>(&qr), "layout"_a, "item_bytes"_a, "choices"_a, "rank"_a, "ranks"_a, Release(),
          "One rank's part of a QR factorization.");
    nb::class_<TriangularSystem>(m, "TriangularSystem", "Which triangle of a matrix, and how it is meant.")
        .def(
            "__init__",
            [](TriangularSystem* s, bool upper, char op, bool unit) {
                new (s) TriangularSystem{upper, transpose_named(op), unit};
            },
            "upper"_a = false, "op"_a = 'N', "unit"_a = false);
    m.def("triangular_solve", &triangular_solve, "layout"_a, "sides"_a, "item_bytes"_a, "system"_a, "choices"_a,
          "rank"_a, "ranks"_a, Release(), "One rank's part of a triangular solve.");
    m.def(
        "apply_reflectors",
        [](const BlockCyclic& layout, const BlockCyclic& sides, std::int64_t item, bool adjoint, bool identity,
           const FactorChoices& choices, int rank,
           int ranks) { return apply_reflectors(layout, sides, item, {adjoint, identity}, choices, rank, ranks); },
        "layout"_a, "sides"_a, "item_bytes"_a, "adjoint"_a, "identity"_a, "choices"_a, "rank"_a, "ranks"_a, Release(),
        "One rank's part in applying Q of a QR factor, or its adjoint.");
    m.attr("factor_tasks") = static_cast<int>(factor_task_count);
}

FactorKind kind_named(const std::string& name) {
    return name == "cholesky" ? FactorKind::cholesky : name == "lu" ? FactorKind::lu : FactorKind::qr;
}

// The first element, the step and the number of elements.
using Run = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

Slice slice_of(const Run& run) {
    const auto [first, step, count] = run;
    return {first, first + step * count, step};
}

template <class F>
auto without_gil(F f) {
    const nb::gil_scoped_release release;
    return f();
}

using Sides = std::pair<MatrixStorage, std::vector<FactorReport>>;

Sides sides_of(SidesResult result) {
    return {std::move(result.x), std::move(result.reports)};
}

void bind_factor_calls(nb::module_& m) {
    using Library = std::shared_ptr<const Blas>;
    bind_ranked<FactorPlan>(m, "RankedFactors");
    nb::class_<FactorReport, ScheduleReport>(m, "FactorReport", "How a factorization or a solve went.")
        .def(READ_ONLY(plan, moved, memory_bytes, sample, prediction));
    nb::class_<FactorStorage>(m, "FactorStorage", "What became of a matrix, by block columns.")
        .def(READ_ONLY(matrix, info, report))
        .def_prop_ro("bytes", [](const FactorStorage& f) { return f.matrix.bytes() + f.triangles.bytes(); })
        .def_prop_ro("pivots", [](nb::handle_t<FactorStorage> self) {
            auto& pivots = nb::cast<FactorStorage&>(self).pivots;
            return nb::ndarray<nb::numpy, std::int64_t>(pivots.data(), {pivots.size()}, self);
        });
    nb::class_<PanelCall>(m, "PanelCall", "A factorization or a triangular solve; making it is local.")
        .def(PROPERTIES(text, compares))
        .def("ranked", &PanelCall::ranked, Release(), "Collective.");
    nb::class_<Factorization, PanelCall>(m, "Factorization", "A factorization with all plans that keep to a choice.")
        .def(
            "__init__",
            [](Factorization* f, const std::string& name, const std::string& kind, const MatrixStorage& a,
               const FactorOptions& options,
               Library blas) { new (f) Factorization(name, kind_named(kind), a, options, std::move(blas)); },
            "name"_a, "kind"_a, "a"_a, "options"_a, "blas"_a, nb::keep_alive<1, 4>())
        .def("run", &Factorization::run, "ranked"_a, "in_place"_a, Release(), "Collective.");
    nb::class_<TriangularSolution, PanelCall>(m, "TriangularSolution", "A system with a triangle of a matrix.")
        .def(nb::init<const std::string&, const MatrixStorage&, const MatrixStorage&, const TriangularSystem&,
                      const FactorOptions&, Library>(),
             "name"_a, "a"_a, "b"_a, "system"_a, "options"_a, "blas"_a, nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
        .def("info", &TriangularSolution::info, Release(), "Collective.")
        .def(
            "run",
            [](const TriangularSolution& t, const RankedPlans<FactorPlan>& ranked) { return sides_of(t.run(ranked)); },
            "ranked"_a, Release(), "Collective.");
    nb::class_<SidesRun>(m, "SidesRun", "Right-hand sides and what is done with them; making it is local.")
        .def(
            "run",
            [](SidesRun& r, const std::string& moved, std::int64_t copies) { return sides_of(r.run(moved, copies)); },
            "moved"_a = "", "copies_bytes"_a = 0, Release(), "Collective.");
    m.def(
        "solving",
        [](const std::string& kind, const FactorStorage& f, const MatrixStorage& b, Library blas, char op) {
            return solving(kind_named(kind), f, b, std::move(blas), transpose_named(op));
        },
        "kind"_a, "factor"_a, "b"_a, "blas"_a, "op"_a = 'N', nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>());
    m.def("inverting", &inverting, "factor"_a, "like"_a, "blas"_a, nb::keep_alive<0, 1>());
    m.def("applying", &applying, "factor"_a, "b"_a, "adjoint"_a, "blas"_a, nb::keep_alive<0, 1>(),
          nb::keep_alive<0, 2>());
    m.def("forming", &forming, "factor"_a, "q"_a, "blas"_a, nb::keep_alive<0, 1>());
    // What C++ programs call, for tests that both fronts do the same.
    m.def("use_blas", &use_blas, "library"_a);
    m.def(
        "cpp_multiply",
        [](const MatrixStorage& a, const MatrixStorage& b, MatrixStorage& c, const ProductOptions& options) {
            return multiply(a, b, c, options);
        },
        "a"_a, "b"_a, "c"_a, "options"_a, Release(), "Collective.");
    m.def(
        "cpp_factor",
        [](const std::string& kind, const MatrixStorage& a, const FactorOptions& options) {
            return factor(kind_named(kind), a, options);
        },
        "kind"_a, "a"_a, "options"_a, Release(), "Collective.");
    m.def("determinant_of", &determinant_of, "factor"_a, Release(), "Collective, after an agreement.");
    // Numbers of complex128.
    const auto bytes_of = [](const std::vector<std::complex<double>>& found) {
        return nb::bytes(reinterpret_cast<const char*>(found.data()), found.size() * sizeof(found[0]));
    };
    m.def(
        "diagonal_of",
        [bytes_of](const MatrixStorage& a, std::int64_t offset) {
            return bytes_of(without_gil([&] { return diagonal_of(a, offset); }));
        },
        "a"_a, "offset"_a, "Numbers of complex128. Collective, after an agreement.");
    m.def(
        "elements_of",
        [bytes_of](const MatrixStorage& a, const Run& rows, const Run& columns) {
            return bytes_of(without_gil([&] { return elements_of(a, slice_of(rows), slice_of(columns)); }));
        },
        "a"_a, "rows"_a, "columns"_a, "Numbers of complex128. Collective, after an agreement.");
    m.def(
        "take_part",
        [](const MatrixStorage& a, const Run& rows, const Run& columns, MatrixStorage& part) {
            take_part(a, slice_of(rows), slice_of(columns), part);
        },
        "a"_a, "rows"_a, "columns"_a, "part"_a, Release(), "Collective, after an agreement.");
    m.def(
        "norm_of",
        [](const MatrixStorage& a, const std::string& kind) {
            static constexpr const char* names[] = {"F", "1", "I", "M"};
            return norm_of(a, static_cast<Norm>(std::ranges::find(names, kind) - std::begin(names)));
        },
        "a"_a, "kind"_a, Release(), "Collective, after an agreement.");
    m.def("norm_of_inverse", &norm_of_inverse, "n"_a, "complex_numbers"_a, "solve"_a);
    nb::class_<LeastSquaresFound>(m, "LeastSquares", "What least squares give.")
        .def(READ_ONLY(info, rank, residues, ranked))
        .def_prop_ro("x", [](const LeastSquaresFound& l) { return l.x.shared(); })
        .def_prop_ro("reports", [](const LeastSquaresFound& l) { return l.reports; });
    nb::class_<LeastSquaresRun>(m, "LeastSquaresRun", "Least squares by a factor; making it is local.")
        .def(
            "__init__",
            [](LeastSquaresRun* r, const std::string& name, const FactorStorage& f, const MatrixStorage& b,
               const BlockCyclic& layout_of_x, double cond,
               const Library& blas) { new (r) LeastSquaresRun(name, f, b, layout_of_x, cond, false, 0, blas); },
            "name"_a, "factor"_a, "b"_a, "layout_of_x"_a, "cond"_a, "blas"_a, nb::keep_alive<1, 3>(),
            nb::keep_alive<1, 4>())
        .def("run", &LeastSquaresRun::run, Release(), "Collective.");
    nb::class_<LeastSquaresCall>(m, "LeastSquaresCall", "Least squares of any matrix; making it is local.")
        .def(nb::init<const std::string&, const MatrixStorage&, const MatrixStorage&, const BlockCyclic&, double,
                      const FactorOptions&, Library>(),
             "name"_a, "a"_a, "b"_a, "layout_of_x"_a, "cond"_a, "options"_a, "blas"_a)
        .def_prop_ro("compares", &LeastSquaresCall::compares)
        .def("run", &LeastSquaresCall::run, Release(), "Collective.");
}

}  // namespace

void bind_linalg(nb::module_& top) {
    nb::module_ m = top.def_submodule("linalg", "Dense matrices on block distributions.");
    bind_layouts(m);
    bind_matrix(m);
    bind_products(m);
    bind_factors(m);
    bind_panels(m);
    bind_product_plans(m);
    bind_factor_calls(m);
    nb::class_<Blas>(m, "Blas", "Functions of a BLAS library.")
        .def_static("load", [](const std::string& path) { return std::const_pointer_cast<Blas>(Blas::load(path)); })
        .def_prop_ro("path", &Blas::path);
    m.def(
        "move_schedule",
        [](const BlockCyclic& from, const BlockCyclic& to, std::int64_t item, int rank, int ranks,
           std::int64_t chunk_bytes) { return move_matrix(MatrixMove(from, to, item, ranks, chunk_bytes), rank); },
        "from_layout"_a, "to_layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a, "chunk_bytes"_a = 1 << 20,
        "One rank's part in moving a matrix to another layout.");
    nb::class_<ReadyMove>(m, "ReadyMove",
                          "A move of a matrix to another layout with all that it takes; making it is local.")
        .def(
            "__init__",
            [](ReadyMove* r, Context& context, const BlockCyclic& from, const BlockCyclic& to, std::int64_t item) {
                nb::gil_scoped_release release;
                new (r) ReadyMove(context, MatrixMove(from, to, item, context.size()));
            },
            "context"_a, "from_layout"_a, "to_layout"_a, "item_bytes"_a, nb::keep_alive<1, 2>())
        .def(
            "run",
            [](ReadyMove& r, const MatrixPlace& here, const MatrixPlace& there, std::int64_t item) {
                nb::gil_scoped_release release;
                r.run(binding_of(here, item), binding_of(there, item));
            },
            "here"_a, "there"_a, "item_bytes"_a, "Collective.");
}
