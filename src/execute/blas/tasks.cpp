#include "execute/blas/tasks.hpp"

#include <algorithm>
#include <cstring>

#include "execute/blas/tiles.hpp"

namespace tilewave {

namespace {

// A panel in a moving array: [panel, common dimension, what lies together], of A rows, of B columns; `turned` where the
// common dimension lies together.
BlasMatrix matrix_of(const RegionView& view, bool of_a, bool turned) {
    const auto items = [&](int k) { return view.stride_bytes[k] / view.item_bytes; };
    if (view.box.dims() == 2) return {view.data, view.box.extent(0), view.box.extent(1), items(0), items(1)};
    const BlasMatrix m{view.data, view.box.extent(1), view.box.extent(2), items(1), items(2)};
    return of_a || turned ? m.transposed() : m;
}

// Squares of this many items a side: both sides of a transposed copy then stay in the first-level cache.
constexpr std::int64_t copied_side = 32;

template <class T>
void copy_items(const BlasMatrix& from, const BlasMatrix& to) {
    if (from.row_step == 1 && to.row_step == 1 && from.column_step != 1)
        return copy_items<T>(from.transposed(), to.transposed());
    if (from.column_step == 1 && to.column_step == 1 && !from.conjugate) {
        for (std::int64_t i = 0; i < to.rows; ++i)
            std::memcpy(to.data + i * to.row_step * static_cast<std::int64_t>(sizeof(T)),
                        from.data + i * from.row_step * static_cast<std::int64_t>(sizeof(T)),
                        static_cast<std::size_t>(to.columns) * sizeof(T));
        return;
    }
    const T* source = reinterpret_cast<const T*>(from.data);
    T* target = reinterpret_cast<T*>(to.data);
    for (std::int64_t j0 = 0; j0 < to.columns; j0 += copied_side)
        for (std::int64_t i0 = 0; i0 < to.rows; i0 += copied_side)
            for (std::int64_t j = j0; j < std::min(to.columns, j0 + copied_side); ++j)
                for (std::int64_t i = i0; i < std::min(to.rows, i0 + copied_side); ++i) {
                    const T value = source[i * from.row_step + j * from.column_step];
                    target[i * to.row_step + j * to.column_step] = from.conjugate ? conjugate_of(value) : value;
                }
}

template <class T>
void scale_items(Complex by, const BlasMatrix& m, bool zero) {
    const T factor = number_of<T>(by.real, by.imaginary);
    for (std::int64_t j = 0; j < m.columns; ++j)
        for (std::int64_t i = 0; i < m.rows; ++i) {
            T& item = reinterpret_cast<T*>(m.data)[i * m.row_step + j * m.column_step];
            item = zero ? T{} : factor * item;
        }
}

}  // namespace

void copy_matrix(Dtype type, const BlasMatrix& from, const BlasMatrix& to) {
    with_type(type, [&](auto zero) { copy_items<decltype(zero)>(from, to); });
}

void interchange_rows(Dtype type, const BlasMatrix& m, std::span<const std::int64_t> others, bool last_first) {
    // By type: a loop over items of any size takes six times as long.
    with_type(type, [&](auto zero) {
        for (std::int64_t j = 0; j < m.columns; ++j) {
            auto* column = reinterpret_cast<decltype(zero)*>(m.data) + j * m.column_step;
            for (std::size_t k = 0; k < others.size(); ++k) {
                const std::size_t i = last_first ? others.size() - 1 - k : k;
                std::swap(column[i], column[others[i]]);
            }
        }
    });
}

std::vector<TaskFunction> product_tasks(std::shared_ptr<const Blas> blas, const ProductCall& p) {
    const auto copy = [p](bool of_a) {
        return [p, of_a](const TaskCall& call) {
            BlasMatrix from = matrix_of(call.reads[0], of_a, false);
            from.conjugate = of_a ? p.conjugate_a : p.conjugate_b;
            BlasMatrix to = matrix_of(call.writes[0], of_a, !p.moving_b_by_rows);
            // What a panel does not fill of its buffer travels, too.
            if (to.rows > from.rows) {
                BlasMatrix rest{to.data + from.rows * to.row_step * item_bytes(p.type), to.rows - from.rows, to.columns,
                                to.row_step, to.column_step};
                with_type(p.type, [&](auto zero) { scale_items<decltype(zero)>({}, rest, true); });
                to.rows = from.rows;
            }
            copy_matrix(p.type, from, to);
        };
    };
    const auto product = [p, blas](bool first) {
        return [p, blas, first](const TaskCall& call) {
            BlasMatrix a = matrix_of(call.reads[0], true, false),
                       b = matrix_of(call.reads[1], false, !p.moving_b_by_rows);
            // What has moved was conjugated when it was copied.
            a.conjugate = p.conjugate_a && call.reads[0].box.dims() == 2;
            b.conjugate = p.conjugate_b && call.reads[1].box.dims() == 2;
            blas->gemm(p.type, p.alpha, a, b, first ? p.beta : Complex{1, 0}, matrix_of(call.writes[0], false, false));
        };
    };
    const auto scale = [p](const TaskCall& call) {
        const bool zero = p.beta.real == 0 && p.beta.imaginary == 0;
        with_type(p.type,
                  [&](auto z) { scale_items<decltype(z)>(p.beta, matrix_of(call.writes[0], false, false), zero); });
    };
    return {copy(true), copy(false), product(true), product(false), scale};
}

}  // namespace tilewave
