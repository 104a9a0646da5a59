// Nests whose time steps may be gathered.
#include <algorithm>
#include <optional>

#include "problem/make_problem.hpp"

namespace tilewave {

namespace {

// The first loop along which two places of an array may be at one element in different points; nothing: there is none.
// `known`: one distance is certain there.
struct FirstLoop {
    int loop = 0;
    bool known = false;
};
std::optional<FirstLoop> first_loop(const LoopNest& nest, const LoopNest::Place& one, const LoopNest::Place& other) {
    const LoopNest::Array& array = nest.arrays[one.array];
    const int dims = nest.box.dims();
    const bool whole = one.along || other.along;
    int lacking = 0;
    std::optional<FirstLoop> found;
    for (int k = 0; k < dims; ++k) {
        const bool has = std::ranges::find(array.axes, k) != array.axes.end() || (array.in_time && k == 0);
        const bool known = has && !(whole && k == dims - 1);
        lacking += !known;
        if (!found && (!known || one.offset[k] != other.offset[k])) found = {k, known};
    }
    // One place of an array that lacks one loop: its next step comes to the same element.
    if (found && !found->known && lacking == 1 && !whole && one.offset == other.offset) found->known = true;
    return found;
}

}  // namespace

int steps_to_gather(const LoopNest& nest) {
    const auto along = [](const LoopNest::Place& p) { return p.along; };
    if (!nest.may_gather || nest.periodic.n > 0 || nest.box.empty() || std::ranges::none_of(nest.places, along))
        return -1;
    int time = -1;
    for (const LoopNest::Place& w : nest.places)
        for (const LoopNest::Place& p : nest.places) {
            if (!w.written || w.array != p.array) continue;
            const std::optional<FirstLoop> first = first_loop(nest, w, p);
            if (!first) continue;
            if (!first->known || (time >= 0 && time != first->loop)) return -1;  // a dependence within a step, too
            time = first->loop;
        }
    const bool in_time = std::ranges::any_of(nest.arrays, [](const LoopNest::Array& a) { return a.in_time; });
    if (time < 0 || (in_time && time > 0)) return -1;
    const std::int64_t sign = nest.downwards[time] ? -1 : 1;
    for (const LoopNest::Place& w : nest.places) {
        if (!w.written) continue;
        if (nest.arrays[w.array].scale.n > 0) return -1;
        for (const LoopNest::Place& p : nest.places)
            if (p.array == w.array && &p != &w && (p.written || sign * (w.offset[time] - p.offset[time]) <= 0))
                return -1;
    }
    return time;
}

}  // namespace tilewave
