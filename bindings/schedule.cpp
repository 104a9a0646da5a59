// Schedules as plain data, the checker, timelines.
#include <cstring>
#include <iterator>
#include <utility>

#include "casters.hpp"
#include "schedule/whole.hpp"
#include "tilewave/engine/check.hpp"
#include "tilewave/engine/timeline.hpp"

namespace {

constexpr const char* op_names[] = {"compute", "post_recv", "post_send", "wait",   "pack",
                                    "unpack",  "signal",    "await",     "combine"};

// Rows of a matrix; none of an empty one.
std::vector<Index> rows_of(const IndexMatrix& m) {
    return {m.row.begin(), m.row.begin() + m.n};
}
IndexMatrix matrix_of(const std::vector<Index>& rows) {
    return rows.empty() ? IndexMatrix() : IndexMatrix(rows);
}

Op op_of(const std::string& name) {
    std::string allowed;
    for (std::size_t i = 0; i < std::size(op_names); ++i) {
        if (name == op_names[i]) return static_cast<Op>(i);
        allowed += (i ? ", " : "") + std::string(op_names[i]);
    }
    throw ConfigError("op '" + name + "' was given; allowed: " + allowed);
}

void bind_works(nb::module_& m) {
    nb::class_<Access>(m, "Access", "One place of a kernel: an array, an offset from the point, whether it writes.")
        .def(Made<int, Index, bool, bool>(), "array"_a, "offset"_a, "writes"_a = false, "keeps"_a = false)
        .def(READ_WRITE(array, offset, writes, keeps));
    nb::class_<NestWork>(m, "NestWork", "A kernel at every point of a space.")
        .def(
            "__init__",
            [](NestWork* n, const Box& space, std::vector<Access> places, int kernel) {
                new (n) NestWork{space, {}, std::move(places), kernel};
            },
            "space"_a, "places"_a, "kernel"_a = 0)
        .def(READ_WRITE(space, places, kernel, bounds, layers_together, window, rows_depend, period, own, step, last))
        .def_prop_rw(
            "order", [](const NestWork& n) { return rows_of(n.order); },
            [](NestWork& n, const std::vector<Index>& rows) { n.order = matrix_of(rows); })
        .def_prop_rw(
            "loops", [](const NestWork& n) { return rows_of(n.loops); },
            [](NestWork& n, const std::vector<Index>& rows) { n.loops = matrix_of(rows); });
    nb::class_<Region>(m, "Region", "A box of an array.")
        .def(Made<int, Box>(), "array"_a, "box"_a)
        .def(READ_WRITE(array, box));
    nb::class_<TaskWork>(m, "TaskWork", "One call of a numbered operation on regions of arrays.")
        .def(Made<int, std::vector<Region>, std::vector<Region>, double>(), "operation"_a = 0,
             "reads"_a = std::vector<Region>(), "writes"_a = std::vector<Region>(), "amount"_a = 0.0)
        .def(READ_WRITE(operation, reads, writes, amount));
    nb::class_<Work>(m, "Work", "One entry of the sequential program that schedules stand for.")
        .def(Made<std::int64_t, NestWork>(), "number"_a, "nest"_a)
        .def(Made<std::int64_t, TaskWork>(), "number"_a, "task"_a)
        .def_rw("number", &Work::number)
        .def_prop_ro(
            "nest", [](Work& w) { return w.nest(); }, nb::rv_policy::reference_internal)
        .def_prop_ro("task", [](Work& w) { return w.task(); }, nb::rv_policy::reference_internal);
}

void bind_data(nb::module_& m) {
    nb::class_<Step>(m, "Step", "One step of a lane: an op, the item it acts on, a count.")
        .def(
            "__init__",
            [](Step* s, const std::string& op, int item, int count) { new (s) Step{op_of(op), item, count}; }, "op"_a,
            "item"_a = 0, "count"_a = 0)
        .def_prop_rw(
            "op", [](const Step& s) { return to_string(s.op); }, [](Step& s, const std::string& n) { s.op = op_of(n); })
        .def(READ_WRITE(item, count))
        .def("__eq__", [](const Step& a, const Step& b) { return a == b; })
        .def("__repr__", [](const Step& s) {
            return std::string("Step('") + to_string(s.op) + "', " + std::to_string(s.item) + ", " +
                   std::to_string(s.count) + ")";
        });
    m.attr("combine_array_right") = combine_array_right;
    m.attr("combine_array_left") = combine_array_left;
    nb::class_<Tile>(m, "Tile", "One box of points that a compute step computes.")
        .def(nb::init<>())
        .def(READ_WRITE(coord, wave, slice, work, box));
    nb::class_<Message>(m, "Message", "One message as one rank sees it.")
        .def(nb::init<>())
        .def(READ_WRITE(peer, tag, send, synchronous, array, buffer, region, bytes, tile, pieces, aggregate, at));
    nb::class_<View>(m, "View", "How an array lies in memory that several arrays of a schedule share.")
        .def(Made<int, std::vector<Index>, Index, std::int64_t>(), "memory"_a = -1, "rows"_a = std::vector<Index>(),
             "shift"_a = Index(), "buffers"_a = 0)
        .def(READ_WRITE(memory, rows, shift, buffers));
    nb::class_<Array>(m, "Array", "One array as one rank holds it.")
        .def(nb::init<>())
        .def(READ_WRITE(item_bytes, storage, owned, stride, separate, time_buffers, whole, planes, reach, lacks, period,
                        view));
    nb::class_<Result>(m, "Result", "What must be in a part of an array at the end.")
        .def(Made<int, Box, int, std::vector<std::int32_t>, std::int64_t>(), "array"_a, "region"_a, "source"_a,
             "ranks"_a, "number"_a = Result::at_the_end)
        .def(READ_WRITE(number, array, region, source, ranks));
    bind_works(m);
    nb::class_<Schedule>(m, "Schedule", "One rank's part of a distributed computation, as plain data.")
        .def(nb::init<>())
        .def(nb::init<const Schedule&>(), "other"_a)
        .def(READ_WRITE(rank, ranks, works, arrays, tiles, messages, buffers, lanes, results, repeated, advance))
        .def(PROPERTIES(steps, buffer_bytes));
    nb::class_<Violation>(m, "Violation", "The first thing wrong with a set of schedules.")
        .def(READ_ONLY(rank, lane, step, why))
        .def("__str__", [](const Violation& v) { return to_string(v); });
}

nb::bytes raw(const void* data, std::size_t size) {
    return nb::bytes(static_cast<const char*>(data), size);
}

template <class T>
std::vector<T> records(const nb::bytes& data) {
    if (data.size() % sizeof(T))
        throw ConfigError("a timeline of " + std::to_string(data.size()) +
                          " bytes was given; allowed: whole records of " + std::to_string(sizeof(T)));
    std::vector<T> all(data.size() / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), data.data(), data.size());
    return all;
}

