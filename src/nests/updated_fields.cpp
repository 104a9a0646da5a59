#include "nests/updated_fields.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>

#include "data/memory.hpp"
#include "nests/off_grid.hpp"
#include "nests/tuning.hpp"
#include "tilewave/engine/limits.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

namespace {

// What comes of an element and a value. Integers wrap; of bools a sum is whether any is true.
template <Update Op, class T>
T updated(T old, T value) {
    if constexpr (Op == Update::max)
        return old < value ? value : old;
    else if constexpr (Op == Update::min)
        return value < old ? value : old;
    else if constexpr (Op == Update::bit_and)
        return static_cast<T>(old & value);
    else if constexpr (Op == Update::bit_or)
        return static_cast<T>(old | value);
    else if constexpr (Op == Update::bit_xor)
        return static_cast<T>(old ^ value);
    else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        return static_cast<T>(static_cast<std::uint64_t>(old) + static_cast<std::uint64_t>(value));
    else
        return static_cast<T>(old + value);
}

// The value that changes nothing.
template <Update Op, class T>
T nothing() {
    if constexpr (Op == Update::max) return std::numeric_limits<T>::lowest();
    if constexpr (Op == Update::min) return std::numeric_limits<T>::max();
    if constexpr (Op == Update::bit_and) return static_cast<T>(-1);
    return T{};
}

// f<operation, type>() of an update that these types have.
template <class T, class F>
void with_operation(Update op, F f) {
    if (op == Update::sum) return f.template operator()<Update::sum, T>();
    if constexpr (std::is_arithmetic_v<T>) {
        if (op == Update::max) return f.template operator()<Update::max, T>();
        if (op == Update::min) return f.template operator()<Update::min, T>();
    }
    if constexpr (std::is_integral_v<T>) {
        if (op == Update::bit_and) return f.template operator()<Update::bit_and, T>();
        if (op == Update::bit_or) return f.template operator()<Update::bit_or, T>();
        if (op == Update::bit_xor) return f.template operator()<Update::bit_xor, T>();
    }
}
template <class F>
void with_operation(Update op, Dtype type, F f) {
#define TILEWAVE_DTYPE(name, number, ...) \
    if (type == Dtype::name) return with_operation<number>(op, f);
    TILEWAVE_DTYPES(TILEWAVE_DTYPE)
#undef TILEWAVE_DTYPE
}

// Updates n elements by a value each, one after the other: they may be one element.
void update_elements(Update op, Dtype type, std::byte* to, std::int64_t stride, const std::byte* values,
                     std::int64_t n) {
    with_operation(op, type, [&]<Update Op, class T>() {
        const auto* const given = reinterpret_cast<const T*>(values);
        auto* const first = reinterpret_cast<T*>(to);
        if (stride == 0) {
            T one = *first;
            for (std::int64_t q = 0; q < n; ++q) one = updated<Op>(one, given[q]);
            *first = one;
        } else if (stride == static_cast<std::int64_t>(sizeof(T))) {
            for (std::int64_t q = 0; q < n; ++q) first[q] = updated<Op>(first[q], given[q]);
        } else {
            for (std::int64_t q = 0; q < n; ++q) {
                T& element = *reinterpret_cast<T*>(to + q * stride);
                element = updated<Op>(element, given[q]);
            }
        }
    });
}

// Different for threads that compute at the same time.
std::size_t number_of_thread() {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t number = threads++;
    return number;
}

}  // namespace

const char* to_string(Update op) {
    constexpr const char* names[] = {"sum", "min", "max", "bit_and", "bit_or", "bit_xor", "last"};
    return names[static_cast<int>(op)];
}

