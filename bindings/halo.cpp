// Updates of the halos of fields.
#include "tilewave/halo.hpp"

#include "casters.hpp"
#include "generate/halo/update.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;

namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

HaloCall call_of(std::vector<FieldStorage*> fields, int axes, const std::string& error, const std::string& function) {
    return {std::move(fields), axes, {function, ""}, error};
}

}  // namespace

void bind_halo(nb::module_& m) {
    nb::class_<Handle>(m, "Handle", "What is in flight, for its caller.")
        .def("test", &Handle::test, Release())
        .def("wait", &Handle::wait, Release())
        .def_prop_ro("buffer_bytes", &Handle::buffer_bytes);
    nb::class_<RepeatedHandle, Handle>(m, "RepeatedHandle", "What is in flight, or ready to go.")
        .def("start", &RepeatedHandle::start, Release())
        .def("run", &RepeatedHandle::run, Release());
    m.def(
        "run_exchange",
        [](Context& context, std::vector<FieldStorage*> fields, int axes, const std::string& error,
           const std::string& function) {
            nb::gil_scoped_release release;
            run_exchange(context, call_of(std::move(fields), axes, error, function));
        },
        "context"_a, "fields"_a, "axes"_a, "error"_a, "function"_a);
    m.def(
        "start_exchange",
        [](Context& context, std::vector<FieldStorage*> fields, int axes, const std::string& error,
           const std::string& function, bool keep) {
            nb::gil_scoped_release release;
            HaloCall call = call_of(std::move(fields), axes, error, function);
            return keep ? bind_exchange(context, std::move(call)) : start_exchange(context, std::move(call));
        },
        "context"_a, "fields"_a, "axes"_a, "error"_a, "function"_a, "keep"_a, nb::keep_alive<0, 1>(),
        nb::keep_alive<0, 2>());
    m.def(
        "halo_update",
        [](const std::vector<std::pair<Layout, std::int64_t>>& arrays, int rank, int ranks, int axes) {
            std::vector<HaloArray> all;
            for (const auto& [layout, item_bytes] : arrays) all.push_back({layout, item_bytes});
            return halo_update(all, rank, ranks, axes);
        },
        "arrays"_a, "rank"_a, "ranks"_a, "axes"_a, "One rank's part of an update of halos, of (layout, item bytes).");
}
