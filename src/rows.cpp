#include "rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace tilewave {
namespace {

// Measured on Zen 3 with glibc's memcpy: for a run of one cache line the call costs more than the
// copy; beyond two lines neither wider vectors nor prefetching nor rep movs were faster on the whole.
constexpr std::int64_t longest_short_run = 128;
// Matrices out of cache with rows a page apart gained 15 to 30 %, those in cache lost nothing; 12 to
// 20 rows did about equally.
constexpr std::int64_t rows_ahead = 16;

// n runs of `bytes` bytes each; the steps lie between the starts of neighbours.
using CopyRuns = void (*)(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                          std::int64_t n, std::int64_t bytes);

void copy_long(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t n,
               std::int64_t bytes) {
    for (; n > 0; --n, to += to_step, from += from_step) std::memcpy(to, from, bytes);
}

// Runs of exactly `size` bytes. Unrolled: the loop costs more than the one move it makes.
template <int size>
void copy_exact(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t n,
                std::int64_t) {
    for (; n >= 4; n -= 4, to += 4 * to_step, from += 4 * from_step) {
        std::memcpy(to, from, size);
        std::memcpy(to + to_step, from + from_step, size);
        std::memcpy(to + 2 * to_step, from + 2 * from_step, size);
        std::memcpy(to + 3 * to_step, from + 3 * from_step, size);
    }
    for (; n > 0; --n, to += to_step, from += from_step) std::memcpy(to, from, size);
}

// Runs of `piece` to 2 * `piece` bytes: the first and the last `piece` bytes, which may overlap,
// so that no length needs a branch within the run.
template <int piece>
void copy_ends(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t n,
               std::int64_t bytes) {
    const std::int64_t last = bytes - piece;
    const auto copy = [&] {
        std::memcpy(to, from, piece);
        std::memcpy(to + last, from + last, piece);
        to += to_step;
        from += from_step;
    };
    // Of runs up to 16 bytes the processor keeps enough under way without help.
    for (; piece >= 16 && n > rows_ahead; --n) {
        for (int line = 0; line <= piece; line += 64) {
            __builtin_prefetch(from + rows_ahead * from_step + line);
            __builtin_prefetch(to + rows_ahead * to_step + line, 1);
        }
        copy();
    }
    for (; n > 0; --n) copy();
}

CopyRuns copier(std::int64_t bytes) {
    switch (bytes) {
        case 1: return copy_exact<1>;
        case 2: return copy_exact<2>;
        case 4: return copy_exact<4>;
        case 8: return copy_exact<8>;
        case 16: return copy_exact<16>;
    }
    if (bytes > longest_short_run) return copy_long;
    if (bytes > 64) return copy_ends<64>;
    if (bytes > 32) return copy_ends<32>;
    if (bytes > 16) return copy_ends<16>;
    if (bytes > 8) return copy_ends<8>;
    return bytes > 4 ? copy_ends<4> : copy_ends<2>;
}

struct Dim {
    std::int64_t extent = 1, to_stride = 0, from_stride = 0;
};
// Innermost first; [0] is the run, in bytes.
using Dims = std::array<Dim, max_dims + 1>;

// The box with as few dimensions, and as long a run, as both sides allow.
Dims coalesce(const Index& to_stride, const Index& from_stride, const Index& extents, std::int64_t item_bytes) {
    Dims dims;
    dims[0] = {item_bytes, 1, 1};
    int top = 0;
    for (int k = extents.n - 1; k >= 0; --k) {
        if (extents[k] == 1) continue;
        Dim& in = dims[top];
        if (to_stride[k] == in.extent * in.to_stride && from_stride[k] == in.extent * in.from_stride)
            in.extent *= extents[k];
        else
            dims[++top] = {extents[k], to_stride[k], from_stride[k]};
    }
    return dims;
}

template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
}

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
    static V join(const V& a, const V& b) { return a + b; }
};
struct Prod {
    template <class V>
    static V join(const V& a, const V& b) { return a * b; }
};
// The bits of NumPy's minimum and maximum: a NaN wins, the left one of two; of zeros that differ in
// sign, the right one.
struct Min {
    template <class V>
    static V join(const V& a, const V& b) { return (a < b) | (a != a) ? a : b; }
};
struct Max {
    template <class V>
    static V join(const V& a, const V& b) { return (a > b) | (a != a) ? a : b; }
};

// `parts` numbers of type T an item. An operand that is `into` is read before it is written.
template <class T, class Op, int parts = 1>
bool combine(std::byte* into, const std::byte* left, const std::byte* right, std::int64_t n, void*) {
    using V = typename Vector<T>::type;
    const std::int64_t bytes = n * parts * std::int64_t(sizeof(T));
    std::int64_t i = 0;
    for (; i + 16 <= bytes; i += 16) store<V>(into + i, Op::join(load<V>(left + i), load<V>(right + i)));
    for (; i < bytes; i += sizeof(T)) store<T>(into + i, Op::join(load<T>(left + i), load<T>(right + i)));
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

// Of real types. Sums and products of integers are those of the unsigned ones, which may wrap.
template <class Op>
CombineRow combine_real(Dtype type) {
    constexpr bool ordered = std::is_same_v<Op, Min> || std::is_same_v<Op, Max>;
    switch (type) {
        case Dtype::f4: return combine<float, Op>;
        case Dtype::f8: return combine<double, Op>;
        case Dtype::i4: return combine<std::conditional_t<ordered, std::int32_t, std::uint32_t>, Op>;
        case Dtype::i8: return combine<std::conditional_t<ordered, std::int64_t, std::uint64_t>, Op>;
        case Dtype::u1: return combine<std::uint8_t, Op>;
        default: return nullptr;
    }
}

}  // namespace

void copy_box(std::byte* to, const Index& to_stride_bytes, const std::byte* from, const Index& from_stride_bytes,
              const Index& extents, std::int64_t item_bytes) {
    if (std::ranges::any_of(extents.span(), [](std::int64_t extent) { return extent <= 0; })) return;
    const Dims dims = coalesce(to_stride_bytes, from_stride_bytes, extents, item_bytes);
    const auto& [run, row, k, j, i] = dims;
    const CopyRuns copy_runs = copier(run.extent);
    for (std::int64_t x = 0; x < i.extent; ++x)
        for (std::int64_t y = 0; y < j.extent; ++y)
            for (std::int64_t z = 0; z < k.extent; ++z)
                copy_runs(to + x * i.to_stride + y * j.to_stride + z * k.to_stride, row.to_stride,
                          from + x * i.from_stride + y * j.from_stride + z * k.from_stride, row.from_stride,
                          row.extent, run.extent);
}

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
