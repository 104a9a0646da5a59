#include "nests/gather.hpp"

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "data/memory.hpp"
#include "data/rows.hpp"
#include "execute/computers/reduced_rows.hpp"
#include "execute/lanes/lanes.hpp"
#include "problem/bounded_loops.hpp"
#include "tilewave/engine/limits.hpp"

namespace tilewave {

namespace {

// Where a place of the kernel is.
struct GatherPlace {
    int matrix = -1;            // whose planes it is in; -1: in memory that does not turn
    std::int64_t back = 0;      // so many steps before the one that is made
    std::byte* data = nullptr;  // where loop indices 0 would be
    std::int64_t offset = 0;    // in planes: bytes from loop indices 0
    Index stride_bytes = {};    // by loop
};

// A matrix as it is outside of the planes, and what joins the two.
struct GatherMatrix {
    std::size_t writer = 0;                     // the place that is written
    bool complete = false;                      // each element is written in each step
    std::byte* data = nullptr;                  // what the write at time index 0 would write of element 0
    std::int64_t time_bytes = 0;                // from one time step to the next; 0: it has the last ones only
    int buffers = 1;                            // so many of these
    std::int64_t buffer_bytes = 0;              // from one to the one before
    Index axes = {};                            // the loops of the dimensions besides time, the cut one first
    Index extents = {};                         // along these
    Index stride_bytes = {}, plane_bytes = {};  // there, and in a plane
    std::int64_t item_bytes = 0;
};

}  // namespace

// What the tasks of a run share.
struct GatherTasks::Calls {
    // Steps that a lane has begun: a task of a repeated block does not know how often it has run.
    struct alignas(64) Counter {
        std::int64_t calls = 0, of_step = 1;
    };

    SweepProblem sweep;
    GatherProblem problem;
    BoundedLoops loops;
    GatherRange part;  // this rank's
    bool down = false;
    Kernel kernel = {};
    ReducedRows rows = {};
    Explain explain = {};
    std::vector<Counter> lanes = {};
    std::vector<GatherPlace> places = {};
    std::vector<GatherMatrix> matrices = {};
    std::vector<Binding> planes = {};   // by matrix
    std::vector<std::int64_t> lo = {};  // and the first element of the cut loop in them
    // What is added to the loop index of time for kernel and memory; steps of the run from the schedule's first one on.
    std::int64_t first = 0, left = 1;

    // The loop index of time in a step, for the bounds.
    std::int64_t at(std::int64_t step) const {
        return down ? loops.space.hi[problem.time] - 1 - step : loops.space.lo[problem.time] + step;
    }
    // Time buffers lie one before the other (Binding).
    std::byte* plane(int matrix, std::int64_t step) const {
        const Binding& b = planes[matrix];
        return b.data + floor_mod(-step, problem.planes()) * b.stride_bytes[0] - lo[matrix] * b.stride_bytes[1];
    }
    static GatherRange range(const TaskCall& call) { return {call.reads[0].box.lo[0], call.reads[0].box.hi[0]}; }

    // Elements of a range between a plane and the matrix's own memory, or another plane.
    static void copy(const GatherMatrix& m, const GatherRange& range, std::byte* to, const Index& to_stride,
                     const std::byte* from, const Index& from_stride) {
        Index extents = m.extents;
        extents[0] = range.size();
        copy_box(to + range.lo * to_stride[0], to_stride, from + range.lo * from_stride[0], from_stride, extents,
                 m.item_bytes);
    }
    // A matrix outside of the planes, as step k makes it; steps below 0 are those before.
    std::byte* outside(const GatherMatrix& m, std::int64_t k) const {
        return m.data + (first + at(k)) * m.time_bytes + floor_mod(left - 1 - k, m.buffers) * m.buffer_bytes;
    }
    // f(the matrix, its plane of step k) for those that have one.
    template <class F>
    void each_made(std::int64_t k, F f) const {
        for (std::size_t n = 0; n < matrices.size(); ++n)
            if (problem.matrices[n].depth >= std::max<std::int64_t>(1, -k))
                f(matrices[n], [&, n](std::int64_t of) { return plane(static_cast<int>(n), of); });
    }