UpdatedFields::UpdatedFields(const Kernel& body, const NestProblem& nest, std::span<const ArrayReads> arrays)
    : body_(body), places_(nest.places), problem_places_(nest.problem.accesses.size()), dims_(nest.problem.dims()) {
    const auto count = static_cast<std::int64_t>(nest.updates.size());
    share_bytes_ = room_bytes / count / cache_line_bytes * cache_line_bytes;
    most_points_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t bytes = 0;
    for (const UpdatedArray& what : nest.updates) {
        const ArrayReads& a = arrays[static_cast<std::size_t>(what.array)];
        Updated& made = all_.emplace_back(Updated{what, *a.update, a.type, a.field, a.item_bytes});
        made.axes = a.axes;
        made.strides = Index::filled(dims_, 0);
        const Index in_field = row_major_strides(a.field->layout().whole(), a.item_bytes);
        for (int d = 0; d < a.axes.n; ++d) {
            made.strides[static_cast<int>(a.axes[d])] = in_field[d] * (a.scale.n ? a.scale[d] : 1);
            made.first += in_field[d] * (a.scale.n ? a.residue[d] : 0);
        }
        most_points_ = std::min(most_points_, share_bytes_ / a.item_bytes);
        if (what.place >= 0) continue;
        made.bytes = made.elements() * (a.item_bytes + (made.op == Update::last));
        bytes += made.op == Update::last ? 0 : made.bytes;
    }
    const std::int64_t lanes = all_[0].field->context().threads();
    copies_ = static_cast<std::size_t>(std::clamp<std::int64_t>(
        tuning::most_updated_bytes / std::max<std::int64_t>(bytes, 1), 1, std::max<std::int64_t>(lanes, 1)));
    locks_ = std::make_unique<std::mutex[]>(copies_);
    for (Updated& of : all_)
        if (of.what.place < 0)
            of.found = aligned_memory(of.bytes * of.copies(copies_)), of.other = aligned_memory(of.bytes);
    if (const std::size_t n = places_.size() + body.values.size(); n > max_places || most_points_ < 1)
        throw ConfigError("updates: " + std::to_string(count) + " fields, in a nest of " + std::to_string(n) +
                          " places and values, were given; allowed: up to " + std::to_string(max_places) +
                          " places and values, and items of up to " + std::to_string(share_bytes_) + " bytes");
}

Kernel UpdatedFields::kernel() const {
    Kernel k = body_;
    k.row = [](char* const* ptr, const std::int64_t* step, std::int64_t n, const std::int64_t* index,
               const std::int64_t* direction, const void* env) {
        return static_cast<const UpdatedFields*>(env)->compute(ptr, step, n, index, direction);
    };
    k.env = this;
    k.uses_index = true;
    for (PointReduction& r : k.reductions)
        r.place += static_cast<int>(problem_places_) - static_cast<int>(places_.size());
    return k;
}

std::int64_t UpdatedFields::compute(char* const* ptr, const std::int64_t* step, std::int64_t n,
                                    const std::int64_t* index, const std::int64_t* direction) const {
    alignas(cache_line_bytes) std::byte room[room_bytes];
    const std::size_t places = places_.size(), all = places + body_.values.size();
    char *at[max_places], *from[max_places];
    std::int64_t along[max_places];
    for (std::size_t p = 0; p < all; ++p) {
        const std::size_t given =
            p < places ? static_cast<std::size_t>(std::max(places_[p], 0)) : p - places + problem_places_;
        from[p] = ptr[given], along[p] = step[given];
    }
    for (std::size_t u = 0; u < all_.size(); ++u) {
        const auto place = static_cast<std::size_t>(all_[u].what.array);
        at[place] = reinterpret_cast<char*>(room) + static_cast<std::int64_t>(u) * share_bytes_;
        along[place] = all_[u].item_bytes;
    }
    Index x = Index::filled(dims_, 0), by = x;
    for (int k = 0; k < dims_; ++k) by[k] = direction[k];
    for (std::int64_t first = 0; first < n; first += most_points_) {
        const std::int64_t points = std::min(most_points_, n - first);
        for (int k = 0; k < dims_; ++k) x[k] = index[k] + first * by[k];
        for (std::size_t p = 0; p < all; ++p)
            if (p >= places || places_[p] >= 0) at[p] = from[p] + first * along[p];
        if (const std::int64_t code = body_.row(at, along, points, x.begin(), by.begin(), body_.env); code != 0)
            return code + first * error_sites;
        const auto [copy, lock] = free_copy();
        for (std::size_t u = 0; u < all_.size(); ++u) {
            const Updated& of = all_[u];
            const std::byte* const values = room + static_cast<std::int64_t>(u) * share_bytes_;
            if (of.what.place < 0) {
                update(of, copy, values, points, x, by);
                continue;
            }
            const auto place = static_cast<std::size_t>(of.what.place);
            auto* const to = reinterpret_cast<std::byte*>(ptr[place] + first * step[place]);
            if (of.op != Update::last) {
                update_elements(of.op, *of.type, to, step[place], values, points);
                continue;
            }
            for (std::int64_t q = 0; q < points; ++q)
                std::memcpy(to + q * step[place], values + q * of.item_bytes, static_cast<std::size_t>(of.item_bytes));
        }
    }
    return 0;
}

// One that no other lane updates meanwhile.
std::pair<std::size_t, std::unique_lock<std::mutex>> UpdatedFields::free_copy() const {
    const std::size_t mine = number_of_thread() % copies_;
    for (std::size_t k = 0; k < copies_; ++k) {
        const std::size_t copy = (mine + k) % copies_;
        if (std::unique_lock lock(locks_[copy], std::try_to_lock); lock) return {copy, std::move(lock)};
    }
    return {mine, std::unique_lock(locks_[mine])};
}

