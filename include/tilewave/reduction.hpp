// Reductions: one number from all values that points compute, combined while they are computed, in any order.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tilewave/engine/matrix.hpp"
#include "tilewave/index.hpp"

namespace tilewave {

/// A reduction of the values that points of a nest have at one of its places.
struct PointReduction {
    Reduction op = Reduction::max;  ///< max, min or sum
    Dtype type = Dtype::f8;         ///< real
    int place = 0;                  ///< of the kernel, or behind those the number of a row value (Kernel::values)
    /// Subscripts of the element: shift[d] plus loop index a = axes[d]; less loop index -1 - a where a < 0.
    Index axes = {}, shift = {};
    int best = -1;    ///< of max and min: its number among the row results of the kernel (Kernel::bests); -1: none
    int counts = -1;  ///< a row value of bytes, 0 where the point does not count; -1: all do
    /// Of max and min: at() is wanted. If not, values that do not count are no better than any other; `best` is then of
    /// all rows so far, and `counted` the number of a max of `counts` among the row results; a zero has no sign.
    bool positions = true;
    int counted = -1;
};

/// What is reduced of a value.
enum class ReducedForm : std::uint8_t { value, magnitude, square };

/// Which part of complex values is reduced.
enum class ComplexPart : std::uint8_t { none, real, imaginary, both };

/// The exact sum of doubles: rounded once, at the end, so the order they come in does not matter (a
/// superaccumulator: 64-bit words for each 32 bits, as in Neal, "Fast exact summation", 2015).
class ExactSum {
public:
    void add(double x);
    /// n neighbours, many at once: about as quick as they come from memory.
    void add(const double* x, std::int64_t n);
    static constexpr int lanes = 8;
    void add(const ExactSum& other);
    /// The double nearest to the sum, of two the even one; NaN, or an infinity, where such were added.
    double value() const;

private:
    static constexpr int none = std::numeric_limits<int>::min();
    void carry();
    void begin(int e);
    void pass_on();
    void add_block(const double* x, std::int64_t n);

    std::array<std::int64_t, 70> words_{};
    // What values of exponents up to `exponent_` have added, lane by lane, since that went to the words.
    std::array<double, lanes> high_{}, low_{};
    int exponent_ = none;
    std::int64_t taken_ = 0;  // a lane, at most
    std::int64_t adds_ = 0;   // since carries were last passed on
    bool nan_ = false, plus_ = false, minus_ = false;
};

/// A partial result: of some points, combined with other partial results in any order.
class Reduced {
public:
    Reduced() = default;
    explicit Reduced(const PointReduction& what) : what_(what) {}

    /// n values with a stride of `step` bytes. The first is element `at` of the array, the next `direction` further on.
    /// `counts`: n bytes, 0 where a value does not count, or null.
    void add(const std::byte* first, std::int64_t step, std::int64_t n, const Index& at, const Index& direction,
             const std::byte* counts = nullptr);
    /// Whether adding values of which `best` is the largest (max) or smallest (min) would change nothing, found without
    /// knowing where they are; false may be wrong.
    bool worse(const std::byte* best) const;
    void combine(const Reduced& other);
    /// Of max and min without positions: one value more, which the kernel has found.
    void add_best(const std::byte* best);
    /// Where a kernel that finds the best of some values begins: nothing is worse. `to`: of 8 bytes.
    static void begin_best(Reduction op, Dtype type, std::byte* to);
    const PointReduction& what() const { return what_; }
    /// Whether there was any value.
    bool any() const { return at_.n > 0; }
    /// The element that has the value of a max or min, the lexicographically first of equals. NaN is more than any
    /// number in a max and less in a min, as in NumPy.
    const Index& at() const { return at_; }
    /// The value's bytes, as the array has it; a sum's as int64 (modulo 2^64) or float64 (exact, rounded once).
    std::string bytes() const;
    /// The value as T: the type that was reduced; of sums double or std::int64_t. A zero where there was no value.
    template <class T>
    T value() const {
        T result{};
        const std::string data = bytes();
        if (data.size() == sizeof result && any()) std::memcpy(&result, data.data(), sizeof result);
        return result;
    }

private:
    template <class T>
    void add_extreme(const std::byte* first, std::int64_t step, std::int64_t n, const Index& at,
                     const Index& direction);
    template <class T>
    bool beats(T value, const Index& at) const;

    PointReduction what_;
    Index at_;  // any element, for a sum
    std::array<std::byte, 8> best_{};
    std::uint64_t integers_ = 0;
    ExactSum exact_;
};

class Transport;

/// The results of all ranks combined, on every rank. Collective: 1 KB a number, up and down a tree of
/// ranks.
std::vector<Reduced> reduce_over_ranks(Transport& transport, std::vector<Reduced> partial);

}  // namespace tilewave
