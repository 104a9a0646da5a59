#include "execute/blas/factor_tasks.hpp"

#include <algorithm>
#include <cstring>

namespace tilewave {

namespace {

// A part of a matrix by columns.
BlasMatrix matrix_of(const RegionView& view) {
    return {view.data, view.box.extent(0), view.box.extent(1), view.stride_bytes[0] / view.item_bytes,
            view.stride_bytes[1] / view.item_bytes};
}

// Rows [lo, hi) and columns [0, width) of one, counted within it.
BlasMatrix rows_of(const BlasMatrix& m, std::int64_t item, std::int64_t lo, std::int64_t hi) {
    return {m.data + lo * m.row_step * item, hi - lo, m.columns, m.row_step, m.column_step};
}

// Tiles of a panel: [1, tiles, column, row], each a whole square.
struct Tiles {
    const RegionView& view;
    std::int64_t count() const { return view.box.extent(1); }
    std::int64_t side() const { return view.box.extent(2); }
    BlasMatrix tile(std::int64_t t, std::int64_t rows, std::int64_t columns) const {
        return {view.data + t * view.stride_bytes[1], rows, columns, 1, side()};
    }
};

// op of a tile, as a product takes it.
BlasMatrix meant(const BlasMatrix& m, Transpose op, Dtype type) {
    if (op == Transpose::none) return m;
    BlasMatrix t = m.transposed();
    t.conjugate = op == Transpose::adjoint && is_complex(type);
    return t;
}
BlasMatrix adjoint(const BlasMatrix& m, Dtype type) {
    return meant(m, Transpose::adjoint, type);
}

void put_one(Dtype type, std::byte* at) {
    if (type == Dtype::f4 || type == Dtype::c8)
        *reinterpret_cast<float*>(at) = 1;
    else
        *reinterpret_cast<double*>(at) = 1;
}

// Copies rows into tiles, the first into the top of the first tile; what the rows do not fill becomes 0.
void copy_to_tiles(const BlasMatrix& from, std::int64_t item, const Tiles& to) {
    for (std::int64_t t = 0; t < to.count(); ++t) {
        const std::int64_t lo = t * to.side(), high = std::clamp<std::int64_t>(from.rows - lo, 0, to.side());
        const BlasMatrix tile = to.tile(t, to.side(), to.side());
        for (std::int64_t j = 0; j < to.side(); ++j) {
            std::byte* column = tile.data + j * to.side() * item;
            const std::int64_t filled = j < from.columns ? high : 0;
            if (filled > 0)
                std::memcpy(column, from.data + (lo + j * from.column_step) * item,
                            static_cast<std::size_t>(filled * item));
            std::memset(column + filled * item, 0, static_cast<std::size_t>((to.side() - filled) * item));
        }
    }
}

class FactorTasks {
public:
    FactorTasks(std::shared_ptr<const Blas> blas, Dtype type, std::shared_ptr<FactorInfo> info)
        : blas_(std::move(blas)), type_(type), item_(item_bytes(type)), info_(std::move(info)) {}

    // A block column from the diagonal down: L11 L11^H = A11, L21 = A21 L11^-H.
    void factor(const TaskCall& call) const {
        const BlasMatrix column = matrix_of(call.writes[0]);
        const std::int64_t width = column.columns;
        const BlasMatrix top = rows_of(column, item_, 0, width), below = rows_of(column, item_, width, column.rows);
        if (!info_->any()) {
            const std::int64_t info = blas_->potrf(type_, top);
            if (info > 0)
                info_->failed(call.writes[0].box.lo[0] + info);
            else
                blas_->trsm(type_, Blas::Side::right, {false, Transpose::adjoint, false}, top, below);
        }
        if (call.writes.size() > 1) copy_to_tiles(below, item_, {call.writes[1]});
    }

    // Some rows of a block column whose diagonal is factored.
    void below(const TaskCall& call) const {
        const BlasMatrix rows = matrix_of(call.writes[0]);
        if (!info_->any())
            blas_->trsm(type_, Blas::Side::right, {false, Transpose::adjoint, false}, matrix_of(call.reads[0]), rows);
        copy_to_tiles(rows, item_, {call.writes[1]});
    }

    // Tiles of a block column: A -= L L_j^H.
    void update(const TaskCall& call) const {
        if (info_->any()) return;
        const BlasMatrix part = matrix_of(call.writes[0]);
        const Tiles left{call.reads[0]}, across{call.reads[1]};
        const std::int64_t side = left.side();
        const BlasMatrix right = adjoint(across.tile(0, part.columns, side), type_);
        for (std::int64_t t = 0; t < left.count(); ++t) {
            const BlasMatrix rows = rows_of(part, item_, t * side, std::min(part.rows, (t + 1) * side));
            blas_->gemm(type_, {-1, 0}, left.tile(t, rows.rows, side), right, {1, 0}, rows);
        }
    }

