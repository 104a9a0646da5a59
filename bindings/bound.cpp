// Bound nests, and chains of them.
#include "nests/chained_sweep.hpp"

#include <nanobind/stl/unique_ptr.h>

#include "casters.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;

namespace {

struct BoundCall {
    std::shared_ptr<const Said> said;
};

}  // namespace

void bind_bound(nb::module_& m) {
    nb::class_<BoundCall>(m, "BoundCall", "What a rank says at the begin of a run, made once.")
        .def(
            "__init__",
            [](BoundCall* call, const std::string& name, const std::string& description) {
                Statement what;
                what.caller.call = name;
                what.description = description;
                new (call) BoundCall{std::make_shared<const Said>(std::move(what))};
            },
            "name"_a, "description"_a);
    nb::class_<BoundRun>(m, "BoundRun", "One run of a bound sweep.")
        .def_ro("points", &BoundRun::points)
        .def_ro("time_s", &BoundRun::time_s)
        .def_ro("moving_s", &BoundRun::moving_s)
        .def_ro("call_s", &BoundRun::call_s)
        .def_ro("reduced", &BoundRun::reduced)
        .def_ro("interrupted", &BoundRun::interrupted);
    nb::class_<BoundSweep>(m, "BoundSweep", "A prepared sweep with its arrays and kernel.")
        .def(
            "run",
            [](BoundSweep& s, const BoundCall& call, std::optional<std::int64_t> steps, std::uintptr_t env) {
                nb::gil_scoped_release release;
                return s.run(call.said, steps, reinterpret_cast<const void*>(env));
            },
            "call"_a, "steps"_a.none(), "env"_a)
        .def("report", &BoundSweep::report, "run"_a);
    nb::class_<ChainedSweep>(m, "ChainedSweep", "Bound sweeps that run as one schedule.")
        .def(
            "__init__",
            [](ChainedSweep* c, Context& context, std::vector<BoundSweep*> sweeps,
               std::vector<std::vector<std::int32_t>> memories) {
                new (c) ChainedSweep(context, std::move(sweeps), std::move(memories));
            },
            "context"_a, "sweeps"_a, "memories"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def(
            "run",
            [](ChainedSweep& c, const BoundCall& call, std::int64_t times, const std::vector<std::uintptr_t>& env) {
                nb::gil_scoped_release release;
                return c.run(call.said, times, env);
            },
            "call"_a, "times"_a, "env"_a)
        .def_prop_ro("schedule", &ChainedSweep::schedule)
        .def_prop_ro("buffer_bytes", [](const ChainedSweep& c) { return c.schedule().buffer_bytes(); });
}
