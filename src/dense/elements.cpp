#include "dense/elements.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "transport/collectives.hpp"

namespace tilewave {

namespace {

// f(items of a column, its number in the whole matrix) for each column of this rank.
template <class F>
void each_column(const MatrixStorage& m, F f) {
    const auto of_type = [&](auto zero) {
        using T = decltype(zero);
        auto* const items = reinterpret_cast<T*>(const_cast<std::byte*>(m.data()));
        for (std::int64_t j = 0; j < m.columns(); ++j) f(items + j * m.rows(), m.column({j}).at);
    };
    switch (m.type()) {
        case Dtype::f4: return of_type(float{});
        case Dtype::f8: return of_type(double{});
        case Dtype::c8: return of_type(std::complex<float>{});
        default: return of_type(std::complex<double>{});
    }
}

// Of this rank the row, counted here, that the diagonal has in a column; -1 where another rank has it.
std::int64_t row_of_diagonal(const MatrixStorage& m, std::int64_t column) {
    const Axis& rows = m.layout().rows;
    const bool here = column < rows.extent && rows.part_of({column}) == m.layout().row_of(m.context().rank());
    return here ? rows.local_of({column}).at : -1;
}

}  // namespace

void set_identity(MatrixStorage& m) {
    each_column(m, [&](auto* items, std::int64_t column) {
        std::fill_n(items, m.rows(), 0);
        if (const std::int64_t row = row_of_diagonal(m, column); row >= 0) items[row] = 1;
    });
}

void clear_rows(MatrixStorage& m, std::int64_t first) {
    each_column(m,
                [&](auto* items, std::int64_t) { std::fill(items + std::min(first, m.rows()), items + m.rows(), 0); });
}

void clear_above_diagonal(MatrixStorage& m) {
    each_column(m, [&](auto* items, std::int64_t column) { std::fill_n(items, std::min(column, m.rows()), 0); });
}

std::int64_t first_zero(const MatrixStorage& m) {
    std::int64_t found = 0;
    each_column(m, [&](const auto* items, std::int64_t column) {
        const std::int64_t row = row_of_diagonal(m, column);
        if (row >= 0 && std::abs(items[row]) == 0 && (found == 0 || column + 1 < found)) found = column + 1;
    });
    return found;
}

std::int64_t first_dependent(const MatrixStorage& r, double cond) {
    std::int64_t found = 0;
    each_column(r, [&](const auto* items, std::int64_t column) {
        if (found != 0) return;
        double largest = 0, squares = 0;
        for (std::int64_t i = 0; i <= column; ++i) {
            const double size = std::abs(items[i]);
            largest = size > largest || std::isnan(size) ? size : largest;
            if (std::isnan(largest)) return;
        }
        for (std::int64_t i = 0; i <= column; ++i) squares += std::norm(std::complex<double>(items[i]) / largest);
        const bool dependent = std::isfinite(largest) && std::abs(items[column]) / largest <= cond * std::sqrt(squares);
        if (largest == 0 || dependent) found = column + 1;
    });
    return found;
}

std::int64_t least_number(Context& context, std::int64_t here) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::int64_t least = here == 0 ? none : here, room[2];
    allreduce_min(context.transport(), {&least, 1}, room);
    return least == none ? 0 : least;
}

std::pair<std::complex<double>, std::int64_t> determinant_of(const FactorStorage& f) {
    using Number = std::complex<double>;
    std::string numbers;
    each_column(f.matrix, [&](const auto* items, std::int64_t column) {
        const Number value(items[column]);
        numbers.append(reinterpret_cast<const char*>(&value), sizeof value);
    });
    Number found = 1;
    for (std::size_t i = 0; i < f.pivots.size(); ++i)
        if (f.pivots[i] != static_cast<std::int64_t>(i)) found = -found;
    std::int64_t exponent = 0;  // partial products may leave the range of doubles where the whole does not
    for (const std::string& bytes : allgather(f.matrix.context().transport(), numbers))
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
            Number value;
            std::memcpy(static_cast<void*>(&value), bytes.data() + at, sizeof value);
            const bool real = !is_complex(f.matrix.type());  // without infinity times 0
            found = {found.real() * value.real() - found.imag() * value.imag(),
                     real ? 0 : found.real() * value.imag() + found.imag() * value.real()};
            const double size = std::max(std::abs(found.real()), std::abs(found.imag()));
            if (!(size > 0) || !std::isfinite(size)) continue;
            const int more = std::ilogb(size) + 1;
            found = {std::ldexp(found.real(), -more), std::ldexp(found.imag(), -more)};
            exponent += more;
        }
    return {found, exponent};
}

BlockCyclic rows_of(const BlockCyclic& layout, std::int64_t rows) {
    return {{rows, 1, 0}, layout.columns, layout.ranks_by_column};
}

}  // namespace tilewave
