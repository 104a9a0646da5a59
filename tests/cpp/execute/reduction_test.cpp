#include "tilewave/reduction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace tilewave;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double least = std::numeric_limits<double>::denorm_min();
constexpr double most = std::numeric_limits<double>::max();

// A sum of finite doubles as an integer of 2240 bits in two's complement, a bit a byte: multiples of 2^-1074.
class Bits {
public:
    void add(double x) {
        const auto raw = std::bit_cast<std::uint64_t>(x);
        const int exponent = static_cast<int>(raw >> 52 & 0x7ff);
        std::uint64_t m = raw & ((std::uint64_t{1} << 52) - 1);
        if (exponent > 0) m |= std::uint64_t{1} << 52;
        std::vector<char> term(bits_.size(), 0);
        for (int b = 0; b < 53; ++b)
            term[static_cast<std::size_t>(std::max(exponent - 1, 0) + b)] = static_cast<char>(m >> b & 1);
        if (raw >> 63) negate(term);
        int carry = 0;
        for (std::size_t i = 0; i < bits_.size(); ++i) {
            const int sum = bits_[i] + term[i] + carry;
            bits_[i] = static_cast<char>(sum & 1);
            carry = sum >> 1;
        }
    }
    // Rounded to nearest, ties to even.
    double rounded() const {
        std::vector<char> b = bits_;
        const bool negative = b.back();
        if (negative) negate(b);
        auto top = static_cast<int>(b.size()) - 1;
        while (top >= 0 && !b[static_cast<std::size_t>(top)]) --top;
        const int low = std::max(top - 52, 0);
        std::uint64_t m = 0;
        for (int i = top; i >= low; --i) m = m << 1 | static_cast<std::uint64_t>(b[static_cast<std::size_t>(i)]);
        if (low > 0 && b[static_cast<std::size_t>(low - 1)]) {
            const bool more = std::any_of(b.begin(), b.begin() + low - 1, [](char bit) { return bit != 0; });
            m += more || (m & 1);
        }
        const double magnitude = std::ldexp(static_cast<double>(m), low - 1074);
        return negative ? -magnitude : magnitude;
    }

private:
    static void negate(std::vector<char>& b) {
        int carry = 1;
        for (char& bit : b) {
            const int sum = 1 - bit + carry;
            bit = static_cast<char>(sum & 1);
            carry = sum >> 1;
        }
    }
    std::vector<char> bits_ = std::vector<char>(2240, 0);
};

double exact(const std::vector<double>& values) {
    ExactSum sum;
    for (double v : values) sum.add(v);
    return sum.value();
}

double reference(const std::vector<double>& values) {
    Bits sum;
    for (double v : values) sum.add(v);
    return sum.rounded();
}

std::uint64_t bits(double x) {
    return std::bit_cast<std::uint64_t>(x);
}

// Numbers of exponents first to last of 0 to 2046, perhaps followed by their negatives, so that little is left.
std::vector<double> random_values(std::mt19937_64& random, int count) {
    std::uniform_int_distribution<int> any(0, 2046), sparse(0, 3);
    int first = any(random), last = any(random);
    if (first > last) std::swap(first, last);
    if (sparse(random) == 0) first = 0, last = std::min(last, 5);  // subnormals
    if (sparse(random) == 0) last = std::min(first + 60, 2046);
    std::uniform_int_distribution<int> exponent(first, last);
    std::vector<double> values;
    for (int i = 0; i < count; ++i) {
        std::uint64_t m = random() & ((std::uint64_t{1} << 52) - 1);
        if (sparse(random) == 0) m &= std::uint64_t{3} << 50;  // so that ties occur
        values.push_back(std::bit_cast<double>((random() & std::uint64_t{1} << 63) |
                                               static_cast<std::uint64_t>(exponent(random)) << 52 | m));
    }
    if (sparse(random) == 0)
        for (int i = 0; i + 1 < count; ++i) values.push_back(-values[static_cast<std::size_t>(i)]);
    std::shuffle(values.begin(), values.end(), random);
    return values;
}

