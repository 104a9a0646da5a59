// The iteration space of a loop nest: the integer points of a bounded polyhedron.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "polyhedral/rational.hpp"

namespace tilewave {

/// a·j + c >= 0.
struct Constraint {
    std::vector<std::int64_t> a;
    std::int64_t c = 0;
    friend auto operator<=>(const Constraint&, const Constraint&) = default;
};

/// The iteration space of n perfectly nested loops, first index outermost: each bound is
/// affine in the outer indices with integer coefficients, inclusive. Several lower bounds of
/// one loop mean their maximum, several upper bounds their minimum.
///
/// Built by Fourier–Motzkin elimination of the inner indices, last first, so that the range
/// of each index follows from the values of the outer ones (Ancourt & Irigoin 1991).
class Space {
public:
    using Point = std::vector<std::int64_t>;
    using Visit = std::function<void(std::span<const std::int64_t>)>;

    /// The integer points that satisfy all `constraints`.
    /// @pre dims >= 1 (ConfigError)
    /// @pre each constraint has `dims` coefficients (ConfigError)
    /// @pre the polyhedron is bounded or empty (ConfigError)
    Space(int dims, std::vector<Constraint> constraints);

    /// lo <= j <= hi, componentwise; both inclusive, unlike `Box`. hi < lo gives an empty space.
    /// @pre lo.size() == hi.size() (ConfigError)
    static Space box(std::span<const std::int64_t> lo, std::span<const std::int64_t> hi);

    /// Loop k runs from the maximum of lower[k] to the minimum of upper[k]; a bound a, c of
    /// loop k is a·(j_0 .. j_{k-1}) + c.
    /// @pre lower.size() == upper.size() (ConfigError)
    /// @pre a bound of loop k has k coefficients (ConfigError)
    static Space loops(const std::vector<std::vector<Constraint>>& lower,
                       const std::vector<std::vector<Constraint>>& upper);

    int dims() const { return dims_; }
    /// The constraints without the redundant ones; coefficients have no common factor.
    const std::vector<Constraint>& constraints() const { return systems_.back(); }
    /// Whether every constraint bounds one index by a constant.
    bool is_box() const;

    /// @pre j.size() == dims() (ConfigError)
    bool contains(std::span<const std::int64_t> j) const;
    /// The inclusive range {lo, hi} of index k when the outer indices are `outer`; hi < lo if
    /// there is none. A range may still hold values without a point, if gaps between integers
    /// leave no room for the inner indices.
    /// @pre 0 <= k < dims() (ConfigError)
    /// @pre outer.size() == k (ConfigError)
    std::pair<std::int64_t, std::int64_t> bounds(int k, std::span<const std::int64_t> outer) const;
    /// The first k indices alone, as a space of its own: the rational projection with each
    /// bound moved to the next integer, so a superset of the exact projection (`for_each_prefix`).
    /// @pre 1 <= k <= dims() (ConfigError)
    Space project(int k) const;
    /// This space with further constraints.
    /// @pre each constraint has dims() coefficients (ConfigError)
    Space intersect(const std::vector<Constraint>& more) const;

    /// Visits the points in lexicographic (loop) order.
    void for_each_point(const Visit& visit) const;
    /// Visits, in lexicographic order, the values of the first k indices that have a point.
    /// @pre 1 <= k <= dims() (ConfigError)
    void for_each_prefix(int k, const Visit& visit) const;
    std::vector<Point> points() const;
    std::int64_t count() const;
    bool empty() const;

private:
    /// Calls `visit` on each value of the first `depth` indices the bounds allow, as long as
    /// it returns true. @returns whether it always did
    template <class F>
    bool scan(Point& j, int depth, const F& visit) const;
    bool has_completion(Point& j) const;

    int dims_;
    bool infeasible_ = false;  ///< no rational point either; then systems_ are not used to scan
    /// systems_[k] constrains indices 0..k (the others are eliminated); the last is the space.
    std::vector<std::vector<Constraint>> systems_;
};

/// "{j : j0 >= 0, -j0 + j1 + 3 >= 0}".
std::string to_string(const Space& space);

}  // namespace tilewave
