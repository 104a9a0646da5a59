#include "nests/gather.hpp"

#include <algorithm>

#include "data/rows.hpp"
#include "tilewave/engine/limits.hpp"

namespace tilewave {

// What the tasks of a run share.
struct GatherRun::Calls {
    // Steps that a lane has begun: a task of a repeated block does not know how often it has run.
    struct alignas(64) Counter {
        std::int64_t calls = 0, of_step = 1;
    };

    GatherLoops loops;
    GatherProblem problem;
    NestBody body;
    std::vector<Counter> lanes;
    std::vector<GatherPlace> places;
    std::vector<GatherMatrix> matrices;
    std::vector<Binding> planes;   // by matrix
    std::vector<std::int64_t> lo;  // and the first element of the cut loop in them
    GatherRange part;              // this rank's

    // Time buffers lie one before the other (Binding).
    std::byte* plane(int matrix, std::int64_t step) const {
        const Binding& b = planes[matrix];
        return b.data + floor_mod(-step, problem.planes()) * b.stride_bytes[0] - lo[matrix] * b.stride_bytes[1];
    }
    static GatherRange range(const TaskCall& call) { return {call.reads[0].box.lo[0], call.reads[0].box.hi[0]}; }

    // Elements of a range between a plane and the matrix's own memory, or another plane.
    void copy(const GatherMatrix& m, const GatherRange& range, std::byte* to, const Index& to_stride,
              const std::byte* from, const Index& from_stride) const {
        Index extents = m.extents;
        extents[0] = range.size();
        copy_box(to + range.lo * to_stride[0], to_stride, from + range.lo * from_stride[0], from_stride, extents,
                 m.item_bytes);
    }
    // A matrix outside of the planes, as step k makes it; steps below 0 are those before.
    std::byte* outside(const GatherMatrix& m, std::int64_t k) const {
        return m.data + (loops.at(k) + m.written) * m.time_bytes;
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
        const std::int64_t k = lane.calls++ / lane.of_step;
        const GatherRange part = range(call);
        each_made(k, [&](const GatherMatrix& m, auto plane) {
            if (m.time_bytes == 0 && !m.complete) copy(m, part, plane(k), m.plane_bytes, plane(k - 1), m.plane_bytes);
        });
        points(k, part);
        each_made(k, [&](const GatherMatrix& m, auto plane) {
            if (m.time_bytes != 0)
                copy(m, part, plane(k), m.plane_bytes, outside(m, k), m.stride_bytes);
            else if (k + 1 == problem.steps)
                copy(m, part, outside(m, k), m.stride_bytes, plane(k), m.plane_bytes);
        });
    }

    void points(std::int64_t k, const GatherRange& part) {
        Box box = loops.space;
        const int last = box.dims() - 1;
        box.lo[loops.time] = loops.at(k), box.hi[loops.time] = box.lo[loops.time] + 1;
        box.lo[loops.cut] = std::max(box.lo[loops.cut], part.lo);
        box.hi[loops.cut] = std::min(box.hi[loops.cut], part.hi);
        if (loops.none_in(box)) return;
        std::vector<std::byte*> origins(places.size());
        std::vector<char*> pointers(places.size() + body.kernel.tables.size());
        std::ranges::copy(body.kernel.tables, pointers.begin() + static_cast<std::ptrdiff_t>(places.size()));
        std::vector<std::int64_t> along(places.size());
        for (std::size_t q = 0; q < places.size(); ++q) {
            const GatherPlace& p = places[q];
            origins[q] = (p.matrix < 0 ? p.data : plane(p.matrix, k - p.back)) + p.offset;
            along[q] = p.stride_bytes[last];
        }
        Index at = box.lo;
        do {
            const auto [lo, hi] = loops.clipped(at, box.lo[last], box.hi[last]);
            if (lo >= hi) continue;
            Index first = at;
            first[last] = lo;
            for (std::size_t q = 0; q < places.size(); ++q) {
                std::int64_t distance = 0;
                for (int d = 0; d <= last; ++d) distance += places[q].stride_bytes[d] * first[d];
                pointers[q] = reinterpret_cast<char*>(origins[q] + distance);
            }
            body.row(pointers.data(), along.data(), hi - lo, first);
        } while (next_point(at, box, 1u << last));
    }
};

GatherRun::GatherRun(Context& context, const GatherLoops& loops, const GatherProblem& problem, const GatherPlan& plan,
                     NestBody body)
    : calls_(std::make_shared<Calls>(Calls{loops, problem, std::move(body), {}, {}, {}, {}, {}, {}})),
      run_(context, gather_schedule(problem, plan, context.rank(), context.size()),
           {[calls = calls_](const TaskCall& call) { calls->load(call); },
            [calls = calls_](const TaskCall& call) { calls->step(call); }},
           std::vector<Binding>(problem.matrices.size(), Binding{nullptr, {0}}), gather_repetitions(problem)) {
    calls_->part = gather_part(problem, context.rank(), context.size());
    for (int lane = 0; lane < plan.lanes; ++lane) {
        const auto ranges = gather_ranges(problem, plan, context.rank(), context.size(), lane);
        calls_->lanes.push_back({0, std::max<std::int64_t>(1, std::ssize(ranges))});
    }
    const std::vector<Binding> all = run_.with(std::vector<Binding>(problem.matrices.size(), Binding{nullptr, {0}}));
    std::size_t next = problem.matrices.size();
    for (const auto& m : problem.matrices) {
        calls_->planes.push_back(m.depth > 0 ? all[next++] : Binding{nullptr, {0, 0}});
        calls_->lo.push_back(m.travels ? 0 : calls_->part.lo);
    }
}

ScheduleReport GatherRun::run(std::vector<GatherPlace> places, std::vector<GatherMatrix> matrices) {
    calls_->places = std::move(places);
    calls_->matrices = std::move(matrices);
    for (auto& lane : calls_->lanes) lane.calls = 0;
    std::vector<Binding> own;
    for (const GatherMatrix& m : calls_->matrices)
        own.push_back({m.data + calls_->part.lo * m.stride_bytes[0], {m.stride_bytes[0]}});
    return run_.run(own);
}

}  // namespace tilewave