TEST(ExactSum, OfRandomDoublesIsRoundedOnce) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 3000; ++i) {
        const auto values = random_values(random, std::uniform_int_distribution<int>(1, 30)(random));
        ASSERT_EQ(bits(exact(values)), bits(reference(values)))
            << "case " << i << ": " << exact(values) << " " << reference(values);
    }
}

TEST(ExactSum, OfPartsIsThatOfAll) {
    std::mt19937_64 random(2);
    for (int i = 0; i < 1000; ++i) {
        const auto values = random_values(random, 20);
        std::vector<ExactSum> parts(5);
        for (double v : values) parts[random() % parts.size()].add(v);
        ExactSum all;
        for (const ExactSum& p : parts) all.add(p);
        ASSERT_EQ(bits(all.value()), bits(reference(values))) << "case " << i;
    }
}

// Many at once are what they are one by one, whatever lies between their exponents.
TEST(ExactSum, OfBlocks) {
    std::mt19937_64 random(4);
    for (int i = 0; i < 600; ++i) {
        const int count = std::uniform_int_distribution<int>(1, i % 3 ? 60 : 3000)(random);
        std::vector<double> values = random_values(random, count);
        if (i % 4 == 1) {  // as most data: near each other
            std::normal_distribution<double> near(0, std::ldexp(1.0, static_cast<int>(random() % 2000) - 1000));
            for (double& v : values) v = near(random);
        }
        if (i % 7 == 0) values[random() % values.size()] = -0.0;
        if (i % 50 == 3) values[random() % values.size()] = i % 100 == 3 ? nan_value : -infinity;
        ExactSum blocks;
        for (std::size_t at = 0; at < values.size();) {
            const std::size_t n = std::min<std::size_t>(1 + random() % 2000, values.size() - at);
            blocks.add(values.data() + at, static_cast<std::int64_t>(n));
            at += n;
        }
        ASSERT_TRUE(bits(blocks.value()) == bits(exact(values)) ||
                    (std::isnan(blocks.value()) && std::isnan(exact(values))))
            << "case " << i << ": " << blocks.value() << " " << exact(values);
    }
    const std::vector<double> small(40, -0.0);
    ExactSum zeros;
    zeros.add(small.data(), 40);
    EXPECT_EQ(bits(zeros.value()), bits(0.0));
}

TEST(ExactSum, OfManyCarries) {
    ExactSum sum;
    for (int i = 0; i < 5'000'000; ++i) sum.add(-std::nextafter(4.0, 0.0));
    for (int i = 0; i < 5'000'000; ++i) sum.add(4.0);
    EXPECT_EQ(sum.value(), 5e6 * (4.0 - std::nextafter(4.0, 0.0)));
    ExactSum doubled = sum;
    for (int i = 0; i < 20; ++i) doubled.add(ExactSum(doubled));
    EXPECT_EQ(doubled.value(), std::ldexp(sum.value(), 20));
}

TEST(ExactSum, AtTheEnds) {
    EXPECT_EQ(bits(exact({})), bits(0.0));
    EXPECT_EQ(bits(exact({-0.0, -0.0})), bits(0.0));
    EXPECT_EQ(exact({least, least, least}), 3 * least);
    EXPECT_EQ(exact({-least, most, -most}), -least);
    EXPECT_EQ(exact({most, least, -most, -least}), 0.0);
    EXPECT_EQ(exact({1.0, least}), 1.0);
    EXPECT_EQ(exact({1.0, std::ldexp(1.0, -53)}), 1.0);  // a tie, to even
    EXPECT_EQ(exact({1.0, std::ldexp(1.0, -53), least}), std::nextafter(1.0, 2.0));
    EXPECT_EQ(exact({most, most, -most}), most);           // more than a double on the way
    EXPECT_EQ(exact({most, std::ldexp(1.0, 969)}), most);  // below half of the last place
    EXPECT_EQ(exact({most, std::ldexp(1.0, 970)}), infinity);
    EXPECT_EQ(exact({-most, -most}), -infinity);
}

