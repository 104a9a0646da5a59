#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/avx2.hpp"
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

constexpr int lanes = ExactSum::lanes;
// Values of a lane that are taken before the lanes go to the words.
constexpr int lane_bits = 7;
// Values that are taken, or refused, at once: they stay in the nearest cache.
constexpr std::int64_t block_values = 512;
// With values below 2^(e + 1), each a lane: the exponents of the accumulators, and of the last bit that they take.
constexpr int high_above = lane_bits + 2, low_above = high_above - 53 + lane_bits + 2, last_above = low_above - 52;
// The least e: the last bit is that of doubles, 2^-1074. The greatest: accumulators are finite.
constexpr int least_e = -1022 - low_above, greatest_e = 1022 - high_above;

using Doubles [[gnu::vector_size(4 * 8)]] = double;
using Bits [[gnu::vector_size(4 * 8)]] = std::int64_t;
constexpr std::int64_t magnitude = std::numeric_limits<std::int64_t>::max();

// 2^e as a double, e from -1022 to 1023.
double power(int e) {
    double x;
    const std::uint64_t bits = static_cast<std::uint64_t>(e + 1023) << 52;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// The last values of lanes; those before them are 0.
constexpr auto tails = [] {
    std::array<std::int64_t, 2 * lanes> mask{};
    for (std::size_t k = lanes; k < mask.size(); ++k) mask[k] = -1;
    return mask;
}();

// Adds n >= lanes values to two accumulators a lane, 1.5 * 2^k each, which take of a value its bits from 2^(k - 52) on:
// what an accumulator changes by and what is left are exact (Demmel and Nguyen, "Parallel reproducible summation",
// 2015, twice) while it stays below 2^(k + 1) and above 2^k; of the second that is sure. Nothing is added, and false
// returned, where the first, begun at `start`, does not, or a value is NaN, or has bits left after both.
[[gnu::always_inline]] inline bool take(double* high, double* low, const double* x, std::int64_t n, double start) {
    Doubles h[2], l[2];
    for (int k = 0; k < 2; ++k) {
        std::memcpy(&h[k], high + 4 * k, sizeof h[k]);
        std::memcpy(&l[k], low + 4 * k, sizeof l[k]);
    }
    Bits rest = {}, changed = {};
    const Bits begun = reinterpret_cast<Bits>(start - Doubles{});
    const auto take_one = [&](const Doubles& v, int k) {
        const Doubles sum = h[k] + v, below = v - (sum - h[k]);
        const Doubles lower = l[k] + below;
        rest |= reinterpret_cast<Bits>(below - (lower - l[k]));
        h[k] = sum;
        l[k] = lower;
        changed |= reinterpret_cast<Bits>(sum) ^ begun;
    };
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
        for (int k = 0; k < 2; ++k) {
            Doubles v;
            std::memcpy(&v, x + i + 4 * k, sizeof v);
            take_one(v, k);
        }
    if (i < n)
        for (int k = 0; k < 2; ++k) {
            Bits v, inside;
            std::memcpy(&v, x + n - lanes + 4 * k, sizeof v);
            std::memcpy(&inside, tails.data() + (n - i) + 4 * k, sizeof inside);
            take_one(reinterpret_cast<Doubles>(v & inside), k);
        }
    const Bits wrong = (rest & magnitude) | (changed >> 52);  // a zero may have a sign
    const bool all = ((wrong[0] | wrong[1]) | (wrong[2] | wrong[3])) == 0;
    if (all)
        for (int k = 0; k < 2; ++k) {
            std::memcpy(high + 4 * k, &h[k], sizeof h[k]);
            std::memcpy(low + 4 * k, &l[k], sizeof l[k]);
        }
    return all;
}

// The exponent of the largest of some values, 1024 where it is infinite or NaN.
[[gnu::always_inline]] inline int largest_exponent(const double* x, std::int64_t n) {
    std::uint64_t most = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        std::uint64_t bits;
        std::memcpy(&bits, x + i, sizeof bits);
        bits &= static_cast<std::uint64_t>(magnitude);
        most = bits > most ? bits : most;
    }
    return static_cast<int>(most >> 52) - 1023;
}

}  // namespace

// The accumulators of values below 2^(e + 1).
void ExactSum::begin(int e) {
    pass_on();
    exponent_ = e;
    high_.fill(1.5 * power(e + high_above));
    low_.fill(1.5 * power(e + low_above));
}

// What the accumulators have taken goes to the words: of four lanes it has 53 bits at most.
void ExactSum::pass_on() {
    if (taken_ == 0) return;
    taken_ = 0;
    for (auto [lane, above] : {std::pair{&high_, high_above}, std::pair{&low_, low_above}}) {
        const double start = 1.5 * power(exponent_ + above);
        for (int k = 0; k < lanes; k += 4) {
            const auto part = [&](int i) { return (*lane)[static_cast<std::size_t>(k + i)] - start; };
            add((part(0) + part(1)) + (part(2) + part(3)));
        }
        lane->fill(start);
    }
}

void ExactSum::add(const double* x, std::int64_t n) {
    while (n >= lanes) {
        const std::int64_t now = n < block_values + lanes ? n : block_values;
        add_block(x, now);
        x += now;
        n -= now;
    }
    for (std::int64_t i = 0; i < n; ++i) add(x[i]);
}

void ExactSum::add_block(const double* x, std::int64_t n) {
    const std::int64_t of_lane = (n + lanes - 1) / lanes;
    if (taken_ + of_lane > (std::int64_t{1} << lane_bits)) pass_on();
    const auto taken = [&](const double* values) {
        const bool all = exponent_ != none &&
                         fastest<take>(high_.data(), low_.data(), values, n, 1.5 * power(exponent_ + high_above));
        if (all) taken_ += of_lane;
        return all;
    };
    if (taken(x)) return;
    // Values may grow a little before that happens again.
    const int wanted = std::clamp(fastest<largest_exponent>(x, n) + 2, least_e, greatest_e);
    begin(exponent_ != none && std::abs(exponent_ - wanted) <= 2 ? exponent_ : wanted);
    if (taken(x)) return;
    // Those that do not fit go one by one.
    double rest[block_values + lanes];
    const double least = power(std::max(exponent_ + last_above + 52, -1022)), bound = power(exponent_ + 1);
    for (std::int64_t i = 0; i < n; ++i) {
        const double size = std::fabs(x[i]);
        const bool fits = size == 0 || (size < bound && (size >= least || exponent_ == least_e));
        if (!fits) add(x[i]);
        rest[i] = fits ? x[i] : 0.0;
    }
    taken(rest);
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
    more.pass_on();
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
    sum.pass_on();
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
