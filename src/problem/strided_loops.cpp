#include "problem/strided_loops.hpp"

#include <algorithm>

namespace tilewave {

namespace {

// An array of a nest as the parts of it that points access.
class PartsOfArrays {
public:
    PartsOfArrays(const LoopNest& given, const Index& first, const Index& strides)
        : given_(given), first_(first), strides_(strides) {}

    // The same place of the part, which is added where it is new.
    LoopNest::Place of(LoopNest::Place place) {
        const LoopNest::Array& a = given_.arrays[place.array];
        const bool strides = std::ranges::any_of(a.axes, [&](auto k) { return strides_[static_cast<int>(k)] > 1; });
        LoopNest::Array part = a;
        if (strides) {
            if (!a.whole) part.field_shape = a.scale.n ? a.field_shape : a.shape;
            part.scale = part.residue = Index::filled(a.axes.n, 0);
            for (int d = 0; d < a.axes.n; ++d) {
                const int k = static_cast<int>(a.axes[d]);
                const std::int64_t at = place.offset[k] + begin(k), first = floor_mod(at, strides_[k]);
                part.scale[d] = (a.scale.n ? a.scale[d] : 1) * strides_[k];
                part.residue[d] = (a.scale.n ? a.scale[d] * first + a.residue[d] : first);
                part.shape[d] = ceil_div(std::max<std::int64_t>(a.shape[d] - first, 0), strides_[k]);
                place.offset[k] = floor_div(at, strides_[k]);
            }
        }
        place.array = number_of(std::move(part), place.array);
        return place;
    }
    std::int64_t begin(int k) const { return strides_[k] > 1 ? first_[k] : 0; }

    std::vector<LoopNest::Array> arrays;
    std::vector<int> of_given;

private:
    int field_of(int a) const { return given_.arrays[a].field < 0 ? a : given_.arrays[a].field; }
    int number_of(LoopNest::Array part, int a) {
        part.field = -1;
        for (std::size_t n = 0; n < arrays.size(); ++n) {
            if (field_of(of_given[n]) != field_of(a)) continue;
            if (arrays[n].scale == part.scale && arrays[n].residue == part.residue && of_given[n] == a)
                return static_cast<int>(n);
            if (part.field < 0) part.field = static_cast<int>(n);
        }
        if (part.field_shape.n == 0) part.field = -1;
        if (part.field_shape.n > 0 && part.field < 0) part.field = static_cast<int>(arrays.size());
        arrays.push_back(std::move(part));
        of_given.push_back(a);
        return static_cast<int>(arrays.size()) - 1;
    }

    const LoopNest& given_;
    const Index &first_, &strides_;
};

}  // namespace

StridedNest strided(const LoopNest& nest, const Index& first, const Index& strides) {
    PartsOfArrays parts(nest, first, strides);
    StridedNest made{nest, {}};
    for (LoopNest::Place& place : made.nest.places) place = parts.of(place);
    for (int k = 0; k < strides.n; ++k)
        for (std::int64_t* const end : {&made.nest.box.lo[k], &made.nest.box.hi[k]})
            *end = ceil_div(*end - parts.begin(k), strides[k]);
    for (Bound& bound : made.nest.bounds)
        for (int k = 0; k < strides.n; ++k) {
            bound.constant += bound.coefficients[k] * parts.begin(k);
            bound.coefficients[k] *= strides[k];
        }
    made.nest.arrays = std::move(parts.arrays);
    made.arrays = std::move(parts.of_given);
    return made;
}

}  // namespace tilewave
