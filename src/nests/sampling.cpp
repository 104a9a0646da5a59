// Memory like a prepared sweep's arrays, on which its kernel is timed.
#include <algorithm>
#include <cstring>

#include "data/memory.hpp"
#include "measure/tile_samples.hpp"
#include "nests/prepared_sweep.hpp"

namespace tilewave {

// One from the middle is like most.
std::vector<std::byte> PreparedSweep::typical_element(int a, const RunArray& given) const {
    std::vector<std::byte> value(static_cast<std::size_t>(problem_.arrays[a].item_bytes));
    const Box whole = given.field ? given.field->owned() : tilewave::layout(problem_, plan_, a).whole();
    if (whole.empty()) return value;
    const Binding there = given.field ? given.field->binding() : given.whole;
    const Index first = given.field ? given.field->storage().lo : whole.lo;
    std::intptr_t at = reinterpret_cast<std::intptr_t>(there.data);
    for (int d = 0; d < first.n; ++d) at += ((whole.lo[d] + whole.hi[d]) / 2 - first[d]) * there.stride_bytes[d];
    std::memcpy(value.data(), reinterpret_cast<const std::byte*>(at), value.size());
    return value;
}

SampleMemory PreparedSweep::sample_memory(std::span<const RunArray> arrays) const {
    SampleMemory s;
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
        const RunArray& given = arrays[a];
        const NestArray& n = problem_.arrays[a];
        const Array& array = schedule_.arrays[a];
        s.values.push_back((!n.replicated || copied(a, given)) && !in_window(a)
                               ? typical_element(a, given)
                               : std::vector<std::byte>(static_cast<std::size_t>(n.item_bytes)));
        s.replaced.push_back(!n.replicated && !in_window(a));
        s.filled.push_back(false);
        if (in_window(a)) {
            s.bindings.push_back({nullptr, array.stride});
            for (auto& stride : s.bindings.back().stride_bytes.v) stride *= array.item_bytes;
            s.initial.push_back({given.initial, given.same});
            continue;
        }
        const Box storage = held(problem_, plan_, a, context_.rank());
        Binding memory = given.whole;
        std::int64_t time_buffer_bytes = 0;
        if (lies_as_planned(a, given)) {
            const MemoryOrder order = memory_order(problem_, plan_, a, context_.rank());
            time_buffer_bytes = order.items * n.item_bytes;
            s.memory.push_back(aligned_memory(time_buffer_bytes * std::max(n.time_buffers, 1)));
            memory.data = s.memory.back().get() + order.first * n.item_bytes;
            memory.stride_bytes = order.stride;
            for (auto& stride : memory.stride_bytes.v) stride *= n.item_bytes;
        } else if (!n.replicated) {  // as it lies, with the strides it has
            std::int64_t before = 0, after = n.item_bytes;
            for (int d = 0; d < storage.dims(); ++d) {
                const std::int64_t reach = memory.stride_bytes[d] * std::max<std::int64_t>(storage.extent(d) - 1, 0);
                (reach < 0 ? before : after) += reach < 0 ? -reach : reach;
            }
            s.memory.push_back(aligned_memory(before + after));
            memory.data = s.memory.back().get() + before;
        }
        if (n.replicated && copied(a, given)) fill(memory, storage.lo, storage, n.item_bytes, s.values.back().data());
        s.bindings.push_back(to_loops(a, memory, storage.lo, given.mirrored));
        if (n.time_buffers > 0) s.bindings.back().stride_bytes[0] = time_buffer_bytes;
        // Memory that does not hold the box of z coordinates is filled by the array's dimensions.
        bool whole_loops = true;
        for (int k = 0; k < problem_.dims(); ++k) whole_loops = whole_loops && problem_.loops.keeps(k);
        std::int64_t box = 1;
        for (int k = n.time_buffers > 0 ? 1 : 0; k < array.storage.dims(); ++k) box *= array.storage.extent(k);
        if (n.replicated || whole_loops || memory_order(problem_, plan_, a, context_.rank()).items >= box) continue;
        s.filled.back() = true;
        for (int l = 0; l < std::max(n.time_buffers, 1); ++l, memory.data += time_buffer_bytes)
            fill(memory, storage.lo, storage, n.item_bytes, s.values.back().data());
    }
    return s;
}

std::vector<RateSample> PreparedSweep::sample_tasks(std::span<const RunArray> arrays, const Kernel& kernel,
                                                    double budget_s) const {
    std::vector<LoopMemory> operands;
    for (const Access& p : problem_.accesses)
        operands.push_back(
            memory_of(problem_, p, arrays[p.array].whole, Index::filled(problem_.arrays[p.array].axes.n, 0)));
    std::vector<std::vector<std::byte>> values;
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) values.push_back(typical_element(a, arrays[a]));
    const auto tasks = tasks_of(problem_, plan_, context_.rank());
    const std::vector<Binding> none(arrays.size());
    tasks->set(kernel, std::move(operands), none, [](const Failure&) { return std::string(); });
    return tasks->sample(schedule_, values, context_, budget_s);
}

std::vector<RateSample> PreparedSweep::sample(std::span<const RunArray> arrays, const Kernel& kernel, double budget_s) {
    if (arrays.size() != problem_.arrays.size())
        throw ConfigError("sample: " + std::to_string(arrays.size()) + " arrays given, the nest has " +
                          std::to_string(problem_.arrays.size()));
    // A rank without elements, as a plan of fewer ranks leaves it, cannot tell what they are like.
    for (const RunArray& array : arrays)
        if (array.field && array.field->owned().empty()) return std::vector<RateSample>(3);
    if (has_tasks(plan_)) return sample_tasks(arrays, kernel, budget_s);
    if (window_) return sample_window(problem_, plan_, schedule_, sample_memory(arrays), kernel, context_, budget_s);
    const auto sampled = [&](const PreparedSweep& sweep) {
        if (sweep.schedule_.tiles.empty()) return std::vector<RateSample>(3);
        return sample_tiles(sweep.schedule_, sweep.sample_memory(arrays), kernel, context_, budget_s,
                            element_bytes(problem_, plan_));
    };
    auto [problem, plan] = sample_case(problem_, plan_, context_.rank());
    problem.window = {};  // as in the run: the plan of the smaller problem might have one
    if (problem.shape == problem_.shape && plan.tile == plan_.tile) return sampled(*this);
    return sampled(PreparedSweep(context_, std::move(problem), std::move(plan)));
}

}  // namespace tilewave
