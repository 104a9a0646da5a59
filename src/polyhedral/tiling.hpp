// Tilings of an iteration space by parallelepipeds, and the space of their tiles.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "polyhedral/rational.hpp"
#include "polyhedral/space.hpp"

namespace tilewave {

/// The tiling j -> floor(H j) with H n×n, rational and regular; P = H^-1 holds the edges of a
/// tile as columns. Dependence matrices D have a row for each index and a column for each
/// dependence vector. Source of the definitions: athanasaki2002.
class Tiling {
public:
    using Tile = std::vector<std::int64_t>;

    /// @pre h is square with at least one row (ConfigError)
    /// @pre det(h) != 0 (ConfigError)
    explicit Tiling(const RationalMatrix& h);
    /// @pre p is square with at least one row (ConfigError)
    /// @pre det(p) != 0 (ConfigError)
    static Tiling from_p(const RationalMatrix& p);
    /// P = diag(sizes).
    /// @pre sizes is not empty and each is >= 1 (ConfigError)
    static Tiling rectangular(std::span<const std::int64_t> sizes);

    int dims() const { return h_.rows(); }
    const RationalMatrix& h() const { return h_; }
    const RationalMatrix& p() const { return p_; }

    /// floor(H j).
    /// @pre j.size() == dims() (ConfigError)
    Tile tile_of(std::span<const std::int64_t> j) const;

    /// H D >= 0, elementwise: the tiles can run one after another.
    /// @pre d has dims() rows of equal length (ConfigError)
    bool legal(const IntMatrix& d) const;
    /// 0 <= H D < 1, elementwise: then a tile needs only its nearest neighbours, and
    /// tile_dependences(d) holds only zeros and ones.
    /// @pre d has dims() rows of equal length (ConfigError)
    bool dependences_fit(const IntMatrix& d) const;

    /// The tiles as a nest of loops: the rational projection of {(t, j)} on t by Fourier–Motzkin
    /// (Ancourt & Irigoin 1991). It holds every non-empty tile and may hold empty ones.
    /// @pre space.dims() == dims() (ConfigError)
    Space tile_space(const Space& space) const;
    /// The tiles that hold a point of `space`, in lexicographic order.
    /// @pre space.dims() == dims() (ConfigError)
    std::vector<Tile> tiles(const Space& space) const;
    /// The points of `space` in one tile.
    /// @pre tile.size() == dims() (ConfigError)
    /// @pre space.dims() == dims() (ConfigError)
    Space points_of(std::span<const std::int64_t> tile, const Space& space) const;

    /// D^S, a column for each tile dependence, sorted: every floor(H (j + d)) - floor(H j) over
    /// all integer j, without the zero vector (a dependence inside a tile). Exact for every
    /// rational H; for a diagonal P it is {floor(d/p), ceil(d/p)} in each component.
    /// @pre d has dims() rows of equal length (ConfigError)
    IntMatrix tile_dependences(const IntMatrix& d) const;

private:
    Tiling(RationalMatrix h, RationalMatrix p);
    /// The constraints floor(H j) = t on (t, j).
    std::vector<Constraint> membership() const;
    Space joint(const Space& space) const;

    RationalMatrix h_, p_;
    IntMatrix scaled_;                 ///< row k of H times scale_[k]: integers
    std::vector<std::int64_t> scale_;  ///< the least common denominator of each row of H
    IntMatrix residues_;               ///< columns: a basis of all scaled_·j + diag(scale_)·z, integer j and z
};

}  // namespace tilewave
