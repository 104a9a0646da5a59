// Nests whose schedules have tasks: those with a pivot, and those that gather each time step.
#include <nanobind/stl/array.h>

#include "casters.hpp"
#include "nests/gather.hpp"
#include "nests/pivot.hpp"

namespace {

using MatrixItems = std::vector<std::pair<std::int64_t, bool>>;  // bytes of an item, whether it pivots
using Bounds = std::vector<std::pair<Index, std::int64_t>>;      // coefficients, constant
using Places = std::vector<std::pair<std::uintptr_t, Index>>;    // address, bytes between neighbours
using Reads = std::vector<std::pair<int, int>>;                  // PivotRead, array

using KernelParts = std::array<std::uintptr_t, 3>;  // the row function, that of several rows, environment
using Addresses = std::vector<std::uintptr_t>;

std::byte* at(std::uintptr_t address) {
    return reinterpret_cast<std::byte*>(address);
}

std::vector<Bound> bounds_of(const Bounds& given) {
    std::vector<Bound> bounds;
    for (const auto& [coefficients, constant] : given) bounds.push_back({coefficients, constant});
    return bounds;
}

NestBody body_of(const KernelParts& kernel, const Addresses& tables, nb::callable explain) {
    NestBody body;
    body.kernel.row = reinterpret_cast<RowFunction>(kernel[0]);
    body.kernel.rows = reinterpret_cast<RowsFunction>(kernel[1]);
    body.kernel.env = reinterpret_cast<const void*>(kernel[2]);
    for (const auto table : tables) body.kernel.tables.push_back(reinterpret_cast<char*>(table));
    body.explain = [call = hold(std::move(explain))](std::int64_t site, const Index& point) {
        nb::gil_scoped_acquire gil;
        return nb::cast<std::string>((*static_cast<nb::object*>(call.get()))(site, point));
    };
    return body;
}

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
                new (p) PivotProblem{{space, bounds_of(bounds)}, down, rows, columns, {}};
                for (const auto& [bytes, pivots] : matrices) p->matrices.push_back({bytes, pivots});
            },
            "space"_a, "bounds"_a, "down"_a, "rows"_a, "columns"_a, "matrices"_a)
        .def_prop_ro("points", &PivotProblem::points);
    m.def("pivot_schedule", &pivot_schedule, "problem"_a, "plan"_a, "rank"_a, "ranks"_a, "One rank's schedule.");
    m.def("pivot_layout", &pivot_layout, "problem"_a, "ranks"_a, "Who has which rows.");
    m.def(
        "pivot_run",
        [](Context& context, const PivotProblem& problem, const PivotPlan& plan, const Reads& places,
           const Places& operands, const KernelParts& kernel, const Addresses& tables, nb::callable explain) {
            PivotBody body{body_of(kernel, tables, std::move(explain)), {}, {}};
            for (const auto& [what, array] : places) body.places.push_back({static_cast<PivotRead>(what), array});
            for (const auto& [address, strides] : operands) body.operands.push_back({at(address), strides});
            const int rank = context.rank(), ranks = context.size();
            return new TaskNestRun(context, pivot_schedule(problem, plan, rank, ranks),
                                   pivot_tasks(problem, plan, ranks, std::move(body)),
                                   std::vector<Binding>(problem.matrices.size(), Binding{nullptr, {0, 0}}));
        },
        "context"_a, "problem"_a, "plan"_a, "places"_a, "operands"_a, "kernel"_a, "tables"_a, "explain"_a,
        nb::keep_alive<0, 1>(), "A nest with a pivot, ready to run; local.");
    nb::class_<TaskNestRun>(m, "TaskNestRun", "A nest with tasks, ready to run.")
        .def(
            "run",
            [](TaskNestRun& run, const Places& matrices) {
                std::vector<Binding> all;
                for (const auto& [address, strides] : matrices) all.push_back({at(address), strides});
                nb::gil_scoped_release release;
                return run.run(all);
            },
            "matrices"_a, "Collective; `matrices`: address of this rank's rows, and strides.")
        .def_prop_ro("kept_bytes", &TaskNestRun::kept_bytes);
}

