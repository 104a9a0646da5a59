#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "data/rows.hpp"
#include "data/shear.hpp"
#include "data/tuning.hpp"

namespace tilewave {

using namespace tuning;
namespace {

// From the last byte to the first: loads then run away from the stores. 7 to 17 GB/s where memcpy had 1.3 to 2.2.
void copy_backwards(std::byte* to, const std::byte* from, std::int64_t bytes) {
    struct Line {
        typedef double Vector __attribute__((vector_size(16)));
        Vector part[4];
    };
    Line line;
    for (; bytes >= 64;) {
        bytes -= 64;
        std::memcpy(&line, from + bytes, 64);
        std::memcpy(to + bytes, &line, 64);
    }
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

void copy_run(std::byte* to, const std::byte* from, std::int64_t bytes) {
    const auto ahead = (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % page;
    if (bytes >= shortest_delayed_run && ahead > 0 && ahead < delayed_within)
        copy_backwards(to, from, bytes);
    else
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

namespace {

// n runs of `bytes` bytes each; the steps lie between the starts of neighbours.
using CopyRuns = void (*)(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                          std::int64_t n, std::int64_t bytes);

void copy_long(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t n,
               std::int64_t bytes) {
    for (; n > 0; --n, to += to_step, from += from_step) copy_run(to, from, bytes);
}

// Runs of exactly `size` bytes. Unrolled: the loop costs more than the one move it makes.
template <int size>
void copy_exact(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t n,
                std::int64_t) {
    for (; n >= 4; n -= 4, to += 4 * to_step, from += 4 * from_step) {
        std::memcpy(to, from, size);
        std::memcpy(to + to_step, from + from_step, size);
        std::memcpy(to + 2 * to_step, from + 2 * from_step, size);
        std::memcpy(to + 3 * to_step, from + 3 * from_step, size);
    }
    for (; n > 0; --n, to += to_step, from += from_step) std::memcpy(to, from, size);
}

// Runs of `piece` to 2 * `piece` bytes: the first and the last `piece` bytes, which may overlap,
// so that no length needs a branch within the run.
template <int piece>
void copy_ends(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t n,
               std::int64_t bytes) {
    const std::int64_t last = bytes - piece;
    const auto copy = [&] {
        std::memcpy(to, from, piece);
        std::memcpy(to + last, from + last, piece);
        to += to_step;
        from += from_step;
    };
    // With runs up to 16 bytes the processor has enough loads in flight without help.
    for (; piece >= 16 && n > rows_ahead; --n) {
        for (int line = 0; line <= piece; line += 64) {
            __builtin_prefetch(from + rows_ahead * from_step + line);
            __builtin_prefetch(to + rows_ahead * to_step + line, 1);
        }
        copy();
    }
    for (; n > 0; --n) copy();
}

// `reach`: bytes from the first of the n runs to the last, on the side with the larger stride.
CopyRuns copier(std::int64_t bytes, std::int64_t reach) {
    if (reach <= near_runs && bytes == 32) return copy_exact<32>;
    if (reach <= near_runs && bytes == 64) return copy_exact<64>;
    switch (bytes) {
        case 1: return copy_exact<1>;
        case 2: return copy_exact<2>;
        case 4: return copy_exact<4>;
        case 8: return copy_exact<8>;
        case 16: return copy_exact<16>;
    }
    if (bytes > longest_short_run) return copy_long;
    if (bytes > 64) return copy_ends<64>;
    if (bytes > 32) return copy_ends<32>;
    if (bytes > 16) return copy_ends<16>;
    if (bytes > 8) return copy_ends<8>;
    return bytes > 4 ? copy_ends<4> : copy_ends<2>;
}

std::int64_t reach(std::int64_t n, std::int64_t to_step, std::int64_t from_step) {
    return n * std::max(std::abs(to_step), std::abs(from_step));
}

struct Dim {
    std::int64_t extent = 1, to_stride = 0, from_stride = 0;
};

// A box as a copy sees it: the dimensions of more than one item, those of short strides first;
// dims[0] is the run, in bytes.
struct Dims {
    std::byte* to;
    const std::byte* from;
    std::array<Dim, max_dims + 1> dims{};

    // With as few dimensions, and as long a run, as both sides allow.
    Dims(std::byte* to, const Index& to_stride, const std::byte* from, const Index& from_stride, const Index& extents,
         std::int64_t item_bytes);
    // The same items in reverse order.
    void reverse(Dim& dim) {
        to += (dim.extent - 1) * dim.to_stride;
        from += (dim.extent - 1) * dim.from_stride;
        dim.to_stride = -dim.to_stride;
        dim.from_stride = -dim.from_stride;
    }
    // Takes two dimensions out; those left become outer ones, in the same order.
    void drop(Dim& a, Dim& b) {
        a = b = {};
        for (int k = max_dims - 1; k >= 1; --k)
            if (dims[k + 1].extent == 1) std::swap(dims[k], dims[k + 1]);
    }
};

bool closer(const Dim& a, const Dim& b) {
    return std::min(a.to_stride, std::abs(a.from_stride)) < std::min(b.to_stride, std::abs(b.from_stride));
}

Dims::Dims(std::byte* to_first, const Index& to_stride, const std::byte* from_first, const Index& from_stride,
           const Index& extents, std::int64_t item_bytes)
    : to(to_first), from(from_first) {
    dims[0] = {item_bytes, 1, 1};
    int n = 0;
    for (int k = extents.n - 1; k >= 0; --k) {
        if (extents[k] == 1) continue;
        Dim dim{extents[k], to_stride[k], from_stride[k]};
        if (dim.to_stride < 0) reverse(dim);
        int at = ++n;
        for (; at > 1 && closer(dim, dims[at - 1]); --at) dims[at] = dims[at - 1];
        dims[at] = dim;
    }
    int top = 0;
    for (int k = 1; k <= n; ++k) {
        Dim& in = dims[top];
        const Dim dim = dims[k];
        if (dim.to_stride == in.extent * in.to_stride && dim.from_stride == in.extent * in.from_stride)
            in.extent *= dim.extent;
        else
            dims[++top] = dim;
    }
    for (int k = top + 1; k <= n; ++k) dims[k] = {};
}

// copy(to, from) for each index of the dimensions but the first two.
template <int outermost = max_dims, class Copy>
void for_each_outer(const Dims& box, std::byte* to, const std::byte* from, const Copy& copy) {
    if constexpr (outermost == 1) {
        copy(to, from);
    } else {
        const Dim& dim = box.dims[outermost];
        for (std::int64_t x = 0; x < dim.extent; ++x)
            for_each_outer<outermost - 1>(box, to + x * dim.to_stride, from + x * dim.from_stride, copy);
    }
}
template <class Copy>
void for_each_outer(const Dims& box, const Copy& copy) {
    for_each_outer(box, box.to, box.from, copy);
}

// The shear by which items at `row` and `column` strides are next to each other along columns:
// row - shear * column is the item's size, or its negative (`backwards`). False: none.
bool find_shear(std::int64_t row, std::int64_t column, std::int64_t item, std::int64_t& shear, bool& backwards) {
    for (const std::int64_t step : {item, -item}) {
        if (row != step && (column == 0 || (row - step) % column != 0)) continue;
        shear = row == step ? 0 : (row - step) / column;
        backwards = step < 0;
        return true;
    }
    return false;
}

// Items next to each other along a dimension on one side and along a direction on the other.
bool copy_as_sheared(Dims& box, Dim& row, Dim& column) {
    const std::int64_t item = box.dims[0].extent;
    const bool rows_to = std::abs(column.to_stride) == item, rows_from = std::abs(column.from_stride) == item;
    if (rows_to == rows_from) return false;
    std::int64_t shear = 0;
    bool backwards = false;
    if ((rows_to ? column.to_stride : column.from_stride) < 0) box.reverse(column);
    if (!find_shear(rows_to ? row.from_stride : row.to_stride, rows_to ? column.from_stride : column.to_stride, item,
                    shear, backwards) ||
        !blocks_fit(row.extent, column.extent, shear, item))
        return false;
    if (backwards) {
        box.reverse(row);
        shear = -shear;
    }
    const ShearedMatrix matrix{row.extent,
                               column.extent,
                               shear,
                               row.to_stride - shear * column.to_stride,
                               column.to_stride,
                               row.from_stride - shear * column.from_stride,
                               column.from_stride,
                               item};
    box.drop(row, column);
    for_each_outer(box, [&](std::byte* to, const std::byte* from) { copy_sheared(to, from, matrix); });
    return true;
}

// Runs of n items or, near the corners, fewer: the diagonals of a matrix that is skewed on both sides.
void copy_diagonals(std::byte* to, const std::byte* from, const Dim& row, const Dim& column, std::int64_t item) {
    const std::int64_t rows = row.extent, columns = column.extent;
    for (std::int64_t t = 0; t < rows + columns - 1; ++t) {
        const std::int64_t r = std::max<std::int64_t>(0, t - columns + 1), n = std::min(rows - 1, t) + 1 - r;
        std::memcpy(to + r * row.to_stride + (t - r) * column.to_stride,
                    from + r * row.from_stride + (t - r) * column.from_stride, n * item);
    }
}

// Items next to each other along the same diagonal on both sides.
bool copy_as_diagonals(Dims& box, Dim& row, Dim& column) {
    const std::int64_t item = box.dims[0].extent;
    if (std::min(row.extent, column.extent) * item < shortest_diagonal) return false;
    for (const std::int64_t shear : {1, -1}) {
        const std::int64_t step = row.to_stride - shear * column.to_stride;
        if (std::abs(step) != item || row.from_stride - shear * column.from_stride != step) continue;
        if (step < 0) box.reverse(row);
        if (step * shear < 0) box.reverse(column);
        const Dim r = row, c = column;
        box.drop(row, column);
        for_each_outer(box, [&](std::byte* to, const std::byte* from) { copy_diagonals(to, from, r, c, item); });
        return true;
    }
    return false;
}

void copy_rows(const Dims& box) {
    const std::int64_t bytes = box.dims[0].extent;
    const Dim row = box.dims[1], next = box.dims[2];
    if (row.extent >= few_runs || next.extent <= row.extent) {
        const CopyRuns copy_runs = copier(bytes, reach(row.extent, row.to_stride, row.from_stride));
        return for_each_outer(box, [&](std::byte* to, const std::byte* from) {
            copy_runs(to, row.to_stride, from, row.from_stride, row.extent, bytes);
        });
    }
    const CopyRuns copy_runs = copier(bytes, reach(std::min(piece, next.extent), next.to_stride, next.from_stride));
    Dims outer = box;
    outer.dims[2] = {};
    for_each_outer(outer, [&](std::byte* to, const std::byte* from) {
        for (std::int64_t z = 0; z < next.extent; z += piece)
            for (std::int64_t x = 0; x < row.extent; ++x)
                copy_runs(to + x * row.to_stride + z * next.to_stride, next.to_stride,
                          from + x * row.from_stride + z * next.from_stride, next.from_stride,
                          std::min(piece, next.extent - z), bytes);
    });
}

// Rows of items next to each other on both sides, straight to their copier: for a small matrix to sort the
// dimensions costs as much as to copy. False: something else, nothing is copied.
inline bool copy_matrix_rows(std::byte* to, const Index& to_stride, const std::byte* from, const Index& from_stride,
                             const Index& extents, std::int64_t item) {
    const int last = extents.n - 1;
    if (last != 0 && last != 1) return false;
    const std::int64_t columns = extents[last], bytes = columns * item;
    if (columns > 1 && (to_stride[last] != item || from_stride[last] != item)) return false;
    const std::int64_t rows = last ? extents[0] : 1;
    if (rows <= 0 || columns <= 0) return true;
    if (rows == 1 || (to_stride[0] == bytes && from_stride[0] == bytes))
        copy_run(to, from, rows * bytes);
    else
        copier(bytes, reach(rows, to_stride[0], from_stride[0]))(to, to_stride[0], from, from_stride[0], rows, bytes);
    return true;
}

}  // namespace

void copy_box(std::byte* to, const Index& to_stride_bytes, const std::byte* from, const Index& from_stride_bytes,
              const Index& extents, std::int64_t item_bytes) {
    if (copy_matrix_rows(to, to_stride_bytes, from, from_stride_bytes, extents, item_bytes)) return;
    if (std::ranges::any_of(extents.span(), [](std::int64_t extent) { return extent <= 0; })) return;
    Dims box(to, to_stride_bytes, from, from_stride_bytes, extents, item_bytes);
    auto& dims = box.dims;
    if (dims[0].extent <= 16 && dims[2].extent > 1)
        for (int row = 1; row <= max_dims && dims[row].extent > 1; ++row)
            for (int column = 1; column <= max_dims && dims[column].extent > 1; ++column)
                if (row != column &&
                    (copy_as_sheared(box, dims[row], dims[column]) || copy_as_diagonals(box, dims[row], dims[column])))
                    return;
    copy_rows(box);
}

void copy_range(const MatrixView& m, std::int64_t at, std::byte* data, std::int64_t n, bool pack) {
    const std::int64_t row = m.row_bytes();
    auto whole_rows = [&](std::int64_t rows, std::int64_t row_bytes) {  // of row_bytes each, from `at` on
        std::byte* matrix = m.contiguous() ? m.data + at : m.data + at / row * m.row_stride_bytes + at % row;
        const Index strided{m.row_stride_bytes, 1}, packed{row_bytes, 1}, extents{rows, row_bytes};
        if (pack)
            copy_box(data, packed, matrix, strided, extents, 1);
        else
            copy_box(matrix, strided, data, packed, extents, 1);
        at += rows * row_bytes;
        data += rows * row_bytes;
        n -= rows * row_bytes;
    };
    if (m.contiguous()) return whole_rows(1, n);
    if (at % row && n) whole_rows(1, std::min(n, row - at % row));
    if (n >= row) whole_rows(n / row, row);
    if (n) whole_rows(1, n);
}

}  // namespace tilewave
