// Space, Tiling, Grouping and LinearSchedule on plain Python data: points and tiles are tuples,
// matrices are nested lists.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "exact_data.hpp"
#include "polyhedral/space.hpp"
#include "polyhedral/tiling.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;
using namespace tilewave::python;

namespace {

/// A row of coefficients with the constant last.
Constraint to_constraint(std::vector<std::int64_t> row, const std::string& what) {
    if (row.empty())
        throw ConfigError(what +
                          " holds an empty row; coefficients and then the constant "
                          "are allowed");
    const std::int64_t c = row.back();
    row.pop_back();
    return {std::move(row), c};
}

std::vector<Constraint> to_constraints(nb::handle rows, const std::string& what) {
    std::vector<Constraint> r;
    for (auto& row : to_int_rows(rows, what)) r.push_back(to_constraint(std::move(row), what));
    return r;
}

std::vector<std::vector<Constraint>> to_bounds(nb::handle loops, const std::string& what) {
    if (!nb::hasattr(loops, "__iter__"))
        throw ConfigError(what +
                          " was given as no sequence; one list of bounds for each loop "
                          "is allowed");
    std::vector<std::vector<Constraint>> r;
    for (nb::handle bounds : loops) r.push_back(to_constraints(bounds, what + "[" + std::to_string(r.size()) + "]"));
    return r;
}

nb::list constraint_rows(const Space& space) {
    IntMatrix rows;
    for (const Constraint& c : space.constraints()) {
        rows.push_back(c.a);
        rows.back().push_back(c.c);
    }
    return from_int_rows(rows);
}

void bind_space_class(nb::module_& m) {
    nb::class_<Space>(m, "Space",
                      "Integer points of a bounded polyhedron: the space of a loop nest.\n\n"
                      "Parameters\n----------\n"
                      "dims : int\n    Number of loops, 1 or more.\n"
                      "constraints : sequence of rows of dims + 1 ints\n"
                      "    Row (a_0, .., a_n-1, c) means a.j + c >= 0.\n\n"
                      "Raises\n------\n"
                      "ConfigError\n    A row has the wrong length, or an index has no bound.")
        .def(
            "__init__",
            [](Space* self, nb::handle dims, nb::handle constraints) {
                new (self) Space(to_small_int(dims, "dims"), to_constraints(constraints, "constraints"));
            },
            "dims"_a, "constraints"_a)
        .def_static(
            "box", [](nb::handle lo, nb::handle hi) { return Space::box(to_ints(lo, "lo"), to_ints(hi, "hi")); },
            "lo"_a, "hi"_a,
            "The box lo <= j <= hi, both ends inclusive.\n\n"
            "Parameters\n----------\nlo, hi : sequence of int\n    As many of each.")
        .def_static(
            "loops",
            [](nb::handle lower, nb::handle upper) {
                return Space::loops(to_bounds(lower, "lower"), to_bounds(upper, "upper"));
            },
            "lower"_a, "upper"_a,
            "Nested loops, each from its greatest lower to its least upper bound.\n\n"
            "Parameters\n----------\n"
            "lower, upper : for each loop k a sequence of rows of k + 1 ints\n"
            "    Row (a_0, .., a_k-1, c) means a.(j_0, .., j_k-1) + c; inclusive.\n\n"
            "Raises\n------\nConfigError\n    A bound names an index that is not an outer one.")
        .def_prop_ro("dims", &Space::dims, "Number of indices.")
        .def_prop_ro("constraints", &constraint_rows,
                     "Rows (a_0, .., a_n-1, c) of a.j + c >= 0, without redundant ones.")
        .def_prop_ro("is_box", &Space::is_box, "Whether each constraint bounds one index.")
        .def(
            "contains", [](const Space& s, nb::handle j) { return s.contains(to_ints(j, "j")); }, "j"_a,
            "Whether the point j (dims ints) is in the space.")
        .def(
            "__contains__", [](const Space& s, nb::handle j) { return s.contains(to_ints(j, "j")); }, "j"_a)
        .def(
            "bounds",
            [](const Space& s, nb::handle k, nb::handle outer) {
                return s.bounds(to_small_int(k, "k"), to_ints(outer, "outer"));
            },
            "k"_a, "outer"_a, "The inclusive range (lo, hi) of index k for k outer values; hi < lo if it is empty.")
        .def(
            "project", [](const Space& s, nb::handle k) { return s.project(to_small_int(k, "k")); }, "k"_a,
            "The first k indices as a Space: the rational projection by Fourier-Motzkin "
            "elimination, a superset of the exact one.")
        .def(
            "prefixes",
            [](const Space& s, nb::handle k) {
                IntMatrix r;
                s.for_each_prefix(to_small_int(k, "k"), [&](auto j) { r.emplace_back(j.begin(), j.end()); });
                return from_points(r);
            },
            "k"_a, "The values of the first k indices that have a point: the exact projection.")
        .def(
            "points", [](const Space& s) { return from_points(s.points()); }, "The points as tuples, in loop order.")
        .def("count", &Space::count, "Number of points.")
        .def("empty", &Space::empty, "Whether there is no point.")
        .def("__repr__", [](const Space& s) { return "Space(" + to_string(s) + ")"; });
}

void bind_tiling(nb::module_& m) {
    nb::class_<Tiling>(m, "Tiling",
                       "The tiling j -> floor(H j) of an iteration space [athanasaki2002].\n\n"
                       "Parameters\n----------\n"
                       "h : n x n nested sequence of int or fractions.Fraction\n    Regular.\n\n"
                       "Dependence matrices d have a row for each index and a column for each\n"
                       "dependence vector.\n\n"
                       "Raises\n------\n"
                       "ConfigError\n    H is singular or not square, or an entry is not exact.")
        .def(
            "__init__", [](Tiling* self, nb::handle h) { new (self) Tiling(to_matrix(h, "h")); }, "h"_a)
        .def_static(
            "from_p", [](nb::handle p) { return Tiling::from_p(to_matrix(p, "p")); }, "p"_a,
            "The tiling with H = P^-1; the columns of P are the edges of a tile.\n\n"
            "Raises\n------\nConfigError\n    P is singular or not square.")
        .def_static(
            "rectangular", [](nb::handle sizes) { return Tiling::rectangular(to_ints(sizes, "sizes")); }, "sizes"_a,
            "The tiling with P = diag(sizes), each an int of 1 or more.")
        .def_prop_ro("dims", &Tiling::dims, "Number of indices.")
        .def_prop_ro(
            "h", [](const Tiling& t) { return from_matrix(t.h()); }, "H as a nested list of fractions.Fraction.")
        .def_prop_ro(
            "p", [](const Tiling& t) { return from_matrix(t.p()); }, "P = H^-1 as a nested list of fractions.Fraction.")
        .def(
            "tile_of", [](const Tiling& t, nb::handle j) { return from_ints(t.tile_of(to_ints(j, "j"))); }, "j"_a,
            "The tile floor(H j) of a point, as a tuple [athanasaki2002].")
        .def(
            "legal", [](const Tiling& t, nb::handle d) { return t.legal(to_int_rows(d, "d")); }, "d"_a,
            "Whether H d >= 0 elementwise: tiles can run one after another [athanasaki2002].")
        .def(
            "dependences_fit", [](const Tiling& t, nb::handle d) { return t.dependences_fit(to_int_rows(d, "d")); },
            "d"_a,
            "Whether 0 <= H d < 1 elementwise: a tile needs nearest neighbours only "
            "[athanasaki2002].")
        .def("tile_space", &Tiling::tile_space, "space"_a,
             "The tiles as a Space, by Fourier-Motzkin elimination: all non-empty tiles, and "
             "perhaps empty ones.")
        .def(
            "tiles", [](const Tiling& t, const Space& space) { return from_points(t.tiles(space)); }, "space"_a,
            "The tiles that hold a point of space, as tuples in loop order.")
        .def(
            "points_of",
            [](const Tiling& t, nb::handle tile, const Space& space) {
                return t.points_of(to_ints(tile, "tile"), space);
            },
            "tile"_a, "space"_a, "The points of space in one tile, as a Space.")
        .def(
            "tile_dependences",
            [](const Tiling& t, nb::handle d) { return from_int_rows(t.tile_dependences(to_int_rows(d, "d"))); }, "d"_a,
            "D^S, a column for each dependence between two tiles, exact and sorted "
            "[athanasaki2002].\n\n"
            "Returns\n-------\nlist of n lists of int\n"
            "    Every floor(H (j + d)) - floor(H j) over integer j, without the zero vector.")
        .def("__repr__", [](const Tiling& t) { return "Tiling(" + to_string(t.h()) + ")"; });
}

void bind_grouping(nb::module_& m) {
    nb::class_<Grouping>(m, "Grouping",
                         "Groups of tiles that the CPUs of a node compute in one step "
                         "[athanasaki2002].\n\n"
                         "Parameters\n----------\n"
                         "kind : 'hyperplane' or 'vertical'\n"
                         "mapping_dim : int\n    Tiles along this dimension stay on one CPU.\n"
                         "factors : n ints\n"
                         "    CPUs of a node along each dimension; 1 at mapping_dim.\n\n"
                         "Raises\n------\n"
                         "ConfigError\n    A factor is below 1, or not 1 at mapping_dim.")
        .def(
            "__init__",
            [](Grouping* self, const std::string& kind, nb::handle mapping_dim, nb::handle factors) {
                new (self) Grouping(to_grouping_kind(kind), to_small_int(mapping_dim, "mapping_dim"),
                                    to_ints(factors, "factors"));
            },
            "kind"_a, "mapping_dim"_a, "factors"_a)
        .def_prop_ro(
            "kind", [](const Grouping& g) { return to_name(g.kind()); }, "'hyperplane' or 'vertical'.")
        .def_prop_ro("mapping_dim", &Grouping::mapping_dim, "The mapping dimension, from 0.")
        .def_prop_ro(
            "factors", [](const Grouping& g) { return from_ints(g.factors()); }, "CPUs of a node along each dimension.")
        .def_prop_ro(
            "p", [](const Grouping& g) { return from_matrix(g.p()); },
            "P^G as a nested list of fractions.Fraction [athanasaki2002].")
        .def_prop_ro(
            "h", [](const Grouping& g) { return from_matrix(g.h()); },
            "H^G as a nested list of fractions.Fraction [athanasaki2002].")
        .def(
            "group_of", [](const Grouping& g, nb::handle t) { return from_ints(g.group_of(to_ints(t, "tile"))); },
            "tile"_a, "The group floor(H^G tile), a tuple of n ints [athanasaki2002].")
        .def(
            "node_of", [](const Grouping& g, nb::handle t) { return from_ints(g.node_of(to_ints(t, "tile"))); },
            "tile"_a, "The node floor(t_x / m_x), x != mapping_dim: n - 1 ints [athanasaki2002].")
        .def(
            "cpu_of", [](const Grouping& g, nb::handle t) { return g.cpu_of(to_ints(t, "tile")); }, "tile"_a,
            "The CPU in its node: t_x mod m_x, x != mapping_dim, in row-major order.")
        .def("cpus", &Grouping::cpus, "CPUs of a node, the product of the factors.")
        .def(
            "group_dependences",
            [](const Grouping& g, nb::handle ds) { return from_int_rows(g.group_dependences(to_int_rows(ds, "ds"))); },
            "ds"_a,
            "A column for each dependence between two groups, given D^S [athanasaki2002].\n\n"
            "Returns\n-------\nlist of n lists of int\n"
            "    Sorted columns, without the zero vector.");
}

std::int64_t waves(const LinearSchedule& s, nb::handle tiles, const Grouping* grouping) {
    if (nb::isinstance<Space>(tiles)) {
        const Space& space = nb::cast<const Space&>(tiles);
        return grouping ? s.waves(*grouping, space) : s.waves(space);
    }
    const IntMatrix listed = to_int_rows(tiles, "tiles");
    return grouping ? s.waves(*grouping, listed) : s.waves(listed);
}

void bind_linear_schedule(nb::module_& m) {
    nb::class_<LinearSchedule>(m, "LinearSchedule",
                               "The time step of a tile or group v is pi.v [athanasaki2002].\n\n"
                               "Parameters\n----------\npi : sequence of int")
        .def(
            "__init__", [](LinearSchedule* self, nb::handle pi) { new (self) LinearSchedule(to_ints(pi, "pi")); },
            "pi"_a)
        .def_static(
            "for_tiles",
            [](const std::string& kind, nb::handle n, nb::handle mapping_dim) {
                return LinearSchedule::for_tiles(to_schedule_kind(kind), to_small_int(n, "n"),
                                                 to_small_int(mapping_dim, "mapping_dim"));
            },
            "kind"_a, "n"_a, "mapping_dim"_a,
            "The schedule of n-D tiles on nodes of one CPU [athanasaki2002].\n\n"
            "Parameters\n----------\nkind : 'blocking' or 'overlapping'")
        .def_static(
            "for_groups",
            [](const std::string& kind, const Grouping& grouping) {
                return LinearSchedule::for_groups(to_schedule_kind(kind), grouping);
            },
            "kind"_a, "grouping"_a,
            "The schedule of groups of tiles [athanasaki2002].\n\n"
            "Parameters\n----------\nkind : 'blocking' or 'overlapping'")
        .def_prop_ro(
            "pi", [](const LinearSchedule& s) { return from_ints(s.pi()); }, "The weights of the coordinates.")
        .def(
            "time", [](const LinearSchedule& s, nb::handle v) { return s.time(to_ints(v, "v")); }, "v"_a,
            "The wave pi.v of a tile or group.")
        .def(
            "wave_of",
            [](const LinearSchedule& s, const Grouping& grouping, nb::handle tile) {
                return s.wave_of(grouping, to_ints(tile, "tile"));
            },
            "grouping"_a, "tile"_a, "The wave of the group that holds a tile.")
        .def("waves", &waves, "tiles"_a, "grouping"_a = nb::none(),
             "Number of waves from the first to the last tile [athanasaki2002].\n\n"
             "Parameters\n----------\n"
             "tiles : Space or sequence of tiles\n"
             "    A Space counts with all its points; a box is taken in closed form.\n"
             "grouping : Grouping, optional\n    Count the waves of the groups of these tiles.");
}

}  // namespace

void bind_space(nb::module_& m) {
    bind_space_class(m);
    bind_tiling(m);
    bind_grouping(m);
    bind_linear_schedule(m);
    bind_cost(m);
}
