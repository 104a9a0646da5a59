#include "tilewave/reduction.hpp"

#include <algorithm>
#include <type_traits>

#include "core/avx2.hpp"
#include "core/plain_bytes.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

namespace {

template <class T>
bool is_nan(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return x != x;
    else
        return false;
}

// Whether `a` is the better of the two; NaN is the best.
template <bool Max, class T>
bool better(T a, T b) {
    if (is_nan(a)) return !is_nan(b);
    return Max ? a > b : a < b;
}

// The best of n neighbours: eight and more at once, so that the compiler makes vectors of it.
template <bool Max, class T>
[[gnu::always_inline]] inline T best_of_neighbours(const T* x, std::int64_t n) {
    constexpr std::int64_t lanes = 64 / sizeof(T);
    if (n < lanes) {
        T all = x[0];
        for (std::int64_t i = 1; i < n; ++i)
            if (better<Max>(x[i], all)) all = x[i];
        return all;
    }
    T best[lanes];
    bool nan = false;
    for (int k = 0; k < lanes; ++k) best[k] = x[0];
    for (std::int64_t i = 0; i < n; i += lanes) {
        const T* const now = x + std::min(i, n - lanes);  // the last ones may have been looked at
        for (int k = 0; k < lanes; ++k) {
            const T v = now[k];
            best[k] = (Max ? v > best[k] : v < best[k]) ? v : best[k];
            if constexpr (std::is_floating_point_v<T>) nan |= v != v;
        }
    }
    if constexpr (std::is_floating_point_v<T>)
        if (nan) return std::numeric_limits<T>::quiet_NaN();
    T all = best[0];
    for (int k = 1; k < lanes; ++k) all = (Max ? best[k] > all : best[k] < all) ? best[k] : all;
    return all;
}

// Whether a value is among n neighbours.
template <class T>
[[gnu::always_inline]] inline bool has(const T* x, std::int64_t n, T value) {
    bool found = false;
    for (std::int64_t i = 0; i < n; ++i) found |= x[i] == value;
    return found;
}

template <bool Max, class T>
T best_of(const std::byte* first, std::int64_t step, std::int64_t n) {
    if (step == sizeof(T) && reinterpret_cast<std::uintptr_t>(first) % alignof(T) == 0)
        return fastest<best_of_neighbours<Max, T>>(reinterpret_cast<const T*>(first), n);
    T all = load<T>(first);
    for (std::int64_t i = 1; i < n; ++i)
        if (const T v = load<T>(first + i * step); better<Max>(v, all)) all = v;
    return all;
}

bool before(const Index& a, const Index& b) {
    return lexicographically_positive(b - a);
}

}  // namespace

template <class T>
bool Reduced::beats(T value, const Index& at) const {
    if (!any()) return true;
    const T best = load<T>(best_.data());
    const bool max = what_.op == Reduction::max;
    if (max ? better<true>(value, best) : better<false>(value, best)) return true;
    return what_.positions && (value == best || (is_nan(value) && is_nan(best))) && before(at, at_);
}

template <class T>
void Reduced::add_extreme(const std::byte* first, std::int64_t step, std::int64_t n, const Index& at,
                          const Index& direction) {
    const T value = what_.op == Reduction::max ? best_of<true, T>(first, step, n) : best_of<false, T>(first, step, n);
    if (!what_.positions) return add_best(reinterpret_cast<const std::byte*>(&value));
    const bool forward = lexicographically_positive(direction);
    auto element = [&](std::int64_t q) {
        Index e = at;
        for (int k = 0; k < e.n; ++k) e[k] += q * direction[k];
        return e;
    };
    // No element of the row comes before this one: most rows are done with it.
    if (!beats(value, element(forward ? 0 : n - 1))) return;
    std::int64_t q = forward ? 0 : n - 1;
    auto same = [&](T v) { return v == value || (is_nan(v) && is_nan(value)); };
    // Whole blocks without it first, which are looked at with vectors.
    constexpr std::int64_t block = 64 / sizeof(T);
    if (step == sizeof(T) && reinterpret_cast<std::uintptr_t>(first) % alignof(T) == 0 && value == value)
        while (forward ? q + block <= n : q + 1 >= block) {
            if (fastest<has<T>>(reinterpret_cast<const T*>(first) + (forward ? q : q + 1 - block), block, value)) break;
            q += forward ? block : -block;
        }
    if (q < 0 || q >= n) return;
    while (!same(load<T>(first + q * step)))
        if (q += forward ? 1 : -1; q < 0 || q >= n)
            return;  // other lanes have changed the row: only while a rate is measured, in no order
    const Index found = element(q);
    if (!beats(value, found)) return;
    at_ = found;
    std::memcpy(best_.data(), first + q * step, sizeof(T));
}

