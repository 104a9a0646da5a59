// Kernels and what they reduce.
#include "core/clock.hpp"
#include "reductions.hpp"
#include "tilewave/engine/kernel.hpp"

namespace {

// A row that lasts a set time, whatever the machine's speed at the moment: env is double ns a point.
std::int64_t spin_row(char* const*, const std::int64_t*, std::int64_t n, const std::int64_t*, const std::int64_t*,
                      const void* env) {
    const double end = now_s() + static_cast<double>(n) * *static_cast<const double*>(env) * 1e-9;
    while (now_s() < end) {
    }
    return 0;
}

}  // namespace

void bind_execute(nb::module_& m) {
    m.def(
        "spin_row", [] { return reinterpret_cast<std::uintptr_t>(&spin_row); },
        "Address of a row function that only lasts a set time, for benchmarks.");
    nb::class_<Kernel>(m, "Kernel", "A body's row functions with their arguments besides arrays.")
        .def(
            "__init__",
            [](Kernel* at, std::uintptr_t row, std::uintptr_t env, const std::vector<std::uintptr_t>& tables,
               bool uses_index, const std::vector<ReductionTuple>& reductions, std::uintptr_t rows,
               std::vector<std::int64_t> values) {
                new (at)
                    Kernel{reinterpret_cast<RowFunction>(row), reinterpret_cast<const void*>(env), uses_index, {}, {}};
                for (auto t : tables) at->tables.push_back(reinterpret_cast<char*>(t));
                for (const auto& r : reductions) at->reductions.push_back(to_reduction(r));
                at->rows = reinterpret_cast<RowsFunction>(rows);
                at->values = std::move(values);
            },
            "row"_a, "env"_a = 0, "tables"_a = std::vector<std::uintptr_t>(), "uses_index"_a = true,
            "reductions"_a = std::vector<ReductionTuple>(), "rows"_a = 0, "values"_a = std::vector<std::int64_t>());
    nb::class_<Reduced>(m, "Reduced", "One number out of all values that points computed.")
        .def(PROPERTIES(any, at))
        .def("combine", &Reduced::combine, "other"_a, "Takes in the values of another one of the same kind: exactly.")
        .def_prop_ro("bytes", [](const Reduced& r) { return nb::bytes(r.bytes().data(), r.bytes().size()); });
}
