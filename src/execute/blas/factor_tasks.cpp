#include "execute/blas/factor_tasks.hpp"

#include <algorithm>
#include <cstring>

#include "execute/blas/column_tasks.hpp"
#include "execute/blas/tasks.hpp"
#include "execute/blas/tiles.hpp"

namespace tilewave {

namespace {

// The row of the whole matrix at which a panel begins: that of its tiles; without tiles the matrix has one row of
// ranks.
std::int64_t first_row(const TaskCall& call) {
    const Box& last = call.writes.back().box;
    return last.dims() == 4 ? last.lo[0] * last.extent(2) : call.writes[0].box.lo[0];
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
                info_->failed(first_row(call) + info);
            else
                blas_->trsm(type_, Blas::Side::right, {false, Transpose::adjoint, false}, top, below);
        }
        if (call.writes.size() > 1) copy_to_tiles(type_, below, held_conjugate(call.writes[1]));
    }

    // A tile on the diagonal; in a grid of several rows of ranks it goes to others.
    void top(const TaskCall& call) const {
        const BlasMatrix tile = matrix_of(call.writes[0]);
        if (!info_->any())
            if (const std::int64_t info = blas_->potrf(type_, tile); info > 0) info_->failed(first_row(call) + info);
        if (call.writes.size() > 1) copy_to_tiles(type_, tile, held_conjugate(call.writes[1]));
    }

    // Some rows of a block column whose diagonal is factored.
    void below(const TaskCall& call) const {
        const BlasMatrix rows = matrix_of(call.writes[0]);
        if (!info_->any())
            blas_->trsm(type_, Blas::Side::right, {false, Transpose::adjoint, false},
                        call.reads[0].box.dims() == 2
                            ? matrix_of(call.reads[0])
                            : held_conjugate(call.reads[0]).from(0, rows.columns, rows.columns),
                        rows);
        copy_to_tiles(type_, rows, held_conjugate(call.writes[1]));
    }

    // Tiles of a block column: A -= L L_j^H.
    void update(const TaskCall& call) const {
        if (info_->any()) return;
        const BlasMatrix part = matrix_of(call.writes[0]);
        const Tiles left = held_conjugate(call.reads[0]), across = held_conjugate(call.reads[1]);
        const std::int64_t side = left.side();
        subtract(part, left, adjoint(across.from(0, part.columns, side), type_));
    }

    void copy(const TaskCall& call, bool conjugate) const {
        copy_to_tiles(type_, matrix_of(call.reads[0]), {call.writes[0], conjugate && is_complex(type_)});
    }

    // With panel k of a triangle and the rows from its diagonal down, or up to it: X_k, and what B_t has of it; or of
    // the transposed, what X_t has in B_k, and then X_k.
    void solve(const TaskCall& call, const TriangularSystem& system) const {
        const bool straight = system.op == Transpose::none;
        const Tiles tiles{call.reads[0], system.op == Transpose::adjoint && is_complex(type_)};
        const BlasMatrix sides = matrix_of(call.writes[0]);
        const std::int64_t side = tiles.side(), diagonal = system.upper ? tiles.count() - 1 : 0, lo = diagonal * side,
                           hi = std::min(sides.rows, lo + side);
        const BlasMatrix solved = rows_of(sides, item_, lo, hi);
        const BlasMatrix others = system.upper ? rows_of(sides, item_, 0, lo) : rows_of(sides, item_, hi, sides.rows);
        const auto finish = [&] {
            blas_->trsm(type_, Blas::Side::left, system, tiles.from(diagonal, solved.rows, solved.rows), solved);
        };
        if (straight) finish();
        tiles.each(system.upper ? 0 : 1, others.rows, solved.rows, [&](const BlasMatrix& tile, std::int64_t at) {
            const BlasMatrix rows = rows_of(others, item_, at, at + tile.rows);
            blas_->gemm(type_, {-1, 0}, meant(tile, system.op, type_), straight ? solved : rows, {1, 0},
                        straight ? rows : solved);
        });
        if (!straight) finish();
    }

