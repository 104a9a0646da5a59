// The generators of schedules: copies between layouts, updates of halos, and nests.
#include "casters.hpp"
#include "generate/chain/fused.hpp"
#include "generate/copy/copy.hpp"
#include "generate/gather/gather.hpp"
#include "generate/halo/update.hpp"
#include "generate/nest/nest.hpp"
#include "generate/pivot/pivot.hpp"
#include "generate/stencil/stencil.hpp"
#include "generate/sweep/sweep.hpp"
#include "schedule/compose.hpp"
#include "schedule/repeat.hpp"

namespace {

using Numbers = std::vector<std::vector<std::int32_t>>;

std::vector<ChainPart> chain_parts(const std::vector<SweepProblem>& problems, const std::vector<Plan>& plans,
                                   const Numbers& memories) {
    std::vector<ChainPart> parts;
    for (std::size_t i = 0; i < problems.size(); ++i) parts.push_back({problems[i], plans.at(i), memories.at(i)});
    return parts;
}

}  // namespace

void bind_generate(nb::module_& m) {
    m.def("redistribute", &redistribute, "from_layout"_a, "to_layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a,
          "chunk_bytes"_a = 1 << 20, "from_stride"_a = Index(), "to_stride"_a = Index(),
          "Schedule that moves an array from one layout to another.");
    m.def("gather_schedule", &gather_schedule, "layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a,
          "chunk_bytes"_a = 1 << 20, "stride"_a = Index(), "Schedule that brings an array together on rank 0.");
    m.def("collect_schedule", &collect_schedule, "layout"_a, "to_layout"_a, "extents"_a, "number"_a, "item_bytes"_a,
          "rank"_a, "ranks"_a, "chunk_bytes"_a = 1 << 20, "stride"_a = Index(),
          "Schedule that gives each rank a part of its block in another layout.");
    m.def("scatter_schedule", &scatter_schedule, "layout"_a, "item_bytes"_a, "rank"_a, "ranks"_a,
          "chunk_bytes"_a = 1 << 20, "stride"_a = Index(), "Schedule that spreads rank 0's whole array.");
    m.def("sweep", &sweep, "problem"_a, "plan"_a, "rank"_a, "ranks"_a = 0, Release(),
          "The part of one rank in a sweep, of as many ranks as the plan has or more.");
    m.def("stencil", &stencil, "problem"_a, "plan"_a, "rank"_a, "ranks"_a = 0, Release(),
          "The part of one rank in a stencil.");
    m.def("nest_schedule", &nest_schedule, "problem"_a, "plan"_a, "rank"_a, "ranks"_a = 0, Release(),
          "The part of one rank in a nest, by the plan's generator.");
    m.def(
        "task_rates",
        [](const SweepProblem& problem, const Plan& plan, const KernelRate& kernel) {
            return nest_rates(problem, plan, kernel).operations;
        },
        "problem"_a, "plan"_a, "kernel"_a, "What the tasks of a nest's schedule take, by the rate of its kernel.");
    m.def(
        "arrays_kept",
        [](const SweepProblem& problem, const Plan& plan) {
            std::vector<int> all;
            if (plan.generator == GeneratorKind::pivot)
                for (const auto& each : PivotProblem(problem).matrices)
                    if (each.pivots) all.push_back(each.array);
            if (plan.generator == GeneratorKind::gather)
                for (const auto& each : GatherProblem(problem, plan).matrices)
                    if (each.depth > 0) all.push_back(each.array);
            return all;
        },
        "problem"_a, "plan"_a,
        "The arrays of a nest of which its schedule has another array with a part of its values.");
    m.def("nest_repetitions", &nest_repetitions, "problem"_a, "plan"_a,
          "How often the block of a nest's schedule runs in one run.");
    m.def(
        "gather_steps",
        [](std::int64_t steps, std::int64_t extent, const std::vector<std::tuple<std::int64_t, int, bool>>& matrices,
           std::int64_t chunk, int lanes, int radix, int rank, int ranks) {
            GatherProblem problem;
            problem.steps = steps, problem.extent = extent;
            for (const auto& [bytes, depth, travels] : matrices)
                problem.matrices.push_back({problem.arrays++, bytes, depth, travels});
            GatherPlan plan;
            plan.chunk = chunk, plan.lanes = lanes, plan.radix = radix;
            return gather_steps(problem, plan, rank, ranks);
        },
        "steps"_a, "extent"_a, "matrices"_a, "chunk"_a, "lanes"_a, "radix"_a, "rank"_a, "ranks"_a,
        "One rank's schedule of steps that are gathered; matrices: (bytes of an element, depth, whether it travels).");
    m.def("sweep_among", &sweep_among, "problem"_a, "plan"_a, "rank"_a, "ranks"_a, "peers"_a,
          "The same, asking these ranks for messages in place of the neighbours.");
    m.def("sweep_neighbours", &sweep_neighbours, "problem"_a, "plan"_a, "rank"_a,
          "The ranks that one rank may exchange messages with in a sweep.");
    m.def("repeated_block", &repeated_block, "problem"_a, "block"_a,
          "One rank's schedule of a block of time steps, as a block that repeats.");
    m.def(
        "unrolled",
        [](const std::vector<Schedule>& schedules, std::int64_t times) { return unrolled(schedules, times); },
        "schedules"_a, "times"_a,
        "The schedules of all ranks with so many repetitions of their blocks, one behind the other.");
    m.def("sweep_waves", &sweep_waves, "problem"_a, "plan"_a, "Waves of the whole sweep.");
    m.def(
        "chain",
        [](const std::vector<SweepProblem>& problems, const std::vector<Plan>& plans, const Numbers& memories, int rank,
           int ranks, std::int32_t tags) { return chain(chain_parts(problems, plans, memories), rank, ranks, {tags}); },
        "problems"_a, "plans"_a, "memories"_a, "rank"_a, "ranks"_a, "tags"_a = 1 << 20,
        "The part of one rank in several sweeps, one after another.");
    m.def(
        "fused_chain",
        [](const std::vector<SweepProblem>& problems, const std::vector<Plan>& plans, const Numbers& memories, int rank,
           int ranks, std::int64_t rows, std::int64_t repetitions, std::int64_t pieces) {
            const std::vector<ChainPart> parts = chain_parts(problems, plans, memories);
            ChainFusion fusion = chain_fusion(parts);
            if (rows > 0) fusion.rows = rows;
            if (repetitions > 0) fusion.repetitions = repetitions;
            if (pieces > 0) fusion.pieces = pieces;
            return fused_chain(parts, rank, ranks, 1 << 20, fusion, fusion.repetitions);
        },
        "problems"_a, "plans"_a, "memories"_a, "rank"_a, "ranks"_a, "rows"_a = 0, "repetitions"_a = 0, "pieces"_a = 0,
        "The same with tiles in turn, in slices of so many rows and over repetitions; 0: as chosen for the machine.");
    m.def(
        "chain_arrays",
        [](const std::vector<SweepProblem>& problems, const std::vector<Plan>& plans, const Numbers& memories,
           std::int64_t repetitions) {
            const std::vector<ChainPart> parts = chain_parts(problems, plans, memories);
            std::vector<std::tuple<std::size_t, int, bool>> all;
            for (const ChainArray& each : chain_arrays(repeated_parts(parts, repetitions)))
                all.emplace_back(each.part, each.array, each.all_buffers);
            return all;
        },
        "problems"_a, "plans"_a, "memories"_a, "repetitions"_a,
        "The arrays of such a schedule: (sweep, array, whether it is all time buffers as they lie) of each.");
    m.def("repeatable", &repeatable, "schedule"_a, "A block of all steps of one rank's schedule.");
    m.def(
        "append",
        [](Schedule& whole, const Schedule& part, std::vector<std::int32_t> arrays, std::vector<std::int32_t> lanes,
           std::int64_t first_number, std::int32_t first_kernel, std::int32_t first_operation, std::int32_t first_tag) {
            append(whole, part,
                   {std::move(arrays), std::move(lanes), first_number, first_kernel, first_operation, first_tag});
        },
        "whole"_a, "part"_a, "arrays"_a = std::vector<std::int32_t>(), "lanes"_a = std::vector<std::int32_t>(),
        "first_number"_a = 0, "first_kernel"_a = 0, "first_operation"_a = 0, "first_tag"_a = 0,
        "Add a schedule behind another of the same rank.");
    m.def(
        "halo_update",
        [](const std::vector<std::pair<Layout, std::int64_t>>& arrays, int rank, int ranks, int axes) {
            std::vector<HaloArray> all;
            for (const auto& [layout, item_bytes] : arrays) all.push_back({layout, item_bytes});
            return halo_update(all, rank, ranks, axes);
        },
        "arrays"_a, "rank"_a, "ranks"_a, "axes"_a, "One rank's part of an update of halos, of (layout, item bytes).");
}
