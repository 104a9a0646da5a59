#include "problem/make_problem.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <tuple>

namespace tilewave {

namespace {

bool zero_in_space(const Index& offset) {
    return std::all_of(offset.begin() + 1, offset.end(), [](auto x) { return x == 0; });
}

// Places and arrays of a nest, on their way to those of its problem.
class Making {
public:
    explicit Making(const LoopNest& nest) : nest_(nest), written_(nest.arrays.size()) {
        for (const LoopNest::Place& p : nest.places)
            if (p.written) written_[whole_of(p.array)] = true;
        cut_ = timeless() && nest.periodic.n == 0 && nest.pivots.empty() &&
               any_spread([](const LoopNest::Array& a) { return !a.cuts.empty(); });
        scaled_ = any_spread([](const LoopNest::Array& a) { return a.scale.n > 0; });
        of_points_ = of_points();
    }
    SweepProblem made() {
        SweepProblem p;
        p.space = nest_.box;
        p.bounds = nest_.bounds;
        p.sequential = nest_.sequential;
        p.periodic = nest_.periodic;
        p.paths_off = nest_.paths_off;
        p.pivots = nest_.pivots;
        p.gathers = steps_to_gather(nest_);
        std::vector<int> history(nest_.arrays.size());
        const std::vector<int> buffers = time_buffers(p, history);
        for (std::size_t a = 0; a < nest_.arrays.size(); ++a) {
            const LoopNest::Array& given = nest_.arrays[a];
            NestArray& n = p.arrays.emplace_back();
            n.item_bytes = given.item_bytes;
            n.replicated = given.whole;
            n.shape = given.shape;
            n.axes = given.axes;
            n.time_buffers = buffers[a];
            n.history = history[a];
            n.window = given.window && !scaled_ && !cut_;
            n.aligned = !given.whole && (of_points_ || cut_);
            if (given.field_shape.n > 0)
                n.scale = given.scale, n.residue = given.residue, n.field_shape = given.field_shape,
                n.field = given.field;
            if (cut_ && !given.whole && std::ssize(given.cuts) == given.axes.n) n.cuts = given.cuts;
        }
        p.shape = p.space.hi;
        p.shape = owned(p);
        p.normalize_loops(nest_.downwards);
        if (cut_) follow_finest(p);
        return p;
    }

private:
    template <class Is>
    bool any_spread(Is is) const {
        return std::ranges::any_of(nest_.arrays, [&](const LoopNest::Array& a) { return !a.whole && is(a); });
    }
    // The first array that is part of the same memory.
    int whole_of(int a) const { return nest_.arrays[a].field < 0 ? a : nest_.arrays[a].field; }
    // Whether array `a`, or another part of its memory, has time steps of its own.
    bool steps(int a) const { return nest_.arrays[a].in_time && written_[whole_of(a)]; }
    bool timeless() const {
        return !any_spread([](const LoopNest::Array& a) { return a.in_time; });
    }

    // The offset of a place of an array in time, and how many time buffers its reading asks for. A time step begins as
    // a copy of the one before: what a point reads of the same step ahead in the loops is still that. Where loops are
    // periodic nothing is ahead of all points.
    std::pair<Index, int> in_time(const LoopNest::Place& place, Index offset) const {
        const bool wraps = nest_.periodic.n > 0;
        int k = 1;
        while (k < offset.n && offset[k] == 0) ++k;
        const bool ahead = !wraps && k < offset.n && (nest_.downwards[k] ? -offset[k] : offset[k]) > 0;
        if (!place.written && offset[0] == 1 && ahead) offset[0] = 0;
        if (place.written || offset[0] == 1) return {offset, 1};
        if (offset[0] < 0 || place.along) return {offset, static_cast<int>(2 - offset[0])};
        return {offset, ahead || zero_in_space(offset) ? 1 : 2};
    }
    // By array, and its `history`; with them the accesses of the problem. Parts of one memory have as many.
    std::vector<int> time_buffers(SweepProblem& p, std::vector<int>& history) const {
        std::vector<int> buffers(nest_.arrays.size());
        std::vector<bool> writes(buffers.size());
        for (const LoopNest::Place& p : nest_.places) writes[p.array] = writes[p.array] || p.written;
        for (int a = 0; a < static_cast<int>(buffers.size()); ++a)
            if (steps(a)) buffers[whole_of(a)] = 1, history[whole_of(a)] = nest_.arrays[a].history;
        for (const LoopNest::Place& place : nest_.places) {
            const LoopNest::Array& array = nest_.arrays[place.array];
            Index offset = place.offset;
            if (array.joined && offset[0] < 1) offset[0] -= 1;
            if (steps(place.array)) {
                // A field keeps what the nest reads of earlier steps.
                const int whole = whole_of(place.array);
                history[whole] = std::max(history[whole], static_cast<int>(-offset[0]));
                int needs = 1;
                if (writes[place.array])
                    std::tie(offset, needs) = in_time(place, offset);
                else  // what no point writes is as the step before has left it
                    offset[0] = std::min<std::int64_t>(offset[0], 0),
                    needs = static_cast<int>(offset[0] < 0 ? 2 - offset[0] : 1);
                buffers[whole] = std::max(buffers[whole], needs);
            } else if (array.in_time) {
                offset[0] = 0;
            }
            p.accesses.push_back({place.array, offset, place.written});
            if (!p.never_written.empty() || place.never_written) p.never_written.resize(p.accesses.size());
            if (place.never_written) p.never_written.back() = true;
            if (!p.wholes.empty() || place.along) p.wholes.resize(p.accesses.size());
            if (place.along) p.wholes.back() = true;
        }
        int least = 0;
        for (const int count : buffers) least = std::min(2, std::max(least, count));
        for (int a = 0; a < static_cast<int>(buffers.size()); ++a) {
            if (steps(a)) buffers[a] = buffers[whole_of(a)], history[a] = history[whole_of(a)];
            if (buffers[a] == 0) continue;
            // One more where the time step at hand is changed: the run makes another of it, and the two are joined.
            const int more = nest_.arrays[a].joined && history[a] > 0;
            buffers[a] = std::max({buffers[a], least, history[a] + 1 + more});
        }
        const bool uneven = std::ranges::any_of(nest_.bounds, [](const Bound& b) { return b.coefficients[0] != 0; });
        for (std::size_t q = 0; q < p.accesses.size(); ++q) {
            // Where no point is, for one of several time steps or in all of them, what was there stays.
            const int count = buffers[p.accesses[q].array];
            const bool stays = count > 0 && !nest_.bounds.empty() && (uneven || count > 2);
            p.accesses[q].keeps = p.accesses[q].writes && (nest_.places[q].read || stays);
        }
        return buffers;
    }