// To pickle a timeline.
using TimelineState = std::tuple<int, int, nb::bytes, nb::bytes, std::vector<std::int32_t>>;

void bind_timeline(nb::module_& m) {
    nb::class_<LaneSplit>(m, "LaneSplit", "Seconds one lane spent on each kind of step.")
        .def(READ_ONLY(rank, lane, compute_s, pack_s, wait_s, post_s, total_s));
    nb::class_<Timeline>(m, "Timeline", "What every lane did when.")
        .def(nb::init<>())
        .def(READ_ONLY(ranks, dims))
        .def_prop_ro("event_bytes",
                     [](const Timeline& t) { return raw(t.events.data(), t.events.size() * sizeof(Event)); })
        .def_prop_ro("request_bytes",
                     [](const Timeline& t) { return raw(t.requests.data(), t.requests.size() * sizeof(Request)); })
        .def("__getstate__",
             [](const Timeline& t) {
                 return TimelineState(t.ranks, t.dims, raw(t.events.data(), t.events.size() * sizeof(Event)),
                                      raw(t.requests.data(), t.requests.size() * sizeof(Request)), t.threads);
             })
        .def("__setstate__",
             [](Timeline& t, const TimelineState& state) {
                 const auto& [ranks, dims, events, requests, threads] = state;
                 new (&t) Timeline{ranks, dims, records<Event>(events), records<Request>(requests), threads};
             })
        .def("split", &Timeline::split)
        // int64 pairs, as bytes: numbers of requests.
        .def("message_bytes",
             [](const Timeline& t) {
                 std::vector<std::int64_t> numbers;
                 for (const auto& [send, receive] : t.messages())
                     numbers.insert(numbers.end(),
                                    {static_cast<std::int64_t>(send), static_cast<std::int64_t>(receive)});
                 return raw(numbers.data(), numbers.size() * sizeof(std::int64_t));
             })
        .def("overlap_ratio", &Timeline::overlap_ratio, "latency_s"_a, "byte_s"_a)
        .def("chrome_json", &Timeline::chrome_json);
}

}  // namespace

void bind_schedule(nb::module_& m) {
    bind_data(m);
    bind_timeline(m);
    m.def(
        "damage",
        [](const Schedule& schedule) {
            const auto found = damage(schedule);
            return found ? std::optional(std::pair(found->entry, found->why)) : std::nullopt;
        },
        "schedule"_a, "The first entry that is not whole and why, or None: see whole.hpp.");
    m.def(
        "check", [](const std::vector<Schedule>& schedules) { return check(schedules); }, "schedules"_a, Release(),
        "The first violation in the schedules of all ranks, or None: see check.hpp.");
}