    // A block column from the diagonal down: P A = L U. The tiles get all of it, what comes behind them the pivots.
    void lu_panel(const TaskCall& call) const {
        const BlasMatrix column = matrix_of(call.writes[0]);
        const std::int64_t first = call.writes[0].box.lo[0], count = std::min(column.rows, column.columns);
        std::vector<int> pivots(static_cast<std::size_t>(count));
        if (const std::int64_t info = blas_->getrf(type_, column, pivots.data()); info > 0) info_->failed(first + info);
        copy_to_tiles(type_, column, {call.writes[1]});
        std::memcpy(call.writes[2].data, pivots.data(), pivots.size() * sizeof(int));
        for (int& p : pivots) p += static_cast<int>(first);
        info_->add_pivots(first, pivots);
    }

    // Interchanges rows of a block column as a panel's pivots ask; `solves`: and U_kj = L_kk^-1 A_kj.
    void lu_swap(const TaskCall& call, bool solves) const {
        const BlasMatrix column = matrix_of(call.writes[0]);
        const std::int64_t width = std::min(call.reads[0].box.extent(3), column.rows);
        const int* pivots = reinterpret_cast<const int*>(call.reads[0].data);
        std::vector<std::int64_t> others(pivots, pivots + width);
        for (std::int64_t& row : others) --row;
        interchange_rows(type_, column, others);
        if (solves)
            blas_->trsm(type_, Blas::Side::left, {false, Transpose::none, true},
                        Tiles{call.reads[2]}.from(0, width, width), rows_of(column, item_, 0, width));
    }

    // Tiles of a block column: A -= L U_kj.
    void lu_update(const TaskCall& call) const {
        const BlasMatrix part = matrix_of(call.writes[0]);
        const std::int64_t side = call.reads[0].box.extent(2);
        subtract(part, {call.reads[0]},
                 call.reads[1].box.dims() == 2 ? matrix_of(call.reads[1])
                                               : Tiles{call.reads[1]}.from(0, side, part.columns));
    }

    // Tiles of a block column: C -= V X.
    void qr_subtract(const TaskCall& call) const {
        const BlasMatrix part = matrix_of(call.writes[0]);
        subtract(part, held_conjugate(call.reads[0]), column_tile(call.reads[1], 0, part.columns));
    }

    // A block column from the diagonal down: A = Q R, Q = I - V T V^H.
    void qr_panel(const TaskCall& call) const {
        const BlasMatrix column = matrix_of(call.writes[0]), triangle = matrix_of(call.writes[1]);
        for (std::int64_t j = 0; j < triangle.columns; ++j)
            std::memset(triangle.data + j * triangle.column_step * item_, 0,
                        static_cast<std::size_t>(triangle.rows * item_));
        blas_->geqrt(type_, column, triangle);
        if (call.writes.size() == 2) return;
        // The tiles of V, and behind them T.
        RegionView reflectors = call.writes[2], behind = reflectors;
        behind.box.lo[1] = --reflectors.box.hi[1];
        behind.data += reflectors.box.extent(1) * reflectors.stride_bytes[1];
        copy_reflectors(type_, column, held_conjugate(reflectors));
        copy_to_tiles(type_, triangle, held_conjugate(behind));
    }

    void qr_copy(const TaskCall& call) const {
        copy_reflectors(type_, matrix_of(call.reads[0]), held_conjugate(call.writes[0]));
    }

