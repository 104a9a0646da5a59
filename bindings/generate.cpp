// The generators of schedules: copies between layouts, and sweeps.
#include <nanobind/stl/tuple.h>

#include "casters.hpp"
#include "generate/copy/copy.hpp"
#include "generate/sweep/sweep.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;

void bind_generate(nb::module_& m) {
    m.def("redistribute", &redistribute, "from_layout"_a, "to_layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a,
          "chunk_bytes"_a = 1 << 20, "from_stride"_a = Index(), "to_stride"_a = Index(),
          "Schedule that moves an array from one layout to another.");
    m.def("gather_schedule", &gather_schedule, "layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a,
          "chunk_bytes"_a = 1 << 20, "stride"_a = Index(), "Schedule that brings an array together on rank 0.");
    m.def("scatter_schedule", &scatter_schedule, "layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a,
          "chunk_bytes"_a = 1 << 20, "stride"_a = Index(), "Schedule that spreads rank 0's whole array.");
    m.def("sweep", &sweep, "problem"_a, "plan"_a, "rank"_a, "ranks"_a = 0, nb::call_guard<nb::gil_scoped_release>(),
          "The part of one rank in a sweep, of as many ranks as the plan has or more.");
    m.def("sweep_among", &sweep_among, "problem"_a, "plan"_a, "rank"_a, "ranks"_a, "peers"_a,
          "The same, asking these ranks for messages in place of the neighbours.");
    m.def("sweep_neighbours", &sweep_neighbours, "problem"_a, "plan"_a, "rank"_a,
          "The ranks that one rank may exchange messages with in a sweep.");
    m.def("in_a_row", &in_a_row, "problem"_a, "plan"_a, "block"_a, "times"_a,
          "Blocks of time steps one behind the other.");
    m.def("sweep_steps", &sweep_steps, "problem"_a, "plan"_a, "Time steps of the whole sweep.");
}
