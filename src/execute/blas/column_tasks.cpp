#include "execute/blas/column_tasks.hpp"

#include <cmath>
#include <map>

#include "execute/blas/tiles.hpp"
#include "schedule/operations.hpp"

namespace tilewave {

namespace {

// The rows of a rank from tile k on, counted here and in the whole matrix.
struct LocalRows {
    RowPart rows;
    std::int64_t k = 0, block = 1;
    std::int64_t before(std::int64_t tile) const { return rows.tiles.before(rows.part, {tile}); }
    std::int64_t global(std::int64_t l) const {
        return rows.tiles.global_of(rows.part, {before(k) + l / block}).at * block + l % block;
    }
    bool has(std::int64_t tile) const { return rows.tiles.part_of({tile}) == rows.part; }
    // -1: another rank has it, or it is beyond `count` rows.
    std::int64_t local(std::int64_t g, std::int64_t count) const {
        if (g < 0 || !has(g / block)) return -1;
        const std::int64_t l = (before(g / block) - before(k)) * block + g % block;
        return l >= 0 && l < count ? l : -1;
    }
    bool has_diagonal() const { return has(k); }
};

// As LAPACK compares complex numbers.
template <class R>
R size_of(R x) {
    return std::abs(x);
}
template <class R>
R size_of(const std::complex<R>& x) {
    return std::abs(x.real()) + std::abs(x.imag());
}
template <class R>
bool larger(R x, R than) {
    return x > than || (std::isnan(x) && !std::isnan(than));
}

// Without the care for infinities of the library's product, which takes several times as long.
template <class R>
R product(R x, R y) {
    return x * y;
}
template <class R>
std::complex<R> product(const std::complex<R>& x, const std::complex<R>& y) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// What a rank picks for a pivot: a row of the panel behind its number in the whole matrix, and the row on the diagonal
// where it is known.
template <class T>
struct PickedRow {
    T* at;
    std::int64_t items;
    explicit PickedRow(const RegionView& view) : at(reinterpret_cast<T*>(view.data)), items(view.box.extent(3)) {}

    T* row() const { return at + 1; }
    T* diagonal() const { return at + items + 1; }
    std::int64_t number() const { return header(at) - 1; }
    bool has_diagonal() const { return header(at + items) == 1; }
    void set_number(std::int64_t number) const { set(at, number + 1); }
    void set_diagonal() const { set(at + items, 1); }
    void clear() const { std::fill_n(at, 2 * items, T{}); }

private:
    static std::int64_t header(const T* item) {
        std::int32_t found;
        std::memcpy(&found, item, sizeof found);
        return found;
    }
    static void set(T* item, std::int64_t value) {
        const auto number = static_cast<std::int32_t>(value);
        std::memcpy(static_cast<void*>(item), &number, sizeof number);
    }
};

// The pivot of column c of the panel among what ranks have picked, and the row on the diagonal.
template <class T>
struct Joined {
    const T *row = nullptr, *diagonal = nullptr;
    std::int64_t number = -1;

    Joined(const std::vector<RegionView>& views, std::size_t first, std::size_t end, std::int64_t c) {
        for (std::size_t i = first; i < end; ++i) {
            const PickedRow<T> one(views[i]);
            if (one.has_diagonal()) diagonal = one.diagonal();
            if (one.number() < 0) continue;
            const auto size = size_of(one.row()[c]);
            if (number >= 0 && !larger(size, size_of(row[c])) && (size != size_of(row[c]) || one.number() > number))
                continue;
            row = one.row();
            number = one.number();
        }
    }
};

// The interchanges of a panel as what moves where: row i of its diagonal tile gets what slot top[i] of the passing rows
// has in the end, and each row outside gets what its slot has, and gives its own for it. Numbers count from the panel's
// first row.
struct RowMoves {
    std::vector<std::int64_t> top;
    std::map<std::int64_t, std::int64_t> outside;  // the slot of each row

