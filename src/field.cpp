#include "tilewave/field.hpp"

#include <algorithm>

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

// Storage of at least one byte, so that data() is never null; one cache line more, so that it
// can begin on one: rows of vectors then never straddle lines.
std::shared_ptr<std::byte[]> aligned_bytes(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 64));
    return {new (std::align_val_t{64}) std::byte[size],
            [](std::byte* p) { ::operator delete[](p, std::align_val_t{64}); }};
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
    allocate(layout_);
}

void FieldStorage::allocate(const Layout& layout) {
    layout_ = layout;
    data_ = aligned_bytes(layout.storage(context_->rank()).points() * item_bytes_);
    ++version_;
}

bool FieldStorage::fits(const Layout& layout) const {
    // Ghosts only where they are used: a face is one run of memory more often without them.
    return layout_.same_blocks(layout) && layout_.halo_lo == layout.halo_lo && layout_.halo_hi == layout.halo_hi;
}

void FieldStorage::relayout(const Layout& layout) {
    if (layout.shape != layout_.shape || layout.ranks() != context_->size())
        throw ConfigError("relayout: a field of shape " + to_string(layout_.shape) + " on " +
                          std::to_string(context_->size()) + " ranks cannot take a layout of shape " +
                          to_string(layout.shape) + " on " + std::to_string(layout.ranks()));
    if (fits(layout)) return;
    const auto old_data = data_;
    const Layout old = layout_;
    const int rank = context_->rank();
    const Binding from{old_data.get(), row_major_strides(old.storage(rank), item_bytes_)};
    allocate(layout);
    move(*context_, redistribute(old, layout, item_bytes_, rank), from, binding());
}

void FieldStorage::gather(std::byte* out) {
    const Binding to{out, row_major_strides(layout_.whole(), item_bytes_)};
    move(*context_, gather_schedule(layout_, item_bytes_, context_->rank()), binding(), to);
}

void FieldStorage::scatter(std::byte* whole) {
    const Binding from{whole, row_major_strides(layout_.whole(), item_bytes_)};
    move(*context_, scatter_schedule(layout_, item_bytes_, context_->rank()), from, binding());
}

}  // namespace tilewave
