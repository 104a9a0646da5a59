// Rows and columns of a matrix as another one.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "arrays/matrix_move.hpp"
#include "context/agreement.hpp"
#include "dense/elements.hpp"

namespace tilewave {

std::int64_t Slice::count() const {
    const std::int64_t length = step > 0 ? end - first : first - end, size = std::abs(step);
    return length <= 0 ? 0 : (length + size - 1) / size;
}

std::int64_t Slice::place_of(std::int64_t element) const {
    const std::int64_t place = (element - first) / step;
    return place >= 0 && place < count() && first + place * step == element ? place : -1;
}

namespace {

// A matrix on its way: where its elements lie, and where this rank has them.
struct Moving {
    Context& context;
    Dtype type;
    BlockCyclic layout;
    Binding at;
    std::optional<MatrixStorage> memory = {};  // null: the given matrix has them

    Axis& axis(int k) { return k == 0 ? layout.rows : layout.columns; }
    // Only every `step`-th element from `first` on, of those that lie on this rank.
    void view(int k, std::int64_t first, std::int64_t step) {
        if (at.data) at.data += first * at.stride_bytes[k];
        at.stride_bytes[k] *= step;
    }
    void move(const BlockCyclic& to, MatrixStorage* into = nullptr) {
        std::optional<MatrixStorage> made;
        std::optional<ReadyMove> ready;
        agree_after(context, "a part", [&] {
            if (!into) into = &made.emplace(context, to, type);
            ready.emplace(context, MatrixMove(layout, to, item_bytes(type), context.size()));
        });
        ready->run(at, into->binding());
        if (!made) return;
        memory = std::move(made);
        at = memory->binding();
        layout = to;
    }
};

}  // namespace

// Where a dimension is spread, all of it that is needed is brought to one rank, where any slice is a view. What moves
// is the interval that holds the slices, of blocks in turns with less than one round of them before it. The beginning
// of a dimension is a view as it is.
void take_part(const MatrixStorage& m, const Slice& rows, const Slice& columns, MatrixStorage& part) {
    Context& context = m.context();
    const std::array slices{rows, columns};
    if (rows.count() == 0 || columns.count() == 0) return;
    Moving moving{context, m.type(), m.layout(), m.binding()};
    std::array<std::int64_t, 2> starts{};
    for (const int k : {0, 1}) {
        Axis& axis = moving.axis(k);
        const auto [first, step, last] = std::array{slices[k].first, slices[k].step, slices[k].last()};
        if (axis.parts > 1 && axis.block == 0) continue;  // even blocks: a part of these are others
        const std::int64_t period = axis.parts == 1 ? 1 : axis.block * axis.period();
        starts[k] = std::min(first, last) / period * period;
        const int here = k == 0 ? m.layout().row_of(context.rank()) : m.layout().column_of(context.rank());
        moving.view(k, here < 0 ? 0 : axis.before(here, {starts[k]}), 1);
        axis = axis.resized(std::max(first, last) + 1 - starts[k]);
    }
    for (const int k : {0, 1}) {
        const std::int64_t count = slices[k].count(), first = slices[k].first - starts[k];
        if (first == 0 && moving.axis(k).extent == count && slices[k].step > 0) continue;
        if (moving.axis(k).parts > 1) {
            const Axis whole(moving.axis(k).extent, 1, 0), spread(moving.axis(1 - k).extent, context.size(), 0);
            moving.move(k == 0 ? BlockCyclic{whole, spread} : BlockCyclic{spread, whole});
        }
        moving.view(k, first, slices[k].step);
        moving.axis(k) = {count, 1, 0};
    }
    moving.move(part.layout(), &part);
}

}  // namespace tilewave
