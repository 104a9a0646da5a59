#include "exact_data.hpp"

#include <nanobind/stl/string.h>

#include <limits>

namespace tilewave::python {
namespace {

std::string shown(nb::handle value) {
    return std::string(nb::repr(value).c_str()) + " (" + nb::cast<std::string>(value.type().attr("__name__")) + ")";
}

/// The items of a sequence or array; text and mappings are none.
std::vector<nb::object> items(nb::handle values, const std::string& what) {
    const bool listed = nb::hasattr(values, "__len__") && nb::hasattr(values, "__getitem__") &&
                        !nb::isinstance<nb::str>(values) && !nb::isinstance<nb::dict>(values) &&
                        nb::hasattr(values, "__iter__");
    if (!listed) throw ConfigError(what + " was given as " + shown(values) + "; a sequence is allowed");
    std::vector<nb::object> r;
    for (nb::handle v : values) r.push_back(nb::borrow(v));
    return r;
}

std::string item_of(const std::string& what, std::size_t i) {
    return what + "[" + std::to_string(i) + "]";
}

}  // namespace

std::int64_t to_int(nb::handle value, const std::string& what) {
    if (!nb::hasattr(value, "__index__"))
        throw ConfigError(what + " was given as " + shown(value) + "; an integer is allowed");
    const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
    if (!number.is_valid()) throw nb::python_error();
    int overflow = 0;
    const long long r = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0)
        throw ConfigError(what + " was given as " + shown(value) + "; an integer of at most 64 bits is allowed");
    return r;
}

int to_small_int(nb::handle value, const std::string& what) {
    const std::int64_t r = to_int(value, what);
    if (r < std::numeric_limits<int>::min() || r > std::numeric_limits<int>::max())
        throw ConfigError(what + " was given as " + shown(value) + "; an integer of at most 32 bits is allowed");
    return int(r);
}

Rational to_rational(nb::handle value, const std::string& what) {
    // int, fractions.Fraction and NumPy integers have both; floats do not.
    if (!nb::hasattr(value, "numerator") || !nb::hasattr(value, "denominator"))
        throw ConfigError(what + " was given as " + shown(value) + "; an int or a fractions.Fraction is allowed");
    return {to_int(value.attr("numerator"), what), to_int(value.attr("denominator"), what)};
}

std::vector<std::int64_t> to_ints(nb::handle values, const std::string& what) {
    std::vector<std::int64_t> r;
    for (const nb::object& v : items(values, what)) r.push_back(to_int(v, item_of(what, r.size())));
    return r;
}

IntMatrix to_int_rows(nb::handle rows, const std::string& what) {
    IntMatrix r;
    for (const nb::object& row : items(rows, what)) r.push_back(to_ints(row, item_of(what, r.size())));
    return r;
}

RationalMatrix to_matrix(nb::handle rows, const std::string& what) {
    std::vector<std::vector<Rational>> r;
    for (const nb::object& row : items(rows, what)) {
        const std::string name = item_of(what, r.size());
        std::vector<Rational> entries;
        for (const nb::object& v : items(row, name)) entries.push_back(to_rational(v, item_of(name, entries.size())));
        r.push_back(std::move(entries));
    }
    return RationalMatrix(r);
}

GroupingKind to_grouping_kind(const std::string& name) {
    if (name == "hyperplane") return GroupingKind::hyperplane;
    if (name == "vertical") return GroupingKind::vertical;
    throw ConfigError("grouping '" + name + "' was given; allowed: 'hyperplane', 'vertical'");
}

ScheduleKind to_schedule_kind(const std::string& name) {
    if (name == "blocking") return ScheduleKind::blocking;
    if (name == "overlapping") return ScheduleKind::overlapping;
    throw ConfigError("schedule '" + name + "' was given; allowed: 'blocking', 'overlapping'");
}

const char* to_name(GroupingKind kind) {
    return kind == GroupingKind::hyperplane ? "hyperplane" : "vertical";
}

nb::tuple from_ints(std::span<const std::int64_t> values) {
    nb::list r;
    for (std::int64_t v : values) r.append(v);
    return nb::tuple(r);
}

nb::list from_points(const IntMatrix& points) {
    nb::list r;
    for (const auto& point : points) r.append(from_ints(point));
    return r;
}

nb::list from_int_rows(const IntMatrix& rows) {
    nb::list r;
    for (const auto& row : rows) r.append(nb::list(from_ints(row)));
    return r;
}

nb::list from_matrix(const RationalMatrix& m) {
    const nb::object fraction = nb::module_::import_("fractions").attr("Fraction");
    nb::list r;
    for (int i = 0; i < m.rows(); ++i) {
        nb::list row;
        for (int j = 0; j < m.cols(); ++j) row.append(fraction(m(i, j).num(), m(i, j).den()));
        r.append(row);
    }
    return r;
}

}  // namespace tilewave::python
