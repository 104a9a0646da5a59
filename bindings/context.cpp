// Contexts, what is in flight on them, and the MPI library.

#include "casters.hpp"
#include "context/agreement.hpp"
#include "context/plans_only.hpp"
#include "context/progress_engine.hpp"
#include "data/checksum.hpp"
#include "execute/executor.hpp"
#include "execute/lanes/topology.hpp"
#include "mpi_library.hpp"

namespace {

std::shared_ptr<Context> make_context(std::unique_ptr<Transport> t, int threads, const std::string& call = "tw.Context",
                                      const std::string& where = "", const std::optional<std::string>& without = {}) {
    return std::make_shared<Context>(std::move(t), threads, Caller{call, where}, without);
}

RankStatus::Kind kind_of(const std::string& kind) {
    if (kind == "fine") return RankStatus::Kind::fine;
    if (kind == "config") return RankStatus::Kind::config;
    if (kind == "mpi") return RankStatus::Kind::mpi;
    if (kind == "kernel") return RankStatus::Kind::kernel;
    if (kind == "resources") return RankStatus::Kind::resources;
    if (kind == "interrupt") return RankStatus::Kind::interrupt;
    return RankStatus::Kind::internal;
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

}  // namespace

void bind_context(nb::module_& m) {
    nb::class_<CallLock>(m, "CallLock", "Held by the thread that makes a call on a context; it may take it again.")
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
            "`without`: names of fast paths, with commas; None: those of TILEWAVE_WITHOUT.")
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
        .def(PROPERTIES(rank, size, threads, share, paths_off, oversubscribed, cpus))
        .def("call_lock", [](Context& c) { return CallLock{c.engine()}; })
        .def("machine", &Context::machine, Release())
        .def("use_machine", &Context::use_machine, "machine"_a)
        .def_prop_rw(
            "plans_only", [](Context& c) { return plans_only(c); },
            [](Context& c, bool wanted) { c.component<PlansOnly>().wanted = wanted; })
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
                c.options().heartbeat = [call = hold(callback)](double fraction) {
                    nb::gil_scoped_acquire gil;
                    try {
                        return nb::cast<bool>((*call)(fraction));
                    } catch (nb::python_error& e) {
                        // A signal's exception that came before the callback's `try`: an interrupt.
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
                c.on_where([call = hold(std::move(callback))] {
                    nb::gil_scoped_acquire gil;
                    try {
                        return nb::cast<std::string>((*call)());
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
        .def_prop_ro(
            "ran_s", [](Context& c) { return c.engine()->ran_s; }, "Seconds of all runs so far, equal on every rank.")
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
                    return reinterpret_cast<std::byte*>(PyBytes_AsString(made));
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
    m.def(
        "crc32c",
        [](const nb::bytes& data) {
            return crc32c(reinterpret_cast<const std::byte*>(data.c_str()), static_cast<std::int64_t>(data.size()));
        },
        "data"_a);
    m.def("load_mpi", &python::load_mpi, "path"_a);
    m.def("mpi_started", &mpi_started);
    m.def("defer_interrupt", &defer_interrupt, "defer"_a, "Of this thread, until the next agreement that it begins.");
    m.def("interrupt_deferred", &interrupt_deferred);
    m.def("abandon_mpi", &abandon_mpi);
    m.def("allowed_cpus", &allowed_cpus);
    m.def(
        "topology", [] { return Topology::here().only(allowed_cpus()).text(); },
        "Cores, caches and NUMA nodes of the CPUs that this process may use, and where that is from.");
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
    nb::class_<Handle>(m, "Handle", "What is in flight, for its caller.")
        .def("test", &Handle::test, Release())
        .def("wait", &Handle::wait, Release())
        .def_prop_ro("buffer_bytes", &Handle::buffer_bytes);
    nb::class_<RepeatedHandle, Handle>(m, "RepeatedHandle", "What is in flight, or ready to go.")
        .def("start", &RepeatedHandle::start, Release())
        .def("run", &RepeatedHandle::run, Release());
}
