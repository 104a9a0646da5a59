#include <cmath>
#include <cstring>
#include <limits>

#include "execute/clones.hpp"
#include "tilewave/reduction.hpp"

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
    auto* word = &words_[e >> 5];
    word[0] += sign * static_cast<std::int64_t>(static_cast<std::uint64_t>(wide) & 0xffffffffU);
    word[1] += sign * static_cast<std::int64_t>(static_cast<std::uint64_t>(wide >> 32) & 0xffffffffU);
    word[2] += sign * static_cast<std::int64_t>(static_cast<std::uint64_t>(wide >> 64));
    // Each add changes a word by less than 2^32.
    if (++adds_ == (std::int64_t{1} << 30)) carry();
}

namespace {

// Values that are added at once: they and what is left of them stay in the nearest cache.
constexpr std::int64_t fold_values = 1024;
// Below this many values their exact addition one by one is as quick.
constexpr std::int64_t fewest_folded = 16;
// log2(fold_values) + 1: by so much an accumulator is above the largest value, and its sum stays within its exponent.
constexpr int fold_bits = 11;
// Rounds of 84 bits each, before the remaining values are added one by one: so different exponents are rare.
constexpr int most_rounds = 3;
constexpr int lanes = 16;

// What a round takes from some values: their sums down to two bounds, exact; `rest`: whether anything was left.
struct Fold {
    double high = 0, low = 0;
    bool possible = true, rest = false;
};

// 2^e as a double, e from -1022 to 1023.
double power(int e) {
    double x;
    const std::uint64_t bits = static_cast<std::uint64_t>(e + 1023) << 52;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// One round. An accumulator of 1.5 * 2^k takes of each value the bits from 2^(k - 52) on: what it changes by and what
// is left are exact, and so is its sum, as long as that is below 2^(k - 1) (Demmel and Nguyen, "Parallel reproducible
// summation", 2015, twice). `left` may be x. n is a multiple of `lanes`.
TILEWAVE_CLONES Fold fold(const double* x, std::int64_t n, double* left) {
    constexpr int groups = 4;
    using Doubles [[gnu::vector_size(lanes / groups * 8)]] = double;
    using Bits [[gnu::vector_size(lanes / groups * 8)]] = std::int64_t;
    constexpr int each = lanes / groups;
    constexpr std::int64_t magnitude = std::numeric_limits<std::int64_t>::max();
    Bits most[groups] = {};
    for (std::int64_t i = 0; i < n; i += lanes)
        for (int g = 0; g < groups; ++g) {
            Bits bits;
            std::memcpy(&bits, x + i + g * each, sizeof bits);
            bits &= magnitude;
            most[g] = bits > most[g] ? bits : most[g];
        }
    std::int64_t all = 0;
    for (int g = 0; g < groups; ++g)
        for (int k = 0; k < each; ++k) all = most[g][k] > all ? most[g][k] : all;
    // Every value is below 2^(e + 1).
    const int e = static_cast<int>(all >> 52) - 1023;
    if (e + fold_bits + 1 > 1023) return {0, 0, false, false};  // too large, infinite or NaN
    // The last bit of doubles, 2^-1074, ends all.
    const int first = e + fold_bits < -1022 ? -1022 : e + fold_bits;
    const int second = first - 54 + fold_bits < -1022 ? -1022 : first - 54 + fold_bits;
    const double sigma = 1.5 * power(first), tau = 1.5 * power(second);
    Doubles high[groups], low[groups];
    Bits any[groups] = {};
    for (int g = 0; g < groups; ++g) high[g] = sigma - Doubles{}, low[g] = tau - Doubles{};
    for (std::int64_t i = 0; i < n; i += lanes)
        for (int g = 0; g < groups; ++g) {
            Doubles v;
            std::memcpy(&v, x + i + g * each, sizeof v);
            const Doubles h = high[g] + v, below = v - (h - high[g]);
            const Doubles l = low[g] + below, rest = below - (l - low[g]);
            high[g] = h;
            low[g] = l;
            std::memcpy(left + i + g * each, &rest, sizeof rest);
            Bits bits;
            std::memcpy(&bits, &rest, sizeof bits);
            any[g] |= bits;
        }
    Fold result;
    std::int64_t rests = 0;
    for (int g = 0; g < groups; ++g)
        for (int k = 0; k < each; ++k) {
            result.high += high[g][k] - sigma;
            result.low += low[g][k] - tau;
            rests |= any[g][k];
        }
    result.rest = (rests & magnitude) != 0;  // a zero may have a sign
    return result;
}

}  // namespace

void ExactSum::add(const double* x, std::int64_t n) {
    double left[fold_values];
    while (n >= fewest_folded) {
        const std::int64_t now = (n < fold_values ? n : fold_values) / lanes * lanes;
        const double* values = x;
        int round = 0;
        for (; round < most_rounds; ++round) {
            const Fold f = fold(values, now, left);
            if (!f.possible) break;
            add(f.high);
            add(f.low);
            values = left;
            if (!f.rest) break;
        }
        if (round == most_rounds || values == x)
            for (std::int64_t i = 0; i < now; ++i) add(values[i]);
        x += now;
        n -= now;
    }
    for (std::int64_t i = 0; i < n; ++i) add(x[i]);
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
    while (top >= 0 && sum.words_[top] == 0) --top;
    if (top < 0) return 0.0;
    // The highest 64 bits or more, and whether anything is below them.
    unsigned __int128 high = 0;
    int low = top;
    for (int i = 0; i < 3 && low >= 0; ++i, --low) high = high << 32 | static_cast<std::uint64_t>(sum.words_[low]);
    ++low;
    bool rest = false;
    for (int i = 0; i < low; ++i) rest = rest || sum.words_[i] != 0;
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

}  // namespace tilewave
