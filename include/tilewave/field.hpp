// A distributed array: each rank stores its block and halo.
#pragma once
#include <atomic>
#include <cmath>
#include <complex>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "tilewave/context.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/engine/layout.hpp"

namespace tilewave {

/// Points of its neighbours that a block stores, for a caller's kernels; exchange() (halo.hpp) brings their values.
struct Halo {
    Index below = {}, above = {};  ///< widths along each dimension, before and after the block; empty: 0
    Index wraps = {};              ///< 1 for periodic dimensions; empty: none is
    Index grid = {};               ///< ranks along each dimension; empty: default_grid()

    /// A halo of one width on all sides of `dims` dimensions.
    static Halo of(int dims, std::int64_t width) {
        return {Index::filled(dims, width), Index::filled(dims, width), {}, {}};
    }
};

/// A field without its element type: one rank's storage in some layout and memory order.
class FieldStorage {
public:
    /// Uninitialised row-major storage in the default layout (even blocks over default_grid).
    /// @pre 1 to max_dims dimensions, extents >= 0, item_bytes >= 1 (ConfigError)
    FieldStorage(Context& context, Index shape, std::int64_t item_bytes);
    /// With halos, which are zero at first.
    /// @pre as above; halo's members have a component for each dimension, or none (ConfigError)
    /// @pre widths >= 0, along a periodic dimension at most its extent; grid entries >= 1, their product is at most the
    ///   number of ranks (ConfigError)
    FieldStorage(Context& context, Index shape, std::int64_t item_bytes, const Halo& halo);

    /// A copy: the same blocks, memory order, values and history. Local.
    FieldStorage copy() const;

    const Layout& layout() const { return layout_; }
    std::int64_t item_bytes() const { return item_bytes_; }
    Box owned() const { return layout_.owned(context_->rank()); }
    Box storage() const { return layout_.storage(context_->rank()); }
    /// The address of the first point of storage(), and bytes between neighbours, `back` time steps before the current
    /// one.
    Binding binding(int back = 0) const;
    Context& context() { return *context_; }
    /// Grows with every change of the storage: views made earlier show the old memory.
    int version() const { return version_; }
    std::string name = "a field";  ///< in what ranks compare of their calls: must be equal on all
    /// Different for every storage of this process.
    std::uint64_t number() const { return number_.value; }

    /// The layout that it was made with: that of its halos.
    const Layout& home() const { return home_; }
    /// Whether it was made with a Halo.
    bool has_halo() const { return has_halo_; }
    /// Whether it lies as it was made: no run has moved it since. The same on every rank.
    bool at_home() const { return stays(home_, 1, row_major_orders); }
    /// Moves it back to there; free where it is. The halo is undefined afterwards. Collective, as relayout().
    void return_home() {
        if (!at_home()) relayout(home_);
    }

