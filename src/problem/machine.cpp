#include "tilewave/machine.hpp"

#include <algorithm>

namespace tilewave {

double Curve::at(double value) const {
    if (x.empty()) return 0;
    if (x.size() == 1) return y[0];
    const auto above = std::upper_bound(x.begin() + 1, x.end() - 1, value) - x.begin();
    const auto b = static_cast<std::size_t>(above), a = b - 1;
    return y[a] + (value - x[a]) * (y[b] - y[a]) / (x[b] - x[a]);
}

}  // namespace tilewave
