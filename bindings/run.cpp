// Contexts, fields, runs.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstring>
#include <map>
#include <thread>
#include <tuple>

#include "casters.hpp"
#include "context/agreement.hpp"
#include "context/progress_engine.hpp"
#include "data/checksum.hpp"
#include "execute/executor.hpp"
#include "mpi_library.hpp"
#include "nests/bound_sweep.hpp"
#include "nests/prepared_sweep.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;

namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

std::shared_ptr<Context> make_context(std::unique_ptr<Transport> t, int threads, const std::string& call = "tw.Context",
                                      const std::string& where = "", const std::optional<std::string>& without = {}) {
    return std::make_shared<Context>(std::move(t), threads, Caller{call, where}, without);
}

Statement::Kind kind_of(const std::string& kind) {
    if (kind == "fine") return Statement::Kind::fine;
    if (kind == "config") return Statement::Kind::config;
    if (kind == "mpi") return Statement::Kind::mpi;
    if (kind == "kernel") return Statement::Kind::kernel;
    if (kind == "resources") return Statement::Kind::resources;
    if (kind == "interrupt") return Statement::Kind::interrupt;
    return Statement::Kind::internal;
}

/// A context's lock of calls, used as Python's RLock is.
struct CallLock {
    std::shared_ptr<ProgressEngine> engine;

    bool acquire(bool blocking) const {
        auto& calls = engine->calls;
        if (calls.try_lock()) return true;
        if (!blocking) return false;
        while (true) {
            {
                const nb::gil_scoped_release release;
                if (calls.try_lock_for(std::chrono::milliseconds(50))) return true;
            }
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        }
    }
    void release() const { engine->calls.unlock(); }
};

