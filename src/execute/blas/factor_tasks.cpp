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
                blas_->trsm(type_, true, true, top, below);
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

    // With panel k of L and the rows from its diagonal down: X_k = L_kk^-1 B_k, then B_t -= L_tk X_k; or, the other way
    // up, B_k -= L_tk^H X_t, then X_k = L_kk^-H B_k.
    void solve(const TaskCall& call, bool up) const {
        const Tiles tiles{call.reads[0]};
        const BlasMatrix sides = matrix_of(call.writes[0]);
        const std::int64_t side = tiles.side(), width = std::min(side, sides.rows);
        const BlasMatrix own = rows_of(sides, item_, 0, width), top = tiles.tile(0, width, width);
        if (!up) blas_->trsm(type_, false, false, top, own);
        for (std::int64_t t = 1; t < tiles.count(); ++t) {
            const BlasMatrix rows = rows_of(sides, item_, t * side, std::min(sides.rows, (t + 1) * side)),
                             tile = tiles.tile(t, rows.rows, width);
            if (up)
                blas_->gemm(type_, {-1, 0}, adjoint(tile, type_), rows, {1, 0}, own);
            else
                blas_->gemm(type_, {-1, 0}, tile, own, {1, 0}, rows);
        }
        if (up) blas_->trsm(type_, false, true, top, own);
    }

private:
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
            [tasks](const TaskCall& call) { tasks->solve(call, false); },
            [tasks](const TaskCall& call) { tasks->solve(call, true); }};
}

}  // namespace tilewave