TEST(ExactSum, OfWhatIsNotFinite) {
    EXPECT_EQ(exact({infinity, -most, infinity}), infinity);
    EXPECT_EQ(exact({1.0, -infinity}), -infinity);
    EXPECT_TRUE(std::isnan(exact({infinity, -infinity})));
    EXPECT_TRUE(std::isnan(exact({1.0, nan_value})));
    ExactSum a, b;
    a.add(infinity);
    b.add(-infinity);
    a.add(b);
    EXPECT_TRUE(std::isnan(a.value()));
}

template <class T>
Dtype dtype_of() {
    if constexpr (std::is_same_v<T, double>)
        return Dtype::f8;
    else if constexpr (std::is_same_v<T, float>)
        return Dtype::f4;
    else if constexpr (std::is_same_v<T, std::int8_t>)
        return Dtype::i1;
    else if constexpr (std::is_same_v<T, std::uint8_t>)
        return Dtype::u1;
    else if constexpr (std::is_same_v<T, std::int16_t>)
        return Dtype::i2;
    else if constexpr (std::is_same_v<T, std::int32_t>)
        return Dtype::i4;
    else
        return Dtype::i8;
}

// The first of the best in the order of subscripts; NaN is best.
template <class T>
std::size_t first_of_best(const std::vector<T>& values, bool max) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        if (values[best] != values[best]) break;
        if (values[i] != values[i] || (max ? values[i] > values[best] : values[i] < values[best])) best = i;
    }
    return best;
}

template <class T>
class ReducedOf : public testing::Test {};
using Types = testing::Types<double, float, std::int8_t, std::uint8_t, std::int16_t, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ReducedOf, Types);

// A matrix of few different values in pieces of rows and columns, forwards and backwards, in any order, on several
// parts, joined in any order.
TYPED_TEST(ReducedOf, PartsInAnyOrder) {
    using T = TypeParam;
    std::mt19937_64 random(3);
    for (int round = 0; round < 400; ++round) {
        const auto rows = static_cast<std::int64_t>(1 + random() % 6),
                   columns = static_cast<std::int64_t>(1 + random() % 200);
        const auto kinds = 1 + random() % 40;
        std::vector<T> values;
        for (std::int64_t i = 0; i < rows * columns; ++i) {
            values.push_back(static_cast<T>(static_cast<int>(random() % kinds) - (std::is_signed_v<T> ? 20 : 0)));
            if constexpr (std::is_floating_point_v<T>)
                if (round % 3 == 0 && random() % 90 == 0) values.back() = std::numeric_limits<T>::quiet_NaN();
        }
        struct Piece {
            std::int64_t i, j, n, di, dj;
        };
        std::vector<Piece> pieces;
        const bool by_columns = random() % 2;
        for (std::int64_t a = 0; a < (by_columns ? columns : rows); ++a) {
            const std::int64_t end = by_columns ? rows : columns;
            for (std::int64_t b = 0, n = 0; b < end; b += n) {
                n = std::min<std::int64_t>(end - b, static_cast<std::int64_t>(1 + random() % 100));
                const bool back = random() % 2;
                const std::int64_t first = back ? b + n - 1 : b, step = back ? -1 : 1;
                pieces.push_back(by_columns ? Piece{first, a, n, step, 0} : Piece{a, first, n, 0, step});
            }
        }
        std::shuffle(pieces.begin(), pieces.end(), random);
        for (const Reduction op : {Reduction::max, Reduction::min, Reduction::sum}) {
            const PointReduction what{op, dtype_of<T>(), 0, {0, 1}, {0, 0}};
            std::vector<Reduced> parts(1 + random() % 4, Reduced(what));
            for (const Piece& p : pieces)
                parts[random() % parts.size()].add(
                    reinterpret_cast<const std::byte*>(&values[static_cast<std::size_t>(p.i * columns + p.j)]),
                    (p.di * columns + p.dj) * static_cast<std::int64_t>(sizeof(T)), p.n, {p.i, p.j}, {p.di, p.dj});
            std::shuffle(parts.begin(), parts.end(), random);
            Reduced all(what);
            for (const Reduced& p : parts) all.combine(p);
            ASSERT_TRUE(all.any());
            const std::string bytes = all.bytes();
            if (op != Reduction::sum) {
                const std::size_t best = first_of_best(values, op == Reduction::max);
                ASSERT_EQ(all.at(), (Index{static_cast<std::int64_t>(best) / columns,
                                           static_cast<std::int64_t>(best) % columns}));
                ASSERT_EQ(bytes.size(), sizeof(T));
                ASSERT_EQ(std::memcmp(bytes.data(), &values[best], sizeof(T)), 0);
                continue;
            }
            if constexpr (std::is_floating_point_v<T>) {
                double wanted = nan_value, found;
                if (std::none_of(values.begin(), values.end(), [](T v) { return v != v; }))
                    wanted = reference({values.begin(), values.end()});
                std::memcpy(&found, bytes.data(), sizeof found);
                ASSERT_TRUE(bits(found) == bits(wanted) || (found != found && wanted != wanted));
            } else {
                std::int64_t wanted = 0, found;
                for (T v : values) wanted += v;
                std::memcpy(&found, bytes.data(), sizeof found);
                ASSERT_EQ(found, wanted);
            }
        }
    }
}

