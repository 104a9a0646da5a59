#include "nests/off_grid.hpp"

#include <cstring>
#include <type_traits>

namespace tilewave {

template <class T>
void OffGrid::visit_as(std::int64_t step, const LocalPart& part, std::vector<std::int64_t>& changed) {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::complex<double>>;
    const auto& [type, dims, width, points, first_of_all, weights_of_all, moves, values, adds] = given_;
    const Box neighbours{Index::filled(dims, 0), Index::filled(dims, width)};
    const int last = dims - 1;
    for (std::int64_t k = 0; k < points; ++k) {
        const std::int64_t row = (moves ? step * points + k : k) * dims;
        const Index first(std::span(first_of_all + row, static_cast<std::size_t>(dims)));
        const Box here = intersect({first, first + neighbours.hi}, part.owned);
        if (here.empty()) continue;
        const double* const weights = weights_of_all + row * width;
        std::byte* const value =
            values + (step * points + k) * static_cast<std::int64_t>(adds ? sizeof(Wide) : sizeof(T));
        Wide item = 0;
        if (adds) std::memcpy(&item, value, sizeof(Wide));
        const std::size_t before = products_.size();
        const bool all_here = here.points() == neighbours.points();
        bool whole = true;
        std::int64_t neighbour = 0;
        Wide sum = 0;
        Index at = neighbours.lo;
        do {  // a row of neighbours
            double of_row = 1;
            for (int d = 0; d < last; ++d) of_row *= weights[d * width + at[d]];
            std::byte* const element_0 = part.at(first + at);
            for (at[last] = 0; at[last] < width; ++at[last], ++neighbour) {
                const double weight = of_row * weights[last * width + at[last]];
                if (weight == 0) continue;
                if (!all_here && !here.contains(first + at)) {
                    whole = false;
                    continue;
                }
                std::byte* const element = element_0 + at[last] * part.stride_bytes[last];
                T now;
                std::memcpy(&now, element, sizeof(T));
                if (!adds) {
                    const Wide product = weight * Wide(now);
                    if (!all_here) products_.push_back({step * points + k, neighbour, product});
                    sum += product;
                    continue;
                }
                now = static_cast<T>(Wide(now) + weight * item);
                std::memcpy(element, &now, sizeof(T));
                changed.push_back(element - part.data);
            }
            at[last] = 0;
        } while (next_point(at, neighbours, 1u << last));
        if (adds || !whole) continue;
        products_.resize(before);
        const T total = static_cast<T>(sum);
        std::memcpy(value, &total, sizeof(T));
    }
}

void OffGrid::visit(std::int64_t step, const LocalPart& part, std::vector<std::int64_t>& changed) {
    switch (given_.type) {
        case Dtype::f4: return visit_as<float>(step, part, changed);
        case Dtype::f8: return visit_as<double>(step, part, changed);
        case Dtype::c8: return visit_as<std::complex<float>>(step, part, changed);
        default: return visit_as<std::complex<double>>(step, part, changed);
    }
}

}  // namespace tilewave
