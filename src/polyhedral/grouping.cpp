#include "polyhedral/grouping.hpp"

#include <string>
#include <utility>

#include "polyhedral/tiling.hpp"
#include "tilewave/index.hpp"

namespace tilewave {
namespace {

using Span = std::span<const std::int64_t>;

void require_tile(Span tile, int dims) {
    if (int(tile.size()) != dims)
        throw ConfigError("a tile of " + std::to_string(tile.size()) + " components was given to a grouping of " +
                          std::to_string(dims) + " dimensions; equal numbers are allowed");
}

}  // namespace

Grouping::Grouping(GroupingKind kind, int mapping_dim, std::vector<std::int64_t> factors)
    : kind_(kind), mapping_dim_(mapping_dim), factors_(std::move(factors)) {
    if (factors_.empty()) throw ConfigError("no group factors were given; 1 or more are allowed");
    if (mapping_dim < 0 || mapping_dim >= dims())
        throw ConfigError("mapping dimension " + std::to_string(mapping_dim) + " was given; 0 to " +
                          std::to_string(dims() - 1) + " are allowed");
    for (int x = 0; x < dims(); ++x)
        if (factors_[x] < 1)
            throw ConfigError("group factor " + std::to_string(factors_[x]) + " was given for dimension " +
                              std::to_string(x) + "; 1 or more is allowed");
    if (factors_[mapping_dim] != 1)
        throw ConfigError("group factor " + std::to_string(factors_[mapping_dim]) +
                          " was given for the mapping dimension " + std::to_string(mapping_dim) +
                          "; 1 is allowed, as tiles along it stay on one CPU");
    for (std::int64_t m : factors_) cpus_ = narrow(Wide(cpus_) * m);
}

RationalMatrix Grouping::p() const {
    RationalMatrix r = RationalMatrix::diagonal({factors_.begin(), factors_.end()});
    if (kind_ == GroupingKind::hyperplane)
        for (int x = 0; x < dims(); ++x)
            if (x != mapping_dim_) r(mapping_dim_, x) = -factors_[x];
    return r;
}

RationalMatrix Grouping::h() const {
    RationalMatrix r(dims(), dims());
    for (int x = 0; x < dims(); ++x) {
        if (kind_ == GroupingKind::hyperplane) r(mapping_dim_, x) = 1;
        r(x, x) = Rational(1, factors_[x]);
    }
    return r;
}

std::vector<std::int64_t> Grouping::group_of(Span tile) const {
    require_tile(tile, dims());
    Tile group(dims());
    Wide sum = 0;
    for (int x = 0; x < dims(); ++x) {
        group[x] = floor_div(tile[x], factors_[x]);
        sum += tile[x];
    }
    if (kind_ == GroupingKind::hyperplane) group[mapping_dim_] = narrow(sum);
    return group;
}

std::vector<std::int64_t> Grouping::node_of(Span tile) const {
    require_tile(tile, dims());
    std::vector<std::int64_t> node;
    for (int x = 0; x < dims(); ++x)
        if (x != mapping_dim_) node.push_back(floor_div(tile[x], factors_[x]));
    return node;
}

std::int64_t Grouping::cpu_of(Span tile) const {
    require_tile(tile, dims());
    std::int64_t cpu = 0;
    for (int x = 0; x < dims(); ++x) {
        const std::int64_t m = factors_[x];
        if (x != mapping_dim_) cpu = cpu * m + (tile[x] - m * floor_div(tile[x], m));
    }
    return cpu;
}

// A grouping is a tiling of the tile space.
IntMatrix Grouping::group_dependences(const IntMatrix& ds) const {
    return Tiling(h()).tile_dependences(ds);
}

}  // namespace tilewave
