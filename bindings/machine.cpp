// A machine's numbers.
#include "tilewave/machine.hpp"

#include "casters.hpp"

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
    auto link = nb::class_<Link>(m, "Link", "What messages between two ranks cost, for one kind of neighbour; seconds.")
                    .def(nb::init<>())
                    .def_rw("transfer_s", &Link::transfer_s)
                    .def("message_s", &Link::message_s, "bytes"_a);
    auto machine = nb::class_<Machine>(m, "Machine", "The costs a plan is made from, in seconds.")
                       .def(nb::init<>())
                       .def_rw("same_host", &Machine::same_host)
                       .def_rw("other_host", &Machine::other_host)
                       .def_rw("copy_byte_s", &Machine::copy_byte_s)
                       .def_rw("memory", &Machine::memory)
                       .def_rw("host_of", &Machine::host_of)
                       .def_rw("set_of", &Machine::set_of)
                       .def_rw("set_cpus", &Machine::set_cpus);

    nb::list of_link, of_machine;  // (name, default, range, documentation) of each number
#define TILEWAVE_NUMBER(type, name, otherwise, range, text) \
    link.def_rw(#name, &Link::name, text);                  \
    of_link.append(nb::make_tuple(#name, static_cast<type>(otherwise), #range, text));
    TILEWAVE_LINK_NUMBERS(TILEWAVE_NUMBER)
#undef TILEWAVE_NUMBER
#define TILEWAVE_NUMBER(type, name, otherwise, range, text) \
    machine.def_rw(#name, &Machine::name, text);            \
    of_machine.append(nb::make_tuple(#name, static_cast<type>(otherwise), #range, text));
    TILEWAVE_MACHINE_NUMBERS(TILEWAVE_NUMBER)
#undef TILEWAVE_NUMBER
    m.attr("link_numbers") = nb::tuple(of_link);
    m.attr("machine_numbers") = nb::tuple(of_machine);
}
