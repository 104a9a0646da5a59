#include "tilewave/field.hpp"

#include <algorithm>
#include <cstdlib>

#include "conversion.hpp"
#include "memory.hpp"
#include "tilewave/copy.hpp"

namespace tilewave {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 60;

Layout first_layout(Context& context, const Index& shape, std::int64_t item_bytes) {
    if (shape.n < 1 || item_bytes < 1)
        throw ConfigError("a field of shape " + to_string(shape) + " and " + std::to_string(item_bytes) +
                          " bytes an item was asked for; 1 to 4 dimensions and at least 1 byte are allowed");
    for (auto n : shape)
        if (n < 0) throw ConfigError("a field of shape " + to_string(shape) + " was asked for; extents must be >= 0");
    // Sizes and strides are int64 everywhere after this.
    std::int64_t bytes = item_bytes;
    for (auto n : shape) {
        if (std::max<std::int64_t>(n, 1) <= most_bytes / bytes)
            bytes *= std::max<std::int64_t>(n, 1);
        else
            throw ConfigError("a field of shape " + to_string(shape) + " was asked for; its " + std::to_string(item_bytes) +
                              "-byte items would fill more than 2**60 bytes");
    }
    return Layout(shape, default_grid(shape, context.size(), -1));
}

// Runs a copy schedule from `from` to `to` on lane 0 alone.
void move(Context& context, const Schedule& s, const Binding& from, const Binding& to) {
    const Binding both[] = {from, to};
    ExecuteOptions options = context.options();
    options.record = false;
    options.heartbeat = nullptr;
    execute(s, both, {}, context.transport(), context.lanes(), options);
}

}  // namespace

FieldStorage::FieldStorage(Context& context, Index shape, std::int64_t item_bytes)
    : context_(&context), layout_(first_layout(context, shape, item_bytes)), item_bytes_(item_bytes) {
    allocate(layout_, MemoryOrder::row_major(storage()), 1);
}

void FieldStorage::allocate(const Layout& layout, const MemoryOrder& order, int levels) {
    layout_ = layout;
    order_ = order;
    levels_ = levels;
    level_ = 0;
    data_ = aligned_memory(order.items * item_bytes_ * levels);
    ++version_;
}

Binding FieldStorage::binding() const {
    Index stride = order_.stride;
    for (auto& s : stride.v) s *= item_bytes_;
    return {data_.get() + level_ * level_bytes() + order_.first * item_bytes_, stride};
}

void FieldStorage::relayout(const Layout& layout, const MemoryOrder& order, int levels) {
    if (layout.shape != layout_.shape || layout.ranks() > context_->size())
        throw ConfigError("relayout: a field of shape " + to_string(layout_.shape) + " on " +
                          std::to_string(context_->size()) + " ranks cannot take a layout of shape " +
                          to_string(layout.shape) + " on " + std::to_string(layout.ranks()));
    // Ghosts only where they are used: a face is one run of memory more often without them.
    const bool same_blocks = layout_.same_blocks(layout);
    const bool same_layout = same_blocks && layout_.halo_lo == layout.halo_lo && layout_.halo_hi == layout.halo_hi;
    // Every rank alike: ranks whose order stays take part where others move only in what is collective.
    if (same_layout && order_ == order && levels_ >= levels) return;
    const auto old_data = data_;
    const Layout old = layout_;
    const MemoryOrder old_order = order_;
    const int rank = context_->rank();
    const Binding from = binding();
    allocate(layout, order, levels);
    if (same_blocks) {
        const Box mine = owned();
        const Box before = old.storage(rank), now = storage();
        if (mine.empty()) return;
        const Binding to = binding();
        const std::byte* source = from.data;
        std::byte* target = to.data;
        for (int k = 0; k < mine.dims(); ++k) {
            source += (mine.lo[k] - before.lo[k]) * from.stride_bytes[k];
            target += (mine.lo[k] - now.lo[k]) * to.stride_bytes[k];
        }
        copy_on_lanes(*context_, target, to.stride_bytes, source, from.stride_bytes, mine.hi - mine.lo, item_bytes_);
        return;
    }
    move(*context_, redistribute(old, layout, item_bytes_, rank, context_->size(), 1 << 20, old_order.stride, order_.stride), from, binding());
}

void FieldStorage::gather(std::byte* out) {
    const Binding to{out, row_major_strides(layout_.whole(), item_bytes_)};
    move(*context_, gather_schedule(layout_, item_bytes_, context_->rank(), context_->size(), 1 << 20, order_.stride), binding(), to);
}

Reduced FieldStorage::reduce(const PointReduction& what) {
    if (tilewave::item_bytes(what.type) != item_bytes_)
        throw ConfigError("reduce: items of " + std::to_string(tilewave::item_bytes(what.type)) + " bytes were asked for, the field's have " +
                          std::to_string(item_bytes_));
    Reduced mine(what);
    const Box own = owned(), all = storage();
    if (const Binding b = binding(); !own.empty()) {
        int along = 0;  // rows go where elements are closest
        for (int k = 1; k < own.dims(); ++k)
            if (std::abs(b.stride_bytes[k]) <= std::abs(b.stride_bytes[along])) along = k;
        Index unit = Index::filled(own.dims(), 0), at = own.lo;
        unit[along] = 1;
        while (true) {
            std::int64_t offset = 0;
            for (int k = 0; k < at.n; ++k) offset += (at[k] - all.lo[k]) * b.stride_bytes[k];
            mine.add(b.data + offset, b.stride_bytes[along], own.extent(along), at, unit);
            int k = at.n - 1;
            while (k >= 0 && (k == along || ++at[k] == own.hi[k])) {
                at[k] = own.lo[k];
                --k;
            }
            if (k < 0) break;
        }
    }
    return join_ranks(context_->transport(), {mine})[0];
}

void FieldStorage::scatter(std::byte* whole) {
    const Binding from{whole, row_major_strides(layout_.whole(), item_bytes_)};
    move(*context_, scatter_schedule(layout_, item_bytes_, context_->rank(), context_->size(), 1 << 20, order_.stride), from, binding());
}

}  // namespace tilewave
