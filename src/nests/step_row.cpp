#include "nests/step_row.hpp"

#include <algorithm>
#include <tuple>

#include "data/rows.hpp"

namespace tilewave {

namespace {

// What this rank owns of a field: where it begins, and how long it is.
std::pair<std::byte*, Index> owned_part(const FieldStorage& field) {
    const Binding memory = field.binding();
    const Box owned = field.owned(), stored = field.storage();
    Index extents = Index::filled(owned.dims(), 0);
    std::byte* at = memory.data;
    for (int d = 0; d < owned.dims(); ++d) {
        extents[d] = owned.extent(d);
        if (!owned.empty()) at += (owned.lo[d] - stored.lo[d]) * memory.stride_bytes[d];
    }
    return {at, extents};
}

}  // namespace

Layout StepRow::wanted() const {
    const Layout& row = part->layout();
    Layout layout(whole->layout().shape, Index::filled(row.dims() + 1, 1));
    for (int d = 0; d < row.dims(); ++d) {
        layout.grid[d + 1] = row.grid[d];
        layout.cuts[static_cast<std::size_t>(d) + 1] = row.cuts[static_cast<std::size_t>(d)];
    }
    return layout;
}

bool StepRow::is_placed() const {
    return !whole || whole->stays(wanted(), 1, FieldStorage::row_major_orders);
}

void StepRow::place() {
    if (whole) whole->relayout(wanted());
}

void StepRow::move(std::int64_t row, bool back) const {
    std::byte *from = whole_memory.data, *to = part_memory.data;
    Index lengths = extents, from_stride = whole_memory.stride_bytes, to_stride = part_memory.stride_bytes;
    if (whole) {
        from = owned_part(*whole).first;
        std::tie(to, lengths) = owned_part(*part);
        from_stride = whole->binding().stride_bytes;
        to_stride = part->binding().stride_bytes;
    }
    if (std::ranges::find(lengths, 0) != lengths.end()) return;
    from += row * from_stride[0];
    Index in_row = Index::filled(from_stride.n - 1, 0);
    for (int d = 0; d < in_row.n; ++d) in_row[d] = from_stride[d + 1];
    if (back)
        copy_box(from, in_row, to, to_stride, lengths, item_bytes);
    else
        copy_box(to, to_stride, from, in_row, lengths, item_bytes);
}

void TakenRows::take(CollectiveRun& run, const ChainTurn& turn, std::int64_t step) {
    for (std::size_t r = 0; r < turn.rows.size(); ++r) {
        if (turn.rows[r].empty()) continue;
        const std::int64_t row = turn.rows[r][turn.rows[r].size() > 1 ? static_cast<std::size_t>(step) : 0];
        if (taken_[r] == row) continue;
        StepRow& each = rows_[r];
        if (!each.is_placed()) {
            each.place();
            run.arrays_are_ready(true, true);
        }
        if (!run.lacks() && taken_[r] != none) each.move(taken_[r], true);
        if (!run.lacks()) each.move(row, false);
        taken_[r] = row;
    }
}

void TakenRows::put_back(CollectiveRun& run, bool all) {
    for (std::size_t r = 0; r < taken_.size(); ++r) {
        if (taken_[r] == none || (!all && !rows_[r].shared)) continue;
        if (!run.lacks()) rows_[r].move(taken_[r], true);
        taken_[r] = none;
    }
}

}  // namespace tilewave
