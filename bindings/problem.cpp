// What is to be run, and how: problems, layouts, plans and their choices.

#include "casters.hpp"
#include "choices.hpp"
#include "problem/make_problem.hpp"
#include "problem/stencil.hpp"
#include "tilewave/plan.hpp"

namespace {

void bind_layout(nb::module_& m) {
    nb::class_<Layout>(m, "Layout", "A block distribution of an array over a process grid.")
        .def(nb::init<Index, Index, Index, Index>(), "shape"_a, "grid"_a, "halo_lo"_a, "halo_hi"_a)
        .def(nb::init<Index, Index>(), "shape"_a, "grid"_a)
        .def(READ_ONLY(shape, grid, halo_lo, halo_hi))
        .def_rw("wraps", &Layout::wraps)
        .def("following", &Layout::following, "of"_a, "scale"_a)
        .def("cut_as", &Layout::cut_as, "cuts"_a,
             "The same with blocks cut by (of, scale, per, shift, every), for each dimension.")
        .def("block_at", &Layout::block_at, "dimension"_a, "at"_a)
        .def("start", &Layout::start, "dimension"_a, "block"_a)
        .def("same_blocks", &Layout::same_blocks, "other"_a)
        .def("owned", &Layout::owned, "rank"_a)
        .def("storage", &Layout::storage, "rank"_a)
        .def("owners", &Layout::owners, "region"_a)
        .def_prop_ro("ranks", &Layout::ranks);
    m.def("default_grid", nb::overload_cast<const Index&, int, int>(&default_grid), "shape"_a, "ranks"_a,
          "fixed"_a = -1, "The process grid of least surface over the dimensions other than `fixed`.");
}

void bind_problem_class(nb::module_& m) {
    nb::class_<SweepProblem>(m, "SweepProblem", "What a sweep computes: shape, space, arrays, accesses.")
        // One written array, at the point itself.
        .def(
            "__init__",
            [](SweepProblem* p, Index shape, Box space, const std::vector<std::pair<std::int64_t, bool>>& arrays,
               const std::vector<std::pair<int, Index>>& reads) {
                new (p) SweepProblem{shape, space, {}, {{0, Index::filled(shape.n, 0), true}}};
                for (const auto& [bytes, replicated] : arrays) p->arrays.push_back({bytes, replicated});
                for (const auto& [array, offset] : reads) p->accesses.push_back({array, offset});
                p->complete();
            },
            "shape"_a, "space"_a, "arrays"_a, "reads"_a)
        // arrays: (item bytes, replicated, shape, axes, time buffers, window); accesses: (array, offset, writes,
        // keeps); bounds: (coefficients, constant) of loop indices; downwards, periodic: for each loop index; pivots:
        // of each access, as PivotRead.
        .def(
            "__init__",
            [](SweepProblem* p, Index shape, Box space,
               const std::vector<std::tuple<std::int64_t, bool, Index, Index, int, bool>>& arrays,
               const std::vector<std::tuple<int, Index, bool, bool>>& accesses, std::vector<Bound> bounds,
               const std::vector<bool>& downwards, bool sequential, const Index& periodic, PathsOff paths_off,
               const std::vector<bool>& never_written, const std::vector<int>& pivots, const std::vector<bool>& wholes,
               int gathers) {
                new (p) SweepProblem{shape, space, {}, {}};
                for (const auto& [bytes, replicated, extents, axes, time_buffers, window] : arrays)
                    p->arrays.push_back({bytes, replicated, extents, axes, time_buffers, window});
                for (const auto& [array, offset, writes, keeps] : accesses)
                    p->accesses.push_back({array, offset, writes, keeps});
                p->bounds = std::move(bounds);
                p->sequential = sequential;
                p->periodic = periodic;
                p->paths_off = paths_off;
                p->never_written = never_written;
                p->wholes = wholes;
                p->gathers = gathers;
                for (const int read : pivots) p->pivots.push_back(static_cast<PivotRead>(read));
                p->normalize_loops(downwards);
            },
            "shape"_a, "space"_a, "arrays"_a, "accesses"_a, "bounds"_a, "downwards"_a, "sequential"_a,
            "periodic"_a = Index(), "paths_off"_a = PathsOff{0}, "never_written"_a = std::vector<bool>(),
            "pivots"_a = std::vector<int>(), "wholes"_a = std::vector<bool>(), "gathers"_a = -1)
        .def(
            "widen",
            [](SweepProblem& p, int array, const Index& lo, const Index& hi, const Index& wraps) {
                p.arrays.at(array).least_halo = {lo, hi, wraps};
            },
            "array"_a, "lo"_a, "hi"_a, "wraps"_a = Index(),
            "Give an array, or the field that it is part of, at least these halos, in its dimensions; beyond the "
            "array's ends along those that `wraps` has 1 for.")
        .def("weighted", &SweepProblem::weighted, "weights"_a, "ranks"_a,
             "The same with points in proportion to the ranks' weights.")
        .def_ro("weights", &SweepProblem::weights)
        .def("gathered", &SweepProblem::gathered, "The same nest with its steps gathered.")
        .def("with_steps", &SweepProblem::with_steps, "steps"_a, "The same with another number of time steps.")
        .def(METHODS(validate, skews_parts_of_fields))
        .def("may_cut", &SweepProblem::may_cut, "dimension"_a)
        .def("skewed", &SweepProblem::skewed, "outer"_a, "inner"_a)
        .def("in_window", &SweepProblem::in_window, "array"_a)
        .def(
            "layout", [](const SweepProblem& p, int array, const Index& grid) { return p.layout(array, grid); },
            "array"_a, "grid"_a)
        .def_prop_ro(
            "time_buffers",
            [](const SweepProblem& p) {
                std::vector<int> all;
                for (const NestArray& a : p.arrays) all.push_back(a.time_buffers);
                return all;
            },
            "By array: buffers of time steps; 0: it has no time.")
        .def_ro("window", &SweepProblem::window)
        .def(READ_ONLY(shape, space, sequential))
        .def(READ_WRITE(once, paths_off, periodic))
        .def_prop_ro("loops",
                     [](const SweepProblem& p) {
                         return std::vector<Index>(p.loops.row.begin(), p.loops.row.begin() + p.loops.n);
                     })
        .def_prop_ro("dependences", &SweepProblem::dependences);
}

void bind_loop_nest(nb::module_& m) {
    nb::class_<LoopNest>(m, "LoopNest", "A loop nest with the arrays of one run.")
        // bounds: (coefficients, constant) of loop indices; downwards, periodic: for each loop index; pivots: of each
        // place, as PivotRead.
        .def(
            "__init__",
            [](LoopNest* n, const Box& box, std::vector<Bound> bounds, const std::vector<bool>& downwards,
               const Index& periodic, const std::vector<int>& pivots, bool may_gather, PathsOff paths_off) {
                new (n) LoopNest{.box = box,
                                 .downwards = downwards,
                                 .periodic = periodic,
                                 .may_gather = may_gather,
                                 .paths_off = paths_off};
                n->bounds = std::move(bounds);
                for (const int read : pivots) n->pivots.push_back(static_cast<PivotRead>(read));
            },
            nb::kw_only(), "box"_a, "bounds"_a, "downwards"_a, "periodic"_a, "pivots"_a, "may_gather"_a, "paths_off"_a)
        .def(
            "add_array",
            [](LoopNest& n, std::int64_t item_bytes, const Index& shape, const Index& axes, bool whole, bool in_time,
               bool joined, int history, bool window, const std::vector<Cut>& cuts) {
                n.arrays.push_back({item_bytes, shape, axes, whole, in_time, joined, history, window});
                n.arrays.back().cuts = cuts;
            },
            nb::kw_only(), "item_bytes"_a, "shape"_a, "axes"_a, "whole"_a, "in_time"_a, "joined"_a, "history"_a,
            "window"_a, "cuts"_a)
        .def(
            "part",
            [](LoopNest& n, const Index& scale, const Index& residue, const Index& field_shape, int field) {
                LoopNest::Array& a = n.arrays.back();
                a.scale = scale, a.residue = residue, a.field_shape = field_shape, a.field = field;
            },
            nb::kw_only(), "scale"_a, "residue"_a, "field_shape"_a, "field"_a,
            "Declare that the last array is every scale-th element of a field, of which `field` is the first array; "
            "without "
            "a field's shape, of plain memory.")
        .def(
            "add_place",
            [](LoopNest& n, int array, const Index& offset, bool written, bool read, bool along, bool never_written) {
                n.places.push_back({array, offset, written, read, along, never_written});
            },
            "array"_a, "offset"_a, nb::kw_only(), "written"_a, "read"_a, "along"_a, "never_written"_a)
        .def(
            "problem",
            [](LoopNest& n, bool sequential) {
                n.sequential = sequential;
                return make_problem(n);
            },
            "sequential"_a, "The problem that the nest is, perhaps in the order of its loops.");
}

void bind_nest_plan(nb::module_& m) {
    nb::class_<Plan> plan(m, "Plan", "Every choice that turns a nest into schedules.");
    plan.def(nb::init<>())
        .def(PROPERTIES(ranks, lanes))
        .def("validate", &Plan::validate, "problem"_a, "ranks"_a)
        .def("__str__", &Plan::to_string);
    nb::class_<PlanRequest> request(m, "PlanRequest", "The choices of a plan that a user fixes; None: picked.");
    request.def(nb::init<>()).def_rw("threads", &PlanRequest::threads).def_rw("all_threads", &PlanRequest::all_threads);
    request.def_prop_rw(
        "planning", [](const PlanRequest& r) { return to_python(r.planning); },
        [](PlanRequest& r, const std::string& given) { r.planning = kind_of<Planning>("planning", given); });
    m.attr("plannings") = allowed<Planning>();
    nb::list all;  // (name, default, allowed values, documentation) of each choice
#define TILEWAVE_CHOICE(type, name, otherwise, least, text) \
    bind_choice<type>(plan, request, all, #name, &Plan::name, &PlanRequest::name, text);
    TILEWAVE_PLAN_CHOICES(TILEWAVE_CHOICE)
#undef TILEWAVE_CHOICE
    m.attr("plan_choices") = nb::tuple(all);
    m.def("make_plan", &make_plan, "problem"_a, "ranks"_a, "request"_a, "machine"_a,
          "The plan for a problem by rules; what is given is obeyed, the rest is picked.");
    m.def("why_no_stencil", &why_no_stencil, "problem"_a,
          "Why the stencil generator cannot take a nest; empty where it can.");
    m.def("largest_block", &largest_block, "problem"_a, "grid"_a, "dimension"_a,
          "Points of the largest block of a rank along a dimension.");
    m.def(
        "skewed_row", [](const SweepProblem& p) { return skewed_row(p); }, "problem"_a,
        "A row of independent points for which storage is skewed, or empty.");
    m.def("fitted", &fitted, "plan"_a, "before"_a, "now"_a, "A plan with tiles for another problem of the same nest.");
    m.def("mostly_padding", &mostly_padding, "problem"_a, "plan"_a,
          "Whether boxes of skewed loops have more than four times the arrays' elements, and more than 4 MB.");
    m.def("row_of_blocks", &row_of_blocks, "problem"_a, "plan"_a,
          "The row of a plan with skewed storage, or its reverse where a rank's arrays are denser with it.");
    m.def(
        "deep_halo",
        [](const SweepProblem& problem, const Plan& plan) {
            const DeepHalo twice = deep_halo(problem, plan);
            return nb::make_tuple(twice.along, twice.layers, twice.steps);
        },
        "problem"_a, "plan"_a, "(dimension or -1, layers a step, steps) of what ranks compute beyond their blocks.");
}

}  // namespace

void bind_problem(nb::module_& m) {
    bind_layout(m);
    bind_problem_class(m);
    bind_loop_nest(m);
    bind_nest_plan(m);
}