void bind_context(nb::module_& m) {
    nb::class_<CallLock>(m, "CallLock", "Of the thread whose call on a context is under way; it may take it again.")
        .def("acquire", &CallLock::acquire, "blocking"_a = true)
        .def("release", &CallLock::release)
        .def("__enter__", [](const CallLock& lock) { return lock.acquire(true); })
        .def("__exit__", [](const CallLock& lock, const nb::args&) { lock.release(); });
    nb::class_<LocalFabric>(m, "LocalFabric", "Ranks as threads of one process.")
        .def(nb::init<int, int, int>(), "ranks"_a, "ranks_per_host"_a = 1,
             "max_tag"_a = std::numeric_limits<int>::max());
    nb::class_<Context>(m, "Context", "One rank's place in a group of ranks.")
        .def_static(
            "local",
            [](LocalFabric& f, int rank, int threads, const std::optional<std::string>& without) {
                return make_context(f.endpoint(rank), threads, "tw.Context", "", without);
            },
            "fabric"_a, "rank"_a, "threads"_a, "without"_a = nb::none(), Release(),
            "`without`: names of fast paths, with commas; None: as TILEWAVE_WITHOUT says.")
        .def_static(
            "dry",
            [](int rank, int size, int threads) { return make_context(make_dry_transport(rank, size), threads); },
            "rank"_a, "size"_a, "threads"_a)
        .def_static(
            "mpi",
            [](std::optional<int> comm, int threads, const std::string& call, const std::string& where) {
                return make_context(make_mpi_transport(comm), threads, call, where);
            },
            "comm"_a.none(), "threads"_a, "call"_a = "tw.Context", "where"_a = "", Release())
        // For tests of long messages: with pieces of so many bytes for MPI.
        .def_static(
            "mpi_in_pieces",
            [](int threads, std::int64_t piece) { return make_context(make_mpi_transport({}, piece), threads); },
            "threads"_a, "piece"_a, Release())
        // (context, function giving the seconds spent in MPI so far)
        .def_static(
            "timed_mpi",
            [](int threads) {
                auto seconds = std::make_shared<double>(0);
                auto context = make_context(make_timed_transport(make_mpi_transport(), seconds), threads);
                return std::pair{context, std::function<double()>([seconds] { return *seconds; })};
            },
            "threads"_a)
        .def_prop_ro("rank", &Context::rank)
        .def_prop_ro("size", &Context::size)
        .def_prop_ro("threads", &Context::threads)
        .def_prop_ro("share", &Context::share)
        .def_prop_ro("paths_off", &Context::paths_off)
        .def_prop_ro("oversubscribed", &Context::oversubscribed)
        .def_prop_ro("cpus", &Context::cpus)
        .def("call_lock", [](Context& c) { return CallLock{c.engine()}; })
        .def("machine", &Context::machine, Release())
        .def("use_machine", &Context::use_machine, "machine"_a)
        .def_prop_rw(
            "stall_s", [](Context& c) { return c.options().stall_s; },
            [](Context& c, double s) { c.options().stall_s = s; })
        .def_prop_rw(
            "record", [](Context& c) { return c.options().record; }, [](Context& c, bool b) { c.options().record = b; })
        .def(
            "on_heartbeat",
            [](Context& c, nb::object callback) {
                if (callback.is_none()) {
                    c.options().heartbeat = nullptr;
                    return;
                }
                // Called by lane 0, the thread that called run(), which has given up the GIL.
                // Runs copy their options without the GIL, so the reference count is not Python's.
                std::shared_ptr<nb::object> hold(new nb::object(callback), [](nb::object* p) {
                    nb::gil_scoped_acquire gil;
                    delete p;
                });
                c.options().heartbeat = [hold](double fraction) {
                    nb::gil_scoped_acquire gil;
                    try {
                        return nb::cast<bool>((*hold)(fraction));
                    } catch (nb::python_error& e) {
                        // A signal's exception that came before the callback's own `try`: an interrupt.
                        e.restore();
                        PyErr_Clear();
                        return true;
                    }
                };
            },
            "callback"_a.none())
        // Gives the place in the caller's program, as text; it must not raise.
        .def(
            "on_where",
            [](Context& c, nb::object callback) {
                c.on_where([hold = std::shared_ptr<nb::object>(new nb::object(std::move(callback)), [](nb::object* p) {
                                nb::gil_scoped_acquire gil;
                                delete p;
                            })] {
                    nb::gil_scoped_acquire gil;
                    try {
                        return nb::cast<std::string>((*hold)());
                    } catch (const std::exception&) {
                        return std::string();
                    }
                });
            },
            "callback"_a)
        .def("end", &Context::end, Release())
        .def_prop_ro("ended", &Context::ended)
        .def_prop_ro(
            "started", [](Context& c) { return c.engine()->started; }, "Calls so far, on every rank as many.")
        .def(
            "agree",
            [](Context& c, const std::string& kind, const std::string& error, const std::string& description,
               std::int64_t prepared, const std::string& call) {
                nb::gil_scoped_release release;
                return agree(c, {kind_of(kind), error, description, prepared, {call, ""}});
            },
            "kind"_a, "error"_a, "description"_a, "prepared"_a = 0, "call"_a = "agree")
        .def(
            "allreduce_min",
            [](Context& c, std::vector<std::int64_t> values) {
                nb::gil_scoped_release release;
                allreduce_min(c.transport(), values);
                return values;
            },
            "values"_a)
        // Rank 0's bytes, on every rank.
        .def(
            "broadcast",
            [](Context& c, nb::bytes given) {
                nb::bytes got = given;
                bool lacking = false;
                const auto place = [&](std::int64_t n) -> std::byte* {
                    nb::gil_scoped_acquire gil;
                    PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(n));
                    if (!made) {
                        PyErr_Clear();
                        lacking = true;
                        return nullptr;
                    }
                    got = nb::steal<nb::bytes>(made);
                    return reinterpret_cast<std::byte*>(PyBytes_AS_STRING(made));
                };
                {
                    nb::gil_scoped_release release;
                    broadcast(c.transport(), std::as_bytes(std::span(given.c_str(), given.size())), 0, place);
                }
                if (lacking) throw std::bad_alloc();
                return got;
            },
            "bytes"_a)
        // Rank 0's memory, into that of every other rank; of equal length.
        .def(
            "broadcast_into",
            [](Context& c, std::uintptr_t address, std::int64_t bytes) {
                auto* const data = reinterpret_cast<std::byte*>(address);
                broadcast(c.transport(), std::span(data, static_cast<std::size_t>(bytes)), 0,
                          [&](std::int64_t n) { return n == bytes ? data : nullptr; });
            },
            "address"_a, "bytes"_a, Release())
        .def("barrier", [](Context& c) { barrier(c.transport()); }, Release());
    m.def(
        "checksum",
        [](std::uintptr_t address, std::int64_t bytes, std::uint64_t begin) {
            return checksum(reinterpret_cast<const std::byte*>(address), bytes, begin);
        },
        "address"_a, "bytes"_a, "begin"_a = 0, Release());
    m.def("load_mpi", &python::load_mpi, "path"_a);
    m.def("loaded_mpi", &python::loaded_mpi);
    m.def("mpi_started", &mpi_started);
    m.def("keep_interrupt", &keep_interrupt, "keep"_a, "Of this thread, until the next agreement that it begins.");
    m.def("interrupt_kept", &interrupt_kept);
    m.def("abandon_mpi", &abandon_mpi);
    m.def("allowed_cpus", &allowed_cpus);
    m.def("cpu_quota", [](const std::string& root) { return cpu_quota(root).cpus; }, "root"_a = "");
    m.def("mpi_info", [] {
        const MpiInfo i = mpi_info();
        nb::dict d;
        d["library"] = i.library;
        d["path"] = i.path;
        d["standard"] = i.standard;
        d["thread_level"] = i.thread_level;
        d["rank"] = i.rank;
        d["size"] = i.size;
        return d;
    });
}

