#include "tilewave/reduction.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "transport/collectives.hpp"

namespace tilewave {

// A double is m * 2^(e - 1074), m of 53 bits: its bits are added to the words from e / 32 on.
void ExactSum::add(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
    std::uint64_t m = bits & ((std::uint64_t{1} << 52) - 1);
    if (exponent == 0x7ff) {
        nan_ = nan_ || m != 0;
        (bits >> 63 ? minus_ : plus_) = (bits >> 63 ? minus_ : plus_) || m == 0;
        return;
    }
    if (exponent > 0) m |= std::uint64_t{1} << 52;
    const int e = exponent > 0 ? exponent - 1 : 0;
    const auto wide = static_cast<unsigned __int128>(m) << (e & 31);
    const std::int64_t sign = bits >> 63 ? -1 : 1;
    auto* word = &words_[static_cast<std::size_t>(e >> 5)];
    word[0] += sign * static_cast<std::int64_t>(static_cast<std::uint64_t>(wide) & 0xffffffffU);
    word[1] += sign * static_cast<std::int64_t>(static_cast<std::uint64_t>(wide >> 32) & 0xffffffffU);
    word[2] += sign * static_cast<std::int64_t>(static_cast<std::uint64_t>(wide >> 64));
    // Each add changes a word by less than 2^32.
    if (++adds_ == (std::int64_t{1} << 30)) carry();
}

// Every word but the last within 0 to 2^32 - 1.
void ExactSum::carry() {
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
        words_[i + 1] += words_[i] >> 32;
        words_[i] &= 0xffffffff;
    }
    adds_ = 0;
}

void ExactSum::add(const ExactSum& other) {
    ExactSum more = other;
    more.carry();
    carry();
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] += more.words_[i];
    carry();
    nan_ = nan_ || other.nan_;
    plus_ = plus_ || other.plus_;
    minus_ = minus_ || other.minus_;
}

double ExactSum::value() const {
    if (nan_ || (plus_ && minus_)) return std::numeric_limits<double>::quiet_NaN();
    if (plus_ || minus_)
        return plus_ ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    ExactSum sum = *this;
    sum.carry();
    const bool negative = sum.words_.back() < 0;
    if (negative) {
        for (auto& w : sum.words_) w = -w;
        sum.carry();
    }
    int top = static_cast<int>(sum.words_.size()) - 1;
    while (top >= 0 && sum.words_[static_cast<std::size_t>(top)] == 0) --top;
    if (top < 0) return 0.0;
    // The highest 64 bits or more, and whether anything is below them.
    unsigned __int128 high = 0;
    int low = top;
    for (int i = 0; i < 3 && low >= 0; ++i, --low)
        high = high << 32 | static_cast<std::uint64_t>(sum.words_[static_cast<std::size_t>(low)]);
    ++low;
    bool rest = false;
    for (int i = 0; i < low; ++i) rest = rest || sum.words_[static_cast<std::size_t>(i)] != 0;
    int length = 0;
    while (high >> length != 0) ++length;
    int exponent = low * 32 - 1074;
    const int cut = length - 53;
    if (cut > 0) {
        const unsigned __int128 below = high & ((static_cast<unsigned __int128>(1) << cut) - 1);
        const unsigned __int128 half = static_cast<unsigned __int128>(1) << (cut - 1);
        high >>= cut;
        exponent += cut;
        if (below > half || (below == half && (rest || (high & 1)))) ++high;
    }
    const double magnitude = std::ldexp(static_cast<double>(static_cast<std::uint64_t>(high)), exponent);
    return negative ? -magnitude : magnitude;
}

