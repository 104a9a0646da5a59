#include "data/shear.hpp"
#include "core/avx2.hpp"
#include "data/tuning.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#ifdef TILEWAVE_AVX2
#include <immintrin.h>
#endif

namespace tilewave {

using namespace tuning;
namespace {

constexpr std::int64_t block_columns(std::int64_t item) {
    return 16 / item;
}
constexpr std::int64_t block_rows(std::int64_t item) {
    return 32 / item;
}

// Where the next block of a strip, or the second strip, is.
struct Steps {
    std::int64_t to, from;
};

// `n` blocks of each of one or two strips. The steps are those between the contiguous runs of each side.
using CopyBlocks = void (*)(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                            std::int64_t n, int strips, Steps strip);

// Contiguous rows of `from` become contiguous columns, or with `back` the reverse.
template <int item, bool back>
struct ItemBlock {
    static void copy(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step) {
        for (std::int64_t c = 0; c < block_columns(item); ++c)
            for (std::int64_t r = 0; r < block_rows(item); ++r)
                if constexpr (back)
                    std::memcpy(to + r * to_step + c * item, from + c * from_step + r * item, item);
                else
                    std::memcpy(to + c * to_step + r * item, from + r * from_step + c * item, item);
    }
};

#ifdef TILEWAVE_AVX2
template <int item>
TILEWAVE_AVX2 inline __m256i interleave_low(__m256i a, __m256i b) {
    if constexpr (item == 1) return _mm256_unpacklo_epi8(a, b);
    if constexpr (item == 2) return _mm256_unpacklo_epi16(a, b);
    if constexpr (item == 4) return _mm256_unpacklo_epi32(a, b);
    return _mm256_unpacklo_epi64(a, b);
}

template <int item>
TILEWAVE_AVX2 inline __m256i interleave_high(__m256i a, __m256i b) {
    if constexpr (item == 1) return _mm256_unpackhi_epi8(a, b);
    if constexpr (item == 2) return _mm256_unpackhi_epi16(a, b);
    if constexpr (item == 4) return _mm256_unpackhi_epi32(a, b);
    return _mm256_unpackhi_epi64(a, b);
}

// The transpose of each half of n x n items: a step puts item 2i and 2i + 1 of what were vectors i
// and i + n/2 together; after log2(n) of them all indices have changed places.
template <int item>
TILEWAVE_AVX2 inline void transpose_halves(__m256i* v) {
    constexpr int n = 16 / item;
#pragma GCC unroll 4
    for (int step = 1; step < n; step *= 2) {
        __m256i w[n];
#pragma GCC unroll 16
        for (int i = 0; i < n / 2; ++i) {
            w[2 * i] = interleave_low<item>(v[i], v[i + n / 2]);
            w[2 * i + 1] = interleave_high<item>(v[i], v[i + n / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) v[i] = w[i];
    }
}

// The lower halves hold the first n rows of the block, the upper ones the others.
template <int item, bool back>
TILEWAVE_AVX2 inline void copy_block(std::byte* to, std::int64_t to_step, const std::byte* from,
                                     std::int64_t from_step) {
    constexpr int n = 16 / item;
    __m256i v[n];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i)
        if constexpr (back)
            v[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i * from_step));
        else
            v[i] = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(from + (i + n) * from_step),
                                       reinterpret_cast<const __m128i*>(from + i * from_step));
    transpose_halves<item>(v);
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i)
        if constexpr (back)
            _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(to + (i + n) * to_step),
                                 reinterpret_cast<__m128i*>(to + i * to_step), v[i]);
        else
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * to_step), v[i]);
}

template <int item, bool back>
TILEWAVE_AVX2 void copy_blocks_avx2(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                                    std::int64_t n, int strips, Steps strip) {
    const std::int64_t to_next = back ? 16 : 16 / item * to_step, from_next = back ? 16 / item * from_step : 16;
    for (; n >= blocks_a_line; n -= blocks_a_line) {
        const int ahead = n > lines_ahead * blocks_a_line ? blocks_a_line * (16 / item) : 0;
        for (int i = 0; i < ahead; ++i) {
            if constexpr (back)
                __builtin_prefetch(from + lines_ahead * blocks_a_line * from_next + i * from_step);
            else
                __builtin_prefetch(to + lines_ahead * blocks_a_line * to_next + i * to_step, 1);
        }
        for (int s = 0; s < strips; ++s)
            for (int b = 0; b < blocks_a_line; ++b)
                copy_block<item, back>(to + s * strip.to + b * to_next, to_step, from + s * strip.from + b * from_next,
                                       from_step);
        to += blocks_a_line * to_next;
        from += blocks_a_line * from_next;
    }
    for (int s = 0; s < strips; ++s)
        for (int b = 0; b < n; ++b)
            copy_block<item, back>(to + s * strip.to + b * to_next, to_step, from + s * strip.from + b * from_next,
                                   from_step);
}
#endif

template <int item, bool back>
void copy_blocks(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t n,
                 int strips, Steps strip) {
    const std::int64_t to_next = back ? 16 : 16 / item * to_step, from_next = back ? 16 / item * from_step : 16;
    for (; n > 0; --n, to += to_next, from += from_next)
        for (int s = 0; s < strips; ++s)
            ItemBlock<item, back>::copy(to + s * strip.to, to_step, from + s * strip.from, from_step);
}

