// Bound nests, and chains of them.
#include <map>

#include "casters.hpp"
#include "nests/chain_layout.hpp"
#include "nests/chained_sweep.hpp"

namespace {

struct BoundCall {
    std::shared_ptr<const HashedStatus> status;
};

// What Python has prepared.
struct PythonChainNest final : ChainNest {
    PythonChainNest(nb::object given, double seconds) : prepared(std::move(given)) { time_s = seconds; }
    nb::object prepared;
};

// Called with Python's lock, which collective calls of Python's maker give up.
class PythonChainMaker final : public ChainMaker {
public:
    explicit PythonChainMaker(nb::object maker) : maker_(std::move(maker)) {}
    std::shared_ptr<ChainNest> prepare(std::size_t n, const PlanRequest& request, const LeastHalos& halos,
                                       bool as_planned) override {
        const nb::object found = maker_.attr("prepare")(n, request, halos, as_planned);
        if (nb::isinstance<nb::str>(found)) throw ConfigError(nb::cast<std::string>(found));
        const auto [prepared, time_s] = nb::cast<std::pair<nb::object, double>>(found);
        return std::make_shared<PythonChainNest>(prepared, time_s);
    }
    std::string join(std::span<const std::shared_ptr<ChainNest>> nests) override {
        nb::list all;
        for (const auto& nest : nests) all.append(static_cast<PythonChainNest&>(*nest).prepared);
        return nb::cast<std::string>(maker_.attr("join")(all));
    }

private:
    nb::object maker_;
};

void bind_chain_layout(nb::module_& m) {
    nb::class_<ChainMember>(m, "ChainMember", "A nest of a chain as it is prepared by itself.")
        .def(
            "__init__",
            [](ChainMember* at, std::string name, std::vector<std::string> arrays, std::vector<std::int32_t> memories,
               const SweepProblem& problem, const Plan& plan, const PlanRequest& fixed,
               std::optional<std::int64_t> steps, bool in_step, nb::object prepared, double time_s) {
                new (at) ChainMember{std::move(name),
                                     std::move(arrays),
                                     std::move(memories),
                                     problem,
                                     plan,
                                     fixed,
                                     steps,
                                     in_step,
                                     std::make_shared<PythonChainNest>(std::move(prepared), time_s)};
            },
            nb::kw_only(), "name"_a, "arrays"_a, "memories"_a, "problem"_a, "plan"_a, "fixed"_a, "steps"_a.none(),
            "in_step"_a, "prepared"_a, "time_s"_a);
    m.def(
        "choose_chain_layout",
        [](std::vector<ChainMember> members, int ranks, PathsOff paths_off, nb::object maker) {
            std::map<PyObject*, std::shared_ptr<ChainNest>> nests;  // members may share what was prepared
            for (ChainMember& member : members)
                member.nest = nests.try_emplace(static_cast<PythonChainNest&>(*member.nest).prepared.ptr(), member.nest)
                                  .first->second;
            PythonChainMaker makes(std::move(maker));
            return choose_chain_layout(std::move(members), ranks, paths_off, makes);
        },
        "members"_a, "ranks"_a, "paths_off"_a, "maker"_a,
        "Makes nests one schedule, with one layout of shared arrays; why not, as text. The maker's `prepare(number, "
        "request, halos, as_planned)` gives (what is prepared, seconds) or why not, its `join(all)` why not.");
}

}  // namespace

