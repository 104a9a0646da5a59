// Plain Python data (ints, fractions.Fraction, sequences of them) to exact values and back.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "polyhedral/grouping.hpp"
#include "polyhedral/linear_schedule.hpp"
#include "polyhedral/rational.hpp"

namespace tilewave::python {

namespace nb = nanobind;

/// `what` names the argument in the message of the ConfigError for a value that is none.
std::int64_t to_int(nb::handle value, const std::string& what);
int to_small_int(nb::handle value, const std::string& what);
Rational to_rational(nb::handle value, const std::string& what);
std::vector<std::int64_t> to_ints(nb::handle values, const std::string& what);
IntMatrix to_int_rows(nb::handle rows, const std::string& what);
RationalMatrix to_matrix(nb::handle rows, const std::string& what);
GroupingKind to_grouping_kind(const std::string& name);
ScheduleKind to_schedule_kind(const std::string& name);
const char* to_name(GroupingKind kind);

nb::tuple from_ints(std::span<const std::int64_t> values);
nb::list from_points(const IntMatrix& points);
nb::list from_int_rows(const IntMatrix& rows);
nb::list from_matrix(const RationalMatrix& m);

/// Adds the submodule `cost`.
void bind_cost(nb::module_& parent);

}  // namespace tilewave::python