    RowMoves(const RegionView& pivots, std::int64_t count) {
        const int* at = reinterpret_cast<const int*>(pivots.data);
        std::vector<std::int64_t> held;  // the row that row i of the tile has; in the map: that a row outside has
        for (std::int64_t i = 0; i < count; ++i) held.push_back(i);
        for (std::int64_t i = 0; i < count && at[i] > 0; ++i) {
            const std::int64_t other = at[i] - 1;
            if (other < count)
                std::swap(held[i], held[other]);
            else
                std::swap(held[i], outside.try_emplace(other, other).first->second);
        }
        for (const std::int64_t row : held) {
            const auto from = outside.find(row);
            top.push_back(row < count || from == outside.end() ? std::min(row, count - 1) : from->second);
        }
    }
};

// A Householder reflector I - tau v v^H that turns a column with `alpha` on the diagonal, and below it elements of
// which `squares` is the sum of squares, into one with `beta` and zeros (LAPACK's larfg). v is `scale` times the
// elements.
template <class T>
struct Reflector {
    T tau{}, beta{}, scale{};

    Reflector(const T& alpha, const T& sum) : beta(alpha) {
        const double real = std::real(alpha), imaginary = std::imag(alpha), squares = std::real(sum);
        if (squares == 0 && imaginary == 0) return;
        const double size = -std::copysign(std::hypot(real, imaginary, std::sqrt(squares)), real);
        beta = static_cast<T>(size);
        tau = number_of<T>((size - real) / size, -imaginary / size);
        scale = T(1) / (alpha - beta);
    }
};

class ColumnTasks {
public:
    ColumnTasks(std::shared_ptr<const Blas> blas, Dtype type, std::shared_ptr<FactorInfo> info, const RowPart& rows)
        : blas_(std::move(blas)), type_(type), info_(std::move(info)), rows_(rows) {}

    void first(const TaskCall& call) const {
        const RegionView& pivots = call.writes[0];
        std::memset(pivots.data, 0, static_cast<std::size_t>(pivots.box.points() * pivots.item_bytes));
        with_type(type_, [&](auto zero) { pick<decltype(zero)>(call); });
    }

    void next(const TaskCall& call) const {
        with_type(type_, [&](auto zero) {
            take<decltype(zero)>(call);
            pick<decltype(zero)>(call);
        });
    }

    void last(const TaskCall& call) const {
        with_type(type_, [&](auto zero) { take<decltype(zero)>(call); });
        const RegionView& view = call.writes[0];
        const LocalRows rows = rows_of_panel(view);
        const std::int64_t first = rows.k * rows.block;
        const int* at = reinterpret_cast<const int*>(view.data);
        std::vector<int> pivots(at, at + call.reads[1].box.lo[0] - first + 1);
        for (int& p : pivots) p += static_cast<int>(first);
        info_->add_pivots(first, pivots);
        if (call.writes.size() > 1) copy_to_tiles(type_, matrix_of(call.writes.back()), {call.writes[1]});
    }

    void best(const TaskCall& call) const {
        with_type(type_, [&](auto zero) {
            using T = decltype(zero);
            const PickedRow<T> made(call.writes[0]);
            const std::int64_t c = call.reads[0].box.lo[0] % (made.items - 1);
            const Joined<T> joined(call.reads, 0, call.reads.size(), c);
            made.clear();
            if (joined.number >= 0) std::copy_n(joined.row, made.items - 1, made.row());
            made.set_number(joined.number);
            if (!joined.diagonal) return;
            std::copy_n(joined.diagonal, made.items - 1, made.diagonal());
            made.set_diagonal();
        });
    }

    // Rows of a diagonal tile, some block columns.
    void lift(const TaskCall& call) const {
        each_tile(matrix_of(call.reads[0]), call.writes[0],
                  [&](const BlasMatrix& columns, const BlasMatrix& tile) { copy_matrix(type_, columns, tile); });
    }

