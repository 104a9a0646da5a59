#include "polyhedral/residues.hpp"

#include <utility>

namespace tilewave {
namespace {

using Vector = std::vector<std::int64_t>;

std::int64_t modulo(Wide a, std::int64_t m) {
    return std::int64_t(a - m * floor_div(a, Wide(m)));
}

/// a - q·b. Below row k the lattice holds every multiple of the moduli along the axes, so
/// entries there may be reduced and stay small.
void subtract(Vector& a, const Vector& b, std::int64_t q, std::size_t k, std::span<const std::int64_t> moduli) {
    a[k] = narrow(a[k] - Wide(q) * b[k]);
    for (std::size_t i = k + 1; i < a.size(); ++i) a[i] = modulo(a[i] - Wide(q) * b[i], moduli[i]);
}

}  // namespace

IntMatrix residue_basis(const IntMatrix& a, std::span<const std::int64_t> moduli) {
    const std::size_t n = moduli.size();
    std::vector<Vector> pool;  // generators that are 0 above the current row
    for (std::size_t j = 0; j < n; ++j) {
        Vector column(n), axis(n, 0);
        for (std::size_t i = 0; i < n; ++i) column[i] = modulo(a[i][j], moduli[i]);
        axis[j] = moduli[j];
        pool.push_back(std::move(column));
        pool.push_back(std::move(axis));
    }
    IntMatrix basis(n, Vector(n, 0));
    for (std::size_t k = 0; k < n; ++k) {
        // Euclid's algorithm on component k leaves one generator with a non-zero one there.
        Vector pivot(n, 0);
        for (Vector& g : pool)
            while (g[k] != 0) {
                if (pivot[k] != 0) subtract(pivot, g, pivot[k] / g[k], k, moduli);
                std::swap(pivot, g);
            }
        for (std::size_t i = k; i < n; ++i) basis[i][k] = pivot[i];
    }
    return basis;
}

}  // namespace tilewave