    void load(const TaskCall& call) {
        const std::int64_t k = call.number / (problem.extent + 1) - problem.planes();  // as it was numbered
        each_made(k, [&](const GatherMatrix& m, auto plane) {
            copy(m, range(call), plane(k), m.plane_bytes, outside(m, k), m.stride_bytes);
        });
    }

    void step(const TaskCall& call) {
        Counter& lane = lanes[call.lane];
        make(lane.calls++ / lane.of_step, range(call), call.lane);
    }
    void make(std::int64_t k, const GatherRange& part, int lane) {
        each_made(k, [&](const GatherMatrix& m, auto plane) {
            if (m.time_bytes == 0 && !m.complete) copy(m, part, plane(k), m.plane_bytes, plane(k - 1), m.plane_bytes);
        });
        points(k, part, lane);
        each_made(k, [&](const GatherMatrix& m, auto plane) {
            if (m.time_bytes != 0)
                copy(m, part, plane(k), m.plane_bytes, outside(m, k), m.stride_bytes);
            else if (k + 1 == problem.steps || left - 1 - k < m.buffers)
                copy(m, part, outside(m, k), m.stride_bytes, plane(k), m.plane_bytes);
        });
    }

    Box box_of(std::int64_t k, const GatherRange& part) const {
        const Box box = loops.space.with(problem.time, at(k), at(k) + 1);
        const int cut = problem.cut;
        return box.with(cut, std::max(box.lo[cut], part.lo), std::min(box.hi[cut], part.hi));
    }

