// Index <-> tuple of int, Box <-> (lo, hi).
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "tilewave/index.hpp"

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
        for (int k = 0; k < index.n; ++k) PyTuple_SET_ITEM(t, k, PyLong_FromLongLong(index[k]));
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
