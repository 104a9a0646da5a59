// A machine's numbers.
#include "tilewave/machine.hpp"

#include "casters.hpp"
#include "problem/tuning.hpp"

void bind_machine(nb::module_& m) {
    nb::class_<Curve>(m, "Curve", "y over x, straight lines between measured points.")
        .def(nb::init<>())
        .def(Made<std::vector<double>, std::vector<double>>(), "x"_a, "y"_a)
        .def(READ_WRITE(x, y))
        .def("at", &Curve::at, "value"_a);
    auto link = nb::class_<Link>(m, "Link", "What messages between two ranks cost, for one kind of neighbour; seconds.")
                    .def(nb::init<>())
                    .def_rw("transfer_s", &Link::transfer_s)
                    .def("message_s", &Link::message_s, "bytes"_a);
    auto machine = nb::class_<Machine>(m, "Machine", "The costs a plan is made from, in seconds.")
                       .def(nb::init<>())
                       .def(READ_WRITE(same_host, other_host, copy_byte_s, memory, speeds))
                       .def("lane_speeds", &Machine::lane_speeds, "ranks"_a, "lanes"_a,
                            "How fast a lane of each rank is while all compute: its CPU, and its part of one.")
                       .def("weights", &Machine::weights, "ranks"_a, "lanes"_a,
                            "In proportion to which ranks should have points; empty where they are equally fast.")
                       .def_rw("network", &Machine::network);
    auto network = nb::class_<Network>(m, "Network", "Nodes, cards, switches and their links.")
                       .def(nb::init<>())
                       .def_prop_rw(
                           "topology", [](const Network& n) { return name_of(n.topology); },
                           [](Network& n, const std::string& name) { n.topology = topology_of(name); })
                       .def(METHODS(nodes, wrong))
                       .def(
                           "route",
                           [](const Network& n, std::int64_t from, std::int64_t to, double byte_s) {
                               std::vector<Network::Link> links;
                               n.route(from, to, byte_s, links);
                               std::vector<std::pair<std::int64_t, double>> all;
                               for (const Network::Link& l : links) all.push_back({l.key, l.byte_s});
                               return all;
                           },
                           "source"_a, "target"_a, "byte_s"_a, "(a number of the link, seconds a byte) of each link.");
    // A list of its values; a list that is got is a copy.
    const auto runs = [&]<class T>(const char* name, Runs<T> Machine::* member) {
        machine.def_prop_rw(
            name, [member](const Machine& m) { return (m.*member).values(); },
            [member](Machine& m, const std::vector<T>& values) { m.*member = Runs<T>(values); });
    };
    runs("host_of", &Machine::host_of);
    runs("set_of", &Machine::set_of);
    runs("set_cpus", &Machine::set_cpus);

    m.attr("unequal") = tuning::unequal;
    nb::list of_link, of_machine, of_network;  // (name, default, range, documentation) of each number
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
#define TILEWAVE_NUMBER(type, name, otherwise, text) \
    network.def_rw(#name, &Network::name, text);     \
    of_network.append(nb::make_tuple(#name, type(otherwise), "", text));
    TILEWAVE_NETWORK_NUMBERS(TILEWAVE_NUMBER)
#undef TILEWAVE_NUMBER
    m.attr("network_numbers") = nb::tuple(of_network);
    m.attr("link_numbers") = nb::tuple(of_link);
    m.attr("machine_numbers") = nb::tuple(of_machine);
}
