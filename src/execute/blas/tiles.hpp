// Matrices by columns and tiles of panels, as tasks find them in memory.
#pragma once
#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>
#include <utility>

#include "execute/blas/library.hpp"
#include "execute/blas/tasks.hpp"
#include "tilewave/engine/task.hpp"

namespace tilewave {

template <class R>
R conjugate_of(R x) {
    return x;
}
template <class R>
std::complex<R> conjugate_of(const std::complex<R>& x) {
    return std::conj(x);
}

// A number of a type, of which real ones have no imaginary part.
template <class T>
T number_of(double real, double imaginary) {
    if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(real);
    else
        return T(static_cast<typename T::value_type>(real), static_cast<typename T::value_type>(imaginary));
}

// A part of a matrix by columns.
inline BlasMatrix matrix_of(const RegionView& view) {
    return {view.data, view.box.extent(0), view.box.extent(1), view.stride_bytes[0] / view.item_bytes,
            view.stride_bytes[1] / view.item_bytes};
}

// Rows [lo, hi) and columns [0, width) of one, counted within it.
inline BlasMatrix rows_of(const BlasMatrix& m, std::int64_t item, std::int64_t lo, std::int64_t hi) {
    return {m.data + lo * m.row_step * item, hi - lo, m.columns, m.row_step, m.column_step};
}

// op of a matrix, as a product takes it.
inline BlasMatrix meant(const BlasMatrix& m, Transpose op, Dtype type) {
    if (op == Transpose::none) return m;
    BlasMatrix t = m.transposed();
    if (op == Transpose::adjoint && is_complex(type)) t.conjugate = !m.conjugate;
    return t;
}
inline BlasMatrix adjoint(const BlasMatrix& m, Dtype type) {
    return meant(m, Transpose::adjoint, type);
}

// Tiles of at least so many rows lie by rows.
inline constexpr std::int64_t least_by_rows = 64;

// Tiles of a panel: [1, tiles, row, column], each a whole square. Wide ones lie by rows, so that all of them are one
// matrix by rows and one call of BLAS takes them: with 128 rows 1.3 times as fast as a call for each (OpenBLAS,
// AVX-512). Narrow ones lie by columns, one call for each: OpenBLAS multiplies small matrices where they lie, with 32
// rows 1.2 times as fast as all in one call. BLAS has no conjugate that is not transposed: wide tiles that are used as
// their adjoints hold conjugate values.
struct Tiles {
    const RegionView& view;
    bool conjugate = false;
    std::int64_t count() const { return view.box.extent(1); }
    std::int64_t side() const { return view.box.extent(2); }
    bool by_rows() const { return side() >= least_by_rows; }
    // The first rows and columns of tile t; where tiles lie by rows, of all from t on.
    BlasMatrix from(std::int64_t t, std::int64_t rows, std::int64_t columns) const {
        std::byte* at = view.data + t * view.stride_bytes[1];
        if (by_rows()) return {at, rows, columns, side(), 1, conjugate};
        return {at, rows, columns, 1, side()};
    }
    // f(matrix, its first row) for what makes up the first rows of the tiles from t on.
    template <class F>
    void each(std::int64_t t, std::int64_t rows, std::int64_t columns, F f) const {
        const std::int64_t step = by_rows() ? rows : side();
        for (std::int64_t lo = 0; lo < rows; lo += step)
            f(from(t + lo / side(), std::min(step, rows - lo), columns), lo);
    }
};

// Copies a matrix by columns into tiles, its first row into the top of the first; what it does not fill becomes 0.
inline void copy_to_tiles(Dtype type, const BlasMatrix& from, const Tiles& to) {
    const std::int64_t side = to.side(), item = item_bytes(type);
    for (std::int64_t t = 0; t < to.count(); ++t) {
        const std::int64_t lo = t * side, high = std::clamp<std::int64_t>(from.rows - lo, 0, side);
        BlasMatrix tile = to.from(t, high, from.columns), source = rows_of(from, item, lo, lo + high);
        if (high < side || from.columns < side) std::memset(tile.data, 0, static_cast<std::size_t>(side * side * item));
        std::swap(source.conjugate, tile.conjugate);
        copy_matrix(type, source, tile);
    }
}

inline void put_one(Dtype type, std::byte* at) {
    if (type == Dtype::f4 || type == Dtype::c8)
        *reinterpret_cast<float*>(at) = 1;
    else
        *reinterpret_cast<double*>(at) = 1;
}

// The tiles of V, as they are multiplied with: 0 above the diagonal and ones on it.
inline void copy_reflectors(Dtype type, const BlasMatrix& column, const Tiles& to) {
    const std::int64_t side = to.side(), item = item_bytes(type), count = std::min(column.rows, column.columns);
    copy_to_tiles(type, column, to);
    const BlasMatrix top = to.from(0, side, side);
    for (std::int64_t i = 0; i < side; ++i)
        for (std::int64_t j = std::min(i, count); j < side; ++j) {
            std::byte* at = top.data + (i * top.row_step + j * top.column_step) * item;
            std::memset(at, 0, static_cast<std::size_t>(item));
            if (i == j && i < count) put_one(type, at);
        }
}

// Tile t as a matrix by columns, of tiles that only tasks of one kind read and write.
inline BlasMatrix column_tile(const RegionView& view, std::int64_t t, std::int64_t columns) {
    const std::int64_t side = view.box.extent(2);
    return {view.data + t * view.stride_bytes[1], side, columns, 1, side};
}

}  // namespace tilewave
