// Communication patterns: problems, plans and schedules as values; calls, handles, buffered sends.
#include "tilewave/patterns.hpp"

#include <array>
#include <climits>
#include <limits>
#include <string_view>

#include "casters.hpp"
#include "execute/execution.hpp"
#include "nests/prepared_sweep.hpp"

namespace {

constexpr std::array all_kinds{PatternKind::broadcast, PatternKind::reduce, PatternKind::spread,
                               PatternKind::multi_reduce};
constexpr std::array all_algorithms{Algorithm::automatic, Algorithm::tree,   Algorithm::ring,
                                    Algorithm::rounds,    Algorithm::direct, Algorithm::native};
constexpr std::array all_reductions{Reduction::sum, Reduction::prod, Reduction::min, Reduction::max, Reduction::user};

Dtype dtype_of(const std::string& name) {
    return by_name(name, all_dtypes, "dtype");
}
PatternKind pattern_kind_of(const std::string& name) {
    return by_name(name, all_kinds, "pattern");
}
Algorithm algorithm_of(const std::string& name) {
    return by_name(name, all_algorithms, "algorithm");
}
Reduction reduction_of(const std::string& name) {
    return by_name(name, all_reductions, "op");
}

// An argument that is exactly a str and one of the names.
template <class Enum, std::size_t n>
bool plain_name(nb::handle given, const std::array<Enum, n>& all, Enum& value) {
    if (!PyUnicode_CheckExact(given.ptr())) return false;
    for (Enum e : all)
        if (PyUnicode_CompareWithASCIIString(given.ptr(), to_string(e)) == 0) {
            value = e;
            return true;
        }
    return false;
}

// The dtype of items that a buffer's format names; false: none of ours.
bool item_type(const Py_buffer& b, Dtype& type) {
    for (const Dtype t : all_dtypes)
        if (std::string_view(buffer_format(t)) == b.format) {
            type = t;
            return b.itemsize == item_bytes(t);
        }
    return false;
}

// A matrix that is as it must be, or an array of one dimension, which is one row; without asking it attribute by
// attribute. None: the caller has to look closer.
std::optional<MatrixView> plain_view(nb::handle M, bool written) {
    Py_buffer b;
    if (PyObject_GetBuffer(M.ptr(), &b, PyBUF_STRIDES | PyBUF_FORMAT | (written ? PyBUF_WRITABLE : 0)) != 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    std::optional<MatrixView> view;
    Dtype type;
    const auto address = reinterpret_cast<std::uintptr_t>(b.buf);
    if (b.ndim == 1 && b.shape[0] > 0 && item_type(b, type) && address % static_cast<std::uintptr_t>(b.itemsize) == 0 &&
        (b.shape[0] == 1 || b.strides[0] == b.itemsize))
        view = MatrixView{static_cast<std::byte*>(b.buf), 1, b.shape[0], b.shape[0] * b.itemsize, type};
    if (b.ndim == 2 && b.shape[0] > 0 && b.shape[1] > 0 && item_type(b, type) &&
        address % static_cast<std::uintptr_t>(b.itemsize) == 0) {
        const std::int64_t row_bytes = b.shape[1] * b.itemsize, row = b.shape[0] > 1 ? b.strides[0] : row_bytes;
        if ((b.shape[1] == 1 || b.strides[1] == b.itemsize) && row >= row_bytes && row % b.itemsize == 0)
            view = MatrixView{static_cast<std::byte*>(b.buf), b.shape[0], b.shape[1], row, type};
    }
    PyBuffer_Release(&b);
    return view;
}

// An argument that is exactly an int, of at least 0 and at most `most`.
bool plain_int(nb::handle given, std::int64_t most, std::int64_t& value) {
    if (!PyLong_CheckExact(given.ptr())) return false;
    int overflow = 0;
    value = PyLong_AsLongLongAndOverflow(given.ptr(), &overflow);
    return overflow == 0 && value >= 0 && value <= most;
}

// The view of a matrix that is exactly a NumPy array, as plain_view.
std::optional<MatrixView> array_view(nb::handle M, bool written) {
    static const nb::handle array = nb::object(nb::module_::import_("numpy").attr("ndarray")).release();
    return M.type().is(array) ? plain_view(M, written) : std::nullopt;
}

bool separate(const MatrixView& a, const MatrixView& b) {
    const auto end = [](const MatrixView& m) { return m.data + (m.rows - 1) * m.row_stride_bytes + m.row_bytes(); };
    return end(a) <= b.data || end(b) <= a.data;
}

// A blocking call whose arguments are all of the plain kind: no asking and no holding of each by itself.
// False: nothing was done, one of them must be looked at closer.
// `function`: what the user called, where that is not the pattern itself; else empty.
bool run_plain(Context& context, const char* kind, nb::handle in, nb::handle out, nb::handle root, nb::handle op,
               nb::handle algorithm, const char* function) {
    PatternCall c;
    std::int64_t rank = 0;
    c.kind = pattern_kind_of(kind);
    c.caller.call = function;
    if (!plain_int(root, INT_MAX, rank) || !plain_name(op, all_reductions, c.op) ||
        !plain_name(algorithm, all_algorithms, c.request.algorithm))
        return false;
    if (c.op == Reduction::user) return false;
    c.root = static_cast<int>(rank);
    const auto given = array_view(in, c.kind == PatternKind::broadcast && context.rank() != c.root);
    if (!given) return false;
    c.in = *given;
    if (c.kind != PatternKind::broadcast && (c.kind != PatternKind::reduce || context.rank() == c.root)) {
        const auto got = out.is_none() ? std::nullopt : array_view(out, true);
        if (!got || !separate(*given, *got)) return false;
        c.out = *got;
    }
    nb::gil_scoped_release release;
    run_pattern(context, std::move(c), [&] {
        nb::gil_scoped_acquire gil;
        return hold(nb::make_tuple(in, out));
    });
    return true;
}

// The same for buffered sends and their receives; `rank` is the other end's.
bool send_plain(Context& context, nb::handle M, nb::handle rank, nb::handle tag, nb::handle limit_bytes,
                nb::handle on_full, nb::object memory) {
    std::int64_t to = 0, number = 0, limit = 0;
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (!plain_int(rank, INT_MAX, to) || !plain_int(tag, INT_MAX, number) || !plain_int(limit_bytes, most, limit))
        return false;
    if (!PyUnicode_CheckExact(on_full.ptr()) || PyUnicode_CompareWithASCIIString(on_full.ptr(), "wait") != 0)
        return false;
    const auto given = array_view(M, false);
    if (!given) return false;
    auto held = hold(std::move(memory));
    nb::gil_scoped_release release;
    send_buffered(context, *given, static_cast<int>(to), static_cast<int>(number), {limit, true}, std::move(held));
    return true;
}

bool receive_plain(Context& context, nb::handle M, nb::handle rank, nb::handle tag) {
    std::int64_t from = 0, number = 0;
    if (!plain_int(rank, INT_MAX, from) || !plain_int(tag, INT_MAX, number)) return false;
    const auto given = array_view(M, true);
    if (!given) return false;
    auto held = hold(nb::borrow(M));
    nb::gil_scoped_release release;
    start_receive(context, *given, static_cast<int>(from), static_cast<int>(number), std::move(held)).wait();
    return true;
}

// join(into, left, right, n) -> bool and failure() -> str of a Python object.
UserReduction user_reduction(nb::object op) {
    auto object = hold(std::move(op));
    UserReduction user;
    user.combine = [object](std::byte* into, const std::byte* left, const std::byte* right, std::int64_t n) {
        nb::gil_scoped_acquire gil;
        try {
            auto address = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); };
            return nb::cast<bool>(object->attr("join")(address(into), address(left), address(right), n));
        } catch (nb::python_error& e) {
            e.restore();
            PyErr_Clear();
            return false;
        }
    };
    user.failure = [object] {
        nb::gil_scoped_acquire gil;
        return nb::cast<std::string>(object->attr("failure"));
    };
    return user;
}

