// The problem of a nest as C++ programs state it.
#include <algorithm>
#include <limits>

#include "problem/bounded_loops.hpp"
#include "problem/make_problem.hpp"
#include "problem/stencil.hpp"
#include "problem/strided_loops.hpp"
#include "tilewave/engine/limits.hpp"
#include "tilewave/nest.hpp"

namespace tilewave {

namespace {

constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();

// A nest while it is checked: loops and arrays as they were given, but for shapes, which are of parts; axes, which all
// have; and time, which runs forwards.
struct CheckedNest {
    NestLoops loops;
    std::vector<ArrayReads> arrays;
    int first = 0, dims = 0;  // loops: that of the first dimension, and of all
    PathsOff off = 0;

    bool in_time() const { return first > 0; }
    bool any(bool ArrayReads::* is) const {
        return std::ranges::any_of(arrays, [&](const ArrayReads& a) { return a.*is; });
    }
    bool lacks(const ArrayReads& a, int k) const { return std::ranges::find(a.axes, k) == a.axes.end(); }
};

bool of_axis(const Index& offset) {
    return offset.n > 0 && offset[offset.n - 1] == All::mark;
}
bool reads_whole(const ArrayReads& a) {
    return std::ranges::any_of(a.offsets, of_axis);
}
bool of_one_field(const ArrayReads& a, const ArrayReads& b) {
    return &a == &b || (a.field && a.field == b.field);
}

// Whether time steps write an array, or another part of its field.
bool has_steps(const CheckedNest& g, const ArrayReads& a) {
    return g.in_time() && std::ranges::any_of(g.arrays, [&](const ArrayReads& b) {
               return b.written && (&a == &b || (!b.row && of_one_field(a, b)));
           });
}

// The largest box of points for which every read stays inside the arrays; time has one step.
Box largest_space(const CheckedNest& g) {
    Box space{Index::filled(g.dims, 0), Index::filled(g.dims, no_end)};
    if (g.in_time()) space.hi[0] = 1;
    for (const ArrayReads& a : g.arrays) {
        for (int d = 0; d < a.axes.n; ++d) {
            const int k = static_cast<int>(a.axes[d]);
            if (a.written || &a == &g.arrays[0]) space.hi[k] = std::min(space.hi[k], a.shape[d]);
            for (const Index& o : a.offsets) {
                const std::int64_t c = o[d + g.first];
                if (c == All::mark) continue;
                space.lo[k] = std::max(space.lo[k], -c);
                space.hi[k] = std::min(space.hi[k], a.shape[d] - c);
            }
        }
        if (a.pivots) space.hi[0] = std::min({space.hi[0], a.shape[0], a.shape[1]});
    }
    for (int k = g.first; k < g.dims; ++k) {
        if (space.hi[k] < no_end) {
            space.hi[k] = std::max<std::int64_t>(space.hi[k], 0);
            space.lo[k] = std::min(space.lo[k], space.hi[k]);
        } else if (!g.loops.over) {
            throw ConfigError("no array has a dimension of loop " + std::to_string(k) +
                              ", and over was not given; allowed: over, which says where the loop begins and ends");
        }
    }
    return space;
}

void check_axes(const ArrayReads& a, int time, int dims) {
    const int first = a.update ? 0 : time;
    bool wrong = a.axes.n != a.shape.n;
    for (int d = 0; d < a.axes.n && !wrong; ++d)
        wrong = a.axes[d] < first || a.axes[d] >= dims || std::ranges::count(a.axes, a.axes[d]) > 1;
    if (wrong)
        throw ConfigError("indexed_by: loops " + to_string(a.axes) + " were given for an array of shape " +
                          to_string(a.shape) + "; allowed: a loop for each dimension, each once, from " +
                          std::to_string(first) + (first ? ", as time is no dimension" : ""));
}

// The shape of a part in place of its field's.
void take_part(ArrayReads& a) {
    const int dims = a.shape.n;
    bool wrong = a.scale.n != dims || a.residue.n != dims;
    for (int k = 0; k < dims && !wrong; ++k) {
        wrong = a.scale[k] < 1 || a.residue[k] < 0 || a.residue[k] >= a.scale[k];
        if (!wrong) a.shape[k] = std::max<std::int64_t>(0, a.shape[k] - a.residue[k] + a.scale[k] - 1) / a.scale[k];
    }
    if (wrong)
        throw ConfigError("every: scale " + to_string(a.scale) + " and residue " + to_string(a.residue) +
                          " were given; allowed: for each of " + std::to_string(dims) +
                          " dimensions a scale >= 1, and a residue from 0 to scale - 1");
}

void check_fields(std::span<const ArrayReads> given) {
    for (std::size_t i = 0; i < given.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (of_one_field(given[i], given[j]) &&
                (given[i].scale.n == 0 || given[i].scale != given[j].scale || given[i].residue == given[j].residue ||
                 given[i].axes != given[j].axes))
                throw ConfigError(
                    "a field is given for two arrays of a nest; list all its reads at one of them, or give parts of "
                    "it with one scale and residues that differ");
}

// `loops` names loop indices from `first` on.
void check_named(const char* what, const std::vector<int>& loops, int first, int dims, const char* of_time) {
    for (const int k : loops)
        if (k < first || k >= dims)
            throw ConfigError(std::string(what) + ": loop index " + std::to_string(k) + " was given; allowed: " +
                              std::to_string(first) + " to " + std::to_string(dims - 1) + (first ? of_time : ""));
}

void check_offsets(const CheckedNest& g, const ArrayReads& a, bool backwards) {
    for (const Index& o : a.offsets) {
        if (o.n != a.shape.n + g.first)
            throw ConfigError("offset " + to_string(o) + " was given; allowed: " + std::to_string(a.shape.n + g.first) +
                              " components, one for each " + (a.axes.n == g.dims - g.first ? "loop" : "dimension") +
                              (g.in_time() ? " with time as the first" : ""));
        if (of_axis(o) && (!a.written || !g.loops.periodic.empty() || a.scale.n))
            throw ConfigError(
                "a whole axis was to be read, by `all`, of an array that is only read or a part of a field, or in "
                "periodic loops; allowed: of fields that the nest writes; the body captures what is only read");
        if (!g.in_time()) continue;
        const std::int64_t back = backwards ? o[0] : -o[0];
        const bool steps = has_steps(g, a);
        if (steps && !a.row ? back < 0 || back > 1 + max_history : back != 0)
            throw ConfigError("offset " + to_string(o) + " of an array that is " +
                              (a.written ? "written: time " : "only read: time ") + std::to_string(o[0]) +
                              (a.row   ? "; allowed: 0, the row as it is"
                               : steps ? "; allowed: 0, the step that is computed, to " +
                                             std::to_string(backwards ? 1 + max_history : -1 - max_history)
                                       : "; allowed: 0, as it has no time"));
    }
}

void check_update(const CheckedNest& g, const ArrayReads& a) {
    const bool last = a.update == Update::last, numbers = a.type && (!is_complex(*a.type) || a.update == Update::sum);
    const auto refuse = [&](const std::string& allowed) {
        throw ConfigError("updates: " + std::string(to_string(*a.update)) + " was given for a field of shape " +
                          to_string(a.shape) + " of " + (a.type ? to_string(*a.type) : "items that are no numbers") +
                          "; allowed: " + allowed);
    };
    if (!last && !numbers) refuse("last, and of real numbers all, of complex ones the sum");
    if (!last && is_float(*a.type) && static_cast<int>(*a.update) >= static_cast<int>(Update::bit_and))
        refuse("of floats sum, min, max and last");
    if (!g.in_time()) return;
    for (int d = 0; d < a.axes.n; ++d)
        if (a.axes[d] == 0 && a.shape[d] < *g.loops.steps)
            refuse("along time at least " + std::to_string(*g.loops.steps) + " elements, one for each step");
}

void check_arrays(const CheckedNest& g) {
    const auto refuse = [&](const ArrayReads& a, const char* why) {
        throw ConfigError("the arrays of a nest have different shapes, or are parts of fields: " +
                          to_string(g.arrays[0].shape) + " and " + to_string(a.shape) + "; " + why);
    };
    for (const ArrayReads& a : g.arrays) {
        if (!g.loops.periodic.empty()) {
            bool equal = true;
            for (const ArrayReads& b : g.arrays)
                for (int d = 0; d < a.axes.n; ++d)
                    for (int e = 0; e < b.axes.n; ++e) equal &= a.axes[d] != b.axes[e] || a.shape[d] == b.shape[e];
            if (!equal) refuse(a, "with periodic loops they must be equal");
        }
        if (a.update) {
            check_update(g, a);
            continue;
        }
        if (g.in_time() && a.written && a.shape.n < g.dims - 1)
            throw ConfigError("an array of shape " + to_string(a.shape) +
                              " is written in time steps, and lacks a loop; allowed: every loop but time");
        if (a.row && !g.in_time()) refuse(a, "rows of a field are written in time steps, and steps were not given");
        if (a.window && (g.in_time() || !g.loops.periodic.empty() || a.shape.n < g.dims))
            throw ConfigError(
                "a Window was given for a nest with time steps or periodic loops, or that lacks a loop; allowed: a "
                "Window with a dimension for each loop, without steps and periodic");
    }
}

void check_pivots(const CheckedNest& g) {
    for (const ArrayReads& a : g.arrays) {
        if (a.written != a.pivots || (a.written && a.shape != g.arrays[0].shape))
            throw ConfigError("arrays of shapes " + to_string(g.arrays[0].shape) + " and " + to_string(a.shape) +
                              " are written by a nest with pivots; allowed: pivots() of matrices of one shape, and " +
                              "only_reads<...> of others");
    }
    if (g.in_time() || !g.loops.periodic.empty() || g.dims != 3 || g.arrays[0].shape.n != 2)
        throw ConfigError("a nest with pivots was given " + std::to_string(g.dims) +
                          " loops, or steps, or periodic loops; allowed: loops k, i, j, and matrices");
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

// Where strides begin, by loop, and what they are; empty: every index is computed.
void take_strides(const CheckedNest& g, Box& box, LoopPoints& points) {
    const Index& given = g.loops.strides;
    if (given.n == 0) return;
    const bool positive = std::ranges::all_of(given, [](auto s) { return s > 0; });
    if (!g.loops.over || given.n != g.loops.over->dims() || !positive)
        throw ConfigError("strides: " + to_string(given) +
                          " was given; allowed: beside over, a number >= 1 for each of its ranges");
    points.first = points.strides = Index::filled(g.dims, 0);
    for (int k = 0; k < g.dims; ++k) {
        const std::int64_t stride = points.strides[k] = k < g.first ? 1 : given[k - g.first];
        points.first[k] = stride > 1 ? box.lo[k] : 0;
        if (box.hi[k] > box.lo[k]) box.hi[k] = box.hi[k] - (box.hi[k] - 1 - box.lo[k]) % stride;
    }
    const bool window = std::ranges::any_of(g.arrays, [](const ArrayReads& a) { return a.window != nullptr; });
    points.left_out = g.in_time() || !g.loops.periodic.empty() || g.any(&ArrayReads::pivots) || window ||
                      std::ranges::any_of(g.arrays, reads_whole);
}

// The bounds that leave out points of a box, which shrinks to what they leave of each loop from `first` on.
std::vector<Bound> narrow(Box& box, const std::vector<Bound>& bounds, int first) {
    std::vector<Bound> needed;
    for (const Bound& b : bounds) {
        if (b.coefficients.n != box.dims())
            throw ConfigError("bounds: coefficients " + to_string(b.coefficients) +
                              " were given; allowed: " + std::to_string(box.dims()) + ", one for each loop");
        if (box.empty()) continue;
        const auto [least, most] = extremes(b, box);
        if (least >= 0) continue;
        needed.push_back(b);
        const Box whole = box;
        for (int k = first; k < box.dims(); ++k) {
            const std::int64_t c = b.coefficients[k], others = most - c * (c > 0 ? whole.hi[k] - 1 : whole.lo[k]);
            if (c > 0) box.lo[k] = std::min(std::max(box.lo[k], ceil_div(-others, c)), box.hi[k]);
            if (c < 0) box.hi[k] = std::max(std::min(box.hi[k], floor_div(others, -c) + 1), box.lo[k]);
        }
    }
    return needed;
}

// Puts time t = last_step - x in place of a time that runs backwards.
void turn_time(CheckedNest& g, std::int64_t last_step) {
    std::erase(g.loops.reverse, 0);
    for (ArrayReads& a : g.arrays)
        for (Index& o : a.offsets) o[0] = -o[0];
    for (Bound& b : g.loops.bounds) {
        if (b.coefficients.n == 0) continue;
        b.constant += b.coefficients[0] * last_step;
        b.coefficients[0] = -b.coefficients[0];
    }
}

// Checks all that needs no box. `time_back`: whether time runs backwards.
CheckedNest checked(const NestLoops& loops, std::span<const ArrayReads> arrays, bool& time_back) {
    CheckedNest g{loops, {arrays.begin(), arrays.end()}, loops.steps.has_value()};
    if (arrays.empty()) throw ConfigError("a nest was given no array; allowed: one or more that it writes or reads");
    for (const ArrayReads& a : g.arrays)
        g.dims = std::max({g.dims, a.shape.n + (a.axes.n ? 0 : g.first),
                           a.axes.n ? static_cast<int>(*std::ranges::max_element(a.axes)) + 1 : 0});
    if (loops.over && std::ranges::all_of(arrays, [](const ArrayReads& a) { return a.axes.n > 0; }))
        g.dims = std::max(g.dims, loops.over->dims() + g.first);
    if (g.dims > max_dims)
        throw ConfigError(std::to_string(g.dims) + " loops were given; allowed: up to " + std::to_string(max_dims));
    for (ArrayReads& a : g.arrays) {
        if (a.axes.n == 0) {
            if (a.shape.n != g.dims - g.first)
                throw ConfigError("the arrays of a nest have different shapes: " + to_string(arrays[0].shape) +
                                  " and " + to_string(a.shape) + "; allowed: as many dimensions, or indexed_by<...>");
            a.axes = Index::filled(a.shape.n, g.first);
            for (int d = 0; d < a.axes.n; ++d) a.axes[d] += d;
        }
        check_axes(a, g.first, g.dims);
        if (a.scale.n) take_part(a);
    }
    check_fields(g.arrays);
    check_named("reverse", loops.reverse, 0, g.dims, "");
    check_named("periodic", loops.periodic, g.first, g.dims, ", as time, index 0, is not");
    if (g.in_time() && *loops.steps < 0)
        throw ConfigError("steps: " + std::to_string(*loops.steps) + " was given; allowed: 0 and more");
    check_arrays(g);
    if (g.in_time() && std::ranges::none_of(g.arrays, [](const auto& a) { return a.written && !a.update; }))
        throw ConfigError("steps: a nest that writes no array has no time; allowed: without steps, or one that writes");
    if (g.any(&ArrayReads::pivots)) check_pivots(g);
    time_back = g.in_time() && std::ranges::find(loops.reverse, 0) != loops.reverse.end();
    for (const ArrayReads& a : g.arrays) check_offsets(g, a, time_back);
    return g;
}

// Whether an array that is written lacks loops, so that its points depend on each other by no constant vectors.
bool in_loop_order(const CheckedNest& g, const ArrayReads& a) {
    const int lacking = g.dims - g.first - a.axes.n;
    const auto moves = [](const Index& o) { return std::ranges::any_of(o, [](auto c) { return c != 0; }); };
    return a.written && !a.pivots && (lacking > 1 || (lacking > 0 && std::ranges::any_of(a.offsets, moves)));
}

// Whether every rank needs an array whole: ranks cut loops that it lacks, or has in another order.
bool is_whole(const CheckedNest& g, const ArrayReads& a) {
    return !a.written && (a.axes.n < g.dims - g.first || !std::ranges::is_sorted(a.axes) ||
                          g.any(&ArrayReads::pivots) || std::ranges::any_of(g.arrays, reads_whole));
}

// Whether points may update an array in any order: with integers, or where one point is the last of each element.
bool in_any_order(const CheckedNest& g, const ArrayReads& a, const std::vector<Bound>& bounds) {
    const bool others = std::ranges::any_of(g.arrays, [](const ArrayReads& b) { return !b.update; });
    if (!g.in_time() && (!others || g.dims - a.axes.n < 2)) return false;
    const bool several =
        a.update == Update::last && std::ranges::any_of(bounds, [&](const Bound& b) {
            return std::ranges::any_of(a.axes, [&](auto k) { return b.coefficients[static_cast<int>(k)] != 0; });
        });
    const bool ordered = a.update != Update::last && (is_float(*a.type) || is_complex(*a.type));
    if (!several && !ordered && !without(g.off, FastPath::order_free)) return true;
    if (g.in_time())
        throw ConfigError(
            "updates: " + std::string(to_string(*a.update)) + " was given for a field of loops " + to_string(a.axes) +
            " in time steps, where its points have to update it in their order; allowed: integers, or last with bounds "
            "of loops that the field lacks, without order_free in TILEWAVE_WITHOUT; of floats writes<...> of a field "
            "with every loop but time");
    return false;
}

// A nest without the arrays that points update in any order, and which of the given arrays it has.
struct StatedNest {
    LoopNest nest = {};
    std::vector<int> arrays = {};
    std::vector<UpdatedArray> updates = {};
    std::vector<int> places = {};  // as NestProblem's
};

LoopNest::Array array_of(const CheckedNest& g, std::span<const ArrayReads> given, const std::vector<int>& numbers) {
    const int number = numbers.back();
    const ArrayReads& a = g.arrays[number];
    LoopNest::Array array{a.item_bytes, a.shape, a.axes};
    array.in_time = has_steps(g, a);
    array.history = a.field && !a.row ? a.field->history() : 0;
    array.window = a.window != nullptr;
    array.whole = is_whole(g, a);
    array.scale = a.scale, array.residue = a.residue;
    if (a.scale.n && !array.whole) {
        array.field_shape = given[number].shape;
        for (array.field = 0; !of_one_field(given[numbers[array.field]], given[number]);) ++array.field;
    }
    return array;
}

// What points access; `some`: of what is written, a point may leave what was there.
void add_arrays(StatedNest& stated, const CheckedNest& g, std::span<const ArrayReads> given,
                const std::vector<Bound>& bounds, const Index& last, bool some) {
    LoopNest& nest = stated.nest;
    std::vector<LoopNest::Place> reads;
    std::vector<PivotRead> of_reads;
    std::vector<int> read_places;
    const bool pivots = g.any(&ArrayReads::pivots);
    for (std::size_t n = 0; n < g.arrays.size(); ++n) {
        const ArrayReads& a = g.arrays[n];
        if (a.update) stated.updates.push_back({static_cast<int>(n), -1, last});
        const bool any_order = a.update && in_any_order(g, a, bounds);
        if (a.written) stated.places.push_back(a.update ? -1 : static_cast<int>(nest.places.size()));
        if (any_order) continue;
        stated.arrays.push_back(static_cast<int>(n));
        nest.arrays.push_back(array_of(g, given, stated.arrays));
        const int number = static_cast<int>(nest.arrays.size()) - 1;
        LoopNest::Place write{number, Index::filled(g.dims, 0), true};
        write.offset[0] = g.in_time();
        write.read = some;
        for (std::size_t r = 0; r < a.offsets.size(); ++r) {
            LoopNest::Place read{number, Index::filled(g.dims, 0)};
            read.along = of_axis(a.offsets[r]);
            if (g.in_time()) read.offset[0] = a.offsets[r][0] + has_steps(g, a);  // points write time t + 1
            for (int d = 0; d < a.axes.n; ++d)
                if (const std::int64_t o = a.offsets[r][d + g.first]; o != All::mark)
                    read.offset[static_cast<int>(a.axes[d])] = o;
            write.read |= g.in_time() && !read.along && read.offset == write.offset;
            read_places.push_back(static_cast<int>(reads.size()));
            reads.push_back(read);
            of_reads.push_back(a.pivots ? static_cast<PivotRead>(r) : PivotRead::operand);
        }
        if (a.update) {  // in the order of the loops
            stated.updates.back().place = static_cast<int>(nest.places.size());
            reads.push_back({number, write.offset});
        }
        if (a.written) nest.places.push_back(write);
        nest.sequential |= in_loop_order(g, a) || reads_whole(a);
    }
    for (const int read : read_places) stated.places.push_back(static_cast<int>(nest.places.size()) + read);
    if (pivots) nest.pivots.assign(nest.places.size(), PivotRead::point);
    if (pivots) nest.pivots.insert(nest.pivots.end(), of_reads.begin(), of_reads.end());
    nest.places.insert(nest.places.end(), reads.begin(), reads.end());
}

NestProblem made(const LoopNest& nest, LoopPoints points, std::span<const int> arrays = {}) {
    NestProblem found{make_problem(nest), {}, std::move(points)};
    for (std::size_t a = 0; a < nest.arrays.size(); ++a) {
        const LoopNest::Array& array = nest.arrays[a];
        found.operands.push_back(
            {arrays.empty() ? static_cast<int>(a) : arrays[a], array.whole, array.scale, array.residue});
    }
    return found;
}

// The problem of a nest, or of its points alone where they have strides. Where dependences skew loops, parts of fields
// are no boxes of memory: all points are there then, and some are left out.
NestProblem made_of_points(LoopNest& nest, LoopPoints points) {
    if (points.strides.n > 0 && !points.left_out) {
        const bool parts = std::ranges::any_of(nest.arrays, [](const auto& a) { return a.scale.n > 0 && !a.whole; });
        const StridedNest strides = strided(nest, points.first, points.strides);
        NestProblem found = made(strides.nest, points, strides.arrays);
        if (parts || !found.problem.skews_parts_of_fields()) return found;
        points.left_out = true;
        for (LoopNest::Place& p : nest.places) p.read |= p.written;
    }
    return made(nest, std::move(points));
}

NestProblem made_of(StatedNest stated, LoopPoints points) {
    NestProblem found = made_of_points(stated.nest, std::move(points));
    for (NestOperandPart& part : found.operands) part.array = stated.arrays[part.array];
    if (stated.updates.empty()) return found;
    found.problem.once = std::ranges::any_of(stated.updates, [](const UpdatedArray& u) { return u.place < 0; });
    found.updates = std::move(stated.updates);
    found.places = std::move(stated.places);
    return found;
}

}  // namespace

Index LoopPoints::given(Index x) const {
    for (int k = 0; k < strides.n && !left_out; ++k) x[k] = first[k] + strides[k] * x[k];
    if (last_step) x[0] = *last_step - x[0];
    return x;
}

NestProblem nest_problem(const NestLoops& loops, std::span<const ArrayReads> arrays, bool single_steps, PathsOff off) {
    bool time_back = false;
    CheckedNest g = checked(loops, arrays, time_back);
    g.off = off;
    LoopPoints points;
    if (time_back) turn_time(g, *(points.last_step = *loops.steps - 1));
    StatedNest stated;
    LoopNest& nest = stated.nest;
    nest.downwards.resize(g.dims);
    for (const int k : g.loops.reverse) nest.downwards[k] = true;
    if (!loops.periodic.empty()) nest.periodic = Index::filled(g.dims, 0);
    for (const int k : loops.periodic) nest.periodic[k] = 1;
    nest.box = largest_space(g);
    for (const int k : loops.periodic)
        for (const ArrayReads& a : g.arrays)
            for (int d = 0; d < a.axes.n; ++d)
                if (a.axes[d] == k) nest.box.lo[k] = 0, nest.box.hi[k] = a.shape[d];
    if (g.in_time()) nest.box.hi[0] = *loops.steps;
    if (loops.over) narrow(nest.box, *loops.over, g.first);
    take_strides(g, nest.box, points);
    const std::vector<Bound> bounds = narrow(nest.box, g.loops.bounds, g.first);
    for (const Bound& b : bounds) {
        const bool of_steps = single_steps && g.in_time() && b.coefficients[0] != 0;
        (of_steps ? points.bounds : nest.bounds).push_back(b);
    }
    Index last;
    if (std::ranges::any_of(g.arrays, [](const ArrayReads& a) { return a.update == Update::last; }))
        last = BoundedLoops{nest.box, bounds}.last(nest.downwards, points.first, points.strides);
    if (last.n && points.last_step) last[0] = *points.last_step - last[0];
    add_arrays(stated, g, arrays, bounds, last, points.left_out || !points.bounds.empty());
    NestProblem found = made_of(std::move(stated), std::move(points));
    if (found.problem.skews_parts_of_fields())
        throw ConfigError(
            "a part of a field was given for a nest whose dependences skew its loops; allowed: dependences with no "
            "component below 0");
    if (found.problem.wraps())
        if (const std::string why = why_no_stencil(found.problem); !why.empty())
            throw ConfigError("periodic was given for a nest of which " + why +
                              "; allowed: nests whose points of one time step are independent of each other");
    return found;
}

}  // namespace tilewave
