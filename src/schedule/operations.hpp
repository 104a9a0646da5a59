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

/// Cholesky: cholesky_panel factors a block column and writes its tiles below the diagonal, cholesky_below does so for
/// some tiles of one whose diagonal is factored; cholesky_update subtracts what a panel contributes from some tiles of
/// a block column. copy_panel copies a block column's tiles, copy_conjugate their conjugates. LU: lu_panel; lu_swap
/// interchanges rows of a block column, lu_row does so and computes its row of U, lu_update updates the rest. QR:
/// qr_panel; qr_copy copies a panel's reflectors; qr_reflect applies their product Q, qr_reflect_adjoint Q^H. From
/// solve_first on: a panel of a triangular system, by TriangularSystem::number().
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
    solve_first
};
inline constexpr std::int32_t factor_task_count = solve_first + TriangularSystem::count;

/// What the speed of an operation is like. Amounts: flops, of copies bytes.
enum class TaskSpeed : std::uint8_t { panel, product, copy };
constexpr TaskSpeed speed_of(std::int32_t operation) {
    switch (operation) {
        case cholesky_panel:
        case lu_panel:
        case cholesky_below:
        case qr_panel: return TaskSpeed::panel;
        case copy_panel:
        case copy_conjugate:
        case qr_copy: return TaskSpeed::copy;
        default: return TaskSpeed::product;
    }
}

}  // namespace tilewave
