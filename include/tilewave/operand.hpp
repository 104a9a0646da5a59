// The operands of a nest in C++: fields with the offsets at which a body reads them, and the body's view of them.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewave/field.hpp"

namespace tilewave {

/// Elements of a field that a run changes, or records, after each time step; made by adds() and records().
struct StepElements {
    FieldStorage* field;
    std::vector<Index> at;
    Dtype type;
    bool added;
    std::span<std::byte> values;  ///< a row for each time step, a value for each element
};

/// A Window without its element type.
struct WindowArray {
    Index shape;
    std::int64_t item_bytes;
    std::function<void(const Index&, std::byte*)> initial;
};
/// An array that a nest writes for itself: where later points need a part of it only, a run keeps a rolling window, and
/// it has no values outside of runs. Before each run element x is init(x).
template <class T>
class Window {
public:
    template <class Init>
    Window(Index shape, Init init)
        : plain_{shape, sizeof(T), [init = std::move(init)](const Index& at, std::byte* to) {
                     const T value = static_cast<T>(init(at));
                     std::memcpy(to, &value, sizeof value);
                 }} {}
    const WindowArray& plain() const { return plain_; }

private:
    WindowArray plain_;
};

/// What a point makes of an element and its value, as updates() says. last: the value of the last point that has the
/// element stays.
enum class Update : std::uint8_t { sum, min, max, bit_and, bit_or, bit_xor, last };
const char* to_string(Update op);

/// One array of a nest as plain data: the offsets at which points read it.
struct ArrayReads {
    FieldStorage* field;
    std::int64_t item_bytes;
    Index shape;
    bool written;
    std::vector<Index> offsets;           ///< by dimension of the array; with time steps time comes first
    Index scale = {}, residue = {};       ///< of a part of a field, whose shape is above; empty: it is all of it
    Index axes = {};                      ///< the loop of each dimension; empty: all loops but time, in order
    bool pivots = false;                  ///< made by pivots(): of loops k, i, j
    const WindowArray* window = nullptr;  ///< instead of a field
    /// Which row, along dimension 0 of the field, a time step writes; the other members are of a row. Empty: it is no
    /// row.
    std::function<std::int64_t(std::int64_t)> row = {};
    std::optional<Update> update = {};  ///< points have a value for it, and no places
    std::optional<Dtype> type = {};     ///< of an array that is updated, where it has numbers
};

/// Stands for all elements along the last loop, in the place of an offset: `reads({-1, all})`, `v(-1, all)`.
struct All {
    static constexpr int mark = std::numeric_limits<int>::min();
    constexpr operator int() const { return mark; }
};
inline constexpr All all{};

/// The offsets a body reads one array at, known when compiling: reads({-1, 0}, {0, -1}).
template <std::size_t... D>
consteval auto reads(const int (&... offset)[D]) {
    constexpr std::size_t dims = std::max({D...});
    static_assert(((D == dims) && ...), "offsets of one array have equal dimensions");
    std::array<std::array<int, dims>, sizeof...(D)> table{};
    std::size_t row = 0;
    auto fill = [&](const auto& o) {
        for (std::size_t k = 0; k < dims; ++k) table[row][k] = o[k];
        ++row;
    };
    (fill(offset), ...);
    return table;
}

/// Every so many elements of a field; made by every().
template <class T>
struct FieldPart {
    Field<T>* field = nullptr;
    Index scale = {}, residue = {};
};
/// Every scale-th element along each dimension, from `residue` on, as an array of a nest. Nests over a coarse grid read
/// and write the field of a finer one so: at the point (i, j) a(0, -1) of every(u, {2, 2}, {1, 0}) is u's element
/// (2 i + 1, 2 j - 2). A nest may have several parts of a field.
template <class T>
FieldPart<T> every(Field<T>& field, const Index& scale, const Index& residue) {
    return {&field, scale, residue};
}

/// A field with rows, along dimension 0, that time steps write; made by rows_of().
template <class T>
struct FieldRows {
    Field<T>* field = nullptr;
    std::function<std::int64_t(std::int64_t)> row = {};
};
/// Time step t writes row `row(t)` of the field, and finds there what the step before has left, at time 0 in offsets:
/// with rows_of(w, [](auto t) { return t / 5; }) five steps have one row. The same on every rank.
template <class T>
FieldRows<T> rows_of(Field<T>& field, std::function<std::int64_t(std::int64_t)> row) {
    return {&field, std::move(row)};
}

/// The loops of an array's dimensions; n = 0: all loops, in order.
struct LoopsOf {
    int n = 0;
    int loop[max_dims] = {};
    constexpr int most() const { return *std::max_element(loop, loop + n) + 1; }
    Index axes() const {
        Index all = Index::filled(n, 0);
        for (int d = 0; d < n; ++d) all[d] = loop[d];
        return all;
    }
};
/// A field, or part of one, whose dimensions are indexed by some of the loops; made by indexed_by().
template <class T, LoopsOf Loops>
struct IndexedPart {
    FieldPart<T> part;
};
/// The field as an array whose dimensions are indexed by these loops: with indexed_by<2, 0>(c) in loops i, j, k the
/// body's c(-1, 0) is c's element (k - 1, i). Loops are numbered from 0, with time steps time is number 0. Offsets in
/// reads() are those of the array's dimensions, in its order; with time steps that of time comes first.
template <int... Loops, class T>
auto indexed_by(const FieldPart<T>& part) {
    static_assert(((Loops >= 0 && Loops < max_dims) && ...), "loops are numbered from 0");
    return IndexedPart<T, LoopsOf{sizeof...(Loops), {Loops...}}>{part};
}
template <int... Loops, class T>
auto indexed_by(Field<T>& field) {
    return indexed_by<Loops...>(FieldPart<T>{&field});
}

/// Adds values to elements of a field after each time step, as a source does: `values[step * at.size() + k]` to the
/// k-th one. The same on every rank.
template <class T>
StepElements adds(Field<T>& field, std::vector<Index> at, std::span<T> values) {
    return {&field.storage(), std::move(at), dtype_of<T>(), true, std::as_writable_bytes(values)};
}
/// Records elements of a field after each time step, as a receiver does, in `values` of every rank; numbered as adds()
/// has them.
template <class T>
StepElements records(Field<T>& field, std::vector<Index> at, std::span<T> values) {
    return {&field.storage(), std::move(at), dtype_of<T>(), false, std::as_writable_bytes(values)};
}

/// Where the places of an operand are in a row of points, and which points these are.
struct RowOfPoints {
    char* const* ptr;          // by read
    const std::int64_t* step;  // bytes from point to point, by read
    const char* written;       // offset 0 of the written array, or null
    std::int64_t written_step;
    const std::int64_t *index, *direction;  // of the first point, and from point to point
};

/// All elements of a field along the last loop, as the body reads them: row[q].
template <class T>
struct AxisView {
    const char* first;
    std::int64_t stride;  // in bytes
    [[gnu::always_inline]] const T& operator[](std::int64_t q) const {
        return *reinterpret_cast<const T*>(first + q * stride);
    }
};

/// What the body is given for one array: a(-1, 0) is the value at that offset from the point, a(-1, all) the elements
/// of a whole axis. Offsets that are not in the table throw; with constant arguments the look-up is free, from -O1 on.
template <auto Table, class T>
struct PointView {
    RowOfPoints row;
    std::int64_t q;