void bind_bound(nb::module_& m) {
    bind_chain_layout(m);
    nb::class_<BoundCall>(m, "BoundCall", "The status of a rank at the beginning of a run, made once.")
        .def(
            "__init__",
            [](BoundCall* call, const std::string& name, const std::string& description) {
                RankStatus what;
                what.caller.call = name;
                what.description = description;
                new (call) BoundCall{std::make_shared<const HashedStatus>(std::move(what))};
            },
            "name"_a, "description"_a);
    nb::class_<BoundRun>(m, "BoundRun", "One run of a bound sweep.")
        .def(READ_ONLY(points, time_s, moving_s, call_s, reduced, interrupted));
    nb::class_<BoundSweep>(m, "BoundSweep", "A prepared sweep with its arrays and kernel.")
        .def(
            "run",
            [](BoundSweep& s, const BoundCall& call, std::optional<std::int64_t> steps, std::uintptr_t env) {
                nb::gil_scoped_release release;
                return s.run(call.status, steps, reinterpret_cast<const void*>(env));
            },
            "call"_a, "steps"_a.none(), "env"_a)
        .def(
            "run_recorded",
            [](BoundSweep& s, std::optional<std::int64_t> steps, double moving_s, double call_s) {
                nb::gil_scoped_release release;
                return s.run_recorded(steps, {moving_s, call_s}, 0);
            },
            "steps"_a.none(), "moving_s"_a, "call_s"_a)
        .def(
            "run_to_last",
            [](BoundSweep& s, const BoundCall* call, std::optional<std::int64_t> steps, std::uintptr_t env,
               std::int64_t first_step, const std::vector<StepPoints>& points) {
                nb::gil_scoped_release release;
                return s.run(call ? call->status : nullptr, steps, reinterpret_cast<const void*>(env),
                             {first_step, points, true});
            },
            "call"_a.none(), "steps"_a.none(), "env"_a, "first_step"_a, "points"_a,
            "A run whose reductions are those of its last time step. Without a call the ranks have agreed on it.")
        .def("leave_out_reductions", &BoundSweep::leave_out_reductions, "kernel"_a)
        .def("report", &BoundSweep::report, "run"_a);
    nb::class_<StepRow>(m, "StepRow", "An array of a nest that stands for a row of a larger one.")
        .def(
            "__init__",
            [](StepRow* row, FieldStorage& whole, FieldStorage& part) {
                new (row) StepRow{&whole, &part, {}, {}, {}, whole.item_bytes()};
            },
            "whole"_a, "part"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def(
            "__init__",
            [](StepRow* row, std::uintptr_t whole, Index whole_strides, std::uintptr_t part, Index part_strides,
               Index extents, std::int64_t item_bytes) {
                new (row) StepRow{nullptr,
                                  nullptr,
                                  {reinterpret_cast<std::byte*>(whole), whole_strides},
                                  {reinterpret_cast<std::byte*>(part), part_strides},
                                  extents,
                                  item_bytes};
            },
            "whole"_a, "whole_strides"_a, "part"_a, "part_strides"_a, "extents"_a, "item_bytes"_a)
        .def_rw("shared", &StepRow::shared)
        .def(
            "move",
            [](StepRow& row, std::int64_t number, bool back) {
                row.place();
                row.move(number, back);
            },
            "number"_a, "back"_a, Release());
    nb::class_<ChainTurn>(m, "ChainTurn", "The run of a sweep in a repetition of a chain.")
        .def(
            "__init__",
            [](ChainTurn* turn, std::size_t sweep, std::int64_t first_step, std::optional<std::int64_t> steps,
               bool more, std::vector<std::vector<std::int64_t>> rows) {
                new (turn) ChainTurn{sweep, first_step, steps, more, std::move(rows)};
            },
            "sweep"_a, "first_step"_a, "steps"_a.none(), "more"_a, "rows"_a);
    nb::class_<ChainedSweep>(m, "ChainedSweep", "Bound sweeps that run as one schedule.")
        .def(nb::init<Context&, std::vector<BoundSweep*>, std::vector<std::vector<std::int32_t>>, bool,
                      std::vector<ChainTurn>, std::vector<StepRow>, std::size_t>(),
             "context"_a, "sweeps"_a, "memories"_a, "in_steps"_a = false, "turns"_a = std::vector<ChainTurn>(),
             "rows"_a = std::vector<StepRow>(), "films"_a = 0, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
             nb::keep_alive<1, 7>())
        .def(
            "run",
            [](ChainedSweep& c, const BoundCall* call, std::int64_t times, const std::vector<std::uintptr_t>& env,
               std::int64_t first_step, const std::vector<std::vector<StepPoints>>& points, bool films) {
                nb::gil_scoped_release release;
                return c.run(call ? call->status : nullptr, times, env, first_step, points, films);
            },
            "call"_a.none(), "times"_a, "env"_a, "first_step"_a = 0,
            "points"_a = std::vector<std::vector<StepPoints>>(), "films"_a = true)
        .def("prepare", &ChainedSweep::prepare, "times"_a)
        .def("leave_out_reductions", &ChainedSweep::leave_out_reductions, "sweep"_a, "kernel"_a)
        .def(PROPERTIES(is_one))
        .def_prop_ro(
            "in_turn", [](const ChainedSweep& c) { return c.fusion().rows > 0 ? c.fusion().repetitions : 0; },
            "Repetitions whose tiles take turns; 0: nests follow each other whole.")
        .def_prop_ro(
            "repetitions", [](const ChainedSweep& c) { return c.fusion().repetitions; },
            "Of one block of the schedule.")
        .def_prop_ro("buffer_bytes", &ChainedSweep::buffer_bytes);
}
