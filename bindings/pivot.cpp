// Nests with a pivot.
#include <nanobind/stl/array.h>

#include "casters.hpp"
#include "nests/pivot.hpp"

namespace {

using MatrixItems = std::vector<std::pair<std::int64_t, bool>>;  // bytes of an item, whether it pivots
using Bounds = std::vector<std::pair<Index, std::int64_t>>;      // coefficients, constant
using Places = std::vector<std::pair<std::uintptr_t, Index>>;    // address, bytes between neighbours
using Reads = std::vector<std::pair<int, int>>;                  // PivotRead, array

std::byte* at(std::uintptr_t address) {
    return reinterpret_cast<std::byte*>(address);
}

}  // namespace

void bind_pivot(nb::module_& m) {
    nb::class_<PivotPlan>(m, "PivotPlan", "How the steps of a nest with a pivot are cut.")
        .def(
            "__init__",
            [](PivotPlan* p, std::int64_t block, std::int64_t rows, int lanes) {
                new (p) PivotPlan{block, rows, lanes};
            },
            "block"_a = PivotPlan().block, "rows"_a = PivotPlan().rows, "lanes"_a = PivotPlan().lanes)
        .def_ro("block", &PivotPlan::block)
        .def_ro("rows", &PivotPlan::rows)
        .def_ro("lanes", &PivotPlan::lanes);
    nb::class_<PivotProblem>(m, "PivotProblem", "Loops k, i, j, and the matrices that are written at [i, j].")
        .def(
            "__init__",
            [](PivotProblem* p, const Box& space, const Bounds& bounds, std::array<bool, 3> down, std::int64_t rows,
               std::int64_t columns, const MatrixItems& matrices) {
                new (p) PivotProblem{space, {}, down, rows, columns, {}};
                for (const auto& [coefficients, constant] : bounds) p->bounds.push_back({coefficients, constant});
                for (const auto& [bytes, pivots] : matrices) p->matrices.push_back({bytes, pivots});
            },
            "space"_a, "bounds"_a, "down"_a, "rows"_a, "columns"_a, "matrices"_a)
        .def_prop_ro("changes_row", &PivotProblem::changes_row)
        .def_prop_ro("points", &PivotProblem::points);
    m.def("pivot_schedule", &pivot_schedule, "problem"_a, "plan"_a, "rank"_a, "ranks"_a, "One rank's schedule.");
    m.def("pivot_layout", &pivot_layout, "problem"_a, "ranks"_a, "Who has which rows.");
    nb::class_<PivotRun>(m, "PivotRun", "A nest with a pivot, ready to run; making it is local.")
        .def(
            "__init__",
            [](PivotRun* run, Context& context, const PivotProblem& problem, const PivotPlan& plan, const Reads& places,
               const Places& operands, std::array<std::uintptr_t, 3> kernel, const std::vector<std::uintptr_t>& tables,
               nb::callable explain) {
                PivotBody body;
                body.kernel.row = reinterpret_cast<RowFunction>(kernel[0]);
                body.kernel.rows = reinterpret_cast<RowsFunction>(kernel[1]);
                body.kernel.env = reinterpret_cast<const void*>(kernel[2]);
                for (const auto table : tables) body.kernel.tables.push_back(reinterpret_cast<char*>(table));
                for (const auto& [what, array] : places) body.places.push_back({static_cast<PivotRead>(what), array});
                for (const auto& [address, strides] : operands) body.operands.push_back({at(address), strides});
                body.explain = [call = hold(std::move(explain))](std::int64_t site, const Index& point) {
                    nb::gil_scoped_acquire gil;
                    return nb::cast<std::string>((*static_cast<nb::object*>(call.get()))(site, point));
                };
                new (run) PivotRun(context, problem, plan, std::move(body));
            },
            "context"_a, "problem"_a, "plan"_a, "places"_a, "operands"_a, "kernel"_a, "tables"_a, "explain"_a,
            nb::keep_alive<1, 2>(), "`kernel`: addresses of the row function, that of several rows, the environment.")
        .def(
            "run",
            [](PivotRun& run, const Places& matrices) {
                std::vector<Binding> all;
                for (const auto& [address, strides] : matrices) all.push_back({at(address), strides});
                nb::gil_scoped_release release;
                return run.run(all);
            },
            "matrices"_a, "Collective; `matrices`: address of this rank's rows, and strides.")
        .def_prop_ro("kept_bytes", &PivotRun::kept_bytes);
}
