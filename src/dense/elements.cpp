#include "dense/elements.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <type_traits>

#include "context/plans_only.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

namespace {

// A row of the whole matrix, counted here; -1 where another rank has it, or none.
std::int64_t row_here(const MatrixStorage& m, std::int64_t row) {
    const Axis& rows = m.layout().rows;
    const bool here = row < rows.extent && rows.part_of({row}) == m.layout().row_of(m.context().rank());
    return here ? rows.local_of({row}).at : -1;
}

// As double, or complex numbers of doubles.
template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::complex<double>>;

// Elements of a part of the rows before a row of the whole matrix.
std::int64_t rows_before(const Axis& rows, int part, std::int64_t row) {
    return rows.before(part, {std::min(row, rows.extent)});
}

}  // namespace

void set_identity(MatrixStorage& m) {
    each_column(m, [&](auto* items, std::int64_t column) {
        std::fill_n(items, m.rows(), 0);
        if (const std::int64_t row = row_here(m, column); row >= 0) items[row] = 1;
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
        const std::int64_t row = row_here(m, column);
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
        const std::int64_t count = rows_before(r.layout().rows, part, column + 1), row = row_here(r, column);
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

namespace {

// An element of which one rank has the bits, the others zeros.
using Bits = std::array<std::uint64_t, 2>;

std::vector<std::complex<double>> everywhere(Context& context, std::vector<Bits> bits) {
    allreduce(context.transport(), bits, [](auto& local, const auto& other) {
        for (std::size_t i = 0; i < local.size(); ++i)
            for (const std::size_t part : {0u, 1u}) local[i][part] |= other[i][part];
    });
    std::vector<std::complex<double>> found;
    found.reserve(bits.size());
    for (const Bits& each : bits) found.push_back(std::bit_cast<std::complex<double>>(each));
    return found;
}

template <class T>
Bits bits_of(T item) {
    return std::bit_cast<Bits>(std::complex<double>(item));
}

}  // namespace

std::vector<std::complex<double>> diagonal_of(const MatrixStorage& m, std::int64_t offset) {
    const std::int64_t below = std::max<std::int64_t>(0, -offset), right = std::max<std::int64_t>(0, offset);
    const std::int64_t count = std::min(m.layout().rows.extent - below, m.layout().columns.extent - right);
    std::vector<Bits> bits(static_cast<std::size_t>(std::max<std::int64_t>(0, count)));
    each_column(m, [&](const auto* items, std::int64_t column) {
        const std::int64_t at = column - right, row = at >= 0 && at < count ? row_here(m, at + below) : -1;
        if (row >= 0) bits[static_cast<std::size_t>(at)] = bits_of(items[row]);
    });
    return everywhere(m.context(), std::move(bits));
}

void set_column(MatrixStorage& m, const std::vector<std::complex<double>>& values) {
    each_column(m, [&](auto* items, std::int64_t) {
        using T = std::decay_t<decltype(*items)>;
        for (std::int64_t i = 0; i < m.rows(); ++i) {
            const std::complex<double> value = values[static_cast<std::size_t>(m.row({i}).at)];
            if constexpr (std::is_floating_point_v<T>)
                items[i] = static_cast<T>(value.real());
            else
                items[i] = T(value);
        }
    });
}

std::vector<std::complex<double>> elements_of(const MatrixStorage& m, const Slice& rows, const Slice& columns) {
    const std::int64_t high = rows.count();
    std::vector<Bits> bits(static_cast<std::size_t>(high * columns.count()));
    each_column(m, [&](const auto* items, std::int64_t column) {
        const std::int64_t at = columns.place_of(column);
        for (std::int64_t i = 0; at >= 0 && i < high; ++i)
            if (const std::int64_t row = row_here(m, rows.first + i * rows.step); row >= 0)
                bits[static_cast<std::size_t>(i + at * high)] = bits_of(items[row]);
    });
    return everywhere(m.context(), std::move(bits));
}

double norm_of(const MatrixStorage& m, Norm kind) {
    const auto larger = [](double a, double b) { return std::isnan(a) || a >= b ? a : b; };
    const auto all = [&](std::vector<double>& values, const auto& combine) {
        allreduce(m.context().transport(), values, [&](auto& local, const auto& other) {
            for (std::size_t i = 0; i < local.size(); ++i) local[i] = combine(local[i], other[i]);
        });
    };
    const auto size = [](const auto& item) { return std::abs(Wide<std::decay_t<decltype(item)>>(item)); };
    const auto squares = [&](double unit) {
        std::vector<double> total(1);
        each_column(m, [&](const auto* items, std::int64_t) {
            double sum = 0;
            for (std::int64_t i = 0; i < m.rows(); ++i) sum += size(items[i]) / unit * (size(items[i]) / unit);
            total[0] += sum;
        });
        all(total, std::plus<>());
        return total[0];
    };
    if (kind == Norm::one) {
        std::vector<double> sums(static_cast<std::size_t>(m.layout().columns.extent));
        each_column(m, [&](const auto* items, std::int64_t column) {
            double sum = 0;
            for (std::int64_t i = 0; i < m.rows(); ++i) sum += size(items[i]);
            sums[static_cast<std::size_t>(column)] = sum;
        });
        all(sums, std::plus<>());
        return std::accumulate(sums.begin(), sums.end(), 0.0, larger);
    }
    if (kind == Norm::infinity) {
        std::vector<double> sums(static_cast<std::size_t>(m.layout().rows.extent)),
            here(static_cast<std::size_t>(m.rows()));
        each_column(m, [&](const auto* items, std::int64_t) {
            for (std::int64_t i = 0; i < m.rows(); ++i) here[static_cast<std::size_t>(i)] += size(items[i]);
        });
        for (std::int64_t i = 0; i < m.rows(); ++i)
            sums[static_cast<std::size_t>(m.row({i}).at)] = here[static_cast<std::size_t>(i)];
        all(sums, std::plus<>());
        return std::accumulate(sums.begin(), sums.end(), 0.0, larger);
    }
    // Where squares leave the range of doubles they are of elements relative to the largest one.
    if (kind == Norm::frobenius)
        if (const double plain = squares(1); plain > 1e-270 && std::isfinite(plain)) return std::sqrt(plain);
    std::vector<double> largest(1);
    each_column(m, [&](const auto* items, std::int64_t) {
        double most = 0;
        bool none = false;
        for (std::int64_t i = 0; i < m.rows(); ++i) {
            most = std::max(most, size(items[i]));
            none |= std::isnan(size(items[i]));
        }
        largest[0] = larger(largest[0], none ? std::numeric_limits<double>::quiet_NaN() : most);
    });
    all(largest, larger);
    if (kind == Norm::max || !(largest[0] > 0) || !std::isfinite(largest[0])) return largest[0];
    return largest[0] * std::sqrt(squares(largest[0]));
}

std::pair<std::complex<double>, std::int64_t> determinant_of(const FactorStorage& f) {
    using Number = std::complex<double>;
    Number found = 1;
    for (std::size_t i = 0; i < f.pivots.size(); ++i)
        if (f.pivots[i] != static_cast<std::int64_t>(i)) found = -found;
    std::int64_t exponent = 0;  // partial products may leave the range of doubles where the whole does not
    for (const Number& value : diagonal_of(f.matrix, 0)) {
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
