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

// The conjugate transposed of a tile, as a product takes it.
BlasMatrix adjoint(const BlasMatrix& m, Dtype type) {
    BlasMatrix t = m.transposed();
    t.conjugate = type == Dtype::c8 || type == Dtype::c16;
    return t;
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
                blas_->trsm(type_, {true, false, true, false}, top, below);
        }
        if (call.writes.size() > 1) copy_to_tiles(below, item_, {call.writes[1]});
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

    // With panel k of L and the rows from its diagonal down: X_k = L_kk^-1 B_k, then B_t -= L_tk X_k.
    void solve_lower(const TaskCall& call, bool unit) const {
        const Tiles tiles{call.reads[0]};
        const BlasMatrix sides = matrix_of(call.writes[0]);
        const std::int64_t side = tiles.side(), width = std::min(side, sides.rows);
        const BlasMatrix own = rows_of(sides, item_, 0, width);
        blas_->trsm(type_, {false, false, false, unit}, tiles.tile(0, width, width), own);
        for (std::int64_t t = 1; t < tiles.count(); ++t) {
            const BlasMatrix rows = rows_of(sides, item_, t * side, std::min(sides.rows, (t + 1) * side));
            blas_->gemm(type_, {-1, 0}, tiles.tile(t, rows.rows, width), own, {1, 0}, rows);
        }
    }

    // The same panel the other way: B_k -= L_tk^H X_t, then X_k = L_kk^-H B_k.
    void solve_adjoint(const TaskCall& call) const {
        const Tiles tiles{call.reads[0]};
        const BlasMatrix sides = matrix_of(call.writes[0]);
        const std::int64_t side = tiles.side(), width = std::min(side, sides.rows);
        const BlasMatrix own = rows_of(sides, item_, 0, width);
        for (std::int64_t t = 1; t < tiles.count(); ++t) {
            const BlasMatrix rows = rows_of(sides, item_, t * side, std::min(sides.rows, (t + 1) * side));
            blas_->gemm(type_, {-1, 0}, adjoint(tiles.tile(t, rows.rows, width), type_), rows, {1, 0}, own);
        }
        blas_->trsm(type_, {false, false, true, false}, tiles.tile(0, width, width), own);
    }

    // With panel k of U and the rows down to its diagonal: X_k = U_kk^-1 B_k, then B_t -= U_tk X_k.
    void solve_upper(const TaskCall& call) const {
        const Tiles tiles{call.reads[0]};
        const BlasMatrix sides = matrix_of(call.writes[0]);
        const std::int64_t side = tiles.side(), last = tiles.count() - 1, width = sides.rows - last * side;
        const BlasMatrix own = rows_of(sides, item_, last * side, sides.rows);
        blas_->trsm(type_, {false, true, false, false}, tiles.tile(last, width, width), own);
        for (std::int64_t t = 0; t < last; ++t)
            blas_->gemm(type_, {-1, 0}, tiles.tile(t, side, width), own, {1, 0},
                        rows_of(sides, item_, t * side, (t + 1) * side));
    }

    // A block column from the diagonal down: P A = L U. The tiles get all of it, the last one the pivots.
    void lu_panel(const TaskCall& call) const {
        const BlasMatrix column = matrix_of(call.writes[0]);
        const std::int64_t first = call.writes[0].box.lo[0], count = std::min(column.rows, column.columns);
        std::vector<int> pivots(static_cast<std::size_t>(count));
        if (const std::int64_t info = blas_->getrf(type_, column, pivots.data()); info > 0) info_->failed(first + info);
        const RegionView& view = call.writes[1];
        const Tiles tiles{view};
        copy_to_tiles(column, item_, tiles);
        std::memcpy(pivots_in(tiles), pivots.data(), pivots.size() * sizeof(int));
        for (int& p : pivots) p += static_cast<int>(first);
        info_->add_pivots(first, pivots);
    }

    // Interchanges of rows of a block column, as a panel says; `solves`: and U_kj = L_kk^-1 A_kj.
    void lu_swap(const TaskCall& call, bool solves) const {
        const BlasMatrix column = matrix_of(call.writes[0]);
        const Tiles tiles{call.reads[0]};
        const std::int64_t width = std::min(tiles.side(), column.rows);
        const int* pivots = reinterpret_cast<const int*>(pivots_in(tiles));
        for (std::int64_t j = 0; j < column.columns; ++j) {
            std::byte* items = column.data + j * column.column_step * item_;
            for (std::int64_t i = 0; i < width; ++i)
                if (const std::int64_t other = pivots[i] - 1; other != i)
                    std::swap_ranges(items + i * item_, items + (i + 1) * item_, items + other * item_);
        }
        if (solves)
            blas_->trsm(type_, {false, false, false, true}, tiles.tile(0, width, width),
                        rows_of(column, item_, 0, width));
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

private:
    static std::byte* pivots_in(const Tiles& tiles) { return tiles.tile(tiles.count() - 1, 0, 0).data; }

    std::shared_ptr<const Blas> blas_;
    Dtype type_;
    std::int64_t item_;
    std::shared_ptr<FactorInfo> info_;
};

}  // namespace

std::vector<TaskFunction> factor_tasks(std::shared_ptr<const Blas> blas, Dtype type, std::shared_ptr<FactorInfo> info) {
    const auto tasks = std::make_shared<FactorTasks>(std::move(blas), type, std::move(info));
    return {[tasks](const TaskCall& call) { tasks->factor(call); },
            [tasks](const TaskCall& call) { tasks->update(call); },
            [tasks](const TaskCall& call) { tasks->copy(call); },
            [tasks](const TaskCall& call) { tasks->solve_lower(call, false); },
            [tasks](const TaskCall& call) { tasks->solve_adjoint(call); },
            [tasks](const TaskCall& call) { tasks->solve_lower(call, true); },
            [tasks](const TaskCall& call) { tasks->solve_upper(call); },
            [tasks](const TaskCall& call) { tasks->lu_panel(call); },
            [tasks](const TaskCall& call) { tasks->lu_swap(call, false); },
            [tasks](const TaskCall& call) { tasks->lu_swap(call, true); },
            [tasks](const TaskCall& call) { tasks->lu_update(call); }};
}

}  // namespace tilewave
