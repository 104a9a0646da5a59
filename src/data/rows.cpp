#include "data/rows.hpp"

#include <cstring>
#include <type_traits>

#include "core/plain_bytes.hpp"

namespace tilewave {
namespace {

template <class T>
void store(std::byte* to, const T& value) {
    std::memcpy(to, &value, sizeof(T));
}

// 16 bytes of T: what every x86-64 and every 64-bit ARM has registers for. Wider ones gained only
// with all operands in the first-level cache. Written out, since g++ 12 vectorises none of these
// loops at -O2 and not the minima of doubles at -O3.
template <class T>
struct Vector {
    typedef T type __attribute__((vector_size(16)));
};

// Each works on items and on vectors of them.
struct Sum {
    template <class V>
    static V combine(const V& a, const V& b) {
        return a + b;
    }
};
struct Prod {
    template <class V>
    static V combine(const V& a, const V& b) {
        if constexpr (std::is_integral_v<V> && sizeof(V) < sizeof(int))
            return static_cast<V>(static_cast<unsigned>(a) * static_cast<unsigned>(b));  // an int could overflow
        else
            return a * b;
    }
};
// The bits of NumPy's minimum and maximum: a NaN wins, the left one of two; of zeros that differ in
// sign, the right one.
struct Min {
    template <class V>
    static V combine(const V& a, const V& b) {
        return (a < b) | (a != a) ? a : b;
    }
};
struct Max {
    template <class V>
    static V combine(const V& a, const V& b) {
        return (a > b) | (a != a) ? a : b;
    }
};

// `parts` numbers of type T an item. An operand that is `into` is read before it is written.
template <class T, class Op, int parts = 1>
bool combine(std::byte* into, const std::byte* left, const std::byte* right, std::int64_t n, void*) {
    using V = typename Vector<T>::type;
    const std::int64_t bytes = n * parts * std::int64_t(sizeof(T));
    std::int64_t i = 0;
    for (; i + 16 <= bytes; i += 16) store<V>(into + i, Op::combine(load<V>(left + i), load<V>(right + i)));
    for (; i < bytes; i += sizeof(T)) store<T>(into + i, Op::combine(load<T>(left + i), load<T>(right + i)));
    return true;
}

// The bits of NumPy where it does not fuse operations (where it does depends on its processor); the
// infinities that C's complex product would mend are not.
template <class T>
bool multiply_complex(std::byte* into, const std::byte* left, const std::byte* right, std::int64_t n, void*) {
    struct Complex {
        T re, im;
    };
    for (std::int64_t i = 0; i < n * std::int64_t(sizeof(Complex)); i += sizeof(Complex)) {
        const auto a = load<Complex>(left + i), b = load<Complex>(right + i);
        store<Complex>(into + i, {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re});
    }
    return true;
}

// For real types. Sums and products of integers are those of the unsigned ones, which may wrap.
template <class Op>
CombineRow combine_real(Dtype type) {
    constexpr bool ordered = std::is_same_v<Op, Min> || std::is_same_v<Op, Max>;
    switch (type) {
        case Dtype::f4: return combine<float, Op>;
        case Dtype::f8: return combine<double, Op>;
        case Dtype::i4: return combine<std::conditional_t<ordered, std::int32_t, std::uint32_t>, Op>;
        case Dtype::i8: return combine<std::conditional_t<ordered, std::int64_t, std::uint64_t>, Op>;
        case Dtype::i1: return combine<std::conditional_t<ordered, std::int8_t, std::uint8_t>, Op>;
        case Dtype::i2: return combine<std::conditional_t<ordered, std::int16_t, std::uint16_t>, Op>;
        case Dtype::u1: return combine<std::uint8_t, Op>;
        case Dtype::u2: return combine<std::uint16_t, Op>;
        case Dtype::u4: return combine<std::uint32_t, Op>;
        case Dtype::u8: return combine<std::uint64_t, Op>;
        case Dtype::b1: return ordered ? combine<std::uint8_t, Op> : nullptr;
        default: return nullptr;
    }
}

}  // namespace

CombineRow combine_row(Reduction op, Dtype type) {
    switch (op) {
        case Reduction::sum:
            if (type == Dtype::c8) return combine<float, Sum, 2>;
            if (type == Dtype::c16) return combine<double, Sum, 2>;
            return combine_real<Sum>(type);
        case Reduction::prod:
            if (type == Dtype::c8) return multiply_complex<float>;
            if (type == Dtype::c16) return multiply_complex<double>;
            return combine_real<Prod>(type);
        case Reduction::min: return combine_real<Min>(type);
        case Reduction::max: return combine_real<Max>(type);
        case Reduction::user: break;
    }
    return nullptr;
}

}  // namespace tilewave