    /// The number that stands for row-major storage among memory orders.
    static constexpr std::uint64_t row_major_orders = 1;
    /// Moves the owned values and their history to `layout` and `order`, with at least `time_buffers` buffers. The halo
    /// is undefined afterwards. Returns whether values moved on this rank. `orders` (memory_orders() of plan.hpp)
    /// stands for the memory orders of all ranks. Where it changes, or the layout, or more buffers are wanted, the
    /// ranks agree that all have the memory, and each point moves once; else the call is free. Collective.
    /// @pre layout.shape is the field's and layout.ranks() at most the context's (ConfigError)
    /// @throws OutOfResources on every rank, with nothing changed, where one has not the memory
    /// `fresh` is called with new memory, before values move there.
    bool relayout(const Layout& layout, const MemoryOrder& order, int time_buffers, std::uint64_t orders,
                  const std::function<void(std::byte*, int buffers)>& fresh = {});
    /// Whether relayout() has nothing to do on any rank. The same on each rank, without messages.
    bool stays(const Layout& layout, int time_buffers, std::uint64_t orders) const;
    /// Row-major.
    bool relayout(const Layout& layout) {
        return relayout(layout, MemoryOrder::row_major(layout.storage(context_->rank())), 1, row_major_orders);
    }
    /// What stands for the memory orders of all ranks.
    std::uint64_t orders() const { return orders_; }
    /// The memory order of this rank's storage.
    const MemoryOrder& order() const { return order_; }
    /// Keeps at least so many earlier time steps from now on; missing ones become copies of the current step.
    /// Collective, as relayout(); local where there are buffers for them.
    /// @throws OutOfResources as relayout
    void keep_history(int time_buffers);
    int history() const { return history_; }
    /// Gives the memory back: nothing but the destructor may be called afterwards (not checked). Those who share() it
    /// keep it.
    void release() {
        data_.reset();
        ++version_;
    }
    /// Forgets the time step before the current one, as if the last two were one. The oldest step stays.
    /// @pre the last run had a buffer for each stored time step, and two more (ConfigError)
    void join_steps();
    /// Bytes from time buffer to time buffer. Outside of runs the first holds the current values, the k-th behind it
    /// those of k steps before.
    std::int64_t time_buffer_bytes() const { return order_.items * item_bytes_; }
    /// Bytes of all time buffers.
    std::int64_t bytes() const { return time_buffers_ * time_buffer_bytes(); }
    std::byte* data() { return data_.get(); }
    /// Rank 0 gets the whole array, row-major, in `out`; `out` is unused elsewhere. Collective.
    /// @throws OutOfResources on every rank where one has not the memory
    void gather(std::byte* out, int back = 0);
    /// The same where place() gives `out`, as part of the agreement: it may throw std::bad_alloc.
    void gather(const std::function<std::byte*()>& place, int back = 0);
    /// Blocks near those of layout() that begin at multiples of `extents`.
    /// @pre extents >= 1, in the field's dimensions (ConfigError)
    Layout in_whole_parts(const Index& extents) const;
    /// Every rank gets, row-major in `out`, the `number`-th part of its block in in_whole_parts(), parts in row-major
    /// order; behind the last one it gets nothing. Collective.
    /// @throws OutOfResources on every rank where one has not the memory
    void collect(const Index& extents, std::int64_t number, std::byte* out, int back = 0);
    /// Reduces all elements, or their squares or magnitudes as doubles, to one number, the same on every rank.
    /// With complex elements what.type is that of a part. `part`: which one is reduced; squares are of both.
    /// Collective.
    /// @pre what.type has the field's item size, of complex elements half of it; values of complex elements are one
    /// part, squares and magnitudes of both (ConfigError)
    Reduced reduce(const PointReduction& what, ReducedForm form = ReducedForm::value,
                   ComplexPart part = ComplexPart::none);
    /// The sum of the products of this field's elements with another's: of integers modulo 2^64, else the exact sum of
    /// the products as doubles, rounded once. Collective; moves a copy of `other` where its layout is another.
    /// Where either field is complex, the real or the imaginary part of that sum, and the types are those of a part.
    /// @pre equal shapes; the types have the fields' item sizes, or half of them (ConfigError)
    Reduced dot(FieldStorage& other, Dtype type, Dtype other_type, ComplexPart part = ComplexPart::none);
    /// Gives every rank its block of rank 0's row-major `whole`, which is unused elsewhere. Collective.
    /// @throws OutOfResources on every rank, with nothing changed, where one has not the memory
    void scatter(std::byte* whole, int back = 0);
    /// The memory, which the result keeps alive.
    std::shared_ptr<std::byte[]> share() const { return data_; }

private:
    // Another one for every copy.
    struct Number {
        static std::uint64_t next() {
            static std::atomic<std::uint64_t> last{0};
            return ++last;
        }
        std::uint64_t value = next();
        Number() = default;
        Number(const Number&) {}
        Number& operator=(const Number&) { return *this; }
    };
    FieldStorage(Context& context, const Layout& home, std::int64_t item_bytes, bool has_halo);

