// Groups of tiles: what the CPUs of one node compute in one step.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "polyhedral/rational.hpp"
#include "tilewave/scheme.hpp"

namespace tilewave {

/// Groups of up to m_0·..·m_(n-1) tiles, one tile for each CPU of a node. Tiles along the
/// mapping dimension stay on one CPU; nodes form an (n-1)-D mesh over the other dimensions.
/// Source: athanasaki2002.
class Grouping {
public:
    using Tile = std::vector<std::int64_t>;

    /// @pre factors is not empty (ConfigError)
    /// @pre 0 <= mapping_dim < factors.size() (ConfigError)
    /// @pre each factor is >= 1 (ConfigError)
    /// @pre factors[mapping_dim] == 1 (ConfigError)
    Grouping(GroupingKind kind, int mapping_dim, std::vector<std::int64_t> factors);

    GroupingKind kind() const { return kind_; }
    int dims() const { return int(factors_.size()); }
    int mapping_dim() const { return mapping_dim_; }
    const std::vector<std::int64_t>& factors() const { return factors_; }

    /// P^G: diag(factors); for hyperplane groups row mapping_dim is -m_x besides its 1.
    RationalMatrix p() const;
    /// H^G = (P^G)^-1: diag(1/m_x); for hyperplane groups row mapping_dim is all ones.
    RationalMatrix h() const;

    /// floor(H^G tile).
    /// @pre tile.size() == dims() (ConfigError)
    std::vector<std::int64_t> group_of(std::span<const std::int64_t> tile) const;
    /// floor(t_x / m_x) for each x but the mapping dimension: dims() - 1 components.
    /// @pre tile.size() == dims() (ConfigError)
    std::vector<std::int64_t> node_of(std::span<const std::int64_t> tile) const;
    /// The number of t_x mod m_x, x but the mapping dimension, in row-major order.
    /// @pre tile.size() == dims() (ConfigError)
    std::int64_t cpu_of(std::span<const std::int64_t> tile) const;
    /// CPUs of a node: the product of the factors, and det(P^G).
    std::int64_t cpus() const { return cpus_; }

    /// A column for each group dependence, sorted: every group_of(t + d) - group_of(t) over all
    /// integer t and the columns d of `ds`, without the zero vector (inside a group, which
    /// vertical groups allow).
    /// @pre ds has dims() rows of equal length (ConfigError)
    IntMatrix group_dependences(const IntMatrix& ds) const;

private:
    GroupingKind kind_;
    int mapping_dim_;
    std::vector<std::int64_t> factors_;
    std::int64_t cpus_ = 1;
};

}  // namespace tilewave
