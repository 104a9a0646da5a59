// Choosing plans, and the rate of a kernel.
#include "tilewave/planner.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "casters.hpp"
#include "tilewave/rate.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;

void bind_planner(nb::module_& m) {
    nb::class_<Candidate>(m, "Candidate", "A plan with what it would take.")
        .def_ro("plan", &Candidate::plan)
        .def_ro("time_s", &Candidate::time_s)
        .def_ro("estimate_s", &Candidate::estimate_s)
        .def_ro("parts", &Candidate::parts)
        .def_ro("memory_bytes", &Candidate::memory_bytes)
        .def_ro("reason", &Candidate::reason);
    nb::class_<Choice>(m, "Choice", "What a planner found: candidates, the one to take first.")
        .def_ro("ranked", &Choice::ranked)
        .def_ro("considered", &Choice::considered)
        .def_ro("simulated", &Choice::simulated);
    m.def("evaluate",
          [](const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate) {
              return evaluate(problem, plan, machine, rate);
          },
          "problem"_a, "plan"_a, "machine"_a, "rate"_a, nb::call_guard<nb::gil_scoped_release>(),
          "What a plan would take.");
    m.def("choose_plan",
          [](const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine, const KernelRate& rate) {
              return choose_plan(problem, ranks, request, machine, rate);
          },
          "problem"_a, "ranks"_a, "request"_a, "machine"_a, "rate"_a,
          nb::call_guard<nb::gil_scoped_release>(), "Plans for a problem, the one to take first; the request is obeyed.");
    m.def("estimate_s", &estimate_s, "problem"_a, "plan"_a, "machine"_a, "rate"_a, "What a plan would take, by a closed form.");
    m.def("best_factors", &best_factors, "problem"_a, "grid"_a, "mapping_dim"_a, "lanes"_a,
          "Lanes of a rank along each dimension so that the way to the last lane costs least.");
    m.def("fit_rate",
          [](const std::vector<std::tuple<double, double, double>>& samples) {
              std::vector<RateSample> all;
              for (const auto& [rows, points, tile_s] : samples) all.push_back({rows, points, tile_s});
              return fit_rate(all);
          },
          "samples"_a, "The rate of a kernel from (rows, points, seconds) of tiles with long rows, short rows, few points, and of one lane alone.");
}
