// Bound nests.
#include "runtime/bound_sweep.hpp"

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
}
