// The closed-form costs, as the submodule `cost`.
#include "polyhedral/cost.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "casters.hpp"
#include "exact_data.hpp"

namespace tilewave::python {

using namespace nb::literals;

void bind_cost(nb::module_& parent) {
    nb::module_ m = parent.def_submodule("cost", "Closed forms for tiles on nodes of several CPUs [athanasaki2002].");
    nb::class_<StepCosts>(m, "StepCosts", "The costs of one step on one node, in seconds [athanasaki2002].")
        .def(
            "__init__",
            [](StepCosts* self, double alpha, double sync_in, double comm, double comm_dma, double start_dma,
               double synchro) { new (self) StepCosts{alpha, sync_in, comm, comm_dma, start_dma, synchro}; },
            nb::kw_only(), "alpha_s"_a = 0.0, "t_sync_in_s"_a = 0.0, "t_comm_s"_a = 0.0, "t_comm_dma_s"_a = 0.0,
            "t_start_dma_s"_a = 0.0, "t_synchro_s"_a = 0.0)
        .def_rw("alpha_s", &StepCosts::alpha_s, "One tile on one CPU.")
        .def_rw("t_sync_in_s", &StepCosts::t_sync_in_s, "One hand-over between CPUs of a node.")
        .def_rw("t_comm_s", &StepCosts::t_comm_s, "Blocking: all communication of a step.")
        .def_rw("t_comm_dma_s", &StepCosts::t_comm_dma_s, "Overlapping: the hidden transfers.")
        .def_rw("t_start_dma_s", &StepCosts::t_start_dma_s, "Overlapping: starting transfers.")
        .def_rw("t_synchro_s", &StepCosts::t_synchro_s, "Overlapping: synchronisation.");
    nb::class_<TileGrid>(m, "TileGrid",
                         "Tiles that read their neighbours one back along each dimension, on a grid of nodes.")
        .def(
            "__init__",
            [](TileGrid* self, Index tiles, Index nodes, Index factors, int mapping_dim) {
                new (self) TileGrid{tiles, nodes, factors, mapping_dim};
            },
            nb::kw_only(), "tiles"_a, "nodes"_a, "factors"_a, "mapping_dim"_a)
        .def_rw("tiles", &TileGrid::tiles, "Of one node along each dimension.")
        .def_rw("nodes", &TileGrid::nodes, "Along each dimension.")
        .def_rw("factors", &TileGrid::factors, "CPUs of a node along each dimension.")
        .def_rw("mapping_dim", &TileGrid::mapping_dim, "Tiles along it stay on one CPU.")
        .def_prop_ro("columns", &TileGrid::columns, "Tiles that a CPU has in one step (derived).")
        .def_prop_ro("depth", &TileGrid::depth, "Hand-overs from a group's first CPU to its last (derived).");
    m.def("vertical_group_s", &vertical_group_s, "alpha_s"_a, "t_sync_in_s"_a, "slices"_a, "depth"_a = 1,
          "beta(N), the time of a vertical group of tiles in N slices [athanasaki2002; depth above 1 derived].");
    m.def("best_slices", &best_slices, "alpha_s"_a, "t_sync_in_s"_a, "depth"_a = 1,
          "The N of the least beta(N), sqrt(depth alpha / t_sync_in), not rounded [athanasaki2002; depth above 1 "
          "derived].");
    m.def("least_vertical_group_s", &least_vertical_group_s, "alpha_s"_a, "t_sync_in_s"_a, "depth"_a = 1,
          "beta_min = alpha + 2 sqrt(alpha t_sync_in) [athanasaki2002; depth above 1 derived].");
    m.def(
        "pipeline_steps",
        [](const std::string& schedule, const std::string& grouping, const TileGrid& grid) {
            return pipeline_steps(to_schedule_kind(schedule), to_grouping_kind(grouping), grid);
        },
        "schedule"_a, "grouping"_a, "grid"_a,
        "P, the time steps from the first tile to the last [athanasaki2002; n-D derived].");
    m.def(
        "step_s",
        [](const std::string& schedule, const std::string& grouping, const TileGrid& grid, const StepCosts& costs) {
            return step_s(to_schedule_kind(schedule), to_grouping_kind(grouping), grid, costs);
        },
        "schedule"_a, "grouping"_a, "grid"_a, "costs"_a,
        "The time of one step [athanasaki2002; several columns derived].");
    m.def(
        "run_s",
        [](const std::string& schedule, const std::string& grouping, const TileGrid& grid, const StepCosts& costs) {
            return run_s(to_schedule_kind(schedule), to_grouping_kind(grouping), grid, costs);
        },
        "schedule"_a, "grouping"_a, "grid"_a, "costs"_a,
        "T, the steps times the time of one step [athanasaki2002; n-D derived].");
    m.def("overlapping_beats_blocking", &overlapping_beats_blocking, "lam"_a, "costs"_a,
          "Both vertical, lam = (Y/y)/(X/x) << 1: t_comm > lam/2 (t_start_dma + beta_min + "
          "t_synchro) [athanasaki2002].");
    m.def("hyperplane_beats_vertical", &hyperplane_beats_vertical, "lam"_a, "costs"_a,
          "Both overlapping, lam = (Y/y)/(X/x) << 1: t_sync_in > alpha (lam/4)^2 "
          "[athanasaki2002].");
}

}  // namespace tilewave::python