void UpdatedFields::update(const Updated& of, std::size_t copy, const std::byte* values, std::int64_t n,
                           const Index& index, const Index& direction) {
    if (of.op == Update::last) return keep_last(of, values, n, index, direction);
    std::int64_t at = of.first, stride = 0;
    for (int k = 0; k < index.n; ++k) at += index[k] * of.strides[k], stride += direction[k] * of.strides[k];
    std::byte* const to = of.found.get() + static_cast<std::int64_t>(copy) * of.bytes + at;
    update_elements(of.op, *of.type, to, stride, values, n);
}

// The points of the row that have the last indices of the loops that the field lacks: all, one or none.
void UpdatedFields::keep_last(const Updated& of, const std::byte* values, std::int64_t n, const Index& index,
                              const Index& direction) {
    std::int64_t lo = 0, hi = of.what.last.n ? n : 0, at = of.first, stride = 0;
    for (int k = 0; k < index.n && lo < hi; ++k) {
        at += index[k] * of.strides[k], stride += direction[k] * of.strides[k];
        if (std::ranges::find(of.axes, k) != of.axes.end()) continue;
        const std::int64_t left = of.what.last[k] - index[k], by = direction[k];
        const std::int64_t q = by == 0 ? 0 : left / by;
        if (q * by != left) return;
        if (by != 0) lo = std::max(lo, q), hi = std::min(hi, q + 1);
    }
    std::byte* const found = of.found.get();
    for (std::int64_t q = lo; q < hi; ++q) {
        const std::int64_t element = at + q * stride;
        std::memcpy(found + element, values + q * of.item_bytes, static_cast<std::size_t>(of.item_bytes));
        found[of.elements() * of.item_bytes + element / of.item_bytes] = std::byte{1};
    }
}

void UpdatedFields::begin() {
    begun_ = true;
    for (const Updated& of : all_) {
        if (of.op == Update::last) {
            std::fill(of.found.get(), of.found.get() + of.bytes, std::byte{0});
            continue;
        }
        if (of.bytes > 0)
            with_operation(of.op, *of.type, [&]<Update Op, class T>() {
                auto* const first = reinterpret_cast<T*>(of.found.get());
                std::fill(first, first + of.copies(copies_) * of.elements(), nothing<Op, T>());
            });
    }
}

void UpdatedFields::end() {
    if (!std::exchange(begun_, false)) return;
    for (const Updated& of : all_) {
        if (of.bytes == 0) continue;
        const std::span found(of.found.get(), static_cast<std::size_t>(of.bytes)), other(of.other.get(), found.size());
        for (std::int64_t k = 1; k < of.copies(copies_); ++k)
            update_elements(of.op, *of.type, of.found.get(), of.item_bytes, of.found.get() + k * of.bytes,
                            of.elements());
        Context& context = of.field->context();
        if (context.size() > 1)
            allreduce(context.transport(), found, other, [&] {
                if (of.op == Update::last)  // it is one rank's, and 0 elsewhere
                    std::ranges::transform(found, other, found.begin(), std::bit_or());
                else
                    update_elements(of.op, *of.type, found.data(), of.item_bytes, other.data(), of.elements());
            });
        give(of);
    }
}

// The elements of this rank.
void UpdatedFields::give(const Updated& of) const {
    FieldStorage& field = *of.field;
    const Binding memory = field.binding();
    const LocalPart here{memory.data, memory.stride_bytes, field.storage().lo, field.owned()};
    const Index strides = row_major_strides(field.layout().whole(), of.item_bytes);
    if (here.owned.empty()) return;
    const int along = here.owned.dims() - 1;
    const std::byte* const stored = of.found.get() + of.elements() * of.item_bytes;
    Index at = here.owned.lo;
    do {
        std::int64_t first = 0;
        for (int d = 0; d <= along; ++d) first += at[d] * strides[d];
        const std::int64_t n = here.owned.extent(along);
        std::byte* const to = here.at(at);
        if (of.op != Update::last) {
            update_elements(of.op, *of.type, to, memory.stride_bytes[along], of.found.get() + first, n);
            continue;
        }
        for (std::int64_t q = 0; q < n; ++q)
            if (stored[first / of.item_bytes + q] != std::byte{0})
                std::memcpy(to + q * memory.stride_bytes[along], of.found.get() + first + q * of.item_bytes,
                            static_cast<std::size_t>(of.item_bytes));
    } while (next_point(at, here.owned, 1u << along));
}

bool UpdatedFields::has(const FieldStorage* field) const {
    return std::ranges::any_of(all_, [&](const Updated& of) { return of.what.place < 0 && of.field == field; });
}

}  // namespace tilewave
