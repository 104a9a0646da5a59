#include "tilewave/field.hpp"

#include <algorithm>
#include <cstring>

#include "arrays/conversion.hpp"
#include "arrays/first_touch.hpp"
#include "arrays/tuning.hpp"
#include "context/agreement.hpp"
#include "context/plans_only.hpp"
#include "data/memory.hpp"
#include "execute/cached_execution.hpp"
#include "generate/copy/copy.hpp"

namespace tilewave {

using namespace tuning;

namespace {

void check_shape(const Index& shape, std::int64_t item_bytes) {
    if (shape.n < 1 || item_bytes < 1)
        throw ConfigError("a field of shape " + to_string(shape) + " and " + std::to_string(item_bytes) +
                          " bytes an item was asked for; 1 to " + std::to_string(max_dims) +
                          " dimensions and at least 1 byte are allowed");
    for (auto n : shape)
        if (n < 0) throw ConfigError("a field of shape " + to_string(shape) + " was asked for; extents must be >= 0");
    // Sizes and strides are int64 everywhere after this.
    std::int64_t bytes = item_bytes;
    for (auto n : shape) {
        if (std::max<std::int64_t>(n, 1) <= largest_field_bytes / bytes)
            bytes *= std::max<std::int64_t>(n, 1);
        else
            throw ConfigError("a field of shape " + to_string(shape) + " was asked for; its " +
                              std::to_string(item_bytes) + "-byte items would fill more than 2**60 bytes");
    }
}

Layout first_layout(Context& context, const Index& shape, std::int64_t item_bytes) {
    check_shape(shape, item_bytes);
    return Layout(shape, default_grid(shape, context.size(), -1));
}

Layout halo_layout(Context& context, const Index& shape, std::int64_t item_bytes, const Halo& halo) {
    check_shape(shape, item_bytes);
    const auto given = [&](const Index& index, const char* what) {
        if (index.n != 0 && index.n != shape.n)
            throw ConfigError("a field of shape " + to_string(shape) + " with " + what + " " + to_string(index) +
                              " was asked for; they must have equal dimensions");
        return index.n ? index : Index::filled(shape.n, 0);
    };
    const Index grid = halo.grid.n ? given(halo.grid, "grid") : default_grid(shape, context.size(), -1);
    Layout layout(shape, grid, given(halo.below, "halo"), given(halo.above, "halo"));
    for (std::int64_t ranks = context.size(), k = 0; k < grid.n; ranks /= grid[static_cast<int>(k++)])
        if (grid[static_cast<int>(k)] > ranks)
            throw ConfigError("a field on a process grid " + to_string(grid) + " was asked for; this context has " +
                              std::to_string(context.size()) + " ranks, which is the most that a grid may have");
    const Index wraps = given(halo.wraps, "wraps");
    for (int k = 0; k < shape.n; ++k) {
        if (!wraps[k]) continue;
        layout.wraps = wraps;
        if (shape[k] == 0 && std::max(layout.halo_lo[k], layout.halo_hi[k]) > 0)
            throw ConfigError("a halo along periodic axis " + std::to_string(k) + " of shape " + to_string(shape) +
                              " was asked for; allowed: width 0, as the axis has no points");
    }
    std::int64_t most = item_bytes;
    for (int k = 0; k < shape.n; ++k) {
        const std::int64_t wide = ceil_div(shape[k], grid[k]);
        const std::int64_t with = std::max<std::int64_t>(wide + layout.halo_lo[k] + layout.halo_hi[k], 1);
        if (layout.halo_lo[k] > largest_field_bytes || layout.halo_hi[k] > largest_field_bytes ||
            with > largest_field_bytes / most)
            throw ConfigError("a field of shape " + to_string(shape) + " with halos " + to_string(layout.halo_lo) +
                              " and " + to_string(layout.halo_hi) +
                              " was asked for; its part on one rank would fill more than 2**60 bytes");
        most *= with;
    }
    return layout;
}

// A copy schedule from one memory to another on lane 0 alone, with all memory that it takes.
class Move {
public:
    Move(Context& context, Schedule schedule, const Binding& from, const Binding& to)
        : context_(context),
          schedule_(std::move(schedule)),
          both_{from, to},
          options_(context.options()),
          execution_(schedule_) {
        options_.record = false;
        options_.heartbeat = nullptr;  // half a move is of no use
        execution_.make(both_, {}, context.transport(), context.lanes(), options_);
    }