    Context* context_;
    Layout home_, layout_;
    bool has_halo_;
    MemoryOrder order_;
    std::int64_t item_bytes_;
    std::shared_ptr<std::byte[]> data_;
    int time_buffers_ = 1, history_ = 0, version_ = 0;
    std::uint64_t orders_ = row_major_orders;
    Number number_;
};

/// A distributed array of T, of any size: a number, or a struct of several. Elements move between ranks as bytes.
template <class T>
class Field {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 64,
                  "elements of a field are copied byte by byte: T has no copy constructor, or "
                  "alignment beyond a cache line");

public:
    /// Every rank sets its points to init(global index). Collective (the layout is common).
    template <class Init>
    Field(Context& context, Index shape, Init init) : storage_(context, shape, sizeof(T)) {
        for_each_owned([&](const Index& at, T& value) { value = static_cast<T>(init(at)); });
    }
    /// With a halo, whose points are zero at first: exchange() (halo.hpp) brings their values.
    template <class Init>
    Field(Context& context, Index shape, const Halo& halo, Init init) : storage_(context, shape, sizeof(T), halo) {
        for_each_owned([&](const Index& at, T& value) { value = static_cast<T>(init(at)); });
    }
    /// The first point of `storage()` in memory, halo included, and items between neighbours along each dimension.
    T* local() { return reinterpret_cast<T*>(storage_.binding().data); }
    Index local_strides() {
        Index strides = storage_.binding().stride_bytes;
        for (auto& s : strides.v) s /= static_cast<std::int64_t>(sizeof(T));
        return strides;
    }
    /// Keeps at least so many earlier time steps, which nests read; missing ones become copies of the current one.
    /// Collective.
    void keep_history(int steps) { storage_.keep_history(steps); }
    /// f(global index, T& value) for each point this rank owns; `back` steps before the current one.
    /// @pre 0 <= back <= what keep_history() was given (not checked)
    template <class F>
    void for_each_owned(F f, int back = 0) {
        const Box owned = storage_.owned();
        if (owned.empty()) return;
        const Binding b = storage_.binding(back);
        Index at = owned.lo;
        do {
            std::int64_t offset = 0;
            for (int k = 0; k < at.n; ++k) offset += (at[k] - storage_.storage().lo[k]) * b.stride_bytes[k];
            f(at, *reinterpret_cast<T*>(b.data + offset));
        } while (next_point(at, owned));
    }
    /// The whole array, row-major, on rank 0; empty elsewhere; `back` steps before the current one. Collective.
    /// @throws OutOfResources on every rank where one has not the memory
    std::vector<T> gather(int back = 0) {
        std::vector<T> whole;
        storage_.gather(
            [&] {
                if (storage_.context().rank() == 0) whole.resize(storage_.layout().whole().points());
                return reinterpret_cast<std::byte*>(whole.data());
            },
            back);
        return whole;
    }
    /// The sum of all elements: exact and rounded once to double, or int64 modulo 2^64. Collective.
    auto sum() {
        if constexpr (is_complex(dtype_of<T>()))
            return std::complex<double>(part_of_sum(ComplexPart::real), part_of_sum(ComplexPart::imaginary));
        else
            return storage_.reduce({Reduction::sum, dtype_of<T>()}).template value<Sum<T>>();
    }
    /// The sum of the products with another field's elements; as sum(). Collective.
    template <class U>
    auto dot(Field<U>& other) {
        if constexpr (is_complex(dtype_of<T>()) || is_complex(dtype_of<U>())) {
            const auto part = [&](ComplexPart which) {
                return storage_.dot(other.storage(), dtype_of<Part<T>>(), dtype_of<Part<U>>(), which)
                    .template value<double>();
            };
            return std::complex<double>(part(ComplexPart::real), part(ComplexPart::imaginary));
        } else {
            return real_dot(other);
        }
    }
    /// The root of the sum of squares. Collective.
    double norm() {
        const PointReduction squares{Reduction::sum, dtype_of<Part<T>>()};
        constexpr ComplexPart parts = is_complex(dtype_of<T>()) ? ComplexPart::both : ComplexPart::none;
        return std::sqrt(storage_.reduce(squares, ReducedForm::square, parts).template value<double>());
    }
    const Index& shape() const { return storage_.layout().shape; }
    FieldStorage& storage() { return storage_; }

private:
    template <class U>
    struct PartOf {
        using type = U;
    };
    template <class U>
    struct PartOf<std::complex<U>> {
        using type = U;
    };
    template <class U>
    using Part = typename PartOf<U>::type;

    double part_of_sum(ComplexPart part) {
        return storage_.reduce({Reduction::sum, dtype_of<Part<T>>()}, ReducedForm::value, part)
            .template value<double>();
    }
    template <class U>
    auto real_dot(Field<U>& other) {
        using S = std::conditional_t<std::is_integral_v<T> && std::is_integral_v<U>, std::int64_t, double>;
        return storage_.dot(other.storage(), dtype_of<T>(), dtype_of<U>()).template value<S>();
    }
    template <class U>
    using Sum = std::conditional_t<std::is_integral_v<U>, std::int64_t, double>;

    FieldStorage storage_;
};

}  // namespace tilewave
