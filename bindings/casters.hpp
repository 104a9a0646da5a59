// What all bindings share. Index <-> tuple of int, Box <-> (lo, hi).
#pragma once
#include <array>
#include <memory>

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "predict/rate.hpp"
#include "tilewave/engine/layout.hpp"
#include "tilewave/engine/problem.hpp"
#include "tilewave/engine/schedule.hpp"
#include "tilewave/error.hpp"

namespace nanobind::detail {

template <>
struct type_caster<tilewave::Index> {
    NB_TYPE_CASTER(tilewave::Index, const_name("tuple[int, ...]"))
    bool from_python(handle src, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        list_caster<std::vector<std::int64_t>, std::int64_t> caster;
        if (!caster.from_python(src, flags, cleanup) || caster.value.size() > tilewave::max_dims) return false;
        value = tilewave::Index(std::span<const std::int64_t>(caster.value));
        return true;
    }
    static handle from_cpp(const tilewave::Index& index, rv_policy, cleanup_list*) noexcept {
        PyObject* t = PyTuple_New(index.n);
        if (!t) return handle();
        for (int k = 0; k < index.n; ++k) PyTuple_SetItem(t, k, PyLong_FromLongLong(index[k]));
        return t;
    }
};

template <>
struct type_caster<tilewave::Weights> {
    NB_TYPE_CASTER(tilewave::Weights, const_name("tuple[int, ...]"))
    bool from_python(handle src, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        list_caster<std::vector<std::int64_t>, std::int64_t> caster;
        if (!caster.from_python(src, flags, cleanup)) return false;
        value.assign(caster.value.begin(), caster.value.end());
        return true;
    }
    static handle from_cpp(const tilewave::Weights& weights, rv_policy, cleanup_list*) noexcept {
        PyObject* t = PyTuple_New(std::ssize(weights));
        for (Py_ssize_t r = 0; t && r < std::ssize(weights); ++r)
            PyTuple_SetItem(t, r, PyLong_FromLongLong(weights[r]));
        return t;
    }
};

/// A type that is a tuple of these members in Python.
template <class T, auto... members>
struct members_caster {
    using Tuple = std::tuple<std::remove_cvref_t<decltype(std::declval<T&>().*members)>...>;
    NB_TYPE_CASTER(T, make_caster<Tuple>::Name)
    bool from_python(handle src, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        make_caster<Tuple> caster;
        if (!caster.from_python(src, flags, cleanup)) return false;
        std::apply([this](const auto&... of) { ((value.*members = of), ...); }, static_cast<Tuple>(caster));
        return true;
    }
    static handle from_cpp(const T& from, rv_policy policy, cleanup_list* cleanup) noexcept {
        return make_caster<Tuple>::from_cpp(Tuple(from.*members...), policy, cleanup);
    }
};

using tilewave::Bound, tilewave::Box, tilewave::Cut, tilewave::LeastHalo, tilewave::RateSample, tilewave::StepRange,
    tilewave::WindowShape;
template <>
struct type_caster<Box> : members_caster<Box, &Box::lo, &Box::hi> {};
template <>
struct type_caster<Bound> : members_caster<Bound, &Bound::coefficients, &Bound::constant> {};
template <>
struct type_caster<Cut> : members_caster<Cut, &Cut::of, &Cut::scale, &Cut::per, &Cut::shift, &Cut::every> {};
template <>
struct type_caster<LeastHalo> : members_caster<LeastHalo, &LeastHalo::lo, &LeastHalo::hi, &LeastHalo::wraps> {};
template <>
struct type_caster<RateSample>
    : members_caster<RateSample, &RateSample::rows, &RateSample::points, &RateSample::tile_s, &RateSample::spread> {};
template <>
struct type_caster<StepRange> : members_caster<StepRange, &StepRange::begin, &StepRange::end> {};
template <>
struct type_caster<WindowShape>
    : members_caster<WindowShape, &WindowShape::along, &WindowShape::across, &WindowShape::slant> {};

}  // namespace nanobind::detail

namespace nb = nanobind;
using namespace nb::literals;
using namespace tilewave;
using Release = nb::call_guard<nb::gil_scoped_release>;

/// A Python object that any thread may give back.
inline std::shared_ptr<nb::object> hold(nb::object object) {
    return {new nb::object(std::move(object)), [](nb::object* p) {
                nb::gil_scoped_acquire gil;
                delete p;
            }};
}

/// The constructor of a type from its first members.
template <class... Members>
struct Made : nb::def_visitor<Made<Members...>> {
    template <class Class, class... Extra>
    void execute(Class& c, const Extra&... extra) {
        using T = typename Class::Type;
        c.def("__init__", [](T* at, Members... members) { new (at) T{std::move(members)...}; }, extra...);
    }
};

/// What a function adds to a class.
template <class F>
struct Added : nb::def_visitor<Added<F>> {
    explicit Added(F function) : add(std::move(function)) {}
    template <class Class, class... Extra>
    void execute(Class& c, const Extra&...) {
        add.template operator()<typename Class::Type>(c);
    }
    F add;
};

// Members of a class by their names: .def(READ_ONLY(time_s, parts)). PROPERTIES are functions without arguments.
#define READ_ONLY(...) TILEWAVE_MEMBERS(def_ro, __VA_ARGS__)
#define READ_WRITE(...) TILEWAVE_MEMBERS(def_rw, __VA_ARGS__)
#define PROPERTIES(...) TILEWAVE_MEMBERS(def_prop_ro, __VA_ARGS__)
#define METHODS(...) TILEWAVE_MEMBERS(def, __VA_ARGS__)
#define TILEWAVE_MEMBERS(def, ...) Added([]<class T>(auto& c) { TILEWAVE_EXPAND(TILEWAVE_EACH(def, __VA_ARGS__)) })
// A macro that names itself goes on in the next expansion: so many as there are members at most, 64.
#define TILEWAVE_EACH(def, name, ...) \
    c.def(#name, &T::name);           \
    __VA_OPT__(TILEWAVE_AGAIN TILEWAVE_PARENS(def, __VA_ARGS__))
#define TILEWAVE_AGAIN() TILEWAVE_EACH
#define TILEWAVE_PARENS ()
#define TILEWAVE_EXPAND(...) TILEWAVE_4(TILEWAVE_4(TILEWAVE_4(TILEWAVE_4(__VA_ARGS__))))
#define TILEWAVE_4(...) TILEWAVE_16(TILEWAVE_16(TILEWAVE_16(TILEWAVE_16(__VA_ARGS__))))
#define TILEWAVE_16(...) TILEWAVE_1(TILEWAVE_1(TILEWAVE_1(TILEWAVE_1(__VA_ARGS__))))
#define TILEWAVE_1(...) __VA_ARGS__

/// The value of `all` with this name. @throws ConfigError
template <class Enum, std::size_t n>
Enum by_name(const std::string& name, const std::array<Enum, n>& all, const char* what) {
    for (Enum e : all)
        if (name == to_string(e)) return e;
    std::string allowed;
    for (Enum e : all) allowed += (allowed.empty() ? "" : ", ") + std::string(to_string(e));
    throw ConfigError(std::string(what) + ": '" + name + "' was given; allowed: " + allowed);
}
