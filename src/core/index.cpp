#include "tilewave/index.hpp"

#include <algorithm>
#include <cstdlib>

namespace tilewave {

void refuse_components(std::size_t given) {
    throw ConfigError("an index of " + std::to_string(given) + " components was given; 1 to " +
                      std::to_string(max_dims) + " are allowed");
}

std::string to_string(const Index& index) {
    std::string s = "(";
    for (int k = 0; k < index.n; ++k) s += (k ? ", " : "") + std::to_string(index[k]);
    return s + ")";
}

std::int64_t Box::points() const {
    std::int64_t product = 1;
    for (int k = 0; k < lo.n; ++k) product *= extent(k);
    return product;
}

bool Box::contains(const Index& j) const {
    for (int k = 0; k < lo.n; ++k)
        if (j[k] < lo[k] || j[k] >= hi[k]) return false;
    return true;
}

bool Box::contains(const Box& other) const {
    if (other.empty()) return true;
    for (int k = 0; k < lo.n; ++k)
        if (other.lo[k] < lo[k] || other.hi[k] > hi[k]) return false;
    return true;
}

Box intersect(const Box& a, const Box& b) {
    Box r = a;
    for (int k = 0; k < a.dims(); ++k) {
        r.lo[k] = std::max(a.lo[k], b.lo[k]);
        r.hi[k] = std::min(a.hi[k], b.hi[k]);
    }
    return r;
}

Box hull(const Box& a, const Box& b) {
    if (a.dims() == 0 || a.empty()) return b;
    if (b.dims() == 0 || b.empty()) return a;
    Box r = a;
    for (int k = 0; k < a.dims(); ++k) {
        r.lo[k] = std::min(a.lo[k], b.lo[k]);
        r.hi[k] = std::max(a.hi[k], b.hi[k]);
    }
    return r;
}

std::vector<Box> subtract(const Box& a, const Box& b) {
    if (a.empty()) return {};
    const Box common = intersect(a, b);
    if (common.empty()) return {a};
    std::vector<Box> parts;
    Box rest = a;  // shrinks to `common`, one dimension at a time
    for (int k = 0; k < a.dims(); ++k) {
        if (rest.lo[k] < common.lo[k]) {
            parts.push_back(rest);
            parts.back().hi[k] = common.lo[k];
        }
        if (common.hi[k] < rest.hi[k]) {
            parts.push_back(rest);
            parts.back().lo[k] = common.hi[k];
        }
        rest.lo[k] = common.lo[k];
        rest.hi[k] = common.hi[k];
    }
    return parts;
}

std::string to_string(const Box& box) {
    std::string s = "[";
    for (int k = 0; k < box.dims(); ++k)
        s += (k ? ", " : "") + std::to_string(box.lo[k]) + ":" + std::to_string(box.hi[k]);
    return s + "]";
}

IndexMatrix::IndexMatrix(const std::vector<Index>& rows) : n(static_cast<int>(rows.size())) {
    if (rows.empty() || rows.size() > max_dims || std::ranges::any_of(rows, [&](const Index& r) { return r.n != n; }))
        throw ConfigError("a matrix of " + std::to_string(rows.size()) + " rows was given; 1 to " +
                          std::to_string(max_dims) + " rows of as many entries are allowed");
    std::ranges::copy(rows, row.begin());
}

IndexMatrix IndexMatrix::identity(int n) {
    IndexMatrix m;
    m.n = n;
    for (int k = 0; k < n; ++k) m.row[k] = Index::unit(n, k);
    return m;
}

bool IndexMatrix::keeps(int k) const {
    return std::ranges::count(row[k], 0) == n - 1 &&
           std::ranges::any_of(row[k], [](auto x) { return x == 1 || x == -1; });
}

Index operator*(const IndexMatrix& m, const Index& x) {
    Index z = Index::filled(m.n, 0);
    for (int k = 0; k < m.n; ++k)
        for (int l = 0; l < m.n; ++l) z[k] += m.row[k][l] * x[l];
    return z;
}

Index operator*(const Index& coefficients, const IndexMatrix& m) {
    Index r = Index::filled(m.n, 0);
    for (int k = 0; k < m.n; ++k)
        for (int l = 0; l < m.n; ++l) r[l] += coefficients[k] * m.row[k][l];
    return r;
}

IndexMatrix operator*(const IndexMatrix& a, const IndexMatrix& b) {
    IndexMatrix r = a;
    for (int k = 0; k < a.n; ++k) r.row[k] = a.row[k] * b;
    return r;
}

// Elimination by whole steps, as of Euclid: the entries stay integers.
IndexMatrix inverse(const IndexMatrix& m) {
    IndexMatrix a = m, r = IndexMatrix::identity(m.n);
    auto add = [&](int to, int from, std::int64_t times) {
        for (int l = 0; l < m.n; ++l) {
            a.row[to][l] += times * a.row[from][l];
            r.row[to][l] += times * r.row[from][l];
        }
    };
    for (int c = 0; c < m.n; ++c) {
        while (true) {
            int least = -1, others = 0;
            for (int k = c; k < m.n; ++k) {
                if (a.row[k][c] == 0) continue;
                ++others;
                if (least < 0 || std::abs(a.row[k][c]) < std::abs(a.row[least][c])) least = k;
            }
            if (least < 0) throw ConfigError("a change of loop coordinates is singular");
            std::swap(a.row[c], a.row[least]);
            std::swap(r.row[c], r.row[least]);
            if (others == 1) break;
            for (int k = c + 1; k < m.n; ++k) add(k, c, -(a.row[k][c] / a.row[c][c]));
        }
        const std::int64_t pivot = a.row[c][c];
        if (pivot != 1 && pivot != -1)
            throw ConfigError("a change of loop coordinates has a determinant other than 1 and -1");
        if (pivot == -1) add(c, c, -2);
        for (int k = 0; k < c; ++k) add(k, c, -a.row[k][c]);
    }
    return r;
}

Box image(const IndexMatrix& m, const Box& box) {
    Box r{Index::filled(m.n, 0), Index::filled(m.n, 0)};
    for (int k = 0; k < m.n; ++k) {
        std::int64_t some = 1;  // points along it, if there are any along what it is made of
        for (int l = 0; l < m.n; ++l) {
            if (m.row[k][l] == 0) continue;
            if (box.extent(l) == 0) some = 0;
            const std::int64_t a = m.row[k][l] * box.lo[l], b = m.row[k][l] * std::max(box.hi[l] - 1, box.lo[l]);
            r.lo[k] += std::min(a, b);
            r.hi[k] += std::max(a, b);
        }
        r.hi[k] = some ? r.hi[k] + 1 : r.lo[k];
    }
    return r;
}

bool lexicographically_positive(const Index& d) {
    for (auto x : d)
        if (x) return x > 0;
    return false;
}

}  // namespace tilewave
