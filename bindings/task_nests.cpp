// Nests that gather each time step.
#include <nanobind/stl/array.h>

#include "casters.hpp"
#include "nests/gather.hpp"

namespace {

using Bounds = std::vector<std::pair<Index, std::int64_t>>;  // coefficients, constant

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
    bind_gather(m);
}
