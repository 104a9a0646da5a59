#include "dense/elements.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "context/plans_only.hpp"
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

// Elements of a part of the rows before a row of the whole matrix.
std::int64_t rows_before(const Axis& rows, int part, std::int64_t row) {
    return rows.before(part, {std::min(row, rows.extent)});
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
    const int part = m.layout().row_of(m.context().rank());
    each_column(m, [&](auto* items, std::int64_t column) {
        std::fill_n(items, rows_before(m.layout().rows, part, column), 0);
    });
}

std::int64_t first_zero(const MatrixStorage& m) {
    std::int64_t found = 0;
    each_column(m, [&](const auto* items, std::int64_t column) {
        const std::int64_t row = row_of_diagonal(m, column);
        if (row >= 0 && std::abs(items[row]) == 0 && (found == 0 || column + 1 < found)) found = column + 1;
    });
    return found;
}

namespace {

// What a rank has of a column of R: its largest element, the squares of all divided by that, and its diagonal.
struct ColumnSize {
    double largest = 0, squares = 0, diagonal = -1;

    void add(double size) {
        if (std::isnan(largest) || size == 0) return;
        if (size > largest || std::isnan(size)) rescale(size);
        squares += size / largest * (size / largest);
    }
    void add(const ColumnSize& other) {
        diagonal = std::max(diagonal, other.diagonal);
        if (std::isnan(largest) || other.largest == 0) return;
        if (other.largest > largest || std::isnan(other.largest)) rescale(other.largest);
        squares += other.squares * (other.largest / largest) * (other.largest / largest);
    }
    bool dependent(double cond) const {
        return largest == 0 || (std::isfinite(largest) && diagonal / largest <= cond * std::sqrt(squares));
    }

private:
    void rescale(double size) {
        if (largest > 0) squares *= largest / size * (largest / size);
        largest = size;
    }
};

}  // namespace

std::int64_t first_dependent(const MatrixStorage& r, double cond) {
    Context& context = r.context();
    if (plans_only(context)) return 0;  // nothing was computed
    const int part = r.layout().row_of(context.rank());
    std::map<std::int64_t, ColumnSize> sizes;
    each_column(r, [&](const auto* items, std::int64_t column) {
        ColumnSize& size = sizes[column];
        const std::int64_t count = rows_before(r.layout().rows, part, column + 1), row = row_of_diagonal(r, column);
        for (std::int64_t i = 0; i < count; ++i) size.add(std::abs(items[i]));
        if (row >= 0) size.diagonal = std::abs(items[row]);
    });
    if (r.layout().rows.parts > 1) {
        std::string bytes;
        for (const auto& entry : sizes) bytes.append(reinterpret_cast<const char*>(&entry), sizeof entry);
        sizes.clear();
        for (const Given& some : allgather(context.transport(), bytes))
            for (std::size_t at = 0; at < some.ranks * some.text.size();
                 at += sizeof(std::pair<std::int64_t, ColumnSize>)) {
                const char* const entry = some.text.data() + at % some.text.size();
                std::int64_t column;
                ColumnSize size;
                std::memcpy(&column, entry, sizeof column);
                std::memcpy(static_cast<void*>(&size), entry + sizeof column, sizeof size);
                sizes[column].add(size);
            }
    }
    std::int64_t found = 0;
    for (const auto& [column, size] : sizes)
        if (found == 0 && size.dependent(cond)) found = column + 1;
    return least_number(context, found);
}

std::int64_t least_number(Context& context, std::int64_t here) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    if (plans_only(context)) return 0;  // nothing was computed
    std::int64_t least = here == 0 ? none : here, room[2];
    allreduce_min(context.transport(), {&least, 1}, room);
    return least == none ? 0 : least;
}

std::pair<std::complex<double>, std::int64_t> determinant_of(const FactorStorage& f) {
    using Number = std::complex<double>;
    std::string numbers;
    each_column(f.matrix, [&](const auto* items, std::int64_t column) {
        const std::int64_t row = row_of_diagonal(f.matrix, column);
        if (row < 0) return;
        const Number value(items[row]);
        numbers.append(reinterpret_cast<const char*>(&value), sizeof value);
    });
    Number found = 1;
    for (std::size_t i = 0; i < f.pivots.size(); ++i)
        if (f.pivots[i] != static_cast<std::int64_t>(i)) found = -found;
    std::int64_t exponent = 0;  // partial products may leave the range of doubles where the whole does not
    for (const Given& some : allgather(f.matrix.context().transport(), numbers))
        for (std::size_t at = 0; at < some.ranks * some.text.size(); at += sizeof(Number)) {
            Number value;
            std::memcpy(static_cast<void*>(&value), some.text.data() + at % some.text.size(), sizeof value);
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
    const Axis one{rows, 1, 0};
    return {layout.rows.parts > 1 ? layout.rows.resized(rows) : one, layout.columns, layout.ranks_by_column};
}

}  // namespace tilewave
