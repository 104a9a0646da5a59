// Copies of boxes and combinations of rows, against an item at a time.
#include "data/rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "support/dice.hpp"

namespace tilewave {
namespace {

using Bytes = std::vector<std::byte>;
using Int = std::int64_t;

// One side of a copy: random bytes, in which the box starts at `offset`, aligned to nothing.
struct Side {
    Index stride;
    Int offset = 0;
    Bytes memory;

    // Strides of an array which is larger than the box in about half of its dimensions.
    Side(const Index& extents, Int item_bytes, bool packed, Dice& dice) : stride(extents) {
        Int step = item_bytes;
        for (int k = extents.n - 1; k >= 0; --k) {
            // The stride of a dimension of one item is never used.
            stride[k] = extents[k] == 1 && k < extents.n - 1 ? dice(0, 1000) : step;
            step *= extents[k] + (packed || dice(0, 1) ? 0 : dice(1, 3));
            if (!packed && k < extents.n - 1 && dice(0, 2) == 0) step += dice(1, 40);
        }
        offset = dice(0, 15);
        memory = dice.bytes(offset + step + dice(0, 15));
    }
};

void copy_items(Side& to, const Side& from, const Index& extents, Int item_bytes) {
    Int points = 1;
    for (const Int extent : extents.span()) points *= extent;
    Index at = Index::filled(extents.n, 0);
    for (Int point = 0; point < points; ++point) {
        Int a = to.offset, b = from.offset;
        for (int d = 0; d < extents.n; ++d) a += at[d] * to.stride[d], b += at[d] * from.stride[d];
        std::memcpy(to.memory.data() + a, from.memory.data() + b, item_bytes);
        for (int d = extents.n - 1; d >= 0 && ++at[d] == extents[d]; --d) at[d] = 0;
    }
}

// Every byte of the target's memory is compared, so that one beside the box is seen as well.
void expect_copied(Side to, const Side& from, const Index& extents, Int item_bytes) {
    Side expected = to;
    copy_items(expected, from, extents, item_bytes);
    copy_box(to.memory.data() + to.offset, to.stride, from.memory.data() + from.offset, from.stride, extents,
             item_bytes);
    EXPECT_EQ(to.memory, expected.memory) << to_string(extents) << " items of " << item_bytes << " bytes from strides "
                                          << to_string(from.stride) << " to " << to_string(to.stride);
}

TEST(CopyBox, random_boxes) {
    constexpr Int item_sizes[] = {1, 4, 8, 16, 3};
    for (std::uint64_t seed = 0; seed < 600 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Dice dice(seed);
        Index extents = Index::filled(int(dice(1, max_dims)), 1);
        Int points = 1;
        for (int k = 0; k < extents.n; ++k) {
            extents[k] = dice(0, 4) == 0 ? 1 : dice(0, 60) == 0 ? 0 : dice(2, std::max<Int>(2, 1000 / points));
            points = std::max<Int>(points * extents[k], 1);
        }
        const Int item_bytes = item_sizes[dice(0, 4)];
        const auto packed = dice(0, 2);  // pack, unpack, strided to strided
        const Side to(extents, item_bytes, packed == 0, dice), from(extents, item_bytes, packed == 1, dice);
        expect_copied(to, from, extents, item_bytes);
    }
}

TEST(CopyBox, every_length_of_run) {
    Dice dice(1);
    for (Int run = 1; run <= 300; ++run)
        for (Int rows : {1, 2, 3, 4, 5, 16, 17, 18, 35}) {
            const Index extents{rows, run};
            const Side to(extents, 1, true, dice);
            Side from(extents, 1, true, dice);
            from.stride[0] = run + dice(1, 2 * run);
            from.memory = dice.bytes(from.offset + rows * from.stride[0]);
            expect_copied(to, from, extents, 1);
            expect_copied(from, to, extents, 1);
        }
}

TEST(CopyBox, no_dimensions_are_one_item) {
    Dice dice(2);
    expect_copied(Side({}, 8, true, dice), Side({}, 8, true, dice), {}, 8);
}

// What the headers promise of one pair of items, written without regard to speed.
template <class T>
T expected(Reduction op, T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        if (op == Reduction::sum) return T(U(U(a) + U(b)));
        if (op == Reduction::prod) return T(U(std::uint64_t(U(a)) * std::uint64_t(U(b))));
        return op == Reduction::min ? std::min(a, b) : std::max(a, b);
    } else {
        if (op == Reduction::sum) return a + b;
        if (op == Reduction::prod) return a * b;
        if (std::isnan(a)) return a;
        if (std::isnan(b) || a == b) return b;
        return (op == Reduction::min) == (a < b) ? a : b;
    }
}

template <class R>
std::complex<R> expected(Reduction op, std::complex<R> a, std::complex<R> b) {
    if (op == Reduction::sum) return {a.real() + b.real(), a.imag() + b.imag()};
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
T random_item(Dice& dice) {
    if constexpr (std::is_integral_v<T>) {
        const T limits[] = {0, 1, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
        return dice(0, 3) == 0 ? limits[dice(0, 3)] : T(dice.engine());
    } else if constexpr (std::is_floating_point_v<T>) {
        const T special[] = {T(0),
                             -T(0),
                             std::numeric_limits<T>::infinity(),
                             -std::numeric_limits<T>::infinity(),
                             std::numeric_limits<T>::quiet_NaN(),
                             std::numeric_limits<T>::denorm_min()};
        return dice(0, 3) == 0 ? special[dice(0, 5)] : std::normal_distribution<T>()(dice.engine);
    } else {
        return {random_item<typename T::value_type>(dice), random_item<typename T::value_type>(dice)};
    }
}

// To the bit; which NaN comes out of arithmetic is the processor's affair.
template <class T>
bool same(Reduction op, const T& a, const T& b) {
    if constexpr (std::is_floating_point_v<T>)
        if (op <= Reduction::prod && std::isnan(a) && std::isnan(b)) return true;
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class R>
bool same(Reduction op, const std::complex<R>& a, const std::complex<R>& b) {
    return same(op, a.real(), b.real()) && same(op, a.imag(), b.imag());
}

template <class T>
T item(const Bytes& memory, Int offset, Int i) {
    T value;
    std::memcpy(&value, memory.data() + offset + i * Int(sizeof(T)), sizeof(T));
    return value;
}

template <class T>
Bytes row(Int offset, Int n, Dice& dice) {
    Bytes memory = dice.bytes(offset + n * Int(sizeof(T)) + 16);
    for (Int i = 0; i < n; ++i) {
        const T value = random_item<T>(dice);
        std::memcpy(memory.data() + offset + i * Int(sizeof(T)), &value, sizeof(T));
    }
    return memory;
}

enum class Into { apart, left, right, both };

template <class T>
void expect_combined(Reduction op, Dtype type, Int n, Into into, Dice& dice) {
    const CombineRow combine = combine_row(op, type);
    ASSERT_NE(combine, nullptr);
    const Int offset = dice(0, 3) * std::min<Int>(sizeof(T), 8);
    Bytes left = row<T>(offset, n, dice), right = row<T>(offset, n, dice), apart = row<T>(offset, n, dice);
    if (into == Into::both) right = left;
    const Bytes a = left, b = right;
    Bytes& target = into == Into::apart ? apart : into == Into::right ? right : left;
    const Bytes before = target;
    const std::byte* right_data = into == Into::both ? left.data() : right.data();
    EXPECT_TRUE(combine(target.data() + offset, left.data() + offset, right_data + offset, n, nullptr));
    for (Int i = 0; i < n; ++i)
        EXPECT_TRUE(same(op, item<T>(target, offset, i), expected(op, item<T>(a, offset, i), item<T>(b, offset, i))))
            << to_string(op) << " of " << to_string(type) << ", item " << i << " of " << n << ", into " << int(into);
    const auto end = offset + n * Int(sizeof(T));
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + offset, target.begin()));
    EXPECT_TRUE(std::equal(before.begin() + end, before.end(), target.begin() + end));
}

template <class T>
void expect_combined(Dtype type, std::initializer_list<Reduction> ops) {
    for (std::uint64_t seed = 0; seed < 200 && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Dice dice(seed);
        for (Reduction op : ops)
            for (Into into : {Into::apart, Into::left, Into::right, Into::both})
                expect_combined<T>(op, type, seed < 40 ? Int(seed) : dice(40, 300), into, dice);
    }
}

using enum Reduction;

TEST(CombineRow, float32) {
    expect_combined<float>(Dtype::f4, {sum, prod, min, max});
}
TEST(CombineRow, float64) {
    expect_combined<double>(Dtype::f8, {sum, prod, min, max});
}
TEST(CombineRow, complex64) {
    expect_combined<std::complex<float>>(Dtype::c8, {sum, prod});
}
TEST(CombineRow, complex128) {
    expect_combined<std::complex<double>>(Dtype::c16, {sum, prod});
}
TEST(CombineRow, int32) {
    expect_combined<std::int32_t>(Dtype::i4, {sum, prod, min, max});
}
TEST(CombineRow, int64) {
    expect_combined<std::int64_t>(Dtype::i8, {sum, prod, min, max});
}
TEST(CombineRow, int8) {
    expect_combined<std::int8_t>(Dtype::i1, {sum, prod, min, max});
}
TEST(CombineRow, int16) {
    expect_combined<std::int16_t>(Dtype::i2, {sum, prod, min, max});
}
TEST(CombineRow, bools_have_an_order_alone) {
    expect_combined<std::uint8_t>(Dtype::b1, {min, max});
    for (Reduction op : {sum, prod}) EXPECT_EQ(combine_row(op, Dtype::b1), nullptr);
}
TEST(CombineRow, uint8) {
    expect_combined<std::uint8_t>(Dtype::u1, {sum, prod, min, max});
}

TEST(CombineRow, has_no_order_of_complex_numbers_and_no_functions_of_the_user) {
    for (Dtype type : {Dtype::c8, Dtype::c16})
        for (Reduction op : {min, max}) EXPECT_EQ(combine_row(op, type), nullptr);
    for (Dtype type : {Dtype::f4, Dtype::c16, Dtype::u1}) EXPECT_EQ(combine_row(user, type), nullptr);
}

// As numpy.minimum and numpy.maximum 2.4 gave it: the bits of the item that wins, in a vector and
// in the items left over.
TEST(CombineRow, nans_and_zeros_win_as_in_numpy) {
    const auto nan = [](std::uint64_t bits) { return std::bit_cast<double>(bits); };
    const double quiet = nan(0x7ff8000000000011), negative = nan(0xfff8000000000022),
                 signalling = nan(0x7ff0000000000001);
    struct Case {
        double left, right, wins;
    };
    for (const auto& [left, right, wins] : std::vector<Case>{{0.0, -0.0, -0.0},
                                                             {-0.0, 0.0, 0.0},
                                                             {quiet, 1, quiet},
                                                             {1, negative, negative},
                                                             {quiet, negative, quiet},
                                                             {negative, quiet, negative},
                                                             {signalling, 1, signalling}})
        for (Reduction op : {min, max}) {
            const std::vector<double> a(3, left), b(3, right);
            std::vector<double> into(3);
            const auto bytes = [](const double* p) { return reinterpret_cast<const std::byte*>(p); };
            combine_row(op, Dtype::f8)(reinterpret_cast<std::byte*>(into.data()), bytes(a.data()), bytes(b.data()), 3,
                                       nullptr);
            for (double got : into) EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(wins));
        }
}

TEST(MatrixView, names_and_sizes_are_those_of_numpy) {
    EXPECT_STREQ(to_string(Dtype::c16), "complex128");
    EXPECT_STREQ(to_string(Dtype::u1), "uint8");
    EXPECT_STREQ(to_string(Reduction::max), "max");
    const MatrixView view{nullptr, 3, 5, 100, Dtype::c8};
    EXPECT_EQ(view.row_bytes(), 40);
    EXPECT_EQ(view.bytes(), 120);
    EXPECT_FALSE(view.contiguous());
}

}  // namespace
}  // namespace tilewave
