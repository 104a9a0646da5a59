// A machine's numbers.
#include "tilewave/machine.hpp"

#include "casters.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;

void bind_machine(nb::module_& m) {
    nb::class_<Curve>(m, "Curve", "y over x, straight lines between measured points.")
        .def(nb::init<>())
        .def(
            "__init__",
            [](Curve* c, std::vector<double> x, std::vector<double> y) { new (c) Curve{std::move(x), std::move(y)}; },
            "x"_a, "y"_a)
        .def_rw("x", &Curve::x)
        .def_rw("y", &Curve::y)
        .def("at", &Curve::at, "value"_a);
    nb::class_<Link>(m, "Link", "What messages between two ranks cost, for one kind of neighbour; seconds.")
        .def(nb::init<>())
        .def_rw("latency_s", &Link::latency_s)
        .def_rw("send_s", &Link::send_s)
        .def_rw("receive_s", &Link::receive_s)
        .def_rw("byte_s", &Link::byte_s)
        .def_rw("transfer_s", &Link::transfer_s)
        .def_rw("burst_bytes", &Link::burst_bytes)
        .def_rw("eager_bytes", &Link::eager_bytes)
        .def_rw("busy_byte_s", &Link::busy_byte_s)
        .def_rw("hidden_polled", &Link::hidden_polled)
        .def_rw("hidden_unpolled", &Link::hidden_unpolled)
        .def_rw("crowd", &Link::crowd)
        .def("message_s", &Link::message_s, "bytes"_a);
    nb::class_<Machine>(m, "Machine", "The costs a plan is made from, in seconds.")
        .def(nb::init<>())
        .def_rw("latency_s", &Machine::latency_s)
        .def_rw("byte_s", &Machine::byte_s)
        .def_rw("chunk_s", &Machine::chunk_s)
        .def_rw("short_s", &Machine::short_s)
        .def_rw("ranks_per_core", &Machine::ranks_per_core)
        .def_rw("hand_over_s", &Machine::hand_over_s)
        .def_rw("point_s", &Machine::point_s)
        .def_rw("cache_bytes", &Machine::cache_bytes)
        .def_rw("shared_cache_bytes", &Machine::shared_cache_bytes)
        .def_rw("same_host", &Machine::same_host)
        .def_rw("other_host", &Machine::other_host)
        .def_rw("poll_s", &Machine::poll_s)
        .def_rw("step_s", &Machine::step_s)
        .def_rw("copy_byte_s", &Machine::copy_byte_s)
        .def_rw("memory", &Machine::memory)
        .def_rw("host_of", &Machine::host_of)
        .def_rw("set_of", &Machine::set_of)
        .def_rw("set_cpus", &Machine::set_cpus);
}
