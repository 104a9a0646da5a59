// The operations of factorizations and solves, by number: generators name them, factor_tasks() has them.
#pragma once
#include <cstdint>

#include "tilewave/engine/matrix.hpp"

namespace tilewave {

/// op(T) X = B with a triangle T of a matrix; `unit`: a diagonal of ones, whatever the matrix has there.
struct TriangularSystem {
    bool upper = false;
    Transpose op = Transpose::none;
    bool unit = false;

    /// Whether the last rows of X are known first.
    bool backward() const { return upper == (op == Transpose::none); }
    /// All of them, counted.
    static constexpr int count = 12;
    std::int32_t number() const { return (upper ? 6 : 0) + static_cast<std::int32_t>(op) * 2 + (unit ? 1 : 0); }
    static TriangularSystem of(std::int32_t number) {
        return {number >= 6, static_cast<Transpose>(number % 6 / 2), number % 2 == 1};
    }
};

/// Cholesky: cholesky_panel factors a block column and writes its tiles below the diagonal. cholesky_top factors the
/// tile on the diagonal alone, cholesky_below makes some tiles below it with that; cholesky_update subtracts what a
/// panel contributes from some tiles of a block column. copy_tiles copies tiles of panels as they are. copy_panel
/// copies a block column's tiles, copy_conjugate their conjugates. LU: lu_panel; lu_swap interchanges rows of a block
/// column, lu_row does so and computes its row of U, lu_update updates the rest. On a column of ranks: lu_first picks a
/// row of its part for the first pivot, lu_pick takes the pivot of a column and picks for the next, lu_last takes the
/// last, lu_best joins what ranks have picked; lu_lift copies the rows of a diagonal tile, lu_trade interchanges rows
/// of them with others, lu_drop puts them back, lu_drop_solve makes them U. QR: qr_panel; qr_copy copies the reflectors
/// of the tile on the diagonal; qr_reflect applies their product Q, qr_reflect_adjoint Q^H. On a column of ranks:
/// qr_first multiplies a column with all of the panel, qr_next takes its reflector and does so with the next column,
/// qr_last takes the last, qr_sum joins what ranks have; qr_project is V^H C, qr_turn T^H of it, qr_subtract C - V X.
/// columns_left_out stands for columns of a panel in parts of schedules that only predictions play; amount: columns.
/// From solve_first on: a panel of a triangular system, by TriangularSystem::number().
enum FactorTask : std::int32_t {
    cholesky_panel,
    cholesky_update,
    copy_panel,
    lu_panel,
    lu_swap,
    lu_row,
    lu_update,
    qr_panel,
    qr_copy,
    qr_reflect,
    qr_reflect_adjoint,
    cholesky_below,
    copy_conjugate,
    cholesky_top,
    copy_tiles,
    lu_first,
    lu_pick,
    lu_last,
    lu_best,
    lu_lift,
    lu_trade,
    lu_drop,
    lu_drop_solve,
    qr_first,
    qr_next,
    qr_last,
    qr_sum,
    qr_project,
    qr_turn,
    qr_subtract,
    columns_left_out,
    solve_first
};
inline constexpr std::int32_t factor_task_count = solve_first + TriangularSystem::count;

/// What the speed of an operation is like. Amounts: flops, of copies bytes.
enum class TaskSpeed : std::uint8_t { panel, product, copy };
constexpr TaskSpeed speed_of(std::int32_t operation) {
    switch (operation) {
        case cholesky_panel:
        case lu_panel:
        case cholesky_top:
        case lu_first:
        case lu_pick:
        case lu_last:
        case qr_first:
        case qr_next:
        case qr_last:
        case cholesky_below:
        case qr_panel: return TaskSpeed::panel;
        case copy_panel:
        case copy_conjugate:
        case copy_tiles:
        case lu_best:
        case lu_lift:
        case lu_trade:
        case lu_drop:
        case qr_sum:
        case qr_copy: return TaskSpeed::copy;
        default: return TaskSpeed::product;
    }
}

}  // namespace tilewave
