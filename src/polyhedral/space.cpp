#include "polyhedral/space.hpp"

#include <algorithm>
#include <limits>

#include "polyhedral/fourier_motzkin.hpp"

namespace tilewave {
namespace {

using Span = std::span<const std::int64_t>;

Wide dot(const Constraint& c, Span j, int terms) {
    Wide sum = c.c;
    for (int k = 0; k < terms; ++k) sum += Wide(c.a[k]) * j[k];
    return sum;
}

void require_length(const char* what, std::size_t given, int allowed) {
    if (int(given) != allowed)
        throw ConfigError(std::string(what) + " of " + std::to_string(given) + " components was given to a space of " +
                          std::to_string(allowed) + " dimensions; " + std::to_string(allowed) +
                          " components are allowed");
}

void require_range(const char* what, int given, int least, int most) {
    if (given < least || given > most)
        throw ConfigError(std::string(what) + " " + std::to_string(given) + " was given; " + std::to_string(least) +
                          " to " + std::to_string(most) + " are allowed");
}

void require_bounded(const std::vector<Constraint>& system, int k) {
    for (int sign : {1, -1})
        if (std::ranges::none_of(system, [&](const Constraint& c) { return sign * c.a[k] > 0; }))
            throw ConfigError("index " + std::to_string(k) + " of the space has no " + (sign > 0 ? "lower" : "upper") +
                              " bound; bounded spaces are allowed");
}

/// `bound` of loop k, which is a·outer + c, as sign·(j_k - bound) >= 0 in n dimensions.
Constraint loop_constraint(const Constraint& bound, int k, int n, std::int64_t sign) {
    if (int(bound.a.size()) != k)
        throw ConfigError("a bound of loop " + std::to_string(k) + " has " + std::to_string(bound.a.size()) +
                          " coefficients; " + std::to_string(k) + " are allowed, one for each outer index");
    Constraint c{std::vector<std::int64_t>(n, 0), narrow(-sign * Wide(bound.c))};
    for (int x = 0; x < k; ++x) c.a[x] = narrow(-sign * Wide(bound.a[x]));
    c.a[k] = sign;
    return c;
}

}  // namespace

Space::Space(int dims, std::vector<Constraint> constraints) : dims_(dims) {
    if (dims < 1)
        throw ConfigError("a space of " + std::to_string(dims) + " dimensions was asked for; 1 or more are allowed");
    for (const Constraint& c : constraints) require_length("a constraint", c.a.size(), dims);
    systems_.resize(dims);
    auto system = fm::simplify(constraints);
    systems_[dims - 1] = system ? *system : constraints;
    for (int k = dims - 1; system && k >= 0; --k) {
        systems_[k] = *system;
        system = fm::eliminate(*system, k);
    }
    infeasible_ = !system;
    if (infeasible_) return;
    for (int k = 0; k < dims; ++k) require_bounded(systems_[k], k);
}

Space Space::box(Span lo, Span hi) {
    if (lo.size() != hi.size())
        throw ConfigError("a box was given with " + std::to_string(lo.size()) + " lower and " +
                          std::to_string(hi.size()) + " upper bounds; as many of each are allowed");
    const int n = int(lo.size());
    std::vector<Constraint> constraints;
    for (int k = 0; k < n; ++k) {
        const std::vector<std::int64_t> zeros(k, 0);
        constraints.push_back(loop_constraint({zeros, lo[k]}, k, n, 1));
        constraints.push_back(loop_constraint({zeros, hi[k]}, k, n, -1));
    }
    return {n, std::move(constraints)};
}

Space Space::loops(const std::vector<std::vector<Constraint>>& lower,
                   const std::vector<std::vector<Constraint>>& upper) {
    if (lower.size() != upper.size())
        throw ConfigError("lower bounds of " + std::to_string(lower.size()) + " loops and upper bounds of " +
                          std::to_string(upper.size()) + " were given; as many of each are allowed");
    const int n = int(lower.size());
    std::vector<Constraint> constraints;
    for (int k = 0; k < n; ++k) {
        for (const Constraint& b : lower[k]) constraints.push_back(loop_constraint(b, k, n, 1));
        for (const Constraint& b : upper[k]) constraints.push_back(loop_constraint(b, k, n, -1));
    }
    return {n, std::move(constraints)};
}

bool Space::is_box() const {
    return !infeasible_ && std::ranges::all_of(constraints(), [](const Constraint& c) {
        return std::ranges::count_if(c.a, [](std::int64_t a) { return a != 0; }) == 1;
    });
}

bool Space::contains(Span j) const {
    require_length("a point", j.size(), dims_);
    return std::ranges::all_of(constraints(), [&](const Constraint& c) { return dot(c, j, dims_) >= 0; });
}

std::pair<std::int64_t, std::int64_t> Space::bounds(int k, Span outer) const {
    require_range("index number", k, 0, dims_ - 1);
    if (int(outer.size()) != k)
        throw ConfigError("the range of index " + std::to_string(k) + " was asked for with " +
                          std::to_string(outer.size()) + " outer values; " + std::to_string(k) + " are allowed");
    if (infeasible_) return {0, -1};
    Wide lo = std::numeric_limits<std::int64_t>::min();
    Wide hi = std::numeric_limits<std::int64_t>::max();
    for (const Constraint& c : systems_[k]) {
        if (c.a[k] == 0) continue;
        const Wide rest = dot(c, outer, k);  // a_k j_k + rest >= 0
        if (c.a[k] > 0) lo = std::max(lo, -floor_div(rest, Wide(c.a[k])));
        if (c.a[k] < 0) hi = std::min(hi, floor_div(rest, -Wide(c.a[k])));
    }
    return {narrow(lo), narrow(hi)};
}

Space Space::project(int k) const {
    require_range("a projection on the first dimensions, their number", k, 1, dims_);
    std::vector<Constraint> system;
    if (infeasible_)
        system = {{std::vector<std::int64_t>(k, 0), -1}};
    else
        system = systems_[k - 1];
    for (Constraint& c : system) c.a.resize(k);
    return {k, std::move(system)};
}

Space Space::intersect(const std::vector<Constraint>& more) const {
    std::vector<Constraint> all = constraints();
    all.insert(all.end(), more.begin(), more.end());
    return {dims_, std::move(all)};
}

template <class F>
bool Space::scan(Point& j, int depth, const F& visit) const {
    const int k = int(j.size());
    if (k == depth) return visit(j);
    const auto [lo, hi] = bounds(k, j);
    for (std::int64_t v = lo; v <= hi; ++v) {
        j.push_back(v);
        const bool go_on = scan(j, depth, visit);
        j.pop_back();
        if (!go_on) return false;
    }
    return true;
}

bool Space::has_completion(Point& j) const {
    return !scan(j, dims_, [](const Point&) { return false; });
}

void Space::for_each_point(const Visit& visit) const {
    for_each_prefix(dims_, visit);
}

void Space::for_each_prefix(int k, const Visit& visit) const {
    require_range("a prefix of indices, its length", k, 1, dims_);
    if (infeasible_) return;
    Point j;
    scan(j, k, [&](Point& prefix) {
        if (k == dims_ || has_completion(prefix)) visit(prefix);
        return true;
    });
}

std::vector<Space::Point> Space::points() const {
    std::vector<Point> r;
    for_each_point([&](Span j) { r.emplace_back(j.begin(), j.end()); });
    return r;
}

std::int64_t Space::count() const {
    if (infeasible_) return 0;
    // Loops outside the last ones that no bound depends on need not be run: for a box, none.
    int outer = dims_ - 1;
    const auto depends_on = [&](int x) {
        return std::ranges::any_of(constraints(), [&](const Constraint& c) {
            const auto others = std::ranges::count_if(c.a, [](auto a) { return a != 0; });
            return c.a[x] != 0 && others > 1;
        });
    };
    while (outer > 0 && !depends_on(outer - 1)) --outer;
    Wide sum = 0;
    Point j;
    scan(j, outer, [&](const Point& prefix) {
        Wide product = 1;
        Point inner = prefix;
        for (int k = outer; k < dims_; ++k) {
            const auto [lo, hi] = bounds(k, inner);
            product *= hi < lo ? 0 : Wide(hi) - lo + 1;
            inner.push_back(lo);
        }
        sum = narrow(sum + narrow(product));
        return true;
    });
    return narrow(sum);
}

bool Space::empty() const {
    Point j;
    return infeasible_ || !has_completion(j);
}

std::string to_string(const Space& space) {
    std::string s = "{j : ";
    bool first = true;
    for (const Constraint& c : space.constraints()) {
        if (!first) s += ", ";
        first = false;
        std::string sum;
        for (std::size_t k = 0; k < c.a.size(); ++k) {
            if (c.a[k] == 0) continue;
            const std::int64_t size = c.a[k] < 0 ? -c.a[k] : c.a[k];
            sum += c.a[k] < 0 ? (sum.empty() ? "-" : " - ") : (sum.empty() ? "" : " + ");
            sum += (size == 1 ? "" : std::to_string(size) + "*") + "j" + std::to_string(k);
        }
        if (c.c != 0 || sum.empty())
            sum += sum.empty() ? std::to_string(c.c) : (c.c < 0 ? " - " : " + ") + std::to_string(c.c < 0 ? -c.c : c.c);
        s += sum + " >= 0";
    }
    return s + "}";
}

}  // namespace tilewave