using PlaneItems = std::vector<std::tuple<std::int64_t, int, bool>>;  // bytes of an element of the cut, depth, travels
using GatherPlaces = std::vector<std::tuple<int, int, std::uintptr_t, std::int64_t, Index>>;  // as GatherPlace
using GatherMatrices = std::vector<std::tuple<std::uintptr_t, std::int64_t, std::int64_t, bool, Index, Index, Index,
                                              std::int64_t>>;  // as GatherMatrix

void bind_gather(nb::module_& m) {
    nb::class_<GatherPlan>(m, "GatherPlan", "How a time step is divided.")
        .def(
            "__init__",
            [](GatherPlan* p, std::int64_t chunk, int lanes, int radix) { new (p) GatherPlan{chunk, lanes, radix}; },
            "chunk"_a, "lanes"_a = 1, "radix"_a = GatherPlan().radix);
    nb::class_<GatherProblem>(m, "GatherProblem", "Time steps that read along a whole axis what earlier ones wrote.")
        .def(
            "__init__",
            [](GatherProblem* p, std::int64_t steps, std::int64_t extent, const PlaneItems& matrices) {
                new (p) GatherProblem{steps, extent, {}};
                for (const auto& [bytes, depth, travels] : matrices) p->matrices.push_back({bytes, depth, travels});
            },
            "steps"_a, "extent"_a, "matrices"_a)
        .def_prop_ro("planes", &GatherProblem::planes)
        .def_prop_ro("repetitions", &gather_repetitions);
    m.def("gather_schedule", &gather_schedule, "problem"_a, "plan"_a, "rank"_a, "ranks"_a, "One rank's schedule.");
    nb::class_<GatherLoops>(m, "GatherLoops", "The loops of a nest: which is time, and which one is divided.")
        .def(
            "__init__",
            [](GatherLoops* p, const Box& space, const Bounds& bounds, int time, int cut, bool down) {
                new (p) GatherLoops{{space, bounds_of(bounds)}, time, cut, down};
            },
            "space"_a, "bounds"_a, "time"_a, "cut"_a, "down"_a)
        .def_prop_ro("points", &GatherLoops::points);
    nb::class_<GatherRun>(m, "GatherRun", "A nest that gathers each time step, ready to run; making it is local.")
        .def(
            "__init__",
            [](GatherRun* run, Context& context, const GatherLoops& loops, const GatherProblem& problem,
               const GatherPlan& plan, const KernelParts& kernel, const Addresses& tables, nb::callable explain) {
                new (run) GatherRun(context, loops, problem, plan, body_of(kernel, tables, std::move(explain)));
            },
            "context"_a, "loops"_a, "problem"_a, "plan"_a, "kernel"_a, "tables"_a, "explain"_a, nb::keep_alive<1, 2>())
        .def(
            "run",
            [](GatherRun& run, const GatherPlaces& given, const GatherMatrices& matrices) {
                std::vector<GatherPlace> places;
                for (const auto& [matrix, back, address, offset, strides] : given)
                    places.push_back({matrix, back, at(address), offset, strides});
                std::vector<GatherMatrix> all;
                for (const auto& [address, time, written, complete, extents, strides, planes, item] : matrices)
                    all.push_back({at(address), time, written, complete, extents, strides, planes, item});
                nb::gil_scoped_release release;
                return run.run(std::move(places), std::move(all));
            },
            "places"_a, "matrices"_a, "Collective.")
        .def_prop_ro("kept_bytes", &GatherRun::kept_bytes);
}

}  // namespace

void bind_task_nests(nb::module_& m) {
    bind_pivot(m);
    bind_gather(m);
}
