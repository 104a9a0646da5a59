// A distributed array: each rank holds its block with ghosts.
#pragma once
#include <memory>
#include <span>

#include "tilewave/context.hpp"
#include "tilewave/kernel.hpp"
#include "tilewave/layout.hpp"

namespace tilewave {

/// The untyped part of a field: one rank's storage in some layout and memory order.
class FieldStorage {
public:
    /// Uninitialised row-major storage in the default layout (even blocks over default_grid).
    /// @pre 1 to 4 dimensions, extents >= 0, item_bytes >= 1 (ConfigError)
    FieldStorage(Context& context, Index shape, std::int64_t item_bytes);

    /// A field of its own with the same blocks, order of memory, values and history. Local.
    FieldStorage copy() const;

    const Layout& layout() const { return layout_; }
    std::int64_t item_bytes() const { return item_bytes_; }
    Box owned() const { return layout_.owned(context_->rank()); }
    Box storage() const { return layout_.storage(context_->rank()); }
    /// The first point of storage() and bytes between neighbours.
    /// `back`: of the level so many before the current one, of those it keeps.
    Binding binding(int back = 0) const;
    Context& context() { return *context_; }
    /// Raised by every change of the storage: views made before it are of the old memory.
    int version() const { return version_; }

    /// Number of row-major storage among those of memory orders.
    static constexpr std::uint64_t row_major_orders = 1;
    /// Moves the owned values, those of its history too, to `layout` and `order`, with at least `time_buffers` time
    /// buffers; ghosts are undefined after it. Whether values moved on this rank. `orders` stands for the memory orders
    /// of all ranks, the same number on each: where it changes, or the layout, or more time_buffers are wanted, the
    /// ranks agree that all have the memory, and each point moves once. Free where nothing changes. Collective.
    /// @pre layout.shape is the field's and layout.ranks() at most the context's (ConfigError)
    /// @throws OutOfResources on every rank, with nothing changed, where one has not the memory
    bool relayout(const Layout& layout, const MemoryOrder& order, int time_buffers, std::uint64_t orders);
    /// Whether relayout() has nothing to do on any rank: the same on each, found without a word to the others.
    bool stays(const Layout& layout, int time_buffers, std::uint64_t orders) const;
    /// Row-major.
    bool relayout(const Layout& layout) {
        return relayout(layout, MemoryOrder::row_major(layout.storage(context_->rank())), 1, row_major_orders);
    }
    /// The memory order of this rank's storage.
    const MemoryOrder& order() const { return order_; }
    /// Keeps so many time buffers before the current one from now on, if it does not keep more: copies of the current
    /// one where there are none. Collective, as relayout(); local where there are time buffers for it.
    /// @throws OutOfResources as relayout
    void keep_history(int time_buffers);
    int history() const { return history_; }
    /// The level before the current one is forgotten, as if the last two time steps were one; the oldest one stays as
    /// it is.
    /// @pre the last run had a time buffer for each level kept and two more (ConfigError)
    void join_steps();
    /// Bytes from time buffer to time buffer. Outside of runs the field's values are in the first one, those of the
    /// level k before in the k-th behind it.
    std::int64_t time_buffer_bytes() const { return order_.items * item_bytes_; }
    /// Of all time buffers.
    std::int64_t bytes() const { return time_buffers_ * time_buffer_bytes(); }
    std::byte* data() { return data_.get(); }
    /// Rank 0 gets the whole array, row-major, in `out`; `out` is unused elsewhere. Collective.
    /// @throws OutOfResources on every rank where one has not the memory
    void gather(std::byte* out, int back = 0);
    /// One number out of all elements, the same on every rank. Collective.
    /// @pre what.type has the field's item size (ConfigError)
    Reduced reduce(const PointReduction& what);
    /// Every rank gets its block of rank 0's `whole`, row-major; unused elsewhere. Collective.
    /// @throws OutOfResources on every rank, with nothing changed, where one has not the memory
    void scatter(std::byte* whole, int back = 0);
    /// The memory itself, kept alive by the result.
    std::shared_ptr<std::byte[]> share() const { return data_; }

private:
    Context* context_;
    Layout layout_;
    MemoryOrder order_;
    std::int64_t item_bytes_;
    std::shared_ptr<std::byte[]> data_;
    int time_buffers_ = 1, history_ = 0, version_ = 0;
    std::uint64_t orders_ = row_major_orders;
};

/// A distributed array of T.
template <class T>
class Field {
public:
    /// Every rank sets its own points to init(global index). Collective (the layout is common).
    template <class Init>
    Field(Context& context, Index shape, Init init) : storage_(context, shape, sizeof(T)) {
        for_each_owned([&](const Index& at, T& value) { value = static_cast<T>(init(at)); });
    }
    /// f(global index, T& value) for each point this rank owns.
    template <class F>
    void for_each_owned(F f) {
        const Box mine = storage_.owned();
        if (mine.empty()) return;
        const Binding b = storage_.binding();
        Index at = mine.lo;
        do {
            std::int64_t offset = 0;
            for (int k = 0; k < at.n; ++k) offset += (at[k] - storage_.storage().lo[k]) * b.stride_bytes[k];
            f(at, *reinterpret_cast<T*>(b.data + offset));
        } while (next_point(at, mine));
    }
    /// The whole array, row-major, on rank 0; empty elsewhere. Collective.
    std::vector<T> gather() {
        std::vector<T> whole(
            storage_.context().rank() == 0 ? static_cast<std::size_t>(storage_.layout().whole().points()) : 0);
        storage_.gather(reinterpret_cast<std::byte*>(whole.data()));
        return whole;
    }
    const Index& shape() const { return storage_.layout().shape; }
    FieldStorage& storage() { return storage_; }

private:
    FieldStorage storage_;
};

}  // namespace tilewave