    static constexpr std::size_t reads = Table.size();
    /// The place of an offset in the table; `reads` for the point itself, beyond where it is not there. Comparisons of
    /// single numbers, inlined: for constant offsets all of them fold, and loops over points become vectors.
    template <class... I>
    [[gnu::always_inline]] static constexpr std::size_t place_of(I... offset) {
        static_assert(sizeof...(I) == Table[0].size(), "an offset has one component for each dimension");
        std::size_t found = ((offset == 0) && ...) ? reads : reads + 1;
        [&]<std::size_t... R>(std::index_sequence<R...>) {
            ((found = is_row<R>(std::index_sequence_for<I...>{}, offset...) ? R : found), ...);
        }(std::make_index_sequence<reads>());
        return found;
    }
    template <class... I>
    [[gnu::always_inline]] auto operator()(I... offset) const {
        const std::size_t place = place_of(offset...);
        if constexpr ((std::is_same_v<I, All> || ...)) {
            if (place >= reads) refuse();
            // The loop index of the row's first point is the element that the place has there.
            const std::int64_t last = sizeof...(I) - 1, stride = row.step[place] / row.direction[last];
            return AxisView<T>{row.ptr[place] - row.index[last] * stride, stride};
        } else {
            if (place < reads) return *reinterpret_cast<const T*>(row.ptr[place] + q * row.step[place]);
            if (place == reads && row.written) return *reinterpret_cast<const T*>(row.written + q * row.written_step);
            refuse();
        }
    }

private:
    [[noreturn]] static void refuse() { throw ConfigError("the body reads an offset that its table does not declare"); }
    template <std::size_t R, std::size_t... K, class... I>
    [[gnu::always_inline]] static constexpr bool is_row(std::index_sequence<K...>, I... offset) {
        return ((Table[R][K] == static_cast<int>(offset)) && ...);
    }
};

/// One array of a nest with its reads.
template <auto Table, class T, bool Written, LoopsOf Loops = LoopsOf{}>
struct NestOperand {
    using Value = T;
    using View = PointView<Table, T>;
    static constexpr bool written = Written;
    static constexpr std::size_t reads = Table.size();
    static constexpr bool in_time = Loops.n > 0 && Table[0].size() == Loops.n + 1;
    static_assert(Loops.n == 0 || Table[0].size() == Loops.n || in_time,
                  "an offset has one component for each loop of indexed_by<...>, with time steps one more before");
    /// Loops that it knows of.
    static constexpr int loops = Loops.n == 0 ? static_cast<int>(Table[0].size()) : Loops.most();
    static constexpr bool moves(std::size_t /*read*/, int last) {
        return Loops.n == 0 || std::find(Loops.loop, Loops.loop + Loops.n, last) != Loops.loop + Loops.n;
    }
    /// For whole axes, which begin so many elements before the point.
    static constexpr bool uses_index = [] {
        for (const auto& offset : Table)
            for (const int o : offset)
                if (o == all) return true;
        return false;
    }();