    void trade(const TaskCall& call) const {
        const LocalRows rows = rows_of_panel(call.reads[0]);
        const BlasMatrix all = matrix_of(call.writes[1]);
        std::vector<std::pair<std::int64_t, std::int64_t>> pairs;  // row here, slot
        for (const auto& [row, slot] : RowMoves(call.reads[0], rows.block).outside)
            if (const std::int64_t l = rows.local(rows.k * rows.block + row, all.rows); l >= 0)
                pairs.push_back({l, slot});
        with_type(type_, [&](auto zero) {
            using T = decltype(zero);
            each_tile(all, call.writes[0], [&](const BlasMatrix& columns, const BlasMatrix& tile) {
                T *const a = reinterpret_cast<T*>(columns.data), *const t = reinterpret_cast<T*>(tile.data);
                for (const auto& [row, slot] : pairs)
                    for (std::int64_t j = 0; j < columns.columns; ++j)
                        std::swap(a[row + j * columns.column_step], t[slot * tile.row_step + j * tile.column_step]);
            });
        });
    }

    void drop(const TaskCall& call) const {
        const BlasMatrix top = matrix_of(call.writes[0]);
        const RowMoves moves(call.reads[0], top.rows);
        with_type(type_, [&](auto zero) {
            using T = decltype(zero);
            each_tile(top, call.reads[1], [&](const BlasMatrix& columns, const BlasMatrix& tile) {
                T* const a = reinterpret_cast<T*>(columns.data);
                const T* const t = reinterpret_cast<const T*>(tile.data);
                for (std::int64_t j = 0; j < columns.columns; ++j)
                    for (std::int64_t i = 0; i < columns.rows; ++i)
                        a[i + j * columns.column_step] = t[moves.top[i] * tile.row_step + j * tile.column_step];
            });
        });
        if (call.reads.size() < 3) return;
        blas_->trsm(type_, Blas::Side::left, {false, Transpose::none, true},
                    Tiles{call.reads[2]}.from(0, top.rows, top.rows), top);
        const std::int64_t side = call.writes[1].box.extent(2);
        each_tile(top, call.writes[1], [&](const BlasMatrix& columns, const BlasMatrix& tile) {
            if (columns.rows < side || columns.columns < side)
                std::memset(tile.data, 0, static_cast<std::size_t>(side * side * item_bytes(type_)));
            copy_matrix(type_, columns, tile);
        });
    }

    void reflect_first(const TaskCall& call) const {
        const RegionView& triangle = call.writes[0];
        std::memset(triangle.data, 0, static_cast<std::size_t>(triangle.box.points() * triangle.item_bytes));
        with_type(type_, [&](auto zero) { multiply<decltype(zero)>(call); });
    }

    void reflect_next(const TaskCall& call) const {
        with_type(type_, [&](auto zero) {
            reflect<decltype(zero)>(call);
            multiply<decltype(zero)>(call);
        });
    }

    void reflect_last(const TaskCall& call) const {
        with_type(type_, [&](auto zero) { reflect<decltype(zero)>(call); });
        const bool has = call.reads.back().box.dims() == 2;
        const std::int64_t side = call.writes[0].box.extent(2);
        for (std::size_t i = 1; i + has < call.writes.size(); ++i) {
            const RegionView& view = call.writes[i];
            if (view.box.dims() == 2) {
                BlasMatrix from = Tiles{call.writes[0], is_complex(type_)}.from(0, side, view.box.extent(1));
                copy_matrix(type_, from, matrix_of(view));
                continue;
            }
            const Tiles tiles{view, is_complex(type_)};
            const BlasMatrix column = matrix_of(call.writes.back());
            if (rows_of_panel(call.writes[0]).has_diagonal())
                copy_reflectors(type_, column, tiles);
            else
                copy_to_tiles(type_, column, tiles);
        }
    }

