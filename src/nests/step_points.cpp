// Sources and receivers of a run: between time steps, or by the lanes that compute them.
#include <algorithm>
#include <cstring>
#include <limits>

#include "nests/bound_sweep.hpp"

namespace tilewave {

// What this rank has of an array in the buffer of the time step so many steps before the last one.
LocalPart BoundSweep::part(int array, std::int64_t before_last) const {
    const Operand& o = operands_[array];
    FieldStorage* const field = o.array.field;
    const Binding first = field ? field->binding() : o.own;
    const int dims = first.stride_bytes.n;
    const Index zero = Index::filled(dims, 0);
    const std::int64_t all = context_.rank() > 0 ? 0 : std::numeric_limits<std::int64_t>::max();
    const std::int64_t bytes = o.order.items * sweep_.problem_.arrays[array].item_bytes;
    return {first.data + floor_mod(before_last, o.time_buffers) * bytes, first.stride_bytes,
            field ? field->storage().lo : zero, field ? field->owned() : Box{zero, Index::filled(dims, all)}};
}

// Element k of the points in that buffer; null where another rank has it.
std::byte* BoundSweep::element(const StepPoints& points, std::int64_t k, std::int64_t before_last) const {
    const LocalPart here = part(points.array, before_last);
    const Index at = points.at(k, here.from.n);
    return here.owned.contains(at) ? here.at(at) : nullptr;
}

// Adds and records at the points after time step `step` of `steps`, each a block.
void BoundSweep::visit_points(std::int64_t step, std::int64_t steps) {
    for (const StepPoints& points : points_) {
        if (points.by_lanes) continue;
        if (points.off_grid) {
            const LocalPart now = part(points.array, steps - 1 - step), next = part(points.array, steps - 2 - step);
            points.off_grid->visit(first_step_ + step, now, step + 1 < steps ? next.data - now.data : 0);
            continue;
        }
        const NestArray& n = sweep_.problem_.arrays[points.array];
        const std::int64_t count = points.count(n.axes.n);
        std::byte* value = points.values + (first_step_ + step) * count * n.item_bytes;
        const auto item = static_cast<std::size_t>(n.item_bytes);
        for (std::int64_t k = 0; k < count; ++k, value += item) {
            std::byte* const now = element(points, k, steps - 1 - step);
            if (!now) continue;
            if (!points.add) {
                std::memcpy(value, now, item);
                continue;
            }
            points.add(now, now, value, 1, nullptr);
            // The next time step begins as a copy of this one, also where no point writes.
            if (std::byte* const next = element(points, k, steps - 2 - step); step + 1 < steps && next != now)
                std::memcpy(next, now, item);
        }
    }
}

// The point that writes element k, at time 0; none where no point does.
std::optional<Index> BoundSweep::writer(const StepPoints& points, std::int64_t k) const {
    const SweepProblem& p = sweep_.problem_;
    const NestArray& n = p.arrays[points.array];
    const Index at = points.at(k, n.axes.n), shift = p.shift(points.array);
    Index x = Index::filled(p.dims(), p.space.lo[0]);
    for (int d = 0; d < n.axes.n; ++d) {
        const int axis = static_cast<int>(n.axes[d]);
        x[axis] = at[d] - shift[axis];
        if (const std::int64_t period = p.period(axis); period > 0) x[axis] = floor_mod(x[axis], period);
    }
    const bool computed = p.space.contains(x) && std::ranges::all_of(p.bounds, [&](const Bound& b) {
                              std::int64_t value = b.constant;
                              for (int d = 0; d < x.n; ++d) value += b.coefficients[d] * x[d];
                              return value >= 0;
                          });
    if (!computed) return {};
    return x;
}

// What lanes of this rank record, if anything.
std::optional<StepRecorder> BoundSweep::recorder() const {
    if (std::ranges::none_of(points_, &StepPoints::by_lanes)) return {};
    const SweepProblem& p = sweep_.problem_;
    const NestWork& work = only_nest(sweep_.schedule_);
    StepRecorder recorder(work);
    const Layout blocks = p.blocks(sweep_.plan_.grid);
    if (context_.rank() >= blocks.ranks()) return {};
    Box block = p.space;  // without what ranks compute redundantly
    const Index coords = blocks.coords(context_.rank());
    for (int d = 1; d < block.dims(); ++d) std::tie(block.lo[d], block.hi[d]) = p.block_range(blocks, d, coords[d]);
    for (const StepPoints& points : points_) {
        if (!points.by_lanes) continue;
        const auto writes = [&](const Access& a) { return a.writes && a.array == points.array; };
        const NestArray& n = p.arrays[points.array];
        const std::int64_t count = points.count(n.axes.n);
        recorder.begin({static_cast<int>(std::ranges::find_if(work.places, writes) - work.places.begin()),
                        points.values, n.item_bytes, count});
        for (std::int64_t k = 0; k < count; ++k)
            if (const std::optional<Index> x = writer(points, k); x && block.contains(*x)) recorder.add(*x, k);
    }
    recorder.sort();
    return recorder;
}

// Elements that no point writes have the value of all time steps at the end.
void BoundSweep::record_unwritten(std::int64_t steps) {
    for (const StepPoints& points : points_) {
        const NestArray& n = sweep_.problem_.arrays[points.array];
        const std::int64_t count = points.count(n.axes.n);
        for (std::int64_t k = 0; points.by_lanes && k < count; ++k) {
            if (writer(points, k)) continue;
            const std::byte* const value = element(points, k, 0);
            for (std::int64_t step = 0; value && step < steps; ++step)
                std::memcpy(points.values + ((first_step_ + step) * count + k) * n.item_bytes, value,
                            static_cast<std::size_t>(n.item_bytes));
        }
    }
}

}  // namespace tilewave