namespace {

template <class T>
T load(const std::byte* p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

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

// What picks a clone runs before the thread sanitizer is ready for it.
#ifdef __SANITIZE_THREAD__
#define TILEWAVE_CLONES
#else
#define TILEWAVE_CLONES __attribute__((target_clones("avx2", "default")))
#endif

// The best of n neighbours: eight and more at once, so that the compiler makes vectors of it.
template <bool Max, class T>
TILEWAVE_CLONES T best_of(const T* x, std::int64_t n) {
    constexpr int lanes = 64 / sizeof(T);
    T best[lanes];
    bool nan = false;
    for (int k = 0; k < lanes; ++k) best[k] = x[0];
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
        for (int k = 0; k < lanes; ++k) {
            const T v = x[i + k];
            best[k] = (Max ? v > best[k] : v < best[k]) ? v : best[k];
            if constexpr (std::is_floating_point_v<T>) nan |= v != v;
        }
    T all = x[0];
    for (; i < n; ++i)
        if (better<Max>(x[i], all)) all = x[i];
    for (int k = 0; k < lanes; ++k)
        if (better<Max>(best[k], all)) all = best[k];
    if constexpr (std::is_floating_point_v<T>)
        if (nan) return std::numeric_limits<T>::quiet_NaN();
    return all;
}

template <bool Max, class T>
T best_of(const std::byte* first, std::int64_t step, std::int64_t n) {
    if (step == sizeof(T) && reinterpret_cast<std::uintptr_t>(first) % alignof(T) == 0)
        return best_of<Max>(reinterpret_cast<const T*>(first), n);
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
    return (value == best || (is_nan(value) && is_nan(best))) && before(at, at_);
}

template <class T>
void Reduced::add_extreme(const std::byte* first, std::int64_t step, std::int64_t n, const Index& at,
                          const Index& direction) {
    const T value = what_.op == Reduction::max ? best_of<true, T>(first, step, n) : best_of<false, T>(first, step, n);
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
    while (!same(load<T>(first + q * step)))
        if (q += forward ? 1 : -1; q < 0 || q >= n)
            return;  // other lanes have changed the row: only while a rate is measured, in no order
    const Index found = element(q);
    if (!beats(value, found)) return;
    at_ = found;
    std::memcpy(best_.data(), first + q * step, sizeof(T));
}

namespace {

template <class F>
void with_type(Dtype type, F f) {
    switch (type) {
        case Dtype::i1: return f(std::int8_t{});
        case Dtype::i2: return f(std::int16_t{});
        case Dtype::i4: return f(std::int32_t{});
        case Dtype::i8: return f(std::int64_t{});
        case Dtype::u1: return f(std::uint8_t{});
        case Dtype::f4: return f(float{});
        case Dtype::f8: return f(double{});
        case Dtype::c8:
        case Dtype::c16:
        case Dtype::b1: break;
    }
}

}  // namespace

void Reduced::add(const std::byte* first, std::int64_t step, std::int64_t n, const Index& at, const Index& direction) {
    if (n <= 0) return;
    with_type(what_.type, [&](auto zero) {
        using T = decltype(zero);
        if (what_.op != Reduction::sum) return add_extreme<T>(first, step, n, at, direction);
        at_ = at;
        if constexpr (std::is_floating_point_v<T>) {
            for (std::int64_t i = 0; i < n; ++i) exact_.add(static_cast<double>(load<T>(first + i * step)));
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

bool Reduced::worse(const std::byte* first, std::int64_t step, std::int64_t n) const {
    if (what_.op == Reduction::sum || !any() || n <= 0) return false;
    bool worse = false;
    with_type(what_.type, [&](auto zero) {
        using T = decltype(zero);
        const T best = load<T>(best_.data());
        worse = what_.op == Reduction::max ? better<true>(best, best_of<true, T>(first, step, n))
                                           : better<false>(best, best_of<false, T>(first, step, n));
    });
    return worse;
}

bool Reduced::worse(const std::byte* found) const {
    if (what_.op == Reduction::sum || !any()) return false;
    bool worse = false;
    with_type(what_.type, [&](auto zero) {
        using T = decltype(zero);
        const T best = load<T>(best_.data()), other = load<T>(found);
        worse = what_.op == Reduction::max ? better<true>(best, other) : better<false>(best, other);
    });
    return worse;
}

void Reduced::join(const Reduced& other) {
    if (!other.any()) return;
    if (what_.op == Reduction::sum) {
        at_ = other.at_;
        integers_ += other.integers_;
        exact_.add(other.exact_);
        return;
    }
    with_type(what_.type, [&](auto zero) {
        using T = decltype(zero);
        if (!beats(load<T>(other.best_.data()), other.at_)) return;
        at_ = other.at_;
        best_ = other.best_;
    });
}

std::string Reduced::bytes() const {
    if (what_.op != Reduction::sum)
        return {reinterpret_cast<const char*>(best_.data()), static_cast<std::size_t>(item_bytes(what_.type))};
    if (what_.type == Dtype::f4 || what_.type == Dtype::f8) {
        const double value = exact_.value();
        return {reinterpret_cast<const char*>(&value), sizeof value};
    }
    return {reinterpret_cast<const char*>(&integers_), sizeof integers_};
}

Reduced Reduced::unpacked(const std::string& bytes) {
    static_assert(std::is_trivially_copyable_v<Reduced>);
    Reduced r;
    std::memcpy(static_cast<void*>(&r), bytes.data(), sizeof r);
    return r;
}

std::vector<Reduced> join_ranks(Transport& t, std::vector<Reduced> mine) {
    if (mine.empty() || t.size() == 1) return mine;
    std::string packed;
    for (const Reduced& r : mine) packed += r.packed();
    const std::size_t each = packed.size() / mine.size();
    allreduce(t, packed, [&](std::string& ours, const std::string& theirs) {
        for (std::size_t at = 0; at < ours.size(); at += each) {
            Reduced both = Reduced::unpacked(ours.substr(at, each));
            both.join(Reduced::unpacked(theirs.substr(at, each)));
            ours.replace(at, each, both.packed());
        }
    });
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = Reduced::unpacked(packed.substr(i * each, each));
    return mine;
}

}  // namespace tilewave
