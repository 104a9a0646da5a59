// Choosing plans, and the rate of a kernel.
#include "plan/nests/planner.hpp"

#include "casters.hpp"
#include "plan/nests/face_costs.hpp"
#include "predict/rate.hpp"

void bind_plan(nb::module_& m) {
    nb::class_<Candidate>(m, "Candidate", "A plan with what it would take.")
        .def(READ_ONLY(plan, time_s, estimate_s, parts, memory_bytes, reason, sample));
    nb::class_<Choice>(m, "Choice", "What a planner found: candidates, the one to take first.")
        .def(READ_ONLY(ranked, considered, simulated, rate, measured));
    nb::class_<MeasuredRate>(m, "MeasuredRate",
                             "The rate of a body, and a plan with the tiles that it was measured on.")
        .def(Made<Plan, KernelRate, bool, std::string>(), "plan"_a, "rate"_a, "of_all_tiles"_a = false, "note"_a = "")
        .def(READ_ONLY(plan, rate, note, extents, spread));
    nb::class_<Alternative>(m, "Alternative", "One layout of the loops and arrays of a nest.")
        .def(READ_ONLY(problem, request, plan, on_one_rank, others));
    m.def("alternatives", &alternatives, "problem"_a, "ranks"_a, "request"_a, "machine"_a, "rows_across"_a,
          "The layouts of a problem over ranks, the preferred ones first; see planner.hpp.");
    m.def(
        "choose_plan",
        [](const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine,
           const std::vector<MeasuredRate>& rates, bool hoped) {
            PlannerOptions options;
            options.unmeasured = hoped ? Unmeasured::hoped : Unmeasured::left_out;
            return choose_plan(problem, ranks, request, machine, rates, options);
        },
        "problem"_a, "ranks"_a, "request"_a, "machine"_a, "rates"_a, "hoped"_a = true, Release(),
        "Plans for a problem, the one to take first; the request is obeyed.");
    m.def(
        "evaluate",
        [](const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate,
           bool all_ranks) {
            return evaluate(problem, plan, machine, rate, all_ranks ? Simulated::all_ranks : Simulated::some_ranks);
        },
        "problem"_a, "plan"_a, "machine"_a, "rate"_a, "all_ranks"_a = false, Release(), "What a plan would take.");
    m.def(
        "choose_plan",
        [](const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine,
           const KernelRate& rate) { return choose_plan(problem, ranks, request, machine, rate); },
        "problem"_a, "ranks"_a, "request"_a, "machine"_a, "rate"_a, Release(),
        "Plans for a problem, the one to take first; the request is obeyed.");
    nb::class_<FaceCost>(m, "FaceCost", "What an inner rank sends in one direction of the process grid.")
        .def(READ_ONLY(direction, messages, bytes, run_bytes, packed, copy_s, transfer_s));
    m.def("face_costs", &face_costs, "problem"_a, "plan"_a, "machine"_a, Release(),
          "What an inner rank sends in a run, by direction in the process grid.");
    m.def("border_s", &border_s, "problem"_a, "plan"_a, "machine"_a, "rate"_a, Release(),
          "Seconds that a block of time steps takes longer behind another one than alone.");
    m.def("estimate_s", &estimate_s, "problem"_a, "plan"_a, "machine"_a, "rate"_a,
          "What a plan would take, by a closed form.");
    m.def("best_factors", &best_factors, "problem"_a, "grid"_a, "mapping_dim"_a, "lanes"_a,
          "Lanes of a rank along each dimension so that the path to the last lane costs least.");
    m.def(
        "fit_rate",
        [](const std::vector<std::tuple<double, double, double>>& samples) {
            std::vector<RateSample> all;
            for (const auto& [rows, points, tile_s] : samples) all.push_back({rows, points, tile_s});
            return fit_rate(all);
        },
        "samples"_a,
        "The rate of a kernel from (rows, points, seconds) of tiles with long rows, short rows, few points, and of one "
        "lane alone.");
}