// Operation, dtype, place, the element's subscripts: loop indices, and what is added to each; number among the kernel's
// bests; the row value that says which points count.
using ReductionTuple = std::tuple<std::string, std::string, int, Index, Index, int, int>;

Dtype real_dtype(const std::string& name, bool or_complex = false) {
    const auto type = std::find_if(all_dtypes.begin(), all_dtypes.end(), [&](Dtype d) {
        return (or_complex ? in_nests(d) : in_reductions(d)) && to_string(d) == name;
    });
    if (type == all_dtypes.end())
        throw ConfigError("a reduction of dtype " + name + " was given; allowed: real numbers of up to 64 bits");
    return *type;
}

ComplexPart part_named(const std::string& name) {
    static const std::map<std::string, ComplexPart> parts = {{"", ComplexPart::none},
                                                             {"real", ComplexPart::real},
                                                             {"imag", ComplexPart::imaginary},
                                                             {"both", ComplexPart::both}};
    return parts.at(name);
}

PointReduction to_reduction(const ReductionTuple& t) {
    static const std::map<std::string, Reduction> ops = {
        {"max", Reduction::max}, {"min", Reduction::min}, {"sum", Reduction::sum}};
    const auto& [op, name, place, axes, shift, counts, best] = t;
    return {ops.at(op), real_dtype(name), place, axes, shift, best, counts};
}