    void sum(const TaskCall& call) const {
        with_type(type_, [&](auto zero) {
            using T = decltype(zero);
            sum_of<T>(call.reads, 0, call.reads.size(), reinterpret_cast<T*>(call.writes[0].data));
        });
    }

    // V^H C of some block columns, added to what others have where it is read.
    void project(const TaskCall& call) const {
        const Tiles tiles{call.reads[0], is_complex(type_)};
        const BlasMatrix all = matrix_of(call.reads[1]);
        const std::int64_t side = tiles.side();
        for (std::int64_t t = 0; t < call.writes[0].box.extent(1); ++t) {
            const std::int64_t lo = t * side, width = std::min(side, all.columns - lo);
            const BlasMatrix part{all.data + lo * all.column_step * item_bytes(type_), all.rows, width, 1,
                                  all.column_step};
            tiles.each(0, part.rows, side, [&](const BlasMatrix& v, std::int64_t at) {
                blas_->gemm(type_, {1, 0}, adjoint(v, type_), rows_of(part, item_bytes(type_), at, at + v.rows),
                            {at == 0 && call.reads.size() == 2 ? 0.0 : 1.0, 0}, column_tile(call.writes[0], t, width));
            });
        }
    }

    // T^H W
    void turn(const TaskCall& call) const {
        const Tiles triangle{call.reads[0], is_complex(type_)};
        const std::int64_t side = triangle.side();
        for (std::int64_t t = 0; t < call.reads[1].box.extent(1); ++t)
            blas_->gemm(type_, {1, 0}, adjoint(triangle.from(0, side, side), type_),
                        column_tile(call.reads[1], t, side), {0, 0}, column_tile(call.writes[0], t, side));
    }

private:
    LocalRows rows_of_panel(const RegionView& pivots) const { return {rows_, pivots.box.lo[0], pivots.box.extent(3)}; }

    // f(some columns of a matrix, the tile for them), tile by tile.
    template <class F>
    void each_tile(const BlasMatrix& m, const RegionView& view, F f) const {
        const Tiles tiles{view};
        for (std::int64_t t = 0; t < tiles.count(); ++t) {
            const std::int64_t lo = t * tiles.side(), width = std::min(tiles.side(), m.columns - lo);
            f(BlasMatrix{m.data + lo * m.column_step * item_bytes(type_), m.rows, width, 1, m.column_step},
              tiles.from(t, m.rows, width));
        }
    }

    // The largest element of a column of the panel that this rank has, from the diagonal down.
    template <class T>
    void pick(const TaskCall& call) const {
        const RegionView& view = call.writes[1];
        const PickedRow<T> made(view);
        made.clear();
        if (call.reads.empty() || call.reads.back().box.dims() != 2) return;
        const BlasMatrix a = matrix_of(call.reads.back());
        const LocalRows rows = rows_of_panel(call.writes[0]);
        const std::int64_t c = view.box.lo[0] - rows.k * rows.block;
        const T* const items = reinterpret_cast<const T*>(a.data);
        const T* const column = items + c * a.column_step;
        const auto copy = [&](std::int64_t row, T* to) {
            for (std::int64_t j = 0; j < a.columns; ++j) to[j] = items[row + j * a.column_step];
        };
        const std::int64_t first = rows.has_diagonal() ? c : 0;
        std::int64_t found = first;
        for (std::int64_t i = first + 1; i < a.rows; ++i)
            if (larger(size_of(column[i]), size_of(column[found]))) found = i;
        if (found < a.rows) {
            copy(found, made.row());
            made.set_number(rows.global(found));
        }
        if (!rows.has_diagonal()) return;
        copy(c, made.diagonal());
        made.set_diagonal();
    }

