#include "execute/step_visitor.hpp"

#include <algorithm>
#include <cstring>

namespace tilewave {

StepVisitor::StepVisitor(const NestWork& work)
    : to_z_(work.loops.n == 0 ? IndexMatrix::identity(work.space.dims()) : inverse(work.loops)),
      later_(Index::filled(to_z_.n, 0)) {
    for (int k = 0; k < later_.n; ++k) later_[k] = to_z_.row[k][0];
}

void StepVisitor::add(const Index& x, std::int64_t column, double weight) {
    Index at = x;
    at[0] = 0;
    all_.back().list.push_back({to_z_ * at, column, weight});
    empty_ = false;
}

void StepVisitor::sort() {
    for (Elements& elements : all_) {
        std::int64_t widest = -1;
        for (int k = 1; k < to_z_.n && !elements.list.empty(); ++k) {
            const auto [least, most] =
                std::ranges::minmax(elements.list, {}, [k](const Element& e) { return e.point[k]; });
            if (most.point[k] - least.point[k] <= widest) continue;
            widest = most.point[k] - least.point[k];
            elements.along = k;
        }
        std::ranges::stable_sort(elements.list, {}, [k = elements.along](const Element& e) { return e.point[k]; });
    }
}

void StepVisitor::visit(const NestWork& work, const Box& tile, std::int64_t first_time,
                        const ArrayMemory& memory) const {
    const std::int64_t time = tile.lo[0];
    Index moved = later_;
    for (auto& by : moved.v) by *= time;
    for (const Elements& elements : all_) {
        const Values& v = elements.values;
        const Access& written = work.places[v.place];
        std::byte* const corner = memory.address(written.array, tile.lo + written.offset);
        const Index& stride = memory.binding(written.array).stride_bytes;
        std::byte* const row = v.first + (first_time + time) * v.points * v.item_bytes;
        const int along = elements.along;
        auto e = std::ranges::lower_bound(elements.list, tile.lo[along] - moved[along], {},
                                          [along](const Element& each) { return each.point[along]; });
        for (; e != elements.list.end() && e->point[along] + moved[along] < tile.hi[along]; ++e) {
            bool inside = true;
            std::int64_t at = 0;
            for (int k = 1; k < tile.dims(); ++k) {
                const std::int64_t z = e->point[k] + moved[k];
                inside = inside && z >= tile.lo[k] && z < tile.hi[k];
                at += (z - tile.lo[k]) * stride[k];
            }
            if (!inside) continue;
            if (v.add)
                v.add(corner + at, row + e->column * v.item_bytes, e->weight);
            else
                std::memcpy(row + e->column * v.item_bytes, corner + at, static_cast<std::size_t>(v.item_bytes));
        }
    }
}

}  // namespace tilewave
