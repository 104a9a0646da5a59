// Fields, and updates of their halos.
#include <map>

#include "reductions.hpp"
#include "tilewave/halo.hpp"

namespace {

ComplexPart part_named(const std::string& name) {
    static const std::map<std::string, ComplexPart> parts = {{"", ComplexPart::none},
                                                             {"real", ComplexPart::real},
                                                             {"imag", ComplexPart::imaginary},
                                                             {"both", ComplexPart::both}};
    return parts.at(name);
}

HaloCall call_of(std::vector<FieldStorage*> fields, int axes, const std::string& error, const std::string& function) {
    return {std::move(fields), axes, {function, ""}, error};
}

}  // namespace

Dtype tilewave::real_dtype(const std::string& name, bool or_complex) {
    const auto type = std::ranges::find_if(
        all_dtypes, [&](Dtype d) { return (or_complex || in_reductions(d)) && to_string(d) == name; });
    if (type == all_dtypes.end())
        throw ConfigError("a reduction of dtype " + name + " was given; allowed: real numbers of up to 64 bits");
    return *type;
}

PointReduction tilewave::to_reduction(const ReductionTuple& t) {
    static const std::map<std::string, Reduction> ops = {
        {"max", Reduction::max}, {"min", Reduction::min}, {"sum", Reduction::sum}};
    const auto& [op, name, place, axes, shift, counts, positions, best, counted] = t;
    return {ops.at(op), real_dtype(name), place, axes, shift, best, counts, positions, counted};
}

void bind_arrays(nb::module_& m) {
    nb::class_<FieldStorage>(m, "FieldStorage", "One rank's part of a distributed array, untyped.")
        .def(nb::init<Context&, Index, std::int64_t>(), "context"_a, "shape"_a, "item_bytes"_a, nb::keep_alive<1, 2>())
        .def(
            "__init__",
            [](FieldStorage* f, Context& context, const Index& shape, std::int64_t item_bytes, const Index& below,
               const Index& above, const Index& wraps, const Index& grid) {
                new (f) FieldStorage(context, shape, item_bytes, Halo{below, above, wraps, grid});
            },
            "context"_a, "shape"_a, "item_bytes"_a, "below"_a, "above"_a, "wraps"_a, "grid"_a, nb::keep_alive<1, 2>())
        .def("copy", &FieldStorage::copy, nb::keep_alive<0, 1>())
        .def_rw("name", &FieldStorage::name)
        .def(PROPERTIES(home, has_halo, at_home, owned, storage, layout, version, bytes))
        .def_prop_ro("address", [](FieldStorage& f) { return reinterpret_cast<std::uintptr_t>(f.data()); })
        .def_prop_ro("history", &FieldStorage::history)
        .def("release", &FieldStorage::release)
        .def("keep_history", &FieldStorage::keep_history, "time_buffers"_a, Release())
        .def("join_steps", &FieldStorage::join_steps, Release())
        // Where this rank's points are, or with the halo, of one time buffer: address, bytes between neighbours, an
        // owner that keeps the memory.
        .def(
            "view",
            [](FieldStorage& f, int back, bool halo) {
                auto* hold = new std::shared_ptr<std::byte[]>(f.share());
                nb::capsule owner(hold, [](void* p) noexcept { delete static_cast<std::shared_ptr<std::byte[]>*>(p); });
                const Binding b = f.binding(back);
                const Box part = f.owned(), all = f.storage();
                std::intptr_t at = reinterpret_cast<std::intptr_t>(b.data);
                for (int k = 0; k < part.dims() && !part.empty() && !halo; ++k)
                    at += (part.lo[k] - all.lo[k]) * b.stride_bytes[k];
                return nb::make_tuple(at, b.stride_bytes, owner);
            },
            "back"_a = 0, "halo"_a = false)
        .def(
            "relayout", [](FieldStorage& f, const Layout& layout) { f.relayout(layout); }, "layout"_a, Release())
        .def(
            "gather",
            [](FieldStorage& f, std::uintptr_t out, int back) { f.gather(reinterpret_cast<std::byte*>(out), back); },
            "out"_a, "back"_a = 0, Release())
        .def("in_whole_parts", &FieldStorage::in_whole_parts, "extents"_a)
        .def(
            "collect",
            [](FieldStorage& f, const Index& extents, std::int64_t number, std::uintptr_t out, int back) {
                f.collect(extents, number, reinterpret_cast<std::byte*>(out), back);
            },
            "extents"_a, "number"_a, "out"_a, "back"_a = 0, Release())
        .def(
            "reduce",
            [](FieldStorage& f, const std::string& op, const std::string& type, const std::string& form,
               const std::string& part) {
                static const std::map<std::string, ReducedForm> forms = {{"value", ReducedForm::value},
                                                                         {"magnitude", ReducedForm::magnitude},
                                                                         {"square", ReducedForm::square}};
                return f.reduce(to_reduction({op, type, 0, {}, {}, -1, true, -1, -1}), forms.at(form),
                                part_named(part));
            },
            "op"_a, "type"_a, "form"_a = "value", "part"_a = "", Release())
        .def(
            "dot",
            [](FieldStorage& f, FieldStorage& other, const std::string& type, const std::string& other_type,
               const std::string& part) {
                return f.dot(other, real_dtype(type), real_dtype(other_type), part_named(part));
            },
            "other"_a, "type"_a, "other_type"_a, "part"_a = "", Release())
        .def(
            "scatter",
            [](FieldStorage& f, std::uintptr_t in, int back) { f.scatter(reinterpret_cast<std::byte*>(in), back); },
            "whole"_a, "back"_a = 0, Release());
    m.def(
        "run_exchange",
        [](Context& context, std::vector<FieldStorage*> fields, int axes, const std::string& error,
           const std::string& function) {
            nb::gil_scoped_release release;
            run_exchange(context, call_of(std::move(fields), axes, error, function));
        },
        "context"_a, "fields"_a, "axes"_a, "error"_a, "function"_a);
    m.def(
        "start_exchange",
        [](Context& context, std::vector<FieldStorage*> fields, int axes, const std::string& error,
           const std::string& function, bool keep) {
            nb::gil_scoped_release release;
            HaloCall call = call_of(std::move(fields), axes, error, function);
            return keep ? bind_exchange(context, std::move(call)) : start_exchange(context, std::move(call));
        },
        "context"_a, "fields"_a, "axes"_a, "error"_a, "function"_a, "keep"_a, nb::keep_alive<0, 1>(),
        nb::keep_alive<0, 2>());
}
