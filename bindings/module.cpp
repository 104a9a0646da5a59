// The Python module tilewave._core: plain bindings of include/tilewave, without decisions.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "tilewave/dtype.hpp"
#include "tilewave/engine/fast_paths.hpp"
#include "tilewave/engine/layout.hpp"
#include "tilewave/engine/limits.hpp"
#include "tilewave/error.hpp"

namespace nb = nanobind;
using namespace nb::literals;

void bind_machine(nb::module_& m);
void bind_schedule(nb::module_& m);
void bind_problem(nb::module_& m);
void bind_generate(nb::module_& m);
void bind_context(nb::module_& m);
void bind_arrays(nb::module_& m);
void bind_execute(nb::module_& m);
void bind_prepared(nb::module_& m);
void bind_bound(nb::module_& m);
void bind_predict(nb::module_& m);
void bind_nests(nb::module_& m);
void bind_plan(nb::module_& m);
void bind_patterns(nb::module_& m);
void bind_file_cache(nb::module_& m);
void bind_measure(nb::module_& m);
void bind_run(nb::module_& m);
void bind_linalg(nb::module_& m);

namespace {

void set_error(const char* type, const char* text) {
    nb::object error = nb::module_::import_("tilewave.errors").attr(type);
    PyErr_SetString(error.ptr(), text);
}

}  // namespace

NB_MODULE(_core, m) {
    // The default context lives to the end of the process, so at exit something always "leaks".
    nb::set_leak_warnings(false);
    nb::dict limits;
    limits["dims"] = tilewave::max_dims;
    limits["history"] = tilewave::max_history;
    limits["places"] = tilewave::max_places;
    limits["lanes"] = tilewave::max_lanes;
    limits["simd_rows"] = tilewave::max_simd_rows;
    limits["weight"] = tilewave::most_weight;
    limits["error_sites"] = tilewave::error_sites;
    m.attr("limits") = limits;
    nb::list dtypes;
    for (const tilewave::Dtype d : tilewave::all_dtypes) dtypes.append(tilewave::to_string(d));
    m.attr("dtypes") = nb::tuple(dtypes);
    nb::dict paths;  // what each fast path does, by name
#define TILEWAVE_PATH(name, text) paths[#name] = text;
    TILEWAVE_FAST_PATHS(TILEWAVE_PATH)
#undef TILEWAVE_PATH
    m.attr("fast_paths") = paths;
    m.def("paths_off", &tilewave::paths_off, "names"_a, "The fast paths of names between commas, a bit each.");
    m.def("names_of", &tilewave::names_of, "off"_a, "The names of fast paths, with commas.");
    m.def(
        "without",
        [](tilewave::PathsOff off, const std::string& name) { return (off & tilewave::paths_off(name)) != 0; }, "off"_a,
        "name"_a, "Whether a fast path is among those that are switched off.");
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const tilewave::ConfigError& e) {
            set_error("ConfigError", e.what());
        } catch (const tilewave::MpiError& e) {
            set_error("MpiError", e.what());
        } catch (const tilewave::KernelError& e) {
            set_error("KernelError", e.what());
        } catch (const tilewave::Interrupted& e) {
            PyErr_SetString(PyExc_KeyboardInterrupt, e.what());
        } catch (const tilewave::OutOfResources& e) {
            PyErr_SetString(PyExc_MemoryError, e.what());
        } catch (const tilewave::InternalError& e) {
            set_error("InternalError", e.what());
        }
    });
    bind_machine(m);
    bind_schedule(m);
    bind_problem(m);
    bind_generate(m);
    bind_execute(m);
    bind_context(m);  // its handles are the base of the others
    bind_arrays(m);
    bind_bound(m);
    bind_prepared(m);
    bind_nests(m);
    bind_predict(m);
    bind_plan(m);
    bind_patterns(m);
    bind_file_cache(m);
    bind_measure(m);
    bind_run(m);
    bind_linalg(m);
}
