// What ranks exchange before and after a sweep: values from before it, and those that another rank has computed.
#include "generate/sweep/geometry.hpp"

namespace tilewave {

namespace {

constexpr std::int64_t initial_halo_chunk_bytes = std::int64_t{1} << 26;  // most of a message

// `fresh` without what is known already, as disjoint boxes.
std::vector<Box> without(std::vector<Box> fresh, const std::vector<Box>& known) {
    for (const Box& k : known) {
        std::vector<Box> left;
        for (const Box& f : fresh)
            for (const Box& part : subtract(f, k)) left.push_back(part);
        fresh = std::move(left);
    }
    return fresh;
}

}  // namespace

std::vector<Box> SweepGeometry::initial_halo(int a, int source, int target) const {
    std::vector<Box> boxes;
    const NestArray& n = problem_.arrays[a];
    const Box points = reached(target);
    if (n.replicated || points.empty() || in_window(a)) return boxes;
    const Box owned = problem_.box_of(a, layout(a).owned(source));
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
        const Access& p = problem_.accesses[i];
        if (p.array != a) continue;
        Box wanted = kinds_[a].elements(points.shifted(offsets_[i]));
        if (n.time_buffers > 0)  // what is outside the space keeps its value through time
            wanted = wanted.with(0, owned.lo[0], owned.hi[0]);
        const Box fresh = intersect(wanted, owned);
        if (fresh.empty()) continue;
        std::vector<Box> known = boxes;
        // What tiles write reaches the target as faces, after it is computed.
        if (new_[i] && n.time_buffers == 0)
            for (const int rank : blocks_.ranks_at(coords_meeting(in_array_coordinates(fresh))))
                known.push_back(block(rank));
        for (const Box& f : without({fresh}, known))
            for (const Box& part : chunks(f, n.item_bytes, initial_halo_chunk_bytes)) boxes.push_back(part);
    }
    return boxes;
}

std::vector<Box> SweepGeometry::return_to_owner(int a, int source, int target) const {
    const NestArray& n = problem_.arrays[a];
    if (n.replicated || n.time_buffers > 0 || in_window(a) || !problem_.written(a) || block(source).empty()) return {};
    const Array& here = kinds_[a];
    const Box theirs = problem_.box_of(a, layout(a).owned(target));
    std::vector<Box> known, boxes;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
        if (problem_.accesses[i].array != a || !problem_.accesses[i].writes) continue;
        for (const Box& f : without({intersect(here.elements(block(source).shifted(offsets_[i])), theirs)}, known)) {
            known.push_back(f);
            for (const Box& part : chunks(f, n.item_bytes, initial_halo_chunk_bytes)) boxes.push_back(part);
        }
    }
    return boxes;
}

}  // namespace tilewave