void bind_values(nb::module_& m) {
    nb::class_<MatrixView>(m, "MatrixView", "Rows of items at unit column stride.")
        .def(
            "__init__",
            [](MatrixView* v, std::uintptr_t address, std::int64_t rows, std::int64_t cols,
               std::int64_t row_stride_bytes, const std::string& dtype) {
                new (v)
                    MatrixView{reinterpret_cast<std::byte*>(address), rows, cols, row_stride_bytes, dtype_of(dtype)};
            },
            "address"_a, "rows"_a, "cols"_a, "row_stride_bytes"_a, "dtype"_a);
    nb::class_<PatternProblem>(m, "PatternProblem", "What a pattern moves: the same on all ranks.")
        .def(
            "__init__",
            [](PatternProblem* p, const std::string& kind, int ranks, std::int64_t rows,
               std::vector<std::int64_t> columns, std::int64_t item_bytes, int root, std::int64_t block) {
                new (p) PatternProblem{pattern_kind_of(kind), ranks, root, rows, item_bytes, std::move(columns), block};
            },
            "kind"_a, "ranks"_a, "rows"_a, "columns"_a, "item_bytes"_a = 8, "root"_a = 0, "block"_a = 0)
        .def("validate", &PatternProblem::validate)
        .def_prop_ro("bytes", &PatternProblem::bytes);
    nb::class_<PatternPlan>(m, "PatternPlan", "How a pattern moves it.")
        .def(
            "__init__",
            [](PatternPlan* p, const std::string& algorithm, std::int64_t chunk_bytes, int buffers) {
                new (p) PatternPlan{algorithm_of(algorithm), chunk_bytes, buffers, {}, {}, {}};
            },
            "algorithm"_a, "chunk_bytes"_a = 32 << 10, "buffers"_a = 4)
        .def_prop_ro("algorithm", [](const PatternPlan& p) { return to_string(p.algorithm); })
        .def(READ_ONLY(chunk_bytes, buffers, why, numbers))
        .def_prop_ro("compared",
                     [](const PatternPlan& p) {
                         std::vector<std::pair<std::string, double>> named;
                         for (const auto& [a, time_s] : p.compared) named.emplace_back(to_string(a), time_s);
                         return named;
                     })
        .def(READ_ONLY(bytes, with_comparison))
        .def("__str__", &PatternPlan::to_string);
    m.def(
        "make_pattern_plan",
        [](const PatternProblem& problem, const Machine& machine, const std::string& algorithm,
           std::int64_t chunk_bytes, int buffers, bool contiguous, bool native) {
            return make_pattern_plan(problem, {algorithm_of(algorithm), chunk_bytes, buffers}, {contiguous, native},
                                     machine);
        },
        "problem"_a, "machine"_a, "algorithm"_a = "auto", "chunk_bytes"_a = 0, "buffers"_a = 0, "contiguous"_a = true,
        "native"_a = false, "The plan for a pattern; what is given is obeyed, the rest is picked.");
    m.def("pattern_time", &pattern_time, "problem"_a, "plan"_a, "machine"_a, "Seconds by the closed forms.");
    m.def("straight_combines", &straight_combines, "schedule"_a,
          "By step of lane 0: the unpack step whose array the executor lets a combine step write; 0: none.");
    m.def(
        "pattern_schedule",
        [](const PatternProblem& problem, const PatternPlan& plan, int rank, std::int64_t in_stride,
           std::int64_t out_stride) { return pattern_schedule(problem, plan, rank, {in_stride, out_stride}); },
        "problem"_a, "plan"_a, "rank"_a, "in_stride_bytes"_a, "out_stride_bytes"_a,
        "The part of one rank in a pattern.");
    m.def("dealt_columns", &dealt_columns, "columns"_a, "block"_a, "ranks"_a, "rank"_a,
          "Columns of a rank when columns are dealt in blocks over ranks.");
}

