// Sources and receivers of a run: between time steps, or by the lanes that compute them.
#include <algorithm>
#include <cstring>
#include <limits>

#include "nests/bound_sweep.hpp"

namespace tilewave {
namespace {

template <class T, class Wide>
void add_as(std::byte* element, const std::byte* value, [[maybe_unused]] double weight) {
    T now;
    Wide more;
    std::memcpy(&now, element, sizeof(T));
    std::memcpy(&more, value, sizeof(Wide));
    if constexpr (std::is_same_v<T, bool>)
        now |= more;
    else if constexpr (std::is_integral_v<T>)  // which wrap
        now = static_cast<T>(static_cast<std::uint64_t>(now) + static_cast<std::uint64_t>(more));
    else if constexpr (std::is_same_v<Wide, std::complex<float>>)  // of the grid: without weights
        now = static_cast<T>(now + more);
    else
        now = static_cast<T>(Wide(now) + static_cast<Wide>(weight * more));
    std::memcpy(element, &now, sizeof(T));
}

}  // namespace

AddItem add_item(Dtype type, Dtype sum) {
    if (type == Dtype::f4 && sum == Dtype::f8) return add_as<float, double>;
    if (type == Dtype::c8 && sum == Dtype::c16) return add_as<std::complex<float>, std::complex<double>>;
#define TILEWAVE_DTYPE(name, number, ...) \
    if (type == Dtype::name) return add_as<number, number>;
    TILEWAVE_DTYPES(TILEWAVE_DTYPE)
#undef TILEWAVE_DTYPE
    return nullptr;
}

// What this rank has of an array in the buffer of the time step so many steps before the last one.
LocalPart BoundSweep::part(int array, std::int64_t before_last) const {
    const Operand& o = operands_[array];
    FieldStorage* const field = o.array.field;
    const Binding first = field ? field->binding() : o.own;
    const Index zero = Index::filled(first.stride_bytes.n, 0);
    const std::int64_t all = context_.rank() > 0 ? 0 : std::numeric_limits<std::int64_t>::max();
    const std::int64_t bytes = o.order.items * sweep_.problem_.arrays[array].item_bytes;
    return {first.data + floor_mod(before_last, o.time_buffers) * bytes, first.stride_bytes,
            field ? field->storage().lo : held(sweep_.problem_, sweep_.plan_, array, context_.rank()).lo,
            field ? field->owned() : Box{zero, Index::filled(zero.n, all)}};
}

// Element k of the points in that buffer; null where another rank has it.
std::byte* BoundSweep::element(const StepPoints& points, std::int64_t k, std::int64_t before_last) const {
    const LocalPart here = part(points.array, before_last);
    const Index at = points.at(k, here.from.n);
    return here.owned.contains(at) ? here.at(at) : nullptr;
}

// Adds and records at the points after time step `step` of `steps`, each a block.
void BoundSweep::visit_points(std::int64_t step, std::int64_t steps) {
    for (const StepPoints& points : of_.points) {
        if (points.by_lanes) continue;
        std::vector<std::int64_t> changed;
        if (points.off_grid) {
            points.off_grid->visit(of_.first + step, part(points.array, steps - 1 - step), changed);
            added_.push_back({step, points.array, std::move(changed)});
            continue;
        }
        const NestArray& n = sweep_.problem_.arrays[points.array];
        const std::int64_t count = points.count(n.axes.n);
        std::byte* value = points.values + (of_.first + step) * count * points.value_bytes;
        const LocalPart now = part(points.array, steps - 1 - step);
        for (std::int64_t k = 0; k < count; ++k, value += points.value_bytes) {
            const Index at = points.at(k, now.from.n);
            if (!now.owned.contains(at)) continue;
            if (points.add) {
                points.add(now.at(at), value, 1);
                changed.push_back(now.at(at) - now.data);
            } else {
                std::memcpy(value, now.at(at), static_cast<std::size_t>(n.item_bytes));
            }
        }
        added_.push_back({step, points.array, std::move(changed)});
    }
    if (step + 1 < steps) carry_added(step, steps);
}

// Each time step begins as a copy of the one before. Elements that no point writes have one value in all time buffers,
// except for those that sources have changed since these buffers were used last.
void BoundSweep::carry_added(std::int64_t step, std::int64_t steps) {
    std::erase_if(added_, [&](const Added& a) {
        return a.offsets.empty() || a.step + std::max(operands_[a.array].time_buffers, 2) - 2 < step;
    });
    for (const Added& a : added_) {
        const std::byte* const now = part(a.array, steps - 1 - step).data;
        std::byte* const next = part(a.array, steps - 2 - step).data;
        const auto item = static_cast<std::size_t>(sweep_.problem_.arrays[a.array].item_bytes);
        for (const std::int64_t at : a.offsets)
            if (next != now) std::memcpy(next + at, now + at, item);
    }
}

// The point that writes an element, at time 0; none where no point does.
std::optional<Index> BoundSweep::writer(int array, const Index& at) const {
    const SweepProblem& p = sweep_.problem_;
    const NestArray& n = p.arrays[array];
    const Index shift = p.shift(array);
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

// What lanes of this rank change and record, if anything.
std::optional<StepVisitor> BoundSweep::visitor() const {
    if (std::ranges::none_of(of_.points, &StepPoints::by_lanes)) return {};
    const SweepProblem& p = sweep_.problem_;
    const NestWork& work = only_nest(sweep_.schedule_);
    StepVisitor visitor(work);
    const Layout blocks = p.blocks(sweep_.plan_.grid);
    if (context_.rank() >= blocks.ranks()) return {};
    Box block = p.space;  // without what ranks compute redundantly
    const Index coords = blocks.coords(context_.rank());
    for (int d = 1; d < block.dims(); ++d) std::tie(block.lo[d], block.hi[d]) = p.block_range(blocks, d, coords[d]);
    for (const StepPoints& points : of_.points) {
        if (!points.by_lanes) continue;
        const auto writes = [&](const Access& a) { return a.writes && a.array == points.array; };
        const int place = static_cast<int>(std::ranges::find_if(work.places, writes) - work.places.begin());
        if (points.off_grid) {
            const OffGrid::Given& given = points.off_grid->given();
            const bool real = given.type == Dtype::f4 || given.type == Dtype::f8;
            visitor.begin({place, given.values, real ? 8 : 16, given.points,
                           add_item(given.type, real ? Dtype::f8 : Dtype::c16)});
            points.off_grid->each_neighbour([&](std::int64_t k, const Index& at, double weight) {
                if (const std::optional<Index> x = writer(points.array, at)) visitor.add(*x, k, weight);
            });
            continue;
        }
        const int dims = p.arrays[points.array].axes.n;
        const std::int64_t count = points.count(dims);
        visitor.begin({place, points.values, points.value_bytes, count, points.add});
        for (std::int64_t k = 0; k < count; ++k)  // what ranks compute redundantly is changed there, too
            if (const std::optional<Index> x = writer(points.array, points.at(k, dims));
                x && (points.add || block.contains(*x)))
                visitor.add(*x, k);
    }
    visitor.sort();
    return visitor;
}

// Elements that no point writes have the value of all time steps at the end.
void BoundSweep::record_unwritten(std::int64_t steps) {
    for (const StepPoints& points : of_.points) {
        const NestArray& n = sweep_.problem_.arrays[points.array];
        const std::int64_t count = points.count(n.axes.n);
        for (std::int64_t k = 0; points.by_lanes && !points.add && k < count; ++k) {
            if (writer(points.array, points.at(k, n.axes.n))) continue;
            const std::byte* const value = element(points, k, 0);
            for (std::int64_t step = 0; value && step < steps; ++step)
                std::memcpy(points.values + ((of_.first + step) * count + k) * n.item_bytes, value,
                            static_cast<std::size_t>(n.item_bytes));
        }
    }
}

}  // namespace tilewave
