#include "execute/blas/factor_tasks.hpp"

#include <algorithm>
#include <cstring>

#include "execute/blas/tasks.hpp"

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

// op of a matrix, as a product takes it.
BlasMatrix meant(const BlasMatrix& m, Transpose op, Dtype type) {
    if (op == Transpose::none) return m;
    BlasMatrix t = m.transposed();
    if (op == Transpose::adjoint && is_complex(type)) t.conjugate = !m.conjugate;
    return t;
}
BlasMatrix adjoint(const BlasMatrix& m, Dtype type) {
    return meant(m, Transpose::adjoint, type);
}

// Tiles of at least so many rows lie by rows.
constexpr std::int64_t least_by_rows = 64;

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

void put_one(Dtype type, std::byte* at) {
    if (type == Dtype::f4 || type == Dtype::c8)
        *reinterpret_cast<float*>(at) = 1;
    else
        *reinterpret_cast<double*>(at) = 1;
}

// Copies a matrix by columns into tiles, its first row into the top of the first; what it does not fill becomes 0.
void copy_to_tiles(Dtype type, const BlasMatrix& from, const Tiles& to) {
    const std::int64_t side = to.side(), item = item_bytes(type);
    for (std::int64_t t = 0; t < to.count(); ++t) {
        const std::int64_t lo = t * side, high = std::clamp<std::int64_t>(from.rows - lo, 0, side);
        BlasMatrix tile = to.from(t, high, from.columns), source = rows_of(from, item, lo, lo + high);
        if (high < side || from.columns < side) std::memset(tile.data, 0, static_cast<std::size_t>(side * side * item));
        std::swap(source.conjugate, tile.conjugate);
        copy_matrix(type, source, tile);
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
        if (call.writes.size() > 1) copy_to_tiles(type_, below, held_conjugate(call.writes[1]));
    }

    // Some rows of a block column whose diagonal is factored.
    void below(const TaskCall& call) const {
        const BlasMatrix rows = matrix_of(call.writes[0]);
        if (!info_->any())
            blas_->trsm(type_, Blas::Side::right, {false, Transpose::adjoint, false}, matrix_of(call.reads[0]), rows);
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
        const BlasMatrix part = matrix_of(call.writes[0]), row = matrix_of(call.reads[1]);
        subtract(part, {call.reads[0]}, row);
    }

    // A block column from the diagonal down: A = Q R, Q = I - V T V^H.
    void qr_panel(const TaskCall& call) const {
        const BlasMatrix column = matrix_of(call.writes[0]), triangle = matrix_of(call.writes[1]);
        for (std::int64_t j = 0; j < triangle.columns; ++j)
            std::memset(triangle.data + j * triangle.column_step * item_, 0,
                        static_cast<std::size_t>(triangle.rows * item_));
        blas_->geqrt(type_, column, triangle);
        if (call.writes.size() > 2) copy_reflectors(column, triangle, held_conjugate(call.writes[2]));
    }

    void qr_copy(const TaskCall& call) const {
        copy_reflectors(matrix_of(call.reads[0]), matrix_of(call.reads[1]), held_conjugate(call.writes[0]));
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

    // The tiles of V, as they are multiplied with: 0 above the diagonal and ones on it; behind them T.
    void copy_reflectors(const BlasMatrix& column, const BlasMatrix& triangle, const Tiles& to) const {
        const std::int64_t side = to.side(), last = to.count() - 1, count = std::min(column.rows, column.columns);
        copy_to_tiles(type_, column, to);
        const BlasMatrix top = to.from(0, side, side);
        for (std::int64_t i = 0; i < side; ++i)
            for (std::int64_t j = std::min(i, count); j < side; ++j) {
                std::byte* item = top.data + (i * top.row_step + j * top.column_step) * item_;
                std::memset(item, 0, static_cast<std::size_t>(item_));
                if (i == j && i < count) put_one(type_, item);
            }
        RegionView behind = to.view;
        behind.data += last * to.view.stride_bytes[1];
        behind.box.lo[1] += last;
        copy_to_tiles(type_, {triangle.data, side, count, triangle.row_step, triangle.column_step},
                      {behind, to.conjugate});
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
    all[copy_panel] = [tasks](const TaskCall& call) { tasks->copy(call, false); };
    all[copy_conjugate] = [tasks](const TaskCall& call) { tasks->copy(call, true); };
    all[lu_panel] = [tasks](const TaskCall& call) { tasks->lu_panel(call); };
    all[lu_swap] = [tasks](const TaskCall& call) { tasks->lu_swap(call, false); };
    all[lu_row] = [tasks](const TaskCall& call) { tasks->lu_swap(call, true); };
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