    // Some columns of C, with a panel's V and T: C -= V op(T) V^H C.
    void qr_reflect(const TaskCall& call, Transpose op) const {
        const Tiles tiles = held_conjugate(call.reads[0]);
        const BlasMatrix part = matrix_of(call.writes[0]);
        const std::int64_t side = tiles.side(), items = side * part.columns;
        std::vector<std::byte> memory(static_cast<std::size_t>(2 * items * item_));
        const BlasMatrix w{memory.data(), side, part.columns, 1, side},
            x{memory.data() + items * item_, side, part.columns, 1, side};
        const BlasMatrix t = tiles.from(tiles.count() - 1, side, side);
        tiles.each(0, part.rows, side, [&](const BlasMatrix& v, std::int64_t at) {
            blas_->gemm(type_, {1, 0}, adjoint(v, type_), rows_of(part, item_, at, at + v.rows),
                        {at == 0 ? 0.0 : 1.0, 0}, w);
        });
        blas_->gemm(type_, {1, 0}, meant(t, op, type_), w, {0, 0}, x);
        subtract(part, tiles, x);
    }

private:
    Tiles held_conjugate(const RegionView& view) const { return {view, is_complex(type_)}; }

    // part -= tiles right
    void subtract(const BlasMatrix& part, const Tiles& tiles, const BlasMatrix& right) const {
        tiles.each(0, part.rows, tiles.side(), [&](const BlasMatrix& left, std::int64_t at) {
            blas_->gemm(type_, {-1, 0}, left, right, {1, 0}, rows_of(part, item_, at, at + left.rows));
        });
    }

    std::shared_ptr<const Blas> blas_;
    Dtype type_;
    std::int64_t item_;
    std::shared_ptr<FactorInfo> info_;
};

}  // namespace

std::vector<TaskFunction> factor_tasks(std::shared_ptr<const Blas> blas, Dtype type, std::shared_ptr<FactorInfo> info,
                                       const RowPart& rows) {
    std::vector<TaskFunction> all(factor_task_count);
    add_column_tasks(all, blas, type, info, rows);
    const auto tasks = std::make_shared<FactorTasks>(std::move(blas), type, std::move(info));
    all[cholesky_panel] = [tasks](const TaskCall& call) { tasks->factor(call); };
    all[cholesky_top] = [tasks](const TaskCall& call) { tasks->top(call); };
    all[copy_tiles] = [](const TaskCall& call) {
        std::memcpy(call.writes[0].data, call.reads[0].data,
                    static_cast<std::size_t>(call.reads[0].box.points() * call.reads[0].item_bytes));
    };
    all[cholesky_below] = [tasks](const TaskCall& call) { tasks->below(call); };
    all[cholesky_update] = [tasks](const TaskCall& call) { tasks->update(call); };
    all[copy_panel] = [tasks](const TaskCall& call) { tasks->copy(call, false); };
    all[copy_conjugate] = [tasks](const TaskCall& call) { tasks->copy(call, true); };
    all[lu_panel] = [tasks](const TaskCall& call) { tasks->lu_panel(call); };
    all[lu_swap] = [tasks](const TaskCall& call) { tasks->lu_swap(call, false); };
    all[lu_row] = [tasks](const TaskCall& call) { tasks->lu_swap(call, true); };
    all[qr_subtract] = [tasks](const TaskCall& call) { tasks->qr_subtract(call); };
    all[lu_update] = [tasks](const TaskCall& call) { tasks->lu_update(call); };
    all[qr_panel] = [tasks](const TaskCall& call) { tasks->qr_panel(call); };
    all[qr_copy] = [tasks](const TaskCall& call) { tasks->qr_copy(call); };
    all[qr_reflect] = [tasks](const TaskCall& call) { tasks->qr_reflect(call, Transpose::none); };
    all[qr_reflect_adjoint] = [tasks](const TaskCall& call) { tasks->qr_reflect(call, Transpose::adjoint); };
    for (std::int32_t number = 0; number < TriangularSystem::count; ++number)
        all[solve_first + number] = [tasks, system = TriangularSystem::of(number)](const TaskCall& call) {
            tasks->solve(call, system);
        };
    return all;
}

}  // namespace tilewave