    void copy(const TaskCall& call) const { copy_to_tiles(matrix_of(call.reads[0]), item_, {call.writes[0]}); }

    // With panel k of a triangle and the rows from its diagonal down, or up to it: X_k, and what B_t has of it; or of
    // the transposed, what X_t has in B_k, and then X_k.
    void solve(const TaskCall& call, const TriangularSystem& system) const {
        const Tiles tiles{call.reads[0]};
        const BlasMatrix sides = matrix_of(call.writes[0]);
        const std::int64_t side = tiles.side(), diagonal = system.upper ? tiles.count() - 1 : 0;
        const auto rows = [&](std::int64_t t) {
            return rows_of(sides, item_, t * side, std::min(sides.rows, (t + 1) * side));
        };
        const BlasMatrix own = rows(diagonal);
        const auto finish = [&] {
            blas_->trsm(type_, Blas::Side::left, system, tiles.tile(diagonal, own.rows, own.rows), own);
        };
        const bool straight = system.op == Transpose::none;
        if (straight) finish();
        for (std::int64_t t = 0; t < tiles.count(); ++t) {
            if (t == diagonal) continue;
            const BlasMatrix other = rows(t), tile = meant(tiles.tile(t, other.rows, own.rows), system.op, type_);
            blas_->gemm(type_, {-1, 0}, tile, straight ? own : other, {1, 0}, straight ? other : own);
        }
        if (!straight) finish();
    }

    // A block column from the diagonal down: P A = L U. The tiles get all of it, what comes behind them the pivots.
    void lu_panel(const TaskCall& call) const {
        const BlasMatrix column = matrix_of(call.writes[0]);
        const std::int64_t first = call.writes[0].box.lo[0], count = std::min(column.rows, column.columns);
        std::vector<int> pivots(static_cast<std::size_t>(count));
        if (const std::int64_t info = blas_->getrf(type_, column, pivots.data()); info > 0) info_->failed(first + info);
        copy_to_tiles(column, item_, {call.writes[1]});
        std::memcpy(call.writes[2].data, pivots.data(), pivots.size() * sizeof(int));
        for (int& p : pivots) p += static_cast<int>(first);
        info_->add_pivots(first, pivots);
    }

    // Interchanges of rows of a block column, as a panel says; `solves`: and U_kj = L_kk^-1 A_kj.
    void lu_swap(const TaskCall& call, bool solves) const {
        const BlasMatrix column = matrix_of(call.writes[0]);
        const std::int64_t width = std::min(call.reads[0].box.extent(3), column.rows);
        const int* pivots = reinterpret_cast<const int*>(call.reads[0].data);
        for (std::int64_t j = 0; j < column.columns; ++j) {
            std::byte* items = column.data + j * column.column_step * item_;
            for (std::int64_t i = 0; i < width; ++i)
                if (const std::int64_t other = pivots[i] - 1; other != i)
                    std::swap_ranges(items + i * item_, items + (i + 1) * item_, items + other * item_);
        }
        if (solves)
            blas_->trsm(type_, Blas::Side::left, {false, Transpose::none, true},
                        Tiles{call.reads[2]}.tile(0, width, width), rows_of(column, item_, 0, width));
    }

    // Tiles of a block column: A -= L U_kj.
    void lu_update(const TaskCall& call) const {
        const BlasMatrix part = matrix_of(call.writes[0]), row = matrix_of(call.reads[1]);
        const Tiles left{call.reads[0]};
        const std::int64_t side = left.side();
        for (std::int64_t t = 0; t < left.count(); ++t) {
            const BlasMatrix rows = rows_of(part, item_, t * side, std::min(part.rows, (t + 1) * side));
            blas_->gemm(type_, {-1, 0}, left.tile(t, rows.rows, side), row, {1, 0}, rows);
        }
    }

    // A block column from the diagonal down: A = Q R, Q = I - V T V^H.
    void qr_panel(const TaskCall& call) const {
        const BlasMatrix column = matrix_of(call.writes[0]), triangle = matrix_of(call.writes[1]);
        for (std::int64_t j = 0; j < triangle.columns; ++j)
            std::memset(triangle.data + j * triangle.column_step * item_, 0,
                        static_cast<std::size_t>(triangle.rows * item_));
        blas_->geqrt(type_, column, triangle);
        if (call.writes.size() > 2) copy_reflectors(column, triangle, {call.writes[2]});
    }