void bind_calls(nb::module_& m) {
    m.def("plain_view", &plain_view, "matrix"_a, "written"_a);
    m.def("run_plain", &run_plain, "context"_a, "kind"_a, "matrix"_a.none(), "out"_a.none(), "root"_a.none(),
          "op"_a.none(), "algorithm"_a.none(), "function"_a = "");
    m.def("send_plain", &send_plain, "context"_a, "matrix"_a.none(), "rank"_a.none(), "tag"_a.none(),
          "limit_bytes"_a.none(), "on_full"_a.none(), "memory"_a);
    m.def("receive_plain", &receive_plain, "context"_a, "matrix"_a.none(), "rank"_a.none(), "tag"_a.none());
    nb::class_<PatternHandle, RepeatedHandle>(m, "PatternHandle", "A pattern in flight.").def(PROPERTIES(plan, time_s));
    nb::class_<PatternCall>(m, "PatternCall", "One call of a pattern as a rank makes it.")
        .def(
            "__init__",
            [](PatternCall* c, const std::string& kind) { (new (c) PatternCall)->kind = pattern_kind_of(kind); },
            "kind"_a)
        .def_rw("matrix", &PatternCall::in)
        .def(READ_WRITE(out, root, block, part_inside, keep, error, lacks_memory, outer))
        .def_prop_rw("op", nullptr, [](PatternCall& c, const std::string& name) { c.op = reduction_of(name); })
        .def_prop_rw("algorithm", nullptr,
                     [](PatternCall& c, const std::string& name) { c.request.algorithm = algorithm_of(name); })
        .def_prop_rw("chunk_bytes", nullptr, [](PatternCall& c, std::int64_t bytes) { c.request.chunk_bytes = bytes; })
        .def_prop_rw("buffers", nullptr, [](PatternCall& c, int buffers) { c.request.buffers = buffers; })
        .def_prop_rw("where", nullptr, [](PatternCall& c, std::string where) { c.caller.where = std::move(where); })
        .def_prop_rw("function", nullptr, [](PatternCall& c, std::string name) { c.caller.call = std::move(name); })
        .def("reduce_by", [](PatternCall& c, nb::object user, std::string name) {
            c.op = Reduction::user;
            c.user = user_reduction(std::move(user));
            c.user_name = std::move(name);
        });
    m.def(
        "start_pattern",
        [](Context& context, PatternCall c, nb::object allocate, nb::object memory) {
            if (!allocate.is_none())
                c.allocate = [call = hold(allocate)](std::int64_t columns) {
                    nb::gil_scoped_acquire gil;
                    try {
                        return nb::cast<MatrixView>((*call)(columns));
                    } catch (const nb::python_error& e) {
                        if (e.matches(PyExc_MemoryError)) throw std::bad_alloc();
                        throw;
                    }
                };
            c.memory = hold(std::move(memory));
            nb::gil_scoped_release release;
            return start_pattern(context, std::move(c));
        },
        "context"_a, "call"_a, "allocate"_a.none(), "memory"_a);
    m.def(
        "send_buffered",
        [](Context& context, const MatrixView& matrix, int to, int tag, std::int64_t limit_bytes, bool wait,
           nb::object memory) {
            auto held = hold(memory);
            nb::gil_scoped_release release;
            send_buffered(context, matrix, to, tag, {limit_bytes, wait}, held);
        },
        "context"_a, "matrix"_a, "to"_a, "tag"_a, "limit_bytes"_a, "wait"_a, "memory"_a);
    m.def(
        "start_receive",
        [](Context& context, const MatrixView& matrix, int from, int tag, nb::object memory) {
            auto held = hold(memory);
            nb::gil_scoped_release release;
            return start_receive(context, matrix, from, tag, held);
        },
        "context"_a, "matrix"_a, "from_rank"_a, "tag"_a, "memory"_a, nb::keep_alive<0, 1>());
    m.def("complete", &complete, "context"_a, Release());
}

}  // namespace

void bind_patterns(nb::module_& m) {
    bind_values(m);
    bind_calls(m);
}