    // Interchanges with the pivot's row, and subtracts it from the rows below.
    template <class T>
    void take(const TaskCall& call) const {
        const LocalRows rows = rows_of_panel(call.reads[0]);
        const std::int64_t column = call.reads[1].box.lo[0], first = rows.k * rows.block, c = column - first;
        const bool has = call.reads.back().box.dims() == 2;
        const Joined<T> pivot(call.reads, 1, call.reads.size() - has, c);
        const std::int64_t number = std::max(pivot.number, column);
        reinterpret_cast<int*>(call.writes[0].data)[c] = static_cast<int>(number - first + 1);
        const T value = pivot.row ? pivot.row[c] : T{};
        if (value == T{}) info_->failed(column + 1);
        if (!has) return;
        const BlasMatrix m = matrix_of(call.writes.back());
        T* const items = reinterpret_cast<T*>(m.data);
        if (number != column && pivot.row && pivot.diagonal) {
            const std::int64_t here = rows.local(number, m.rows);
            for (std::int64_t j = 0; j < m.columns; ++j) {
                if (here >= 0) items[here + j * m.column_step] = pivot.diagonal[j];
                if (rows.has_diagonal()) items[c + j * m.column_step] = pivot.row[j];
            }
        }
        if (value == T{}) return;
        const std::int64_t begin = rows.has_diagonal() ? c + 1 : 0;
        T* const factor = items + c * m.column_step;
        for (std::int64_t i = begin; i < m.rows; ++i) factor[i] /= value;
        for (std::int64_t j = c + 1; j < m.columns; ++j) {
            T* const other = items + j * m.column_step;
            const T by = pivot.row[j];
            for (std::int64_t i = begin; i < m.rows; ++i) other[i] -= product(factor[i], by);
        }
    }

    // to = the sum of what ranks have told, in one order everywhere.
    template <class T>
    static void sum_of(const std::vector<RegionView>& views, std::size_t first, std::size_t end, T* to) {
        const std::int64_t items = views[first].box.points();
        std::copy_n(reinterpret_cast<const T*>(views[first].data), items, to);
        for (std::size_t v = first + 1; v < end; ++v)
            for (std::int64_t i = 0; i < items; ++i) to[i] += reinterpret_cast<const T*>(views[v].data)[i];
    }

    // Of a column its products with all columns of the panel, below the diagonal; and the row on the diagonal.
    template <class T>
    void multiply(const TaskCall& call) const {
        const RegionView& view = call.writes[1];
        T* const sums = reinterpret_cast<T*>(view.data);
        const std::int64_t width = view.box.extent(3);
        std::fill_n(sums, 2 * width, T{});
        if (call.reads.empty() || call.reads.back().box.dims() != 2) return;
        const BlasMatrix a = matrix_of(call.reads.back());
        const LocalRows rows = rows_of_panel(call.writes[0]);
        const std::int64_t c = view.box.lo[0] - rows.k * rows.block, item = item_bytes(type_);
        const BlasMatrix below = rows_of(a, item, rows.has_diagonal() ? c + 1 : 0, a.rows);
        const BlasMatrix column{below.data + c * a.column_step * item, below.rows, 1, 1, a.column_step};
        if (below.rows > 0)
            blas_->gemm(type_, {1, 0}, adjoint(column, type_), below, {0, 0}, {view.data, 1, a.columns, 1, 1});
        if (!rows.has_diagonal()) return;
        for (std::int64_t j = 0; j < a.columns; ++j)
            sums[width + j] = reinterpret_cast<const T*>(a.data)[c + j * a.column_step];
    }