    void qr_copy(const TaskCall& call) const {
        copy_reflectors(matrix_of(call.reads[0]), matrix_of(call.reads[1]), {call.writes[0]});
    }

    // Some columns of C, with a panel's V and T: C -= V op(T) V^H C.
    void qr_reflect(const TaskCall& call, Transpose op) const {
        const Tiles tiles{call.reads[0]};
        const BlasMatrix part = matrix_of(call.writes[0]);
        const std::int64_t side = tiles.side(), last = tiles.count() - 1, items = side * part.columns;
        std::vector<std::byte> memory(static_cast<std::size_t>(2 * items * item_));
        const BlasMatrix w{memory.data(), side, part.columns, 1, side},
            x{memory.data() + items * item_, side, part.columns, 1, side};
        const auto rows = [&](std::int64_t t) {
            return rows_of(part, item_, t * side, std::min(part.rows, (t + 1) * side));
        };
        for (std::int64_t t = 0; t < last; ++t)
            blas_->gemm(type_, {1, 0}, adjoint(tiles.tile(t, rows(t).rows, side), type_), rows(t),
                        {t == 0 ? 0.0 : 1.0, 0}, w);
        blas_->gemm(type_, {1, 0}, meant(tiles.tile(last, side, side), op, type_), w, {0, 0}, x);
        for (std::int64_t t = 0; t < last; ++t)
            blas_->gemm(type_, {-1, 0}, tiles.tile(t, rows(t).rows, side), x, {1, 0}, rows(t));
    }

private:
    // The tiles of V, as they are multiplied with: 0 above the diagonal and ones on it; behind them T.
    void copy_reflectors(const BlasMatrix& column, const BlasMatrix& triangle, const Tiles& to) const {
        copy_to_tiles(column, item_, to);
        const std::int64_t side = to.side(), count = std::min(column.rows, column.columns);
        const BlasMatrix top = to.tile(0, side, side), t = to.tile(to.count() - 1, side, side);
        for (std::int64_t j = 0; j < side; ++j) {
            std::byte* items = top.data + j * side * item_;
            std::memset(items, 0, static_cast<std::size_t>((j < count ? j + 1 : side) * item_));
            if (j < count) put_one(type_, items + j * item_);
            if (j < count)
                std::memcpy(t.data + j * side * item_, triangle.data + j * triangle.column_step * item_,
                            static_cast<std::size_t>(side * item_));
        }
    }

    std::shared_ptr<const Blas> blas_;
    Dtype type_;
    std::int64_t item_;
    std::shared_ptr<FactorInfo> info_;
};

}  // namespace

std::vector<TaskFunction> factor_tasks(std::shared_ptr<const Blas> blas, Dtype type, std::shared_ptr<FactorInfo> info) {
    const auto tasks = std::make_shared<FactorTasks>(std::move(blas), type, std::move(info));
    std::vector<TaskFunction> all(factor_task_count);
    all[cholesky_panel] = [tasks](const TaskCall& call) { tasks->factor(call); };
    all[cholesky_below] = [tasks](const TaskCall& call) { tasks->below(call); };
    all[cholesky_update] = [tasks](const TaskCall& call) { tasks->update(call); };
    all[copy_panel] = [tasks](const TaskCall& call) { tasks->copy(call); };
    all[lu_panel] = [tasks](const TaskCall& call) { tasks->lu_panel(call); };
    all[lu_swap] = [tasks](const TaskCall& call) { tasks->lu_swap(call, false); };
    all[lu_row] = [tasks](const TaskCall& call) { tasks->lu_swap(call, true); };
    all[lu_update] = [tasks](const TaskCall& call) { tasks->lu_update(call); };
    all[qr_panel] = [tasks](const TaskCall& call) { tasks->qr_panel(call); };
    all[qr_copy] = [tasks](const TaskCall& call) { tasks->qr_copy(call); };
    all[qr_reflect] = [tasks](const TaskCall& call) { tasks->qr_reflect(call, Transpose::none); };
    all[qr_reflect_adjoint] = [tasks](const TaskCall& call) { tasks->qr_reflect(call, Transpose::adjoint); };
    for (std::int32_t number = 0; number < TriangularSystem::count; ++number)
        all[static_cast<std::size_t>(solve_first + number)] =
            [tasks, system = TriangularSystem::of(number)](const TaskCall& call) { tasks->solve(call, system); };
    return all;
}

}  // namespace tilewave
