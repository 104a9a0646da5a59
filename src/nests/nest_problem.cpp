// The problem of a nest as C++ programs state it.
#include <algorithm>

#include "problem/make_problem.hpp"
#include "problem/stencil.hpp"
#include "tilewave/engine/limits.hpp"
#include "tilewave/nest.hpp"

namespace tilewave {

namespace {

// The largest box of points for which every read stays inside the arrays; of the loops without time.
Box largest_space(std::span<const ArrayReads> arrays, int first, int dims) {
    Box space{Index::filled(dims, 0), Index::filled(dims, 0)};
    for (int k = first; k < dims; ++k) space.hi[k] = arrays[0].shape[k - first];
    for (const ArrayReads& a : arrays)
        for (int k = first; k < dims; ++k) {
            if (a.written) space.hi[k] = std::min(space.hi[k], a.shape[k - first]);
            for (const Index& o : a.offsets) {
                space.lo[k] = std::max(space.lo[k], -o[k]);
                space.hi[k] = std::min(space.hi[k], a.shape[k - first] - o[k]);
            }
        }
    for (int k = first; k < dims; ++k)
        space.hi[k] = std::max(space.hi[k], space.lo[k] = std::min(space.lo[k], arrays[0].shape[k - first]));
    return space;
}

bool of_one_field(const ArrayReads& a, const ArrayReads& b) {
    return &a == &b || (a.field && a.field == b.field);
}

// The arrays with the shapes of parts in place of their fields'.
std::vector<ArrayReads> checked_parts(std::span<const ArrayReads> given) {
    std::vector<ArrayReads> arrays(given.begin(), given.end());
    const int dims = given[0].shape.n;
    for (ArrayReads& a : arrays) {
        if (a.shape.n != dims)
            throw ConfigError("the arrays of a nest have different shapes: " + to_string(given[0].shape) + " and " +
                              to_string(a.shape) + "; allowed: as many dimensions");
        bool wrong = a.scale.n != 0 && (a.scale.n != dims || a.residue.n != dims);
        for (int k = 0; k < a.scale.n && !wrong; ++k) {
            wrong = a.scale[k] < 1 || a.residue[k] < 0 || a.residue[k] >= a.scale[k];
            if (!wrong) a.shape[k] = std::max<std::int64_t>(0, a.shape[k] - a.residue[k] + a.scale[k] - 1) / a.scale[k];
        }
        if (wrong)
            throw ConfigError("every: scale " + to_string(a.scale) + " and residue " + to_string(a.residue) +
                              " were given; allowed: for each of " + std::to_string(dims) +
                              " dimensions a scale >= 1, and a residue from 0 to scale - 1");
    }
    for (std::size_t i = 0; i < given.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (of_one_field(given[i], given[j]) &&
                (given[i].scale.n == 0 || given[i].scale != given[j].scale || given[i].residue == given[j].residue))
                throw ConfigError(
                    "a field is given for two arrays of a nest; list all its reads at one of them, or give parts of "
                    "it with one scale and residues that differ");
    return arrays;
}

// `loops` names loop indices from `first` on.
void check_named(const char* what, const std::vector<int>& loops, int first, int dims, const char* of_time) {
    for (const int k : loops)
        if (k < first || k >= dims)
            throw ConfigError(std::string(what) + ": loop index " + std::to_string(k) + " was given; allowed: " +
                              std::to_string(first) + " to " + std::to_string(dims - 1) + (first ? of_time : ""));
}

void check_arrays(const NestLoops& loops, std::span<const ArrayReads> arrays, int dims) {
    const bool in_time = loops.steps.has_value();
    const auto refuse = [&](const ArrayReads& a, const char* why) {
        throw ConfigError("the arrays of a nest have different shapes, or are parts of fields: " +
                          to_string(arrays[0].shape) + " and " + to_string(a.shape) + "; " + why);
    };
    for (const ArrayReads& a : arrays) {
        if (!loops.periodic.empty() && (a.shape != arrays[0].shape || a.scale.n))
            refuse(a, "with periodic loops they must be equal, and whole fields");
        if (in_time && a.written && a.scale.n) refuse(a, "with time steps those that are written must be whole fields");
        for (const Index& o : a.offsets) {
            if (o.n != dims)
                throw ConfigError("offset " + to_string(o) + " was given; allowed: " + std::to_string(dims) +
                                  " components, one for each loop" + (in_time ? " with time as the first" : ""));
            if (in_time && (a.written ? o[0] > 0 || o[0] < -1 - max_history : o[0] != 0))
                throw ConfigError(
                    "offset " + to_string(o) + " of an array that is " +
                    (a.written ? "written: time " : "only read: time ") + std::to_string(o[0]) +
                    (a.written ? "; allowed: 0, the step that is computed, to " + std::to_string(-1 - max_history)
                               : "; allowed: 0, as it has no time"));
        }
    }
}

// Loop indices, time among them: `over` narrows the box of all that may be computed.
void narrow(Box& box, const Box& over, int first) {
    if (over.dims() != box.dims() - first)
        throw ConfigError("over: " + std::to_string(over.dims()) + " ranges were given; allowed: " +
                          std::to_string(box.dims() - first) + ", one for each loop" + (first ? " but time" : ""));
    for (int k = first; k < box.dims(); ++k) {
        const std::int64_t lo = over.lo[k - first], hi = over.hi[k - first];
        if (lo < box.lo[k] || hi > box.hi[k] || lo > hi)
            throw ConfigError("over: " + std::to_string(lo) + " to " + std::to_string(hi) + " was given for loop " +
                              std::to_string(k) + "; allowed: within " + std::to_string(box.lo[k]) + " to " +
                              std::to_string(box.hi[k]) + ", where every access stays inside the arrays");
        box.lo[k] = lo;
        box.hi[k] = hi;
    }
}

// The bounds that leave out points of a box, which shrinks to what they leave of each loop from `first` on.
std::vector<Bound> narrow(Box& box, const std::vector<Bound>& bounds, int first) {
    std::vector<Bound> needed;
    for (const Bound& b : bounds) {
        if (b.coefficients.n != box.dims())
            throw ConfigError("bounds: coefficients " + to_string(b.coefficients) +
                              " were given; allowed: " + std::to_string(box.dims()) + ", one for each loop");
        std::int64_t least = b.constant, most = b.constant;
        const auto at = [&](int k, bool high) { return b.coefficients[k] * (high ? box.hi[k] - 1 : box.lo[k]); };
        for (int k = 0; k < box.dims(); ++k) {
            least += at(k, b.coefficients[k] < 0);
            most += at(k, b.coefficients[k] > 0);
        }
        if (least >= 0 || box.empty()) continue;
        needed.push_back(b);
        for (int k = first; k < box.dims(); ++k) {
            const std::int64_t c = b.coefficients[k], others = most - at(k, c > 0);
            if (c > 0) box.lo[k] = std::min(std::max(box.lo[k], ceil_div(-others, c)), box.hi[k]);
            if (c < 0) box.hi[k] = std::max(std::min(box.hi[k], floor_div(others, -c) + 1), box.lo[k]);
        }
    }
    return needed;
}

}  // namespace

SweepProblem nest_problem(const NestLoops& loops, std::span<const ArrayReads> given) {
    const std::vector<ArrayReads> arrays = checked_parts(given);
    const bool in_time = loops.steps.has_value();
    const int first = in_time, dims = arrays[0].shape.n + first;
    check_named("reverse", loops.reverse, first, dims, ", as time, index 0, runs forwards");
    check_named("periodic", loops.periodic, first, dims, ", as time, index 0, is not");
    if (in_time && *loops.steps < 0)
        throw ConfigError("steps: " + std::to_string(*loops.steps) + " was given; allowed: 0 and more");
    check_arrays(loops, arrays, dims);
    if (in_time && !arrays[0].written)
        throw ConfigError("steps: a nest that writes no array has no time; allowed: without steps, or one that writes");
    LoopNest nest;
    nest.downwards.resize(dims);
    for (const int k : loops.reverse) nest.downwards[k] = true;
    if (!loops.periodic.empty()) nest.periodic = Index::filled(dims, 0);
    for (const int k : loops.periodic) nest.periodic[k] = 1;
    std::vector<LoopNest::Place> reads;
    for (const ArrayReads& a : arrays) {
        LoopNest::Array& array = nest.arrays.emplace_back();
        const int number = static_cast<int>(nest.arrays.size()) - 1;
        array.item_bytes = a.item_bytes;
        array.shape = a.shape;
        for (int k = first; k < dims; ++k) array.axes.v[array.axes.n++] = k;
        array.in_time = in_time && a.written;
        array.history = a.field ? a.field->history() : 0;
        if (a.scale.n) {
            array.scale = a.scale, array.residue = a.residue, array.field_shape = given[number].shape;
            for (array.field = 0; !of_one_field(given[array.field], given[number]);) ++array.field;
        }
        LoopNest::Place write{number, Index::filled(dims, 0), true};
        write.offset[0] = in_time;
        for (Index o : a.offsets) {
            write.read |= array.in_time && o == Index::filled(dims, 0);
            if (array.in_time) o[0] += 1;  // points write time t + 1
            reads.push_back({number, o});
        }
        if (a.written) nest.places.push_back(write);
    }
    nest.places.insert(nest.places.end(), reads.begin(), reads.end());
    nest.box = largest_space(arrays, first, dims);
    for (const int k : loops.periodic) nest.box.lo[k] = 0, nest.box.hi[k] = arrays[0].shape[k - first];
    if (in_time) nest.box.hi[0] = *loops.steps;
    if (loops.over) narrow(nest.box, *loops.over, first);
    nest.bounds = narrow(nest.box, loops.bounds, first);
    SweepProblem p = make_problem(nest);
    if (p.skews_parts_of_fields())
        throw ConfigError(
            "a part of a field was given for a nest whose dependences skew its loops; allowed: dependences with no "
            "component below 0");
    if (p.wraps())
        if (const std::string why = why_no_stencil(p); !why.empty())
            throw ConfigError("periodic was given for a nest of which " + why +
                              "; allowed: nests whose points of one time step are independent of each other");
    return p;
}

}  // namespace tilewave
