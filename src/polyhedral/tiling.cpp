#include "polyhedral/tiling.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "polyhedral/residues.hpp"

namespace tilewave {
namespace {

using Span = std::span<const std::int64_t>;

RationalMatrix regular(const RationalMatrix& m, const char* name) {
    if (m.rows() != m.cols() || m.rows() == 0)
        throw ConfigError(std::string(name) + " of a tiling was given with " + std::to_string(m.rows()) + " rows and " +
                          std::to_string(m.cols()) + " columns; a square matrix is allowed");
    if (det(m) == 0)
        throw ConfigError(std::string(name) + " of a tiling was given as " + to_string(m) +
                          ", which is singular; a matrix with an inverse is allowed");
    return m;
}

RationalMatrix diagonal_of_sizes(Span sizes) {
    if (sizes.empty()) throw ConfigError("no tile sizes were given; 1 or more are allowed");
    for (std::size_t k = 0; k < sizes.size(); ++k)
        if (sizes[k] < 1)
            throw ConfigError("tile size " + std::to_string(sizes[k]) + " was given for index " + std::to_string(k) +
                              "; 1 or more is allowed");
    return RationalMatrix::diagonal({sizes.begin(), sizes.end()});
}

void require_dims(const char* what, std::size_t given, int allowed) {
    if (int(given) != allowed)
        throw ConfigError(std::string(what) + " of " + std::to_string(given) + " dimensions was given to a tiling of " +
                          std::to_string(allowed) + "; equal numbers are allowed");
}

bool is_integer(const RationalMatrix& m) {
    for (int i = 0; i < m.rows(); ++i)
        for (int j = 0; j < m.cols(); ++j)
            if (!m(i, j).is_integer()) return false;
    return true;
}

/// Whether the lattice with the columns of `basis` has a point in lo <= r <= hi.
bool lattice_meets(const IntMatrix& basis, Span lo, Span hi) {
    std::vector<Constraint> within;
    for (std::size_t k = 0; k < lo.size(); ++k) {
        if (lo[k] > hi[k]) return false;
        within.push_back({basis[k], narrow(-Wide(lo[k]))});
        within.push_back({basis[k], hi[k]});
        for (auto& a : within.back().a) a = narrow(-Wide(a));
    }
    return !Space(int(lo.size()), std::move(within)).empty();
}

void require_columns(const IntMatrix& d, int dims) {
    if (int(d.size()) != dims)
        throw ConfigError("a dependence matrix of " + std::to_string(d.size()) + " rows was given to a tiling of " +
                          std::to_string(dims) +
                          " dimensions; a row for each index and a column for each dependence "
                          "is allowed");
    for (const auto& row : d)
        if (row.size() != d[0].size())
            throw ConfigError("a dependence matrix with rows of " + std::to_string(d[0].size()) + " and " +
                              std::to_string(row.size()) + " entries was given; rows of equal length are allowed");
}

/// row · column c of d.
Wide product(const std::vector<std::int64_t>& row, const IntMatrix& d, std::size_t c) {
    Wide sum = 0;
    for (std::size_t k = 0; k < row.size(); ++k) sum += Wide(row[k]) * d[k][c];
    return sum;
}

}  // namespace

Tiling::Tiling(const RationalMatrix& h) : Tiling(regular(h, "H"), inverse(regular(h, "H"))) {}

Tiling Tiling::from_p(const RationalMatrix& p) {
    return {inverse(regular(p, "P")), p};
}

Tiling Tiling::rectangular(Span sizes) {
    return from_p(diagonal_of_sizes(sizes));
}

Tiling::Tiling(RationalMatrix h, RationalMatrix p) : h_(std::move(h)), p_(std::move(p)) {
    const int n = h_.rows();
    for (int k = 0; k < n; ++k) {
        std::int64_t scale = 1;
        for (int x = 0; x < n; ++x) scale = narrow(Wide(scale) / gcd(scale, h_(k, x).den()) * h_(k, x).den());
        scale_.push_back(scale);
        scaled_.emplace_back();
        for (int x = 0; x < n; ++x) scaled_[k].push_back((h_(k, x) * scale).num());
    }
    // With integer edges all tiles hold the same residues, those of the points of one tile, and
    // the points themselves are coordinates in which the tile is a small polyhedron.
    residues_ = is_integer(p_) ? scaled_ : residue_basis(scaled_, scale_);
}

Tiling::Tile Tiling::tile_of(Span j) const {
    require_dims("a point", j.size(), dims());
    Tile t;
    for (int k = 0; k < dims(); ++k) {
        Wide sum = 0;
        for (int x = 0; x < dims(); ++x) sum += Wide(scaled_[k][x]) * j[x];
        t.push_back(narrow(floor_div(sum, Wide(scale_[k]))));
    }
    return t;
}

bool Tiling::legal(const IntMatrix& d) const {
    require_columns(d, dims());
    for (int k = 0; k < dims(); ++k)
        for (std::size_t c = 0; c < d[0].size(); ++c)
            if (product(scaled_[k], d, c) < 0) return false;
    return true;
}

bool Tiling::dependences_fit(const IntMatrix& d) const {
    if (!legal(d)) return false;
    for (int k = 0; k < dims(); ++k)
        for (std::size_t c = 0; c < d[0].size(); ++c)
            if (product(scaled_[k], d, c) >= scale_[k]) return false;
    return true;
}

// With g the denominator of row k: floor(H_k j) = t_k  <=>  0 <= g H_k j - g t_k <= g - 1,
// since g H_k j is an integer.
std::vector<Constraint> Tiling::membership() const {
    const int n = dims();
    std::vector<Constraint> r;
    for (int k = 0; k < n; ++k) {
        Constraint least{std::vector<std::int64_t>(2 * n, 0), 0};
        least.a[k] = -scale_[k];
        std::copy(scaled_[k].begin(), scaled_[k].end(), least.a.begin() + n);
        Constraint most = least;
        for (auto& a : most.a) a = narrow(-Wide(a));
        most.c = scale_[k] - 1;
        r.push_back(std::move(least));
        r.push_back(std::move(most));
    }
    return r;
}

Space Tiling::joint(const Space& space) const {
    require_dims("a space", space.dims(), dims());
    std::vector<Constraint> all = membership();
    for (Constraint c : space.constraints()) {
        c.a.insert(c.a.begin(), dims(), 0);
        all.push_back(std::move(c));
    }
    return {2 * dims(), std::move(all)};
}

Space Tiling::tile_space(const Space& space) const {
    return joint(space).project(dims());
}

std::vector<Tiling::Tile> Tiling::tiles(const Space& space) const {
    std::vector<Tile> r;
    joint(space).for_each_prefix(dims(), [&](Span t) { r.emplace_back(t.begin(), t.end()); });
    return r;
}

Space Tiling::points_of(Span tile, const Space& space) const {
    require_dims("a tile", tile.size(), dims());
    require_dims("a space", space.dims(), dims());
    std::vector<Constraint> inside = membership();
    for (Constraint& c : inside) {
        Wide constant = c.c;
        for (int k = 0; k < dims(); ++k) constant += Wide(c.a[k]) * tile[k];
        c.c = narrow(constant);
        c.a.erase(c.a.begin(), c.a.begin() + dims());
    }
    return space.intersect(inside);
}

// With H' = scaled_, g = scale_ and r = H'j mod g, row k of the difference is
// floor((r_k + H'_k d) / g_k): that is floor(H_k d), or one more when r_k is at least
// g_k - (H'_k d mod g_k). So of the 2^n combinations those count for which some integer j
// leaves such residues; r ranges over a lattice whose basis the tiling keeps.
IntMatrix Tiling::tile_dependences(const IntMatrix& d) const {
    require_columns(d, dims());
    const int n = dims();
    std::set<Tile> found;
    for (std::size_t c = 0; c < d[0].size(); ++c) {
        for (std::uint64_t carries = 0; carries < (std::uint64_t(1) << n); ++carries) {
            Tile delta(n), lo(n), hi(n);
            for (int k = 0; k < n; ++k) {
                const Wide moved = product(scaled_[k], d, c), g = scale_[k];
                const Wide whole = floor_div(moved, g);
                const std::int64_t threshold = narrow(g - (moved - whole * g));
                const bool carry = carries >> k & 1;
                delta[k] = narrow(whole + carry);
                lo[k] = carry ? threshold : 0;
                hi[k] = carry ? scale_[k] - 1 : threshold - 1;
            }
            if (!found.contains(delta) && lattice_meets(residues_, lo, hi)) found.insert(delta);
        }
    }
    found.erase(Tile(n, 0));
    IntMatrix r(n);
    for (const Tile& delta : found)
        for (int k = 0; k < n; ++k) r[k].push_back(delta[k]);
    return r;
}

}  // namespace tilewave