    /// @throws MpiError
    void run() {
        if (plans_only(context_)) return;
        execution_.run(both_, {}, context_.transport(), context_.lanes(), options_).must_have_run();
    }

private:
    Context& context_;
    Schedule schedule_;
    Binding both_[2];
    ExecuteOptions options_;
    CachedExecution execution_;
};

Binding binding_of(std::byte* data, const MemoryOrder& order, std::int64_t item_bytes) {
    Index stride = order.stride;
    for (auto& s : stride.v) s *= item_bytes;
    return {data + order.first * item_bytes, stride};
}

}  // namespace

FieldStorage::FieldStorage(Context& context, Index shape, std::int64_t item_bytes)
    : FieldStorage(context, first_layout(context, shape, item_bytes), item_bytes, false) {}

FieldStorage::FieldStorage(Context& context, Index shape, std::int64_t item_bytes, const Halo& halo)
    : FieldStorage(context, halo_layout(context, shape, item_bytes, halo), item_bytes, true) {
    if (bytes() > 0) std::memset(data_.get(), 0, static_cast<std::size_t>(bytes()));
}

FieldStorage::FieldStorage(Context& context, const Layout& home, std::int64_t item_bytes, bool has_halo)
    : context_(&context),
      home_(home),
      layout_(home),
      has_halo_(has_halo),
      order_(MemoryOrder::row_major(storage())),
      item_bytes_(item_bytes),
      data_(aligned_memory(order_.items * item_bytes)),
      version_(1) {
    if (touch_matters(context, bytes()))
        FirstTouch::evenly(context.threads(), bytes(), page_of(bytes())).make(context.lanes(), data_.get(), 1);
}

Binding FieldStorage::binding(int back) const {
    return binding_of(data_.get() + back * time_buffer_bytes(), order_, item_bytes_);
}

FieldStorage FieldStorage::copy() const {
    FieldStorage other = *this;
    other.time_buffers_ = 1 + history_;
    other.version_ = 1;
    const std::int64_t size = other.bytes();
    other.data_ = aligned_memory(size);
    if (size > 0) std::memcpy(other.data_.get(), data_.get(), static_cast<std::size_t>(size));
    return other;
}

bool FieldStorage::stays(const Layout& layout, int time_buffers, std::uint64_t orders) const {
    return layout_.without_idle_halos().same_storage(layout.without_idle_halos()) && time_buffers_ >= time_buffers &&
           orders_ == orders;
}

bool FieldStorage::relayout(const Layout& layout, const MemoryOrder& order, int time_buffers, std::uint64_t orders,
                            const std::function<void(std::byte*, int buffers)>& fresh) {
    if (layout.shape != layout_.shape || layout.ranks() > context_->size())
        throw ConfigError("relayout: a field of shape " + to_string(layout_.shape) + " on " +
                          std::to_string(context_->size()) + " ranks cannot take a layout of shape " +
                          to_string(layout.shape) + " on " + std::to_string(layout.ranks()));
    // Halos only where they are used: without them a face is one run of memory more often.
    const bool same_blocks = layout_.same_blocks(layout);
    // A rank stores no halo outside the array.
    const bool fits = same_blocks && storage() == layout.storage(context_->rank()) && order_ == order &&
                      time_buffers_ >= time_buffers;
    // Equal on every rank: one whose memory order stays takes part, too.
    const bool all_know = !stays(layout, time_buffers, orders);
    if (fits && !all_know) return false;
    const int rank = context_->rank();
    std::shared_ptr<std::byte[]> data;
    // As many on every rank, so that `all_know` is equal the next time, too.
    const int buffers = all_know ? std::max(time_buffers, history_ + 1) : time_buffers_;
    std::vector<std::unique_ptr<Move>> moves;
    const auto at = [&](int back) {
        return binding_of(data.get() + back * order.items * item_bytes_, order, item_bytes_);
    };
    const auto make = [&] {
        if (fits) return;
        data = aligned_memory(order.items * item_bytes_ * buffers);
        for (int back = 0; !same_blocks && back <= history_; ++back)
            moves.push_back(std::make_unique<Move>(*context_,
                                                   redistribute(layout_, layout, item_bytes_, rank, context_->size(),
                                                                1 << 20, order_.stride, order.stride),
                                                   binding(back), at(back)));
    };
    if (all_know)
        agree_after(*context_, "another layout of a field", make);
    else
        make();
    if (fresh && data) fresh(data.get(), buffers);
    for (const auto& move : moves) move->run();
    if (const Box part = owned(); moves.empty() && !fits && !part.empty()) {
        const Box before = storage(), now = layout.storage(rank);
        for (int back = 0; back <= history_; ++back) {
            const Binding from = binding(back), to = at(back);
            const std::byte* source = from.data;
            std::byte* target = to.data;
            for (int k = 0; k < part.dims(); ++k) {
                source += (part.lo[k] - before.lo[k]) * from.stride_bytes[k];
                target += (part.lo[k] - now.lo[k]) * to.stride_bytes[k];
            }
            copy_on_lanes(*context_, target, to.stride_bytes, source, from.stride_bytes, part.hi - part.lo,
                          item_bytes_);
        }
    }
    orders_ = orders;
    layout_ = layout;
    time_buffers_ = buffers;
    if (fits) return false;
    order_ = order;
    data_ = std::move(data);
    ++version_;
    return true;
}

void FieldStorage::keep_history(int time_buffers) {
    if (time_buffers <= history_) return;
    if (time_buffers_ < time_buffers + 1) relayout(layout_, order_, time_buffers + 1, orders_);
    for (int back = history_ + 1; back <= time_buffers; ++back)
        std::memcpy(data_.get() + back * time_buffer_bytes(), data_.get(),
                    static_cast<std::size_t>(time_buffer_bytes()));
    history_ = time_buffers;
}

void FieldStorage::join_steps() {
    if (time_buffers_ < history_ + 2)
        throw ConfigError("join_steps: a field with " + std::to_string(time_buffers_) + " time buffers keeps " +
                          std::to_string(history_) + " earlier time steps; allowed: with two buffers more than that");
    std::memmove(data_.get() + time_buffer_bytes(), data_.get() + 2 * time_buffer_bytes(),
                 static_cast<std::size_t>(history_ * time_buffer_bytes()));
}

void FieldStorage::gather(std::byte* out, int back) {
    gather([out] { return out; }, back);
}

void FieldStorage::gather(const std::function<std::byte*()>& place, int back) {
    std::unique_ptr<Move> move;
    agree_after(*context_, "gathering a field", [&] {
        const Binding to{place(), row_major_strides(layout_.whole(), item_bytes_)};
        move = std::make_unique<Move>(
            *context_,
            gather_schedule(layout_, item_bytes_, context_->rank(), context_->size(), 1 << 20, order_.stride),
            binding(back), to);
    });
    move->run();
}

Layout FieldStorage::in_whole_parts(const Index& extents) const {
    Index parts = layout_.shape;
    if (extents.n != parts.n || std::ranges::any_of(extents, [](auto n) { return n < 1; }))
        throw ConfigError("parts of " + to_string(extents) + " points of a field of shape " + to_string(parts) +
                          " were asked for; they must have equal dimensions, and extents >= 1");
    for (int k = 0; k < parts.n; ++k) parts[k] = ceil_div(parts[k], extents[k]);
    return Layout(layout_.shape, layout_.grid).following(parts, extents);
}

void FieldStorage::collect(const Index& extents, std::int64_t number, std::byte* out, int back) {
    const Layout to = in_whole_parts(extents);
    std::unique_ptr<Move> move;
    agree_after(*context_, "collecting parts of a field", [&] {
        const Box part = part_of(to.owned(context_->rank()), extents, number);
        move = std::make_unique<Move>(*context_,
                                      collect_schedule(layout_, to, extents, number, item_bytes_, context_->rank(),
                                                       context_->size(), 1 << 20, order_.stride),
                                      binding(back), Binding{out, row_major_strides(part, item_bytes_)});
    });
    move->run();
}

void FieldStorage::scatter(std::byte* whole, int back) {
    const Binding from{whole, row_major_strides(layout_.whole(), item_bytes_)};
    std::unique_ptr<Move> move;
    agree_after(*context_, "scattering a field", [&] {
        move = std::make_unique<Move>(
            *context_,
            scatter_schedule(layout_, item_bytes_, context_->rank(), context_->size(), 1 << 20, order_.stride), from,
            binding(back));
    });
    move->run();
}

}  // namespace tilewave