    void points(std::int64_t k, const GatherRange& part, int lane) {
        const Box box = box_of(k, part);
        const int last = box.dims() - 1;
        if (loops.none_in(box)) return;
        std::vector<std::byte*> origins(places.size());
        std::vector<char*> pointers(places.size());
        std::vector<std::int64_t> along(places.size());
        for (std::size_t q = 0; q < places.size(); ++q) {
            const GatherPlace& p = places[q];
            origins[q] = (p.matrix < 0 ? p.data : plane(p.matrix, k - p.back)) + p.offset;
            along[q] = p.stride_bytes[last];
        }
        const Index direction = Index::unit(last + 1, last);
        Index at = box.lo;
        do {
            const auto [lo, hi] = loops.clipped(at, box.lo[last], box.hi[last]);
            if (lo >= hi) continue;
            Index x = at;
            x[last] = lo;
            x[problem.time] += first;
            for (std::size_t q = 0; q < places.size(); ++q) {
                std::int64_t distance = 0;
                for (int d = 0; d <= last; ++d) distance += places[q].stride_bytes[d] * x[d];
                pointers[q] = reinterpret_cast<char*>(origins[q] + distance);
            }
            const std::int64_t code = rows.compute(lane, pointers.data(), along.data(), hi - lo, x, direction);
            if (code == 0) continue;
            x[last] += code / error_sites;
            throw KernelError(explain({code % error_sites, x}));
        } while (next_point(at, box, 1u << last));
    }
};

GatherTasks::GatherTasks(const SweepProblem& problem, const Plan& plan, int rank)
    : calls_(new Calls{problem, GatherProblem(problem, plan), {problem.space, problem.bounds}, {}}) {
    Calls& c = *calls_;
    const GatherProblem& gather = c.problem;
    c.part = gather_part(gather, rank, plan.ranks());
    c.down = problem.loops.row[gather.time][gather.time] < 0;
    for (int lane = 0; lane < plan.lanes(); ++lane) {
        const auto ranges = gather_ranges(gather, plan, rank, lane);
        c.lanes.push_back({0, std::max<std::int64_t>(1, std::ssize(ranges))});
    }
    for (const GatherProblem::Matrix& m : gather.matrices) {
        const NestArray& a = problem.arrays[m.array];
        const auto writes = [&](const Access& p) { return p.writes && p.array == m.array; };
        const auto w = std::ranges::find_if(problem.accesses, writes);
        GatherMatrix found;
        found.writer = static_cast<std::size_t>(w - problem.accesses.begin());
        found.item_bytes = a.item_bytes;
        found.complete = !w->keeps && problem.bounds.empty();
        for (const int of : {0, 1})  // the cut loop, the others
            for (int d = 0; d < a.axes.n; ++d) {
                const int k = static_cast<int>(a.axes[d]);
                if (k == gather.time || (k == gather.cut) == (of == 1)) continue;
                found.axes.v[found.axes.n++] = k;
                found.extents.v[found.extents.n++] = a.shape[d];
                found.complete = found.complete && w->offset[k] == 0 && problem.space.lo[k] == 0 &&
                                 problem.space.hi[k] == a.shape[d];
            }
        found.plane_bytes = row_major_strides({Index::filled(found.extents.n, 0), found.extents}, a.item_bytes);
        c.matrices.push_back(found);
        c.lo.push_back(m.travels ? 0 : c.part.lo);
    }
    for (const Access& p : problem.accesses) {
        GatherPlace place;
        const auto m = std::ranges::find(gather.matrices, p.array, &GatherProblem::Matrix::array);
        place.stride_bytes = Index::filled(problem.dims(), 0);
        if (m != gather.matrices.end() && m->depth > 0) {
            const auto n = static_cast<std::size_t>(m - gather.matrices.begin());
            const GatherMatrix& matrix = c.matrices[n];
            place.back = std::abs(problem.accesses[matrix.writer].offset[gather.time] - p.offset[gather.time]);
            if (place.back > 0 || problem.lacks(p.array, gather.time)) {
                place.matrix = static_cast<int>(n);
                for (int d = 0; d < matrix.axes.n; ++d) {
                    const int k = static_cast<int>(matrix.axes[d]);
                    place.stride_bytes[k] = matrix.plane_bytes[d];
                    place.offset += matrix.plane_bytes[d] * p.offset[k];
                }
            }
        }
        c.places.push_back(place);
    }
}

void GatherTasks::set(const Kernel& kernel, std::vector<LoopMemory> places, std::span<const Binding> moving,
                      Explain explain) {
    Calls& c = *calls_;
    c.kernel = kernel;
    c.rows.begin(c.kernel, c.places.size(), c.lanes.size());
    c.explain = std::move(explain);
    for (std::size_t q = 0; q < places.size(); ++q)
        if (c.places[q].matrix < 0)
            c.places[q].data = places[q].data, c.places[q].stride_bytes = places[q].stride_bytes;
    c.planes.clear();
    std::size_t next = 0;
    for (std::size_t n = 0; n < c.matrices.size(); ++n) {
        GatherMatrix& m = c.matrices[n];
        const LoopMemory& written = places[m.writer];
        const Index& offset = c.sweep.accesses[m.writer].offset;
        m.data = written.data;
        m.time_bytes = written.stride_bytes[c.problem.time];
        m.buffers = written.buffers, m.buffer_bytes = written.buffer_bytes;
        m.stride_bytes = m.axes;
        for (int d = 0; d < m.axes.n; ++d) {
            const int k = static_cast<int>(m.axes[d]);
            m.stride_bytes[d] = written.stride_bytes[k];
            m.data -= written.stride_bytes[k] * offset[k];
        }
        c.planes.push_back(c.problem.matrices[n].depth > 0 ? moving[next++] : Binding{nullptr, {0, 0}});
    }
    begin_steps(0, 0, c.problem.steps);
}

void GatherTasks::begin_steps(std::int64_t first, std::int64_t done, std::int64_t steps) {
    calls_->first = first, calls_->left = steps - done;
    for (auto& lane : calls_->lanes) lane.calls = 0;
}

std::vector<Reduced> GatherTasks::reduced() const {
    return calls_->rows.all();
}

std::vector<TaskFunction> GatherTasks::functions() {
    return {[calls = calls_](const TaskCall& call) { calls->load(call); },
            [calls = calls_](const TaskCall& call) { calls->step(call); }};
}

std::vector<std::int64_t> GatherTasks::row_steps(std::vector<std::int64_t> plain) const {
    for (std::size_t q = 0; q < plain.size(); ++q)
        if (calls_->places[q].matrix >= 0) plain[q] = calls_->places[q].stride_bytes[calls_->sweep.dims() - 1];
    return plain;
}

// The points of a step in the middle of the time, on fake memory: terms are all that counts.
std::vector<RateSample> GatherTasks::sample(const Schedule& schedule, const std::vector<std::vector<std::byte>>& values,
                                            Context& context, double budget_s) {
    std::vector<RateSample> samples(3);
    Calls& c = *calls_;
    if (c.part.size() == 0) return samples;
    std::vector<std::shared_ptr<std::byte[]>> memory;
    const auto filled = [&](std::int64_t items, const std::vector<std::byte>& value) {
        memory.push_back(aligned_memory(items * std::ssize(value)));
        for (std::int64_t n = 0; n < items; ++n)
            std::memcpy(memory.back().get() + n * std::ssize(value), value.data(), value.size());
        return memory.back().get();
    };
    for (std::size_t n = 0, moving = c.sweep.arrays.size(); n < c.matrices.size(); ++n) {
        const GatherProblem::Matrix& m = c.problem.matrices[n];
        if (m.depth == 0) continue;
        const Array& a = schedule.arrays[moving++];
        const std::int64_t bytes = a.storage.points() * a.item_bytes;
        c.planes[n] = {filled(bytes / std::ssize(values[m.array]), values[m.array]),
                       row_major_strides(a.storage, a.item_bytes)};
    }
    for (std::size_t q = 0; q < c.places.size(); ++q) {
        const std::int32_t array = c.sweep.accesses[q].array;
        const auto of = std::ranges::find(c.problem.matrices, array, &GatherProblem::Matrix::array);
        if (c.places[q].matrix >= 0 || of == c.problem.matrices.end()) continue;
        const GatherMatrix& m = c.matrices[static_cast<std::size_t>(of - c.problem.matrices.begin())];
        GatherPlace& place = c.places[q];
        std::int64_t items = 1;
        for (const std::int64_t extent : m.extents) items *= extent;
        // A kernel may be compiled for rows that lie backwards: from an element on it goes down by a row.
        place.data = filled(2 * items, values[array]) + items * std::ssize(values[array]);
        place.stride_bytes = Index::filled(c.sweep.dims(), 0);
        for (int d = 0; d < m.axes.n; ++d) {
            const int k = static_cast<int>(m.axes[d]);
            place.stride_bytes[k] = m.plane_bytes[d];
            place.data += m.plane_bytes[d] * c.sweep.accesses[q].offset[k];
        }
    }
    const int lanes = static_cast<int>(c.lanes.size());
    const std::int64_t k = c.problem.steps / 2, share = std::max<std::int64_t>(c.part.size() / lanes, 1);
    // So many elements of each lane; seconds below 0: the kernel has raised.
    const auto time = [&](std::int64_t elements, int all, RateSample& sample) {
        std::vector<double> times(static_cast<std::size_t>(all), -1);
        const auto range = [&](int lane) {
            const std::int64_t lo = std::min(c.part.lo + lane * share, c.part.hi);
            return GatherRange{lo, std::min(lo + elements, c.part.hi)};
        };
        context.lanes().run(
            all, [&](int lane) { times[lane] = median_time(budget_s / 5, [&] { c.points(k, range(lane), lane); }); });
        const Box box = c.box_of(k, range(0));
        const auto points = static_cast<double>(BoundedLoops{box, c.loops.bounds}.points());
        sample = {points / static_cast<double>(std::max<std::int64_t>(box.extent(box.dims() - 1), 1)), points,
                  std::ranges::max(times)};
        return std::ranges::min(times) >= 0;
    };
    if (!time(1, lanes, samples[2])) return {};
    const double longest = budget_s / 10 / std::max(samples[2].tile_s, 1e-9);
    const auto most = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(longest, 1e9)), 1, share);
    if (!time(most, lanes, samples[0]) || !time(std::max<std::int64_t>(most / 4, 1), lanes, samples[1])) return {};
    RateSample alone;
    if (lanes > 1 && time(most, 1, alone) && alone.points > 0) samples.push_back(alone);
    return samples;
}

}  // namespace tilewave