void bind_field(nb::module_& m) {
    nb::class_<FieldStorage>(m, "FieldStorage", "One rank's part of a distributed array, untyped.")
        .def(nb::init<Context&, Index, std::int64_t>(), "context"_a, "shape"_a, "item_bytes"_a, nb::keep_alive<1, 2>())
        .def(
            "__init__",
            [](FieldStorage* f, Context& context, const Index& shape, std::int64_t item_bytes, const Index& below,
               const Index& above, const Index& wraps, const Index& grid) {
                new (f) FieldStorage(context, shape, item_bytes, Halo{below, above, wraps, grid});
            },
            "context"_a, "shape"_a, "item_bytes"_a, "below"_a, "above"_a, "wraps"_a, "grid"_a, nb::keep_alive<1, 2>())
        .def("copy", &FieldStorage::copy, nb::keep_alive<0, 1>())
        .def_rw("name", &FieldStorage::name)
        .def_prop_ro("home", &FieldStorage::home)
        .def_prop_ro("has_halo", &FieldStorage::has_halo)
        .def_prop_ro("at_home", &FieldStorage::at_home)
        .def_prop_ro("owned", &FieldStorage::owned)
        .def_prop_ro("storage", &FieldStorage::storage)
        .def_prop_ro("layout", &FieldStorage::layout)
        .def_prop_ro("version", &FieldStorage::version)
        .def_prop_ro("bytes", &FieldStorage::bytes)
        .def_prop_ro("address", [](FieldStorage& f) { return reinterpret_cast<std::uintptr_t>(f.data()); })
        .def_prop_ro("history", &FieldStorage::history)
        .def("release", &FieldStorage::release)
        .def("keep_history", &FieldStorage::keep_history, "time_buffers"_a, Release())
        .def("join_steps", &FieldStorage::join_steps, Release())
        // Where this rank's own points are, or with the halo, of one time buffer: address, bytes between neighbours, an
        // owner that keeps the memory.
        .def(
            "view",
            [](FieldStorage& f, int back, bool halo) {
                auto* hold = new std::shared_ptr<std::byte[]>(f.share());
                nb::capsule owner(hold, [](void* p) noexcept { delete static_cast<std::shared_ptr<std::byte[]>*>(p); });
                const Binding b = f.binding(back);
                const Box mine = f.owned(), all = f.storage();
                std::intptr_t at = reinterpret_cast<std::intptr_t>(b.data);
                for (int k = 0; k < mine.dims() && !mine.empty() && !halo; ++k)
                    at += (mine.lo[k] - all.lo[k]) * b.stride_bytes[k];
                return nb::make_tuple(at, b.stride_bytes, owner);
            },
            "back"_a = 0, "halo"_a = false)
        .def(
            "relayout", [](FieldStorage& f, const Layout& layout) { f.relayout(layout); }, "layout"_a, Release())
        .def(
            "gather",
            [](FieldStorage& f, std::uintptr_t out, int back) { f.gather(reinterpret_cast<std::byte*>(out), back); },
            "out"_a, "back"_a = 0, Release())
        .def(
            "reduce",
            [](FieldStorage& f, const std::string& op, const std::string& type, const std::string& form,
               const std::string& part) {
                static const std::map<std::string, ReducedForm> forms = {{"value", ReducedForm::value},
                                                                         {"magnitude", ReducedForm::magnitude},
                                                                         {"square", ReducedForm::square}};
                return f.reduce(to_reduction({op, type, 0, {}, {}, -1, -1}), forms.at(form), part_named(part));
            },
            "op"_a, "type"_a, "form"_a = "value", "part"_a = "", Release())
        .def(
            "dot",
            [](FieldStorage& f, FieldStorage& other, const std::string& type, const std::string& other_type,
               const std::string& part) {
                return f.dot(other, real_dtype(type), real_dtype(other_type), part_named(part));
            },
            "other"_a, "type"_a, "other_type"_a, "part"_a = "", Release())
        .def(
            "scatter",
            [](FieldStorage& f, std::uintptr_t in, int back) { f.scatter(reinterpret_cast<std::byte*>(in), back); },
            "whole"_a, "back"_a = 0, Release());
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
        .def_ro("rank", &LaneSplit::rank)
        .def_ro("lane", &LaneSplit::lane)
        .def_ro("compute_s", &LaneSplit::compute_s)
        .def_ro("pack_s", &LaneSplit::pack_s)
        .def_ro("wait_s", &LaneSplit::wait_s)
        .def_ro("post_s", &LaneSplit::post_s)
        .def_ro("total_s", &LaneSplit::total_s);
    nb::class_<Timeline>(m, "Timeline", "What every lane did when.")
        .def(nb::init<>())
        .def_ro("ranks", &Timeline::ranks)
        .def_ro("dims", &Timeline::dims)
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

// A row that lasts a set time, whatever the machine's speed at the moment: env is double ns a point.
std::int64_t spin_row(char* const*, const std::int64_t*, std::int64_t n, const std::int64_t*, const std::int64_t*,
                      const void* env) {
    const double end = now_s() + static_cast<double>(n) * *static_cast<const double*>(env) * 1e-9;
    while (now_s() < end) {
    }
    return 0;
}

struct PlainArray {
    FieldStorage* field = nullptr;
    std::uintptr_t address = 0;
    Index strides;
    std::uintptr_t initial = 0;  // of a rolling-window array
    bool same = true;
};

std::vector<RunArray> run_arrays(const std::vector<PlainArray*>& arrays) {
    std::vector<RunArray> all;
    for (const PlainArray* a : arrays)
        all.push_back({a->field,
                       {reinterpret_cast<std::byte*>(a->address), a->strides},
                       reinterpret_cast<const std::byte*>(a->initial),
                       a->same});
    return all;
}

void bind_sweep(nb::module_& m) {
    m.def(
        "spin_row", [] { return reinterpret_cast<std::uintptr_t>(&spin_row); },
        "Address of a row function that only lasts a set time, for benchmarks.");
    nb::class_<Report>(m, "Report", "What a run was and how it went.")
        .def_ro("plan", &Report::plan)
        .def_ro("ranks", &Report::ranks)
        .def_ro("threads", &Report::threads)
        .def_ro("points", &Report::points)
        .def_ro("waves", &Report::waves)
        .def_ro("buffer_bytes", &Report::buffer_bytes)
        .def_ro("time_s", &Report::time_s)
        .def_ro("moving_s", &Report::moving_s)
        .def_ro("call_s", &Report::call_s)
        .def_ro("overlap_ratio", &Report::overlap_ratio)
        .def_ro("interrupted", &Report::interrupted)
        .def_ro("reduced", &Report::reduced)
        .def_prop_ro("points_per_s", &Report::points_per_s)
        .def_ro("parts", &Report::parts)
        .def_ro("lanes", &Report::lanes)
        .def_prop_ro("timeline", &Report::timeline, nb::rv_policy::reference_internal);
    nb::class_<PlainArray>(m, "RunArray", "One array of a run: a field, or memory that is whole on this rank.")
        .def(
            "__init__", [](PlainArray* a, FieldStorage& f) { new (a) PlainArray{&f, 0, {}}; }, "field"_a,
            nb::keep_alive<1, 2>())
        // `owner`: of the memory, which lives as long.
        .def(
            "__init__",
            [](PlainArray* a, std::uintptr_t address, Index strides, nb::object) {
                new (a) PlainArray{nullptr, address, strides};
            },
            "address"_a, "strides"_a, "owner"_a = nb::none(), nb::keep_alive<1, 4>())
        // Of a rolling-window array: the address of the values of elements that no point computes, one value for all or
        // one each.
        .def_static(
            "window",
            [](std::uintptr_t initial, bool same, nb::object) { return PlainArray{nullptr, 0, {}, initial, same}; },
            "initial"_a, "same"_a, "owner"_a = nb::none(), nb::keep_alive<0, 3>());
    nb::class_<Kernel>(m, "Kernel", "A body's row functions with what they are given beside arrays.")
        .def(
            "__init__",
            [](Kernel* at, std::uintptr_t row, std::uintptr_t env, const std::vector<std::uintptr_t>& tables,
               bool uses_index, const std::vector<ReductionTuple>& reductions, std::uintptr_t rows,
               std::vector<std::int64_t> values) {
                new (at)
                    Kernel{reinterpret_cast<RowFunction>(row), reinterpret_cast<const void*>(env), uses_index, {}, {}};
                for (auto t : tables) at->tables.push_back(reinterpret_cast<char*>(t));
                for (const auto& r : reductions) at->reductions.push_back(to_reduction(r));
                at->rows = reinterpret_cast<RowsFunction>(rows);
                at->values = std::move(values);
            },
            "row"_a, "env"_a = 0, "tables"_a = std::vector<std::uintptr_t>(), "uses_index"_a = true,
            "reductions"_a = std::vector<ReductionTuple>(), "rows"_a = 0, "values"_a = std::vector<std::int64_t>());
    nb::class_<Reduced>(m, "Reduced", "One number out of all values that points computed.")
        .def_prop_ro("any", &Reduced::any)
        .def_prop_ro("at", &Reduced::at)
        .def_prop_ro("bytes", [](const Reduced& r) { return nb::bytes(r.bytes().data(), r.bytes().size()); });
    // What is given must live as long.
    nb::class_<StepPoints>(m, "StepPoints", "Elements of an array that a run changes or records after each time step.")
        .def(
            "__init__",
            [](StepPoints* at, int array, std::uintptr_t subscripts, std::size_t count, std::uintptr_t values,
               const std::optional<std::string>& add) {
                new (at) StepPoints{array,
                                    {reinterpret_cast<const std::int64_t*>(subscripts), count},
                                    reinterpret_cast<std::byte*>(values),
                                    add ? combine_row(Reduction::sum, real_dtype(*add, true)) : nullptr};
            },
            "array"_a, "subscripts"_a, "count"_a, "values"_a, "add"_a.none());
    nb::class_<PreparedSweep>(m, "PreparedSweep", "A sweep ready to run, any number of times.")
        .def(nb::init<Context&, SweepProblem, Plan>(), "context"_a, "problem"_a, "plan"_a, nb::keep_alive<1, 2>())
        .def_prop_ro("plan", &PreparedSweep::plan)
        .def_prop_ro("schedule", &PreparedSweep::schedule)
        .def_prop_ro("bytes", &PreparedSweep::bytes)
        .def_prop_ro("points", &PreparedSweep::points)
        .def_prop_ro("problem", &PreparedSweep::problem)
        .def_prop_ro("independent_rows", &PreparedSweep::independent_rows)
        .def("stagger", &PreparedSweep::stagger)
        .def(
            "rows_meet",
            [](const PreparedSweep& s, const std::vector<PlainArray*>& arrays) {
                return s.rows_meet(run_arrays(arrays));
            },
            "arrays"_a)
        .def("neighbours", &PreparedSweep::neighbours)
        .def("same_row", &PreparedSweep::same_row)
        .def("in_window", &PreparedSweep::in_window, "array"_a)
        // int64, as bytes: the subscripts of one element after the other.
        .def(
            "initial",
            [](const PreparedSweep& s, int array) {
                const std::vector<std::int64_t> all = s.initial(array);
                return nb::bytes(all.data(), all.size() * sizeof all[0]);
            },
            "array"_a)
        .def(
            "row_steps",
            [](const PreparedSweep& s, const std::vector<PlainArray*>& arrays) {
                return s.row_steps(run_arrays(arrays));
            },
            "arrays"_a)
        .def(
            "conversion_s",
            [](const PreparedSweep& s, const std::vector<PlainArray*>& arrays) {
                return s.conversion_s(run_arrays(arrays));
            },
            "arrays"_a)
        .def(
            "sample",
            [](PreparedSweep& s, const std::vector<PlainArray*>& arrays, const Kernel& kernel, double budget_s) {
                const std::vector<RunArray> all = run_arrays(arrays);
                std::vector<RateSample> samples;
                {
                    nb::gil_scoped_release release;
                    samples = s.sample(all, kernel, budget_s);
                }
                std::vector<std::tuple<double, double, double>> result;
                for (const RateSample& r : samples) result.push_back({r.rows, r.points, r.tile_s});
                return result;
            },
            "arrays"_a, "kernel"_a, "budget_s"_a,
            "(rows, points, seconds) of tiles with long rows, short rows, few points, and of long rows on one lane "
            "alone where there are several; empty where the kernel raised.")
        .def(
            "run",
            [](PreparedSweep& s, const std::vector<PlainArray*>& arrays, const Kernel& kernel, nb::object explain,
               std::optional<std::int64_t> steps, double moving_s, double call_s, std::int64_t first_step,
               const std::vector<StepPoints>& points) {
                const std::vector<RunArray> all = run_arrays(arrays);
                nb::gil_scoped_release release;
                return s.run(
                    all, kernel,
                    [&explain](const Failure& f) {
                        nb::gil_scoped_acquire gil;
                        return nb::cast<std::string>(explain(f.site, f.point));
                    },
                    steps, {moving_s, call_s}, first_step, points);
            },
            "arrays"_a, "kernel"_a, "explain"_a = nb::none(), nb::kw_only(), "steps"_a = std::nullopt,
            "moving_s"_a = 0.0, "call_s"_a = 0.0, "first_step"_a = 0, "points"_a = std::vector<StepPoints>())
        .def("prepare_steps", &PreparedSweep::prepare_steps, "steps"_a, Release())
        // None where an array must be copied for each run. What is given must live as long.
        .def(
            "bind",
            [](PreparedSweep& s, Context& context, const std::vector<PlainArray*>& arrays, const Kernel& kernel,
               nb::object explain) -> std::unique_ptr<BoundSweep> {
                std::vector<RunArray> all = run_arrays(arrays);
                if (!BoundSweep::suits(s, all)) return nullptr;
                return std::make_unique<BoundSweep>(context, s, std::move(all), kernel,
                                                    [explain = std::move(explain)](const Failure& f) {
                                                        nb::gil_scoped_acquire gil;
                                                        return nb::cast<std::string>(explain(f.site, f.point));
                                                    });
            },
            "context"_a, "arrays"_a, "kernel"_a, "explain"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>());
}

}  // namespace

void bind_run(nb::module_& m) {
    m.attr("BLOCK_POINTS") = tuning::block_points;
    m.attr("FEWEST_BLOCK_STEPS") = tuning::fewest_block_steps;
    m.attr("MOST_BLOCK_STEPS") = tuning::most_block_steps;
    bind_context(m);
    bind_field(m);
    bind_timeline(m);
    bind_sweep(m);
}