    static_assert(!uses_index || Loops.n == 0, "`all` is the last loop of an array that has every loop");

    FieldPart<T> part;
    const WindowArray* window = nullptr;
    std::function<std::int64_t(std::int64_t)> row = {};

    ArrayReads plain() const {
        ArrayReads a{nullptr, sizeof(T), {}, Written, {}, part.scale, part.residue};
        a.window = window;
        a.shape = window ? window->shape : part.field->shape();
        if (!window) a.field = &part.field->storage();
        if ((a.row = row)) a.shape = Index(a.shape.span().subspan(1));
        for (const auto& row : Table) {
            Index& o = a.offsets.emplace_back(Index::filled(static_cast<int>(row.size()), 0));
            for (int k = 0; k < o.n; ++k) o[k] = row[k];
        }
        a.axes = Loops.axes();
        return a;
    }
};
/// An array that a nest writes at offset 0. It is read at the offsets of `Table` and, before the write, at offset 0. In
/// a nest, written arrays come before arrays that are only read.
template <auto Table, class T>
NestOperand<Table, T, true> writes(Field<T>& field) {
    return {{&field}};
}
template <auto Table, class T>
NestOperand<Table, T, true> writes(const FieldPart<T>& part) {
    return {part};
}
template <auto Table, class T, LoopsOf Loops>
NestOperand<Table, T, true, Loops> writes(const IndexedPart<T, Loops>& indexed) {
    return {indexed.part};
}
/// A nest without periodic loops and time steps may have it, with all loops as dimensions.
template <auto Table, class T>
NestOperand<Table, T, true> writes(const Window<T>& window) {
    return {{}, &window.plain()};
}
/// A nest with time steps may have it, with every loop but time as a dimension of a row.
template <auto Table, class T>
NestOperand<Table, T, true> writes(const FieldRows<T>& all) {
    return {{all.field}, nullptr, all.row};
}
/// An array a nest only reads, at `Table`. Time is 0 there, but in a part of a field that the nest writes in time
/// steps.
template <auto Table, class T>
NestOperand<Table, T, false> only_reads(Field<T>& field) {
    return {{&field}};
}
template <auto Table, class T>
NestOperand<Table, T, false> only_reads(const FieldPart<T>& part) {
    return {part};
}
template <auto Table, class T, LoopsOf Loops>
NestOperand<Table, T, false, Loops> only_reads(const IndexedPart<T, Loops>& indexed) {
    return {indexed.part};
}

/// What the body is given for updates(): nothing that it could read.
struct UpdateView {
    RowOfPoints row;
    std::int64_t q;
};
/// A field that points update.
template <class T, LoopsOf Loops>
struct UpdateOperand {
    using Value = T;
    using View = UpdateView;
    static constexpr bool written = true;
    static constexpr std::size_t reads = 0;
    static constexpr int loops = Loops.most();
    static constexpr bool moves(std::size_t /*read*/, int /*last*/) { return false; }
    static constexpr bool uses_index = false;

