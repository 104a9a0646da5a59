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

#include "tilewave/engine/layout.hpp"
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

template <>
struct type_caster<tilewave::Box> {
    NB_TYPE_CASTER(tilewave::Box, const_name("tuple[tuple[int, ...], tuple[int, ...]]"))
    bool from_python(handle src, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        make_caster<std::pair<tilewave::Index, tilewave::Index>> caster;
        if (!caster.from_python(src, flags, cleanup)) return false;
        const auto both = static_cast<std::pair<tilewave::Index, tilewave::Index>>(caster);
        value = {both.first, both.second};
        return true;
    }
    static handle from_cpp(const tilewave::Box& box, rv_policy p, cleanup_list* c) noexcept {
        handle lo = type_caster<tilewave::Index>::from_cpp(box.lo, p, c),
               hi = type_caster<tilewave::Index>::from_cpp(box.hi, p, c);
        return PyTuple_Pack(2, steal(lo).ptr(), steal(hi).ptr());
    }
};

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

/// The value of `all` with this name. @throws ConfigError
template <class Enum, std::size_t n>
Enum by_name(const std::string& name, const std::array<Enum, n>& all, const char* what) {
    for (Enum e : all)
        if (name == to_string(e)) return e;
    std::string allowed;
    for (Enum e : all) allowed += (allowed.empty() ? "" : ", ") + std::string(to_string(e));
    throw ConfigError(std::string(what) + ": '" + name + "' was given; allowed: " + allowed);
}