namespace {

// Adds values of any stride as contiguous doubles.
template <class T>
void add_floats(ExactSum& sum, const std::byte* first, std::int64_t step, std::int64_t n) {
    if constexpr (std::is_same_v<T, double>)
        if (step == sizeof(T) && reinterpret_cast<std::uintptr_t>(first) % alignof(T) == 0)
            return sum.add(reinterpret_cast<const double*>(first), n);
    constexpr std::int64_t at_once = 1024;
    double values[at_once];
    for (std::int64_t i = 0, now = 0; i < n; i += now) {
        now = std::min(n - i, at_once);
        const std::byte* from = first + i * step;
        if (step == sizeof(T))
            for (std::int64_t k = 0; k < now; ++k)
                values[k] = static_cast<double>(load<T>(from + k * static_cast<std::int64_t>(sizeof(T))));
        else
            for (std::int64_t k = 0; k < now; ++k) values[k] = static_cast<double>(load<T>(from + k * step));
        sum.add(values, now);
    }
}

}  // namespace

void Reduced::add(const std::byte* first, std::int64_t step, std::int64_t n, const Index& at, const Index& direction,
                  const std::byte* counts) {
    if (n <= 0) return;
    if (counts && !what_.positions) {
        if (!any() && std::find_if(counts, counts + n, [](std::byte b) { return b != std::byte{0}; }) == counts + n)
            return;
        counts = nullptr;
    }
    // Runs of values that count.
    for (std::int64_t i = 0, end = 0; counts && i < n; i = end) {
        const std::byte kind = counts[i];
        for (end = i + 1; end < n && counts[end] == kind;) ++end;
        if (end - i == n && kind != std::byte{0}) break;
        Index from = at;
        for (int k = 0; k < from.n; ++k) from[k] += i * direction[k];
        if (kind != std::byte{0}) add(first + i * step, step, end - i, from, direction);
        if (end == n) return;
    }
    with_real_type(what_.type, [&](auto zero) {
        using T = decltype(zero);
        if (what_.op != Reduction::sum) return add_extreme<T>(first, step, n, at, direction);
        if (!any()) at_ = at;
        if constexpr (std::is_floating_point_v<T>) {
            add_floats<T>(exact_, first, step, n);
        } else {
            std::uint64_t sum = 0;
            if (step == sizeof(T))
                for (std::int64_t i = 0; i < n; ++i)
                    sum += static_cast<std::uint64_t>(
                        static_cast<std::int64_t>(load<T>(first + i * static_cast<std::int64_t>(sizeof(T)))));
            else
                for (std::int64_t i = 0; i < n; ++i)
                    sum += static_cast<std::uint64_t>(static_cast<std::int64_t>(load<T>(first + i * step)));
            integers_ += sum;
        }
    });
}

void Reduced::add_best(const std::byte* best) {
    with_real_type(what_.type, [&](auto zero) {
        using T = decltype(zero);
        if (beats(load<T>(best), at_)) std::memcpy(best_.data(), best, sizeof(T));
    });
    at_ = Index::filled(1, 0);
}

void Reduced::begin_best(Reduction op, Dtype type, std::byte* to) {
    with_real_type(type, [&](auto zero) {
        using T = decltype(zero);
        using Limits = std::numeric_limits<T>;
        T nothing = op == Reduction::max ? Limits::lowest() : Limits::max();
        if constexpr (Limits::has_infinity) nothing = op == Reduction::max ? -Limits::infinity() : Limits::infinity();
        std::memcpy(to, &nothing, sizeof nothing);
    });
}

bool Reduced::worse(const std::byte* found) const {
    if (what_.op == Reduction::sum || !any()) return false;
    bool worse = false;
    with_real_type(what_.type, [&](auto zero) {
        using T = decltype(zero);
        const T best = load<T>(best_.data()), other = load<T>(found);
        worse = what_.op == Reduction::max ? better<true>(best, other) : better<false>(best, other);
    });
    return worse;
}

void Reduced::combine(const Reduced& other) {
    if (!other.any()) return;
    if (what_.op == Reduction::sum) {
        at_ = other.at_;
        integers_ += other.integers_;
        exact_.add(other.exact_);
        return;
    }
    with_real_type(what_.type, [&](auto zero) {
        using T = decltype(zero);
        if (!beats(load<T>(other.best_.data()), other.at_)) return;
        at_ = other.at_;
        best_ = other.best_;
    });
}

std::string Reduced::bytes() const {
    if (what_.op != Reduction::sum) {
        auto best = best_;
        with_real_type(what_.type, [&](auto zero) {
            if (!what_.positions && load<decltype(zero)>(best.data()) == zero) best = {};
        });
        return {reinterpret_cast<const char*>(best.data()), static_cast<std::size_t>(item_bytes(what_.type))};
    }
    if (what_.type == Dtype::f4 || what_.type == Dtype::f8) {
        const double value = exact_.value();
        return {reinterpret_cast<const char*>(&value), sizeof value};
    }
    return {reinterpret_cast<const char*>(&integers_), sizeof integers_};
}

std::vector<Reduced> reduce_over_ranks(Transport& t, std::vector<Reduced> partial) {
    allreduce(t, partial, [](std::span<Reduced> local, std::span<const Reduced> other) {
        for (std::size_t i = 0; i < local.size(); ++i) local[i].combine(other[i]);
    });
    return partial;
}

}  // namespace tilewave