    Update op;
    FieldPart<T> part;

    ArrayReads plain() const {
        ArrayReads a{&part.field->storage(), sizeof(T), part.field->shape(), true, {}, part.scale, part.residue};
        a.axes = Loops.axes();
        a.update = op;
        if constexpr (requires { typename std::integral_constant<Dtype, dtype_of<T>()>; }) a.type = dtype_of<T>();
        return a;
    }
};
/// A field that lacks loops, of which points update elements: the body gives a value d for it as for an array that is
/// written, and S[i] = S[i] + d, or what else `op` says, comes of it at each point, in the type of S. Points of a nest
/// in loops b, i and j add up so:
///
///     tilewave::run(context, {}, {}, [](auto, auto x) { return x(0, 0, 0); },
///                   tilewave::updates(tilewave::Update::sum, tilewave::indexed_by<1>(S)),
///                   tilewave::only_reads<here>(D));
///
/// Integers, and what comes last, are updated in any order, by all ranks and lanes; floats in the order of the loops.
/// With time steps the field may have time, loop 0, as a dimension.
template <class T, LoopsOf Loops>
UpdateOperand<T, Loops> updates(Update op, const IndexedPart<T, Loops>& indexed) {
    return {op, indexed.part};
}

/// What the body is given for pivots(D): the elements [i, j], [k, j], [i, k] and [k, k] of D.
template <class T>
struct PivotView {
    RowOfPoints places;
    std::int64_t q;
    [[gnu::always_inline]] T point() const { return at(0); }
    [[gnu::always_inline]] T row() const { return at(1); }
    [[gnu::always_inline]] T column() const { return at(2); }
    [[gnu::always_inline]] T corner() const { return at(3); }

private:
    [[gnu::always_inline]] T at(std::size_t read) const {
        return *reinterpret_cast<const T*>(places.ptr[read] + q * places.step[read]);
    }
};
/// A matrix that a nest of loops k, i, j writes at [i, j], and reads in row k and column k, too.
template <class T>
struct PivotOperand {
    using Value = T;
    using View = PivotView<T>;
    static constexpr bool written = true;
    static constexpr std::size_t reads = 4;  // as PivotRead numbers them
    static constexpr int loops = 3;
    static constexpr bool moves(std::size_t read, int /*last*/) { return read < 2; }
    static constexpr bool uses_index = false;

    Field<T>* field;

    ArrayReads plain() const {
        ArrayReads a{&field->storage(), sizeof(T), field->shape(), true, std::vector<Index>(reads, Index{0, 0})};
        a.axes = {1, 2};
        a.pivots = true;
        return a;
    }
};
/// The matrix D of a nest of loops k, i, j whose step k reads row k and column k of D, as Floyd-Warshall's:
///
///     tilewave::run(context, {}, {}, [](auto d) { return std::min(d.point(), d.column() + d.row()); },
///                   tilewave::pivots(D));
template <class T>
PivotOperand<T> pivots(Field<T>& field) {
    return {&field};
}

/// What the body is given for indices(): at(k) is the point's index of loop k, with time steps from time, loop 0, on.
struct IndexView {
    RowOfPoints row;
    std::int64_t q;
    [[gnu::always_inline]] std::int64_t operator()(int k) const { return row.index[k] + q * row.direction[k]; }
};
/// Not an array, but the loop indices of the point, for look-up tables that the body captures.
struct IndexOperand {
    using Value = char;
    using View = IndexView;
    static constexpr bool written = false;
    static constexpr std::size_t reads = 0;
    static constexpr int loops = 0;
    static constexpr bool moves(std::size_t /*read*/, int /*last*/) { return false; }
    static constexpr bool uses_index = true;
};
inline IndexOperand indices() {
    return {};
}

namespace detail {

/// The arrays among the operands of a nest.
template <class... Operands>
std::vector<ArrayReads> arrays_of(const Operands&... operands) {
    std::vector<ArrayReads> arrays;
    const auto add = [&](const auto& operand) {
        if constexpr (requires { operand.plain(); }) arrays.push_back(operand.plain());
    };
    (add(operands), ...);
    return arrays;
}

}  // namespace detail

}  // namespace tilewave
