// Schedules as plain data, the sweep generator, the checker.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

#include <iterator>
#include <utility>

#include "casters.hpp"
#include "exact_data.hpp"
#include "generate/copy/copy.hpp"
#include "generate/sweep/sweep.hpp"
#include "tilewave/check.hpp"
#include "tilewave/plan.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;

namespace {

constexpr const char* op_names[] = {"compute", "post_recv", "post_send", "wait", "pack", "unpack", "signal", "await", "combine"};

Op op_of(const std::string& name) {
    std::string allowed;
    for (std::size_t i = 0; i < std::size(op_names); ++i) {
        if (name == op_names[i]) return static_cast<Op>(i);
        allowed += (i ? ", " : "") + std::string(op_names[i]);
    }
    throw ConfigError("op '" + name + "' was given; allowed: " + allowed);
}

constexpr const char* storage_names[] = {"plain", "skewed"};

StorageKind storage_of(const std::string& name) {
    for (std::size_t i = 0; i < std::size(storage_names); ++i)
        if (name == storage_names[i]) return static_cast<StorageKind>(i);
    throw ConfigError("storage '" + name + "' was given; allowed: 'plain', 'skewed'");
}

void bind_data(nb::module_& m) {
    nb::class_<Step>(m, "Step", "One step of a lane: an op, the item it acts on, a count.")
        .def("__init__", [](Step* s, const std::string& op, int item, int count) { new (s) Step{op_of(op), item, count}; },
             "op"_a, "item"_a = 0, "count"_a = 0)
        .def_prop_rw("op", [](const Step& s) { return to_string(s.op); }, [](Step& s, const std::string& n) { s.op = op_of(n); })
        .def_rw("item", &Step::item)
        .def_rw("count", &Step::count)
        .def("__eq__", [](const Step& a, const Step& b) { return a == b; })
        .def("__repr__", [](const Step& s) {
            return std::string("Step('") + to_string(s.op) + "', " + std::to_string(s.item) + ", " + std::to_string(s.count) + ")";
        });
    m.attr("combine_array_right") = combine_array_right;
    m.attr("combine_array_left") = combine_array_left;
    nb::class_<Tile>(m, "Tile", "One box of points that a compute step computes.")
        .def(nb::init<>())
        .def_rw("coord", &Tile::coord)
        .def_rw("time", &Tile::time)
        .def_rw("slice", &Tile::slice)
        .def_rw("box", &Tile::box);
    nb::class_<Message>(m, "Message", "One message as one rank sees it.")
        .def(nb::init<>())
        .def_rw("peer", &Message::peer)
        .def_rw("tag", &Message::tag)
        .def_rw("send", &Message::send)
        .def_rw("synchronous", &Message::synchronous)
        .def_rw("array", &Message::array)
        .def_rw("buffer", &Message::buffer)
        .def_rw("region", &Message::region)
        .def_rw("bytes", &Message::bytes)
        .def_rw("tile", &Message::tile)
        .def_rw("parts", &Message::parts)
        .def_rw("carrier", &Message::carrier)
        .def_rw("at", &Message::at);
    nb::class_<Array>(m, "Array", "One array as one rank holds it.")
        .def(nb::init<>())
        .def_rw("item_bytes", &Array::item_bytes)
        .def_rw("storage", &Array::storage)
        .def_rw("owned", &Array::owned)
        .def_rw("stride", &Array::stride)
        .def_rw("separate", &Array::separate)
        .def_rw("levels", &Array::levels);
    nb::class_<Result>(m, "Result", "What must be in a part of an array at the end.")
        .def("__init__",
             [](Result* r, int array, const Box& region, int source, std::vector<std::int32_t> ranks) {
                 new (r) Result{array, region, source, std::move(ranks)};
             },
             "array"_a, "region"_a, "source"_a, "ranks"_a)
        .def_rw("array", &Result::array)
        .def_rw("region", &Result::region)
        .def_rw("source", &Result::source)
        .def_rw("ranks", &Result::ranks);
    nb::class_<Schedule>(m, "Schedule", "One rank's part of a distributed computation, as plain data.")
        .def(nb::init<>())
        .def("__init__", [](Schedule* s, const Schedule& o) { new (s) Schedule(o); }, "other"_a)
        .def_rw("rank", &Schedule::rank)
        .def_rw("ranks", &Schedule::ranks)
        .def_rw("space", &Schedule::space)
        .def_rw("arrays", &Schedule::arrays)
        .def_rw("tiles", &Schedule::tiles)
        .def_rw("messages", &Schedule::messages)
        .def_rw("buffers", &Schedule::buffers)
        .def_rw("lanes", &Schedule::lanes)
        .def_rw("results", &Schedule::results)
        .def_prop_ro("steps", &Schedule::steps)
        .def_prop_ro("buffer_bytes", &Schedule::buffer_bytes);
    nb::class_<Violation>(m, "Violation", "The first thing wrong with a set of schedules.")
        .def_ro("rank", &Violation::rank)
        .def_ro("lane", &Violation::lane)
        .def_ro("step", &Violation::step)
        .def_ro("why", &Violation::why)
        .def("__str__", [](const Violation& v) { return to_string(v); });
}

void bind_layout(nb::module_& m) {
    nb::class_<Layout>(m, "Layout", "A block distribution of an array over a process grid.")
        .def(nb::init<Index, Index, Index, Index>(), "shape"_a, "grid"_a, "halo_lo"_a, "halo_hi"_a)
        .def(nb::init<Index, Index>(), "shape"_a, "grid"_a)
        .def_ro("shape", &Layout::shape)
        .def_ro("grid", &Layout::grid)
        .def("owned", &Layout::owned, "rank"_a)
        .def("storage", &Layout::storage, "rank"_a);
    m.def("default_grid", nb::overload_cast<const Index&, int, int>(&default_grid), "shape"_a, "ranks"_a, "fixed"_a = -1,
          "The process grid of least surface over the dimensions other than `fixed`.");
    m.def("redistribute", &redistribute, "from_layout"_a, "to_layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a, "chunk_bytes"_a = 1 << 20, "from_stride"_a = Index(), "to_stride"_a = Index(),
          "Schedule that moves an array from one layout to another.");
    m.def("gather_schedule", &gather_schedule, "layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a, "chunk_bytes"_a = 1 << 20, "stride"_a = Index(),
          "Schedule that brings an array together on rank 0.");
    m.def("scatter_schedule", &scatter_schedule, "layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a, "chunk_bytes"_a = 1 << 20, "stride"_a = Index(),
          "Schedule that spreads rank 0's whole array.");
}

void bind_plan(nb::module_& m) {
    nb::class_<SweepProblem>(m, "SweepProblem", "What a sweep computes: shape, space, arrays, accesses.")
        // One written array, at the point itself.
        .def("__init__",
             [](SweepProblem* p, Index shape, Box space, const std::vector<std::pair<std::int64_t, bool>>& arrays,
                const std::vector<std::pair<int, Index>>& reads) {
                 new (p) SweepProblem{shape, space, {}, {{0, Index::filled(shape.n, 0), true}}};
                 for (const auto& [bytes, replicated] : arrays) p->arrays.push_back({bytes, replicated});
                 for (const auto& [array, offset] : reads) p->accesses.push_back({array, offset});
                 p->complete();
             },
             "shape"_a, "space"_a, "arrays"_a, "reads"_a)
        // arrays: (item bytes, replicated, shape, axes, time levels, frontier); accesses: (array, offset, writes, keeps);
        // bounds: (coefficients, constant) of loop indices; downwards: for each loop index.
        .def("__init__",
             [](SweepProblem* p, Index shape, Box space, const std::vector<std::tuple<std::int64_t, bool, Index, Index, int, bool>>& arrays,
                const std::vector<std::tuple<int, Index, bool, bool>>& accesses, const std::vector<std::pair<Index, std::int64_t>>& bounds,
                const std::vector<bool>& downwards, bool in_order) {
                 new (p) SweepProblem{shape, space, {}, {}};
                 for (const auto& [bytes, replicated, own, axes, levels, frontier] : arrays)
                     p->arrays.push_back({bytes, replicated, own, axes, levels, frontier});
                 for (const auto& [array, offset, writes, keeps] : accesses) p->accesses.push_back({array, offset, writes, keeps});
                 for (const auto& [coefficients, constant] : bounds) p->bounds.push_back({coefficients, constant});
                 p->in_order = in_order;
                 p->complete();
                 for (int k = 0; k < p->dims(); ++k)
                     if (downwards[static_cast<std::size_t>(k)]) p->loops.row[k][k] = -1;
                 p->validate();
                 p->loops = legal_skew(*p);
                 p->planes = choose_planes(*p);
             },
             "shape"_a, "space"_a, "arrays"_a, "accesses"_a, "bounds"_a, "downwards"_a, "in_order"_a)
        .def("with_steps", [](SweepProblem p, std::int64_t steps) {
                 const std::int64_t more = steps - p.space.extent(0);
                 p.space.hi[0] += more;
                 p.shape[0] += more;
                 return p;
             }, "steps"_a, "The same with another number of time steps.")
        .def("validate", &SweepProblem::validate)
        .def("may_cut", &SweepProblem::may_cut, "dimension"_a)
        .def("skewed", &SweepProblem::skewed, "outer"_a, "inner"_a)
        .def("rolls", &SweepProblem::rolls, "array"_a)
        .def_prop_ro("planes", [](const SweepProblem& p) { return nb::make_tuple(p.planes.along, p.planes.across, p.planes.slant); })
        .def_ro("shape", &SweepProblem::shape)
        .def_ro("space", &SweepProblem::space)
        .def_ro("in_order", &SweepProblem::in_order)
        .def_rw("once", &SweepProblem::once)
        .def_prop_ro("loops", [](const SweepProblem& p) { return std::vector<Index>(p.loops.row.begin(), p.loops.row.begin() + p.loops.n); })
        .def_prop_ro("dependences", &SweepProblem::dependences);
    nb::class_<Plan>(m, "Plan", "Every choice that turns a nest into schedules.")
        .def(nb::init<>())
        .def_rw("grid", &Plan::grid)
        .def_rw("mapping_dim", &Plan::mapping_dim)
        .def_rw("tile", &Plan::tile)
        .def_prop_rw("row", [](const Plan& p) { return p.row; }, [](Plan& p, Index row) { p.row = row; })
        .def_prop_rw("storage", [](const Plan& p) { return storage_names[static_cast<int>(p.storage)]; },
                     [](Plan& p, const std::string& s) { p.storage = storage_of(s); })
        .def_rw("factors", &Plan::factors)
        .def_rw("lookahead", &Plan::lookahead)
        .def_rw("slices", &Plan::slices)
        .def_rw("time_block", &Plan::time_block)
        .def_rw("bundle", &Plan::bundle)
        .def_rw("poll_period_s", &Plan::poll_period_s)
        .def_rw("helper", &Plan::helper)
        .def_rw("synchronous", &Plan::synchronous)
        .def_prop_ro("ranks", &Plan::ranks)
        .def_prop_rw("skew", [](const Plan& p) { return p.skew; }, [](Plan& p, Index skew) { p.skew = skew; })
        .def_rw("chunk_bytes", &Plan::chunk_bytes)
        .def_prop_rw("grouping", [](const Plan& p) { return python::to_name(p.grouping); },
                     [](Plan& p, const std::string& s) { p.grouping = python::to_grouping_kind(s); })
        .def_prop_rw("schedule", [](const Plan& p) { return p.schedule == ScheduleKind::blocking ? "blocking" : "overlapping"; },
                     [](Plan& p, const std::string& s) { p.schedule = python::to_schedule_kind(s); })
        .def_prop_ro("lanes", &Plan::lanes)
        .def("validate", &Plan::validate, "problem"_a, "ranks"_a)
        .def("__str__", &Plan::to_string);
    nb::class_<PlanRequest>(m, "PlanRequest", "The choices of a plan that a user fixes; None: picked.")
        .def(nb::init<>())
        .def_rw("grid", &PlanRequest::grid, nb::arg().none())
        .def_rw("tile", &PlanRequest::tile, nb::arg().none())
        .def_rw("factors", &PlanRequest::factors, nb::arg().none())
        .def_rw("row", &PlanRequest::row, nb::arg().none())
        .def_rw("mapping_dim", &PlanRequest::mapping_dim, nb::arg().none())
        .def_rw("lookahead", &PlanRequest::lookahead, nb::arg().none())
        .def_rw("slices", &PlanRequest::slices, nb::arg().none())
        .def_rw("time_block", &PlanRequest::time_block, nb::arg().none())
        .def_rw("bundle", &PlanRequest::bundle, nb::arg().none())
        .def_rw("poll_period_s", &PlanRequest::poll_period_s, nb::arg().none())
        .def_rw("helper", &PlanRequest::helper, nb::arg().none())
        .def_rw("synchronous", &PlanRequest::synchronous, nb::arg().none())
        .def_rw("skew", &PlanRequest::skew, nb::arg().none())
        .def_rw("chunk_bytes", &PlanRequest::chunk_bytes, nb::arg().none())
        .def_rw("threads", &PlanRequest::threads)
        .def_rw("all_threads", &PlanRequest::all_threads)
        .def_prop_rw("storage", [](const PlanRequest& r) { return r.storage ? std::optional(std::string(storage_names[static_cast<int>(*r.storage)])) : std::nullopt; },
                     [](PlanRequest& r, std::optional<std::string> s) { r.storage = s ? std::optional(storage_of(*s)) : std::nullopt; }, nb::arg().none())
        .def_prop_rw("grouping", [](const PlanRequest& r) { return r.grouping ? std::optional(python::to_name(*r.grouping)) : std::nullopt; },
                     [](PlanRequest& r, std::optional<std::string> s) { r.grouping = s ? std::optional(python::to_grouping_kind(*s)) : std::nullopt; }, nb::arg().none())
        .def_prop_rw("schedule",
                     [](const PlanRequest& r) { return r.schedule ? std::optional(std::string(*r.schedule == ScheduleKind::blocking ? "blocking" : "overlapping")) : std::nullopt; },
                     [](PlanRequest& r, std::optional<std::string> s) { r.schedule = s ? std::optional(python::to_schedule_kind(*s)) : std::nullopt; }, nb::arg().none());
    m.def("make_plan", &make_plan, "problem"_a, "ranks"_a, "request"_a, "machine"_a,
          "The plan for a problem by rules; what is given is obeyed, the rest is picked.");
    m.def("largest_block", &largest_block, "problem"_a, "grid"_a, "dimension"_a, "Points of the largest block of a rank along a dimension.");
    m.def("skewed_row", [](const SweepProblem& p) { return skewed_row(p); }, "problem"_a,
          "A row of independent points for which storage is skewed, or empty.");
    m.def("fitted", &fitted, "plan"_a, "before"_a, "now"_a, "A plan with tiles for another problem of the same nest.");
    m.def("mostly_padding", &mostly_padding, "problem"_a, "plan"_a,
          "Whether boxes of skewed loops have more than four times the arrays' elements, and more than 4 MB.");
    m.def("row_of_blocks", &row_of_blocks, "problem"_a, "plan"_a,
          "The row of a plan with skewed storage, or the same the other way where a rank's arrays lie denser so.");
    m.def("skew_for_time", &skew_for_time, "problem"_a, "ranks"_a, "lanes"_a, "row"_a, "machine"_a,
          "Two loops along whose sum tiles are better cut where steps of time follow each other, or empty.");
    m.def("sweep", &sweep, "problem"_a, "plan"_a, "rank"_a, "ranks"_a = 0, nb::call_guard<nb::gil_scoped_release>(),
          "The part of one rank in a sweep, of as many ranks as the plan has or more.");
    m.def("in_a_row", &in_a_row, "problem"_a, "plan"_a, "block"_a, "times"_a, "Blocks of time steps one behind the other.");
    m.def("margin", [](const SweepProblem& problem, const Plan& plan) {
        const Margin twice = margin(problem, plan);
        return nb::make_tuple(twice.along, twice.layers, twice.steps);
    }, "problem"_a, "plan"_a, "(dimension or -1, layers a step, steps) of what ranks compute beyond their blocks.");
    m.def("sweep_steps", &sweep_steps, "problem"_a, "plan"_a, "Time steps of the whole sweep.");
}

}  // namespace

void bind_schedule(nb::module_& m) {
    bind_data(m);
    bind_layout(m);
    bind_plan(m);
    m.def("check",
          [](const std::vector<Schedule>& schedules) { return check(schedules); },
          "schedules"_a, nb::call_guard<nb::gil_scoped_release>(),
          "The first violation in the schedules of all ranks, or None: see check.hpp.");
}