TEST(Reduced, SumsOfIntegersWrap) {
    const std::vector<std::int64_t> values{std::numeric_limits<std::int64_t>::max(), 2,
                                           std::numeric_limits<std::int64_t>::min()};
    Reduced sum(PointReduction{Reduction::sum, Dtype::i8, 0, {0}, {0}});
    sum.add(reinterpret_cast<const std::byte*>(values.data()), 8, 3, {0}, {1});
    std::int64_t found;
    std::memcpy(&found, sum.bytes().data(), sizeof found);
    EXPECT_EQ(found, 1);
}

// What does not count is as if it were not there.
TEST(Reduced, OfThoseThatCount) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 300; ++round) {
        const auto n = static_cast<std::int64_t>(1 + random() % 70);
        const auto sparse = 1 + random() % 5;
        std::vector<float> values;
        std::vector<std::byte> counts;
        std::int64_t first = -1;
        for (std::int64_t i = 0; i < n; ++i) {
            values.push_back(static_cast<float>(random() % 20) - 10);
            counts.push_back(static_cast<std::byte>(random() % sparse == 0));
            if (counts.back() == std::byte{0}) continue;
            if (first < 0 || values.back() > values[static_cast<std::size_t>(first)]) first = i;
        }
        Reduced most(PointReduction{Reduction::max, Dtype::f4, 0, {0}, {0}});
        most.add(reinterpret_cast<const std::byte*>(values.data()), 4, n, {100}, {1}, counts.data());
        ASSERT_EQ(most.any(), first >= 0) << "round " << round;
        if (first < 0) continue;
        ASSERT_EQ(most.at(), Index{100 + first}) << "round " << round;
        float found;
        std::memcpy(&found, most.bytes().data(), sizeof found);
        ASSERT_EQ(found, values[static_cast<std::size_t>(first)]) << "round " << round;
    }
}

TEST(Reduced, OfNothing) {
    Reduced none(PointReduction{Reduction::max, Dtype::f4, 0, {0}, {0}}), some = none;
    const float value = -3;
    some.add(reinterpret_cast<const std::byte*>(&value), 4, 0, {7}, {1});
    EXPECT_FALSE(some.any());
    some.add(reinterpret_cast<const std::byte*>(&value), 4, 1, {7}, {1});
    some.combine(none);
    none.combine(some);
    EXPECT_EQ(none.at(), Index{7});
    EXPECT_TRUE(some.any());
}

}  // namespace