    // Whether arrays that are spread over the ranks have different extents along a loop, as on staggered grids, or are
    // parts of fields: ranks own points then, not the elements of an array.
    bool of_points() const {
        if (scaled_) return true;
        if (nest_.sequential || cut_ || !nest_.pivots.empty() ||
            std::ranges::any_of(nest_.arrays, [](const LoopNest::Array& a) { return a.window; }))
            return false;
        Index found = Index::filled(nest_.box.dims(), -1);
        return any_spread([&](const LoopNest::Array& a) {
            for (int m = 0; m < a.axes.n; ++m) {
                std::int64_t& extent = found[static_cast<int>(a.axes[m])];
                if (extent < 0) extent = a.shape[m];
                if (extent != a.shape[m]) return true;
            }
            return false;
        });
    }
    // Ranks own points as they own the owners' elements. Where arrays have several extents, ranks own points of a grid:
    // of the least array without a factor whose blocks have all points, so that only the others move. Nests that write
    // one array or the other share points equally.
    Index owned(const SweepProblem& p) const {
        Index shape = p.space.hi;
        for (int k = 0; k < shape.n; ++k) {
            const int q = p.owner(k);
            if (q < 0) continue;
            const std::int64_t o = p.accesses[q].offset[k];
            shape[k] = extent(nest_.arrays[p.accesses[q].array], k);
            std::int64_t least = std::numeric_limits<std::int64_t>::max();
            for (const LoopNest::Array& a : nest_.arrays)
                if (!a.whole && a.scale.n == 0 && p.space.lo[k] + o >= 0 && p.space.hi[k] + o <= extent(a, k))
                    least = std::min(least, extent(a, k));
            if (of_points_ && least < std::numeric_limits<std::int64_t>::max()) shape[k] = least;
        }
        return shape;
    }
    // Along loop k; -1 where the array has none.
    static std::int64_t extent(const LoopNest::Array& a, int k) {
        for (int m = 0; m < a.axes.n; ++m)
            if (a.axes[m] == k) return a.shape[m];
        return -1;
    }
    // Cuts the loops as the finest of the fields with given blocks is cut: what is computed of it lies with those who
    // own it, and a coarser grid is less to move. Of equals the first one that is accessed, writes first.
    void follow_finest(SweepProblem& p) const {
        const auto first_access = [&](std::size_t a) {
            return std::ranges::find_if(p.accesses, [&](const Access& q) { return q.array == static_cast<int>(a); });
        };
        std::size_t finest = p.arrays.size();
        std::int64_t most = 0;
        for (std::size_t a = 0; a < p.arrays.size(); ++a) {
            if (p.arrays[a].cuts.empty()) continue;
            std::int64_t scale = 1;
            for (const std::int64_t s : nest_.arrays[a].scale) scale *= s;
            if (scale < most || (scale == most && first_access(a) >= first_access(finest))) continue;
            most = scale, finest = a;
        }
        if (finest < p.arrays.size()) p.follow(static_cast<int>(finest), element_at_point(p, static_cast<int>(finest)));
    }
    // The element of an array that belongs to a point: what is written, or else what is read nearest to it.
    static Index element_at_point(const SweepProblem& p, int a) {
        Index nearest;
        for (const Access& q : p.accesses) {
            if (q.array != a || q.writes != p.written(a)) continue;
            if (nearest.n == 0) nearest = q.offset;
            for (int k = 0; k < nearest.n; ++k)
                if (std::abs(q.offset[k]) < std::abs(nearest[k])) nearest[k] = q.offset[k];
        }
        return nearest;
    }

    const LoopNest& nest_;
    std::vector<bool> written_;
    bool cut_ = false, scaled_ = false, of_points_ = false;
};

}  // namespace

SweepProblem make_problem(const LoopNest& nest) {
    return Making(nest).made();
}

}  // namespace tilewave
