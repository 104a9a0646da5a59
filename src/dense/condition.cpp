#include <algorithm>
#include <cmath>
#include <utility>

#include "dense/elements.hpp"

namespace tilewave {

namespace {

using Numbers = std::vector<std::complex<double>>;

// Steps of the estimate at most, as LAPACK's lacn2.
constexpr int most_steps = 5;

double sum_of_sizes(const Numbers& x) {
    double sum = 0;
    for (const auto& each : x) sum += std::abs(each);
    return sum;
}

}  // namespace

double norm_of_inverse(std::int64_t n, bool complex_numbers,
                       const std::function<Numbers(const Numbers& b, bool adjoint)>& solve) {
    if (n == 0) return 0;
    const auto count = static_cast<std::size_t>(n);
    Numbers y = solve(Numbers(count, 1.0 / static_cast<double>(n)), false), signs;
    double found = sum_of_sizes(y);
    if (n == 1) return found;
    for (std::int64_t step = 1, last = -1; step < most_steps; ++step) {
        for (auto& each : y) {
            const double size = std::abs(each);
            each = !complex_numbers ? (each.real() >= 0 ? 1.0 : -1.0) : size > 0 ? each / size : 1.0;
        }
        if (!complex_numbers && y == signs) break;
        signs = y;
        const Numbers z = solve(signs, true);
        const auto less = [](const auto& a, const auto& b) { return std::abs(a) < std::abs(b); };
        const std::int64_t at = std::ranges::max_element(z, less) - z.begin();
        if (last >= 0 && std::abs(z[static_cast<std::size_t>(last)]) == std::abs(z[static_cast<std::size_t>(at)]))
            break;
        last = at;
        Numbers unit(count);
        unit[static_cast<std::size_t>(at)] = 1;
        y = solve(unit, false);
        const double before = std::exchange(found, sum_of_sizes(y));
        if (!(found > before)) {
            found = before;
            break;
        }
    }
    Numbers other(count);
    for (std::int64_t k = 0; k < n; ++k)
        other[static_cast<std::size_t>(k)] =
            (k % 2 ? -1 : 1) * (1 + static_cast<double>(k) / static_cast<double>(n - 1));
    return std::max(found, 2 * sum_of_sizes(solve(other, false)) / (3 * static_cast<double>(n)));
}

}  // namespace tilewave