    // Applies the reflector of a column to the panel, and adds a column to T.
    template <class T>
    void reflect(const TaskCall& call) const {
        const RegionView& view = call.writes[0];
        const LocalRows rows = rows_of_panel(view);
        const bool has = call.reads.back().box.dims() == 2;
        const std::int64_t c = call.reads[1].box.lo[0] - rows.k * rows.block, width = call.reads[1].box.extent(3);
        std::vector<T> told(static_cast<std::size_t>(2 * width));
        sum_of<T>(call.reads, 1, call.reads.size() - has, told.data());
        const T* const sums = told.data();
        const T* const diagonal = sums + width;
        const Reflector<T> h(diagonal[c], sums[c]);
        add_to_triangle(view, c, h, sums, diagonal);
        if (!has) return;
        const BlasMatrix m = matrix_of(call.writes.back());
        T* const items = reinterpret_cast<T*>(m.data);
        T* const v = items + c * m.column_step;
        const std::int64_t begin = rows.has_diagonal() ? c + 1 : 0;
        if (h.tau != T{})
            for (std::int64_t i = begin; i < m.rows; ++i) v[i] = product(v[i], h.scale);
        for (std::int64_t j = c + 1; j < m.columns; ++j) {
            const T by = product(conjugate_of(h.tau), diagonal[j] + product(conjugate_of(h.scale), sums[j]));
            T* const other = items + j * m.column_step;
            if (rows.has_diagonal()) other[c] -= by;
            for (std::int64_t i = begin; i < m.rows; ++i) other[i] -= product(v[i], by);
        }
        if (rows.has_diagonal()) v[c] = h.beta;
    }

    // T(0:c, c) = -tau T(0:c, 0:c) V^H v, and tau on the diagonal (LAPACK's larft).
    template <class T>
    void add_to_triangle(const RegionView& view, std::int64_t c, const Reflector<T>& h, const T* sums,
                         const T* diagonal) const {
        const std::int64_t side = view.box.extent(2);
        const BlasMatrix t = Tiles{view, is_complex(type_)}.from(0, side, side);
        const auto item = [&](std::int64_t i, std::int64_t j) -> T& {
            return reinterpret_cast<T*>(t.data)[i * t.row_step + j * t.column_step];
        };
        const auto meant = [&](const T& value) { return t.conjugate ? conjugate_of(value) : value; };
        for (std::int64_t i = 0; i < c; ++i) {
            T sum{};
            for (std::int64_t l = i; l < c; ++l)
                sum += product(meant(item(i, l)), conjugate_of(diagonal[l]) + product(h.scale, conjugate_of(sums[l])));
            item(i, c) = meant(product(-h.tau, sum));
        }
        item(c, c) = meant(h.tau);
    }

    std::shared_ptr<const Blas> blas_;
    Dtype type_;
    std::shared_ptr<FactorInfo> info_;
    RowPart rows_;
};

}  // namespace

void add_column_tasks(std::vector<TaskFunction>& all, const std::shared_ptr<const Blas>& blas, Dtype type,
                      const std::shared_ptr<FactorInfo>& info, const RowPart& rows) {
    const auto tasks = std::make_shared<ColumnTasks>(blas, type, info, rows);
    all[lu_first] = [tasks](const TaskCall& call) { tasks->first(call); };
    all[lu_pick] = [tasks](const TaskCall& call) { tasks->next(call); };
    all[lu_last] = [tasks](const TaskCall& call) { tasks->last(call); };
    all[lu_best] = [tasks](const TaskCall& call) { tasks->best(call); };
    all[lu_lift] = [tasks](const TaskCall& call) { tasks->lift(call); };
    all[lu_trade] = [tasks](const TaskCall& call) { tasks->trade(call); };
    all[qr_first] = [tasks](const TaskCall& call) { tasks->reflect_first(call); };
    all[qr_next] = [tasks](const TaskCall& call) { tasks->reflect_next(call); };
    all[qr_last] = [tasks](const TaskCall& call) { tasks->reflect_last(call); };
    all[qr_sum] = [tasks](const TaskCall& call) { tasks->sum(call); };
    all[qr_project] = [tasks](const TaskCall& call) { tasks->project(call); };
    all[qr_turn] = [tasks](const TaskCall& call) { tasks->turn(call); };
    all[lu_drop] = all[lu_drop_solve] = [tasks](const TaskCall& call) { tasks->drop(call); };
}

}  // namespace tilewave
