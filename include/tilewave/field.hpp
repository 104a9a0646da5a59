// A distributed array: each rank holds its block with ghosts.
#pragma once
#include <memory>
#include <span>

#include "tilewave/context.hpp"
#include "tilewave/layout.hpp"

namespace tilewave {

/// The untyped part of a field: one rank's storage in some layout and memory order.
class FieldStorage {
public:
    /// Uninitialised row-major storage in the default layout (even blocks over default_grid).
    /// @pre 1 to 4 dimensions, extents >= 0, item_bytes >= 1 (ConfigError)
    FieldStorage(Context& context, Index shape, std::int64_t item_bytes);

    const Layout& layout() const { return layout_; }
    std::int64_t item_bytes() const { return item_bytes_; }
    Box owned() const { return layout_.owned(context_->rank()); }
    Box storage() const { return layout_.storage(context_->rank()); }
    /// The first point of storage() and bytes between neighbours; of the current time level.
    Binding binding() const;
    Context& context() { return *context_; }
    /// Raised by every change of the storage: views made before it are of the old memory.
    int version() const { return version_; }

    /// Moves the owned values to `layout` and `order`, with memory for `levels` time levels; ghosts
    /// are undefined after it. Free where the storage already fits; local where the blocks stay; else
    /// collective, each point moving once.
    /// @pre layout.shape is the field's and layout.ranks() at most the context's (ConfigError)
    void relayout(const Layout& layout, const MemoryOrder& order, int levels = 1);
    /// Row-major.
    void relayout(const Layout& layout) { relayout(layout, MemoryOrder::row_major(layout.storage(context_->rank()))); }
    /// The memory order of this rank's storage.
    const MemoryOrder& order() const { return order_; }
    /// Which time level of memory holds the field's values, and bytes from level to level.
    int level() const { return level_; }
    void set_level(int level) { level_ = level; }
    std::int64_t level_bytes() const { return order_.items * item_bytes_; }
    std::byte* data() { return data_.get(); }
    /// Rank 0 gets the whole array, row-major, in `out`; `out` is unused elsewhere. Collective.
    void gather(std::byte* out);
    /// One number out of all elements, the same on every rank. Collective.
    /// @pre what.type has the field's item size (ConfigError)
    Reduced reduce(const PointReduction& what);
    /// Every rank gets its block of rank 0's `whole`, row-major; unused elsewhere. Collective.
    void scatter(std::byte* whole);
    /// The memory itself, kept alive by the result.
    std::shared_ptr<std::byte[]> share() const { return data_; }

private:
    void allocate(const Layout& layout, const MemoryOrder& order, int levels);

    Context* context_;
    Layout layout_;
    MemoryOrder order_;
    std::int64_t item_bytes_;
    std::shared_ptr<std::byte[]> data_;
    int levels_ = 1, level_ = 0, version_ = 0;
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
        while (true) {
            std::int64_t offset = 0;
            for (int k = 0; k < at.n; ++k) offset += (at[k] - storage_.storage().lo[k]) * b.stride_bytes[k];
            f(at, *reinterpret_cast<T*>(b.data + offset));
            int k = at.n - 1;
            while (k >= 0 && ++at[k] == mine.hi[k]) {
                at[k] = mine.lo[k];
                --k;
            }
            if (k < 0) return;
        }
    }
    /// The whole array, row-major, on rank 0; empty elsewhere. Collective.
    std::vector<T> gather() {
        std::vector<T> whole(storage_.context().rank() == 0 ? static_cast<std::size_t>(storage_.layout().whole().points()) : 0);
        storage_.gather(reinterpret_cast<std::byte*>(whole.data()));
        return whole;
    }
    const Index& shape() const { return storage_.layout().shape; }
    FieldStorage& storage() { return storage_; }

private:
    FieldStorage storage_;
};

}  // namespace tilewave
