// The closed-form costs, as the submodule `cost`.
#include "tilewave/cost.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "exact_data.hpp"

namespace tilewave::python {

using namespace nb::literals;

void bind_cost(nb::module_& parent) {
    nb::module_ m = parent.def_submodule(
        "cost", "Closed forms for 2-D nests on nodes of two CPUs [athanasaki2002].");
    nb::class_<StepCosts>(m, "StepCosts",
                          "The costs of one step on one node, in seconds [athanasaki2002].")
        .def(
            "__init__",
            [](StepCosts* self, double alpha, double sync_in, double comm, double comm_dma,
               double start_dma, double synchro) {
                new (self) StepCosts{alpha, sync_in, comm, comm_dma, start_dma, synchro};
            },
            nb::kw_only(), "alpha_s"_a = 0.0, "t_sync_in_s"_a = 0.0, "t_comm_s"_a = 0.0,
            "t_comm_dma_s"_a = 0.0, "t_start_dma_s"_a = 0.0, "t_synchro_s"_a = 0.0)
        .def_rw("alpha_s", &StepCosts::alpha_s, "One tile on one CPU.")
        .def_rw("t_sync_in_s", &StepCosts::t_sync_in_s, "One hand-over between CPUs of a node.")
        .def_rw("t_comm_s", &StepCosts::t_comm_s, "Blocking: all communication of a step.")
        .def_rw("t_comm_dma_s", &StepCosts::t_comm_dma_s, "Overlapping: the hidden transfers.")
        .def_rw("t_start_dma_s", &StepCosts::t_start_dma_s, "Overlapping: starting transfers.")
        .def_rw("t_synchro_s", &StepCosts::t_synchro_s, "Overlapping: synchronisation.");
    m.def("vertical_pair_s", &vertical_pair_s, "alpha_s"_a, "t_sync_in_s"_a, "slices"_a,
          "beta(N), the time of a vertical pair of tiles in N slices [athanasaki2002].");
    m.def("best_slices", &best_slices, "alpha_s"_a, "t_sync_in_s"_a,
          "The N of the least beta(N), sqrt(alpha / t_sync_in), not rounded [athanasaki2002].");
    m.def("least_vertical_pair_s", &least_vertical_pair_s, "alpha_s"_a, "t_sync_in_s"_a,
          "beta_min = alpha + 2 sqrt(alpha t_sync_in) [athanasaki2002].");
    m.def(
        "pipeline_steps",
        [](const std::string& schedule, const std::string& grouping, double along, double across) {
            return pipeline_steps(to_schedule_kind(schedule), to_grouping_kind(grouping), along,
                                  across);
        },
        "schedule"_a, "grouping"_a, "tiles_along"_a, "tiles_across"_a,
        "P, the steps of X/x by Y/y tiles on nodes of two CPUs [athanasaki2002].");
    m.def("pipeline_steps_3d", &pipeline_steps_3d, "tiles_x"_a, "tiles_y"_a, "tiles_z"_a,
          "P = 3X/(2x) + 2Y/y + Z/z - 4, overlapping hyperplane groups [athanasaki2002].");
    m.def(
        "step_s",
        [](const std::string& schedule, const std::string& grouping, const StepCosts& costs) {
            return step_s(to_schedule_kind(schedule), to_grouping_kind(grouping), costs);
        },
        "schedule"_a, "grouping"_a, "costs"_a, "The time of one step [athanasaki2002].");
    m.def(
        "run_s",
        [](const std::string& schedule, const std::string& grouping, double along, double across,
           const StepCosts& costs) {
            return run_s(to_schedule_kind(schedule), to_grouping_kind(grouping), along, across,
                         costs);
        },
        "schedule"_a, "grouping"_a, "tiles_along"_a, "tiles_across"_a, "costs"_a,
        "T, the steps times the time of one step [athanasaki2002].");
    m.def("overlapping_beats_blocking", &overlapping_beats_blocking, "lam"_a, "costs"_a,
          "Both vertical, lam = (Y/y)/(X/x) << 1: t_comm > lam/2 (t_start_dma + beta_min + "
          "t_synchro) [athanasaki2002].");
    m.def("hyperplane_beats_vertical", &hyperplane_beats_vertical, "lam"_a, "costs"_a,
          "Both overlapping, lam = (Y/y)/(X/x) << 1: t_sync_in > alpha (lam/4)^2 "
          "[athanasaki2002].");
}

}  // namespace tilewave::python
