#include "polyhedral/fourier_motzkin.hpp"

#include <algorithm>
#include <map>

namespace tilewave::fm {
namespace {

struct WideConstraint {
    std::vector<Wide> a;
    Wide c = 0;
};

Constraint normalised(const WideConstraint& w) {
    Wide g = 0;
    for (Wide a : w.a) g = gcd(g, a);
    if (g == 0) g = 1;
    Constraint r;
    for (Wide a : w.a) r.a.push_back(narrow(a / g));
    r.c = narrow(floor_div(w.c, g));
    return r;
}

/// Gathers constraints, keeping the tightest of each normal.
class Gather {
public:
    void add(const WideConstraint& w) { add(normalised(w)); }
    void add(const Constraint& c) {
        if (std::ranges::all_of(c.a, [](std::int64_t a) { return a == 0; })) {
            contradiction_ |= c.c < 0;
            return;
        }
        const auto [at, is_new] = tightest_.emplace(c.a, c.c);
        if (!is_new) at->second = std::min(at->second, c.c);
    }
    std::optional<System> take() const {
        if (contradiction_) return {};
        System r;
        for (const auto& [a, c] : tightest_) {
            std::vector<std::int64_t> opposite = a;
            for (auto& x : opposite) x = narrow(-Wide(x));
            const auto facing = tightest_.find(opposite);
            if (facing != tightest_.end() && Wide(facing->second) + c < 0) return {};
            r.push_back({a, c});
        }
        return r;
    }

private:
    std::map<std::vector<std::int64_t>, std::int64_t> tightest_;
    bool contradiction_ = false;
};

WideConstraint widened(const Constraint& c) {
    return {{c.a.begin(), c.a.end()}, c.c};
}

/// The positive combination of `lower` (a_k > 0) and `upper` (a_k < 0) without variable k.
WideConstraint combined(const Constraint& lower, const Constraint& upper, int k) {
    const Wide p = -Wide(upper.a[k]), q = lower.a[k];
    WideConstraint r;
    for (std::size_t i = 0; i < lower.a.size(); ++i) r.a.push_back(p * lower.a[i] + q * upper.a[i]);
    r.c = p * lower.c + q * upper.c;
    return r;
}

/// min cost·x over A x = b, x >= 0, by the simplex method with Bland's rule (which cannot
/// cycle), in exact fractions. The last column of the tableau is b, the last row the
/// reduced costs.
class Simplex {
public:
    Simplex(int rows, int cols) : n_(rows), m_(cols), t_(rows + 1, cols + rows + 1) {
        for (int i = 0; i < n_; ++i) basis_.push_back(m_ + i);
    }
    void set(int row, int col, Rational value) { t_(row, col) = value; }
    void set_right(int row, Rational value) { t_(row, m_ + n_) = value; }

    /// Finds a feasible basis. @returns whether there is one
    bool phase_one() {
        for (int i = 0; i < n_; ++i) {
            if (right(i) < 0)
                for (int j = 0; j <= m_ + n_; ++j) t_(i, j) = -t_(i, j);
            t_(i, m_ + i) = 1;
            // Cost 1 for each artificial variable, expressed in the non-basic variables.
            for (int j = 0; j <= m_ + n_; ++j)
                if (j < m_ || j == m_ + n_) t_(n_, j) = t_(n_, j) - t_(i, j);
        }
        descend(m_);
        if (right(n_) != 0) return false;
        drop_artificials();
        return true;
    }
    /// @returns the minimum of cost·x; nothing if it is unbounded
    std::optional<Rational> phase_two(const std::vector<Rational>& cost) {
        for (int j = 0; j <= m_ + n_; ++j) t_(n_, j) = j < m_ ? cost[j] : Rational(0);
        for (int i = 0; i < n_; ++i) {
            if (basis_[i] >= m_) continue;
            const Rational f = cost[basis_[i]];
            for (int j = 0; j <= m_ + n_; ++j) t_(n_, j) = t_(n_, j) - f * t_(i, j);
        }
        if (!descend(m_)) return {};
        return -right(n_);
    }

private:
    Rational right(int row) const { return t_(row, m_ + n_); }

    void pivot(int row, int col) {
        const Rational scale = t_(row, col);
        for (int j = 0; j <= m_ + n_; ++j) t_(row, j) = t_(row, j) / scale;
        for (int i = 0; i <= n_; ++i) {
            const Rational f = t_(i, col);
            if (i == row || f == 0) continue;
            for (int j = 0; j <= m_ + n_; ++j)
                if (t_(row, j) != 0) t_(i, j) = t_(i, j) - f * t_(row, j);
        }
        basis_[row] = col;
    }
    /// @returns false if the cost falls without limit
    bool descend(int cols) {
        for (;;) {
            int col = 0;
            while (col < cols && t_(n_, col) >= 0) ++col;
            if (col == cols) return true;
            int row = -1;
            for (int i = 0; i < n_; ++i) {
                if (t_(i, col) <= 0) continue;
                if (row < 0) {
                    row = i;
                    continue;
                }
                const Rational here = right(i) / t_(i, col), best = right(row) / t_(row, col);
                if (here < best || (here == best && basis_[i] < basis_[row])) row = i;
            }
            if (row < 0) return false;
            pivot(row, col);
        }
    }
    /// An artificial variable still in the basis is 0; swap it for a real one if its row has
    /// one (if not, the row is a dependent equation and stays 0 for good).
    void drop_artificials() {
        for (int i = 0; i < n_; ++i) {
            if (basis_[i] < m_) continue;
            for (int j = 0; j < m_; ++j)
                if (t_(i, j) != 0) {
                    pivot(i, j);
                    break;
                }
        }
    }

    int n_, m_;
    RationalMatrix t_;
    std::vector<int> basis_;
};

}  // namespace

// Farkas: `others` imply a·j + c >= 0 iff a = sum(l_i a_i) for some l >= 0 with
// sum(l_i c_i) <= c. That is a linear program with one row for each variable.
bool implied(const System& others, const Constraint& c) try {
    const int n = int(c.a.size()), m = int(others.size());
    Simplex lp(n, m);
    std::vector<Rational> cost;
    for (int i = 0; i < m; ++i) {
        for (int k = 0; k < n; ++k) lp.set(k, i, others[i].a[k]);
        cost.push_back(others[i].c);
    }
    for (int k = 0; k < n; ++k) lp.set_right(k, c.a[k]);
    if (!lp.phase_one()) return false;
    const auto least = lp.phase_two(cost);
    return !least || *least <= Rational(c.c);  // unbounded: the others have no point at all
} catch (const ConfigError&) {
    return false;  // too large for exact 64-bit fractions: keep the constraint, which is safe
}

std::optional<System> simplify(System system) {
    Gather gather;
    for (const Constraint& c : system) gather.add(widened(c));
    auto tight = gather.take();
    if (!tight) return {};
    for (std::size_t i = tight->size(); i-- > 0;) {
        const Constraint candidate = (*tight)[i];
        tight->erase(tight->begin() + i);
        if (!implied(*tight, candidate)) tight->insert(tight->begin() + i, candidate);
    }
    return tight;
}

std::optional<System> eliminate(const System& system, int k) {
    Gather gather;
    for (const Constraint& lower : system) {
        if (lower.a[k] == 0) gather.add(lower);
        if (lower.a[k] <= 0) continue;
        for (const Constraint& upper : system)
            if (upper.a[k] < 0) gather.add(combined(lower, upper, k));
    }
    auto shadow = gather.take();
    return shadow ? simplify(*std::move(shadow)) : std::nullopt;
}

}  // namespace tilewave::fm
