// Nests that are ready to run.
#include "casters.hpp"
#include "nests/bound_sweep.hpp"
#include "nests/prepared_sweep.hpp"
#include "reductions.hpp"

namespace {

struct PlainArray {
    FieldStorage* field = nullptr;
    std::uintptr_t address = 0;
    Index strides;
    std::uintptr_t initial = 0;  // of a rolling-window array
    bool same = true;
    bool mirrored = false;  // time, its first dimension, runs backwards
    bool anew = false;      // each run begins with the values from before the first one
};

std::vector<RunArray> run_arrays(const std::vector<PlainArray*>& arrays) {
    std::vector<RunArray> all;
    for (const PlainArray* a : arrays)
        all.push_back({a->field,
                       {reinterpret_cast<std::byte*>(a->address), a->strides},
                       reinterpret_cast<const std::byte*>(a->initial),
                       a->same,
                       a->mirrored,
                       a->anew});
    return all;
}

}  // namespace

void bind_prepared(nb::module_& m) {
    m.attr("MOST_PREPARED_NESTS") = tuning::most_prepared_nests;
    m.attr("MOST_PREPARED_BYTES") = tuning::most_prepared_bytes;
    m.attr("BLOCK_POINTS") = tuning::block_points;
    m.attr("FEWEST_BLOCK_STEPS") = tuning::fewest_block_steps;
    m.attr("MOST_BLOCK_STEPS") = tuning::most_block_steps;
    nb::class_<Report>(m, "Report", "What a run was and how it went.")
        .def(READ_ONLY(plan, ranks, threads, points, waves, buffer_bytes, time_s, moving_s, call_s, overlap_ratio,
                       interrupted, reduced))
        .def_prop_ro("points_per_s", &Report::points_per_s)
        .def(READ_ONLY(parts, lanes))
        .def_prop_ro("timeline", &Report::timeline, nb::rv_policy::reference_internal);
    nb::class_<PlainArray>(m, "RunArray", "One array of a run: a field, or memory that is whole on this rank.")
        .def(
            "__init__", [](PlainArray* a, FieldStorage& f) { new (a) PlainArray{&f, 0, {}}; }, "field"_a,
            nb::keep_alive<1, 2>())
        // `owner`: of the memory, which lives as long.
        .def(
            "__init__",
            [](PlainArray* a, std::uintptr_t address, Index strides, nb::object) {
                new (a) PlainArray{nullptr, address, strides};
            },
            "address"_a, "strides"_a, "owner"_a = nb::none(), nb::keep_alive<1, 4>())
        .def(READ_WRITE(mirrored, anew))
        // Of a rolling-window array: the address of the values of elements that no point computes, one value for all or
        // one each.
        .def_static(
            "window",
            [](std::uintptr_t initial, bool same, nb::object) { return PlainArray{nullptr, 0, {}, initial, same}; },
            "initial"_a, "same"_a, "owner"_a = nb::none(), nb::keep_alive<0, 3>());
    nb::class_<WholeField>(m, "WholeField", "A field that a nest has whole on each rank, as memory.")
        .def(
            "__init__",
            [](WholeField* w, FieldStorage& field, std::uintptr_t stand_in, std::vector<int> arrays, int table) {
                new (w) WholeField{&field, reinterpret_cast<const std::byte*>(stand_in), std::move(arrays), table};
            },
            "field"_a, "stand_in"_a, "arrays"_a, "table"_a, nb::keep_alive<1, 2>());
    // What is given must live as long.
    nb::class_<OffGrid>(m, "OffGrid", "Points between those of the grid, which a run visits after each time step.")
        .def(
            "__init__",
            [](OffGrid* at, const std::string& type, int dims, int width, std::int64_t points, std::uintptr_t first,
               std::uintptr_t weights, bool moves, std::uintptr_t values, bool adds) {
                new (at) OffGrid(
                    {real_dtype(type, true), dims, width, points, reinterpret_cast<const std::int64_t*>(first),
                     reinterpret_cast<const double*>(weights), moves, reinterpret_cast<std::byte*>(values), adds});
            },
            "type"_a, "dims"_a, "width"_a, "points"_a, "first"_a, "weights"_a, "moves"_a, "values"_a, "adds"_a)
        .def(
            "visit",
            [](OffGrid& o, std::int64_t step, std::uintptr_t data, const Index& stride_bytes, const Box& owned) {
                std::vector<std::int64_t> changed;
                o.visit(step, {reinterpret_cast<std::byte*>(data), stride_bytes, owned.lo, owned}, changed);
            },
            "step"_a, "data"_a, "stride_bytes"_a, "owned"_a)
        .def("products", [](OffGrid& o) {
            const std::vector<ProductOfSum> found = o.products();
            return nb::bytes(reinterpret_cast<const char*>(found.data()), found.size() * sizeof(ProductOfSum));
        });
    nb::class_<StepPoints>(m, "StepPoints", "Elements of an array that a run changes or records after each time step.")
        .def(
            "__init__",
            [](StepPoints* at, int array, std::uintptr_t subscripts, std::size_t count, std::uintptr_t values,
               std::int64_t value_bytes, const std::optional<std::pair<std::string, std::string>>& add, bool by_lanes,
               OffGrid* off_grid) {
                new (at)
                    StepPoints{array,
                               {reinterpret_cast<const std::int64_t*>(subscripts), count},
                               reinterpret_cast<std::byte*>(values),
                               value_bytes,
                               add ? add_item(real_dtype(add->first, true), real_dtype(add->second, true)) : nullptr,
                               by_lanes,
                               off_grid};
            },
            "array"_a, "subscripts"_a, "count"_a, "values"_a, "value_bytes"_a, "add"_a.none(), "by_lanes"_a = false,
            "off_grid"_a.none() = nb::none());
    nb::class_<PreparedSweep>(m, "PreparedSweep", "A sweep ready to run, any number of times.")
        .def(nb::init<Context&, SweepProblem, Plan>(), "context"_a, "problem"_a, "plan"_a, nb::keep_alive<1, 2>())
        .def(PROPERTIES(plan, schedule, bytes, points, problem, independent_rows))
        .def(METHODS(stagger, neighbours, same_row))
        .def("in_window", &PreparedSweep::in_window, "array"_a)
        // int64, as bytes: the subscripts of one element after the other.
        .def(
            "initial",
            [](const PreparedSweep& s, int array) {
                const std::vector<std::int64_t> all = s.initial(array);
                return nb::bytes(all.data(), all.size() * sizeof all[0]);
            },
            "array"_a)
        .def(
            "row_steps",
            [](const PreparedSweep& s, const std::vector<PlainArray*>& arrays) {
                return s.row_steps(run_arrays(arrays));
            },
            "arrays"_a)
        .def(
            "conversion_s",
            [](const PreparedSweep& s, const std::vector<PlainArray*>& arrays) {
                return s.conversion_s(run_arrays(arrays));
            },
            "arrays"_a)
        .def(
            "sample",
            [](PreparedSweep& s, const std::vector<PlainArray*>& arrays, const Kernel& kernel, double budget_s) {
                const std::vector<RunArray> all = run_arrays(arrays);
                const nb::gil_scoped_release release;
                return s.sample(all, kernel, budget_s);
            },
            "arrays"_a, "kernel"_a, "budget_s"_a,
            "(rows, points, seconds, spread) of tiles with long rows, short rows, few points, and of long rows on one "
            "lane "
            "alone where there are several; empty where the kernel raised.")
        .def(
            "run",
            [](PreparedSweep& s, const std::vector<PlainArray*>& arrays, const Kernel& kernel, nb::object explain,
               std::optional<std::int64_t> steps, double call_s, std::int64_t first_step,
               const std::vector<StepPoints>& points, const std::vector<WholeField>& whole) {
                const std::vector<RunArray> all = run_arrays(arrays);
                nb::gil_scoped_release release;
                return s.run(
                    all, kernel,
                    [&explain](const Failure& f) {
                        nb::gil_scoped_acquire gil;
                        return nb::cast<std::string>(explain(f.site, f.point));
                    },
                    steps, {0, call_s}, first_step, points, whole);
            },
            "arrays"_a, "kernel"_a, "explain"_a = nb::none(), nb::kw_only(), "steps"_a = std::nullopt, "call_s"_a = 0.0,
            "first_step"_a = 0, "points"_a = std::vector<StepPoints>(), "whole"_a = std::vector<WholeField>())
        .def("prepare_steps", &PreparedSweep::prepare_steps, "steps"_a, Release())
        // None where an array must be copied for each run. What is given must live as long.
        .def(
            "bind",
            [](PreparedSweep& s, Context& context, const std::vector<PlainArray*>& arrays, const Kernel& kernel,
               nb::object explain, std::vector<WholeField> whole) -> std::unique_ptr<BoundSweep> {
                std::vector<RunArray> all = run_arrays(arrays);
                if (!BoundSweep::suits(s, all)) return nullptr;
                return std::make_unique<BoundSweep>(
                    context, s, std::move(all), kernel,
                    [explain = std::move(explain)](const Failure& f) {
                        nb::gil_scoped_acquire gil;
                        return nb::cast<std::string>(explain(f.site, f.point));
                    },
                    std::move(whole));
            },
            "context"_a, "arrays"_a, "kernel"_a, "explain"_a, "whole"_a = std::vector<WholeField>(),
            nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
}
