// Linear schedules: the wave of a tile or a group as a weighted sum of its coordinates.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "polyhedral/grouping.hpp"
#include "polyhedral/space.hpp"

namespace tilewave {

/// time(v) = Pi·v, the wave of a tile v. Source of the vectors Pi: athanasaki2002.
class LinearSchedule {
public:
    /// @pre pi is not empty (ConfigError)
    explicit LinearSchedule(std::vector<std::int64_t> pi);

    /// One CPU a node. blocking: (1, .., 1); overlapping: 1 at the mapping dimension, 2 elsewhere.
    /// @pre n >= 1 (ConfigError)
    /// @pre 0 <= mapping_dim < n (ConfigError)
    static LinearSchedule for_tiles(ScheduleKind kind, int n, int mapping_dim);
    /// For the groups of `grouping`. Vertical: as for_tiles. Hyperplane: overlapping (1, .., 1),
    /// as groups of neighbouring nodes are already (1, 1) apart; blocking 1 at the mapping
    /// dimension and 0 elsewhere, so that the wave of a tile is the sum of its coordinates.
    static LinearSchedule for_groups(ScheduleKind kind, const Grouping& grouping);

    const std::vector<std::int64_t>& pi() const { return pi_; }

    /// Pi·v for a tile or group v.
    /// @pre v.size() == pi().size() (ConfigError)
    std::int64_t time(std::span<const std::int64_t> v) const;
    /// time(grouping.group_of(tile)).
    /// @pre grouping.dims() == pi().size() (ConfigError)
    /// @pre tile.size() == pi().size() (ConfigError)
    std::int64_t wave_of(const Grouping& grouping, std::span<const std::int64_t> tile) const;

    /// Waves from the first to the last of `tiles`: max(time) - min(time) + 1, or 0.
    /// A Space is taken with all its points; a box by the closed form sum(|Pi_k|·(n_k - 1)) + 1.
    /// For a tiling whose tile space is no box, pass the exact Tiling::tiles().
    /// @pre each tile has pi().size() components (ConfigError)
    std::int64_t waves(const Space& tiles) const;
    std::int64_t waves(const std::vector<std::vector<std::int64_t>>& tiles) const;
    /// The same for the groups these tiles belong to.
    /// @pre grouping.dims() == pi().size() (ConfigError)
    /// @pre each tile has pi().size() components (ConfigError)
    std::int64_t waves(const Grouping& grouping, const Space& tiles) const;
    std::int64_t waves(const Grouping& grouping, const std::vector<std::vector<std::int64_t>>& tiles) const;

private:
    std::vector<std::int64_t> pi_;
};

}  // namespace tilewave
