// Experiments of `tilewave measure`: samples in seconds.
#include "measure/measure.hpp"

#include "casters.hpp"
#include "data/file_cache.hpp"
#include "measure/rate_store.hpp"
#include "transport/collectives.hpp"

namespace {

measure::Pair pair_of(int peer, bool first) {
    return {peer, first};
}

// Of a str, bytes or path.
std::string path_of(const nb::object& path) {
    PyObject* bytes = nullptr;
    if (!PyUnicode_FSConverter(path.ptr(), &bytes)) throw nb::python_error();
    return nb::steal<nb::bytes>(bytes).c_str();
}

}  // namespace

void bind_file_cache(nb::module_& m) {
    const auto text = [](const nb::bytes& b) { return std::string(b.c_str(), b.size()); };
    const auto bytes = [](const std::string& s) { return nb::bytes(s.data(), s.size()); };
    nb::module_ f = m.def_submodule("file_cache", "Files that later processes find again.");
    f.attr("MOST_FILES") = file_cache::most_files;
    f.def("folder", [bytes] { return bytes(file_cache::folder()); }, "Empty: nothing is stored.");
    f.def(
        "find",
        [bytes](const std::string& key, const std::string& ending) -> std::optional<nb::bytes> {
            const auto found = file_cache::find(key, ending);
            return found ? std::optional(bytes(*found)) : std::nullopt;
        },
        "key"_a, "ending"_a, "What was stored for a key; None: nothing.");
    f.def(
        "store",
        [text](const std::string& key, const std::string& ending, const nb::bytes& data, std::size_t most) {
            file_cache::store(key, ending, text(data), most);
        },
        "key"_a, "ending"_a, "data"_a, "most"_a = file_cache::most_files,
        "Stores data for a key where a file can be written.");
    f.def(
        "read_private",
        [bytes](const nb::object& path) {
            std::string found;
            const std::string why = file_cache::read_private(path_of(path), found);
            if (why.empty()) return bytes(found);
            PyErr_SetString(PyExc_OSError, why.c_str());
            throw nb::python_error();
        },
        "path"_a, "The bytes of a file that only the user can have written.");
    f.def(
        "write_private",
        [text](const nb::object& path, const nb::bytes& data) {
            return file_cache::write_private(path_of(path), text(data));
        },
        "path"_a, "data"_a, "Writes a file that read_private reads; whether that was possible.");
    f.def(
        "remove_unfinished", [](const nb::object& folder) { file_cache::remove_unfinished(path_of(folder)); },
        "folder"_a, "Removes the user's files that processes have left unfinished.");
}

void bind_measure(nb::module_& m) {
    nb::module_ e = m.def_submodule("measure", "Experiments; samples in seconds.");
    e.def(
        "round_trips",
        [](Context& c, int peer, bool first, std::int64_t bytes, int rounds, bool synchronous) {
            return measure::round_trips(c, pair_of(peer, first), bytes, rounds, synchronous);
        },
        "context"_a, "peer"_a, "first"_a, "bytes"_a, "rounds"_a, "synchronous"_a = false, Release());
    // (turns, posts of sends, posts of receives)
    e.def(
        "stream",
        [](Context& c, int peer, bool first, std::int64_t bytes, int count, int turns, bool synchronous) {
            measure::Stream s = measure::stream(c, pair_of(peer, first), bytes, count, turns, synchronous);
            return std::vector{std::move(s.turn_s), std::move(s.send_s), std::move(s.receive_s)};
        },
        "context"_a, "peer"_a, "first"_a, "bytes"_a, "count"_a, "turns"_a, "synchronous"_a = false, Release());
    // (posting, computing, waiting after it)
    e.def(
        "overlap",
        [](Context& c, int peer, bool first, std::int64_t bytes, std::int64_t rows, int turns, double poll_period_s,
           bool helper) {
            measure::OverlapTimes t =
                measure::overlap(c, pair_of(peer, first), {bytes, rows, poll_period_s, helper, false}, turns);
            return std::vector{std::move(t.post_s), std::move(t.compute_s), std::move(t.wait_s)};
        },
        "context"_a, "peer"_a, "first"_a, "bytes"_a, "rows"_a, "turns"_a, "poll_period_s"_a, "helper"_a = false,
        Release());
    e.def(
        "polls",
        [](Context& c, int peer, bool first, int turns) { return measure::polls(c, pair_of(peer, first), turns); },
        "context"_a, "peer"_a, "first"_a, "turns"_a, Release());
    e.def(
        "early_sends",
        [](Context& c, int peer, bool first, std::int64_t bytes, double delay_s, int turns) {
            return measure::early_sends(c, pair_of(peer, first), bytes, delay_s, turns);
        },
        "context"_a, "peer"_a, "first"_a, "bytes"_a, "delay_s"_a, "turns"_a, Release());
    e.def("hand_overs", &measure::hand_overs, "context"_a, "samples"_a, Release());
    e.def("steps", &measure::steps, "tiles"_a, "samples"_a, Release());
    e.def("memory", &measure::memory, "context"_a, "lanes"_a, "bytes"_a, "passes"_a, Release());
    e.def("copies", &measure::copies, "run_bytes"_a, "bytes"_a, "times"_a, Release());
    // Every rank's bytes at rank 0, an empty list elsewhere.
    e.def(
        "gather",
        [](Context& c, const nb::bytes& given) {
            const std::string bytes(given.c_str(), given.size());
            std::vector<std::string> all;
            {
                nb::gil_scoped_release release;
                all = measure::gathered(c, bytes);
            }
            nb::list found;
            for (const auto& one : all) found.append(nb::bytes(one.data(), one.size()));
            return found;
        },
        "context"_a, "bytes"_a);
    // What ranks give, as (bytes, how many ranks that follow each other gave them), on every rank.
    e.def(
        "allgather",
        [](Context& c, const nb::bytes& given) {
            const std::string bytes(given.c_str(), given.size());
            std::vector<Given> all;
            {
                nb::gil_scoped_release release;
                all = allgather(c.transport(), bytes);
            }
            nb::list found;
            for (const Given& some : all)
                found.append(nb::make_tuple(nb::bytes(some.text.data(), some.text.size()), some.ranks));
            return found;
        },
        "context"_a, "bytes"_a);
    e.def("queued_s", &queued_s, "Seconds that threads of this process waited for a CPU which another program had.");
    e.def("native", [](Context& c) { return c.transport().native(); }, "context"_a);
    e.def("connected", [](Context& c) { return c.transport().connected(); }, "context"_a);
}