template <int item, bool back>
CopyBlocks block_copier() {
#ifdef TILEWAVE_AVX2
    if (has_avx2) return copy_blocks_avx2<item, back>;
#endif
    return copy_blocks<item, back>;
}

// Groups of rows: one or two strips.
template <int item>
class Groups {
public:
    Groups(std::byte* to, const std::byte* from, const ShearedMatrix& matrix)
        : to_(to),
          from_(from),
          p_(matrix),
          back_(matrix.to_column == item),
          blocks_(back_ ? block_copier<item, true>() : block_copier<item, false>()),
          row_blocks_(matrix.rows > height ? 2 : 1),
          second_(std::min(height, matrix.rows - height)) {}

    // Windows of columns over all rows. The last group may overlap the one before.
    void copy() const {
        const std::int64_t span = (p_.rows - 1) * p_.shear, begin = std::min<std::int64_t>(span, 0);
        const std::int64_t end = std::max<std::int64_t>(span, 0) + p_.columns;
        const std::int64_t last = std::max<std::int64_t>(p_.rows - 2 * height, 0);
        for (std::int64_t t = begin; t < end; t += window_columns)
            for (std::int64_t r = 0; r < p_.rows; r += 2 * height) group(std::min(r, last), t, t + window_columns);
    }

private:
    static constexpr std::int64_t height = block_rows(item), width = block_columns(item);

    // Columns that all rows of a strip or group have.
    struct Range {
        std::int64_t begin, end;
    };
    Range full(std::int64_t r, std::int64_t rows) const {
        const std::int64_t a = r * p_.shear, b = (r + rows - 1) * p_.shear;
        return {std::max(a, b), std::min(a, b) + p_.columns};
    }

    // The blocks of the group at row r that start in a window; what is ragged goes with the window where
    // the full columns begin and end.
    void group(std::int64_t r, std::int64_t begin, std::int64_t end) const {
        Range both = full(r, second_ + height);
        if (both.end < both.begin + width) both.end = both.begin;
        const std::int64_t n = (both.end - both.begin) / width;
        const auto at = [&](std::int64_t t) {
            return std::clamp<std::int64_t>((t - both.begin + width - 1) / width, 0, n);
        };
        const std::int64_t first = begin <= both.begin ? 0 : at(begin), stop = end <= both.begin ? 0 : at(end);
        if (first < stop) blocks(r, both.begin + first * width, stop - first, row_blocks_);
        if (begin <= both.begin && both.begin < end) {
            for (int s = 0; s < row_blocks_; ++s) head(r + s * second_, both.begin);
        }
        const std::int64_t rest = both.begin + n * width;
        if (begin <= rest && rest < end)
            for (int s = 0; s < row_blocks_; ++s) tail(r + s * second_, rest);
    }

    void head(std::int64_t r, std::int64_t end) const {
        const Range strip = full(r, height);
        for (std::int64_t t = strip.begin; t < end; t += width) blocks(r, std::min(t, strip.end - width), 1, 1);
        for (std::int64_t k = r; k < r + height; ++k) items(k, k * p_.shear, strip.begin);
    }

    void tail(std::int64_t r, std::int64_t begin) const {
        const Range strip = full(r, height);
        for (std::int64_t t = begin; t < strip.end; t += width) blocks(r, std::min(t, strip.end - width), 1, 1);
        for (std::int64_t k = r; k < r + height; ++k) items(k, strip.end, k * p_.shear + p_.columns);
    }

    void blocks(std::int64_t r, std::int64_t t, std::int64_t n, int strips) const {
        blocks_(to_ + r * p_.to_row + t * p_.to_column, back_ ? p_.to_row : p_.to_column,
                from_ + r * p_.from_row + t * p_.from_column, back_ ? p_.from_column : p_.from_row, n, strips,
                {second_ * p_.to_row, second_ * p_.from_row});
    }

    void items(std::int64_t r, std::int64_t begin, std::int64_t end) const {
        std::byte* to = to_ + r * p_.to_row + begin * p_.to_column;
        const std::byte* from = from_ + r * p_.from_row + begin * p_.from_column;
        for (std::int64_t t = begin; t < end; ++t, to += p_.to_column, from += p_.from_column)
            std::memcpy(to, from, item);
    }

    std::byte* to_;
    const std::byte* from_;
    const ShearedMatrix& p_;
    bool back_;
    CopyBlocks blocks_;
    int row_blocks_;
    std::int64_t second_;  // the second strip is so many rows below the first
};

}  // namespace

bool blocks_fit(std::int64_t rows, std::int64_t columns, std::int64_t shear, std::int64_t item_bytes) {
    if (item_bytes > 16 || !std::has_single_bit(std::uint64_t(item_bytes))) return false;
    const std::int64_t height = block_rows(item_bytes);
    return rows >= height && std::abs(shear) <= 4 &&
           columns >= block_columns(item_bytes) + (height - 1) * std::abs(shear);
}

void copy_sheared(std::byte* to, const std::byte* from, const ShearedMatrix& matrix) {
    switch (matrix.item_bytes) {
        case 1: return Groups<1>(to, from, matrix).copy();
        case 2: return Groups<2>(to, from, matrix).copy();
        case 4: return Groups<4>(to, from, matrix).copy();
        case 8: return Groups<8>(to, from, matrix).copy();
        case 16: return Groups<16>(to, from, matrix).copy();
    }
}

}  // namespace tilewave
