// Poisson and Helmholtz problems by conjugate gradients with a multigrid cycle, made of nests.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tilewave/tilewave.hpp"

namespace multigrid {

using namespace tilewave;

/// What holds on an outer face: u = 0, no flux, or that the cell beyond it is the one at the other end.
enum class Boundary : std::uint8_t { dirichlet, neumann, periodic };

/// A problem of a `Poisson`. Functions are of the global indices of a cell and give the same on every rank.
template <int D>
struct PoissonOptions {
    std::array<double, D> spacing = {};                      ///< of cells along each axis; 0: the box has length 1
    std::array<std::array<Boundary, 2>, D> boundary = {};    ///< below and above along each axis
    std::function<double(const Index&)> k = {}, sigma = {};  ///< k >= 0, sigma >= 0; empty: 1 and 0
    int sweeps = 2;                                          ///< on each grid before and after coarser ones
};

/// Calls f(cell) for each cell of a grid.
template <class F>
void each_cell(const Index& shape, F f) {
    const Box all{Index::filled(shape.n, 0), shape};
    Index cell = all.lo;
    do f(cell);
    while (next_point(cell, all));
}
inline std::size_t place(const Index& cell, const Index& shape) {
    std::int64_t found = 0;
    for (int d = 0; d < shape.n; ++d) found = found * shape[d] + cell[d];
    return static_cast<std::size_t>(found);
}
/// The cell before or after another along an axis; the first and the last one are neighbours.
inline Index beside(Index cell, int d, std::int64_t step, const Index& shape) {
    cell[d] = (cell[d] + step + shape[d]) % shape[d];
    return cell;
}

/// Offsets of one array. Each component is set: names that g++ 12 gives tables leave out others, so that two are one.
template <int D, std::size_t rows, class F>
consteval auto table_of(F offset) {
    std::array<std::array<int, D>, rows> table{};
    for (int r = 0; r < static_cast<int>(rows); ++r)
        for (int k = 0; k < D; ++k) table[r][k] = offset(r, k);
    return table;
}
/// The point; it and its neighbours; it and the next one along an axis.
template <int D>
inline constexpr auto point = table_of<D, 1>([](int, int) { return 0; });
template <int D>
inline constexpr auto star = table_of<D, 2 * D + 1>([](int r, int k) { return (r == 2 * k + 2) - (r == 2 * k + 1); });
template <int D, int axis>
inline constexpr auto faces = table_of<D, 2>([](int r, int k) { return static_cast<int>(r == 1 && k == axis); });

/// The value of an array `step` from the point along an axis.
template <int D, int axis = 0, int step = 0, class A>
[[gnu::always_inline]] inline double at(const A& a) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return a((static_cast<int>(K) == axis ? step : 0)...);
    }(std::make_index_sequence<D>());
}
/// What the neighbours of a cell add through its faces.
template <int D, class U, class... C>
[[gnu::always_inline]] inline double around(const U& u, const C&... c) {
    return [&]<int... d>(std::integer_sequence<int, d...>) {
        return ((at<D>(c) * at<D, d, -1>(u) + at<D, d, 1>(c) * at<D, d, 1>(u)) + ...);
    }(std::make_integer_sequence<int, D>());
}

/// One grid. A grid that is halved has arrays of even extents: beyond an odd number of cells there is one that nothing
/// is coupled to. All loops are periodic, with faces of conductance 0 where no axis wraps.
template <int D>
struct Level {
    Index cells, shape;
    bool halved = false;
    std::vector<double> sigma;                               // of the whole grid, on every rank, as these:
    std::array<std::vector<double>, D> conductances, walls;  // of faces below each cell; of Dirichlet's boundaries
    std::deque<Field<double>> faces;
    std::optional<Field<double>> diagonal, red, black, u, f, r;
};

/// Cells that faces connect, whose values neither a boundary nor sigma fixes.
struct Region {
    Index first;
    double cells = 0;
    std::string name() const {
        return "the " + std::to_string(static_cast<std::int64_t>(cells)) + " cells around " + to_string(first) +
               " that cells without material enclose";
    }
};

/// Solves -div(k grad u) + sigma u = f on a box of cells in D = 1 to 3 dimensions; values belong to the centres of
/// cells, and between cells k is the harmonic mean. Conjugate gradients, whose preconditioner is a V cycle: red-black
/// sweeps, mirrored after the coarser grid; corrections are equal in all of a coarse cell, so that k may jump. Grids
/// are halved along all axes, until a periodic one has an odd number of cells. Where k is 0 there is no material, and u
/// is 0. A region that nothing fixes needs an f of mean 0, and its solution has mean 0. Each rank makes the
/// coefficients of the whole box, once.
template <int D>
class Poisson {
public:
    /// Collective.
    /// @pre D extents >= 1, sweeps >= 1; both sides of an axis periodic, or none; finite k >= 0 and sigma >= 0;
    /// sigma is not lost in rounding where it alone fixes values (ConfigError on every rank)
    Poisson(Context& context, const Index& shape, PoissonOptions<D> options = {}, PlanRequest request = {})
        : context_(context), options_(std::move(options)), request_(std::move(request)), shape_(shape) {
        std::string given = to_string(shape) + ", " + std::to_string(options_.sweeps) + " sweeps", wrong = refused();
        for (int d = 0; d < D; ++d) {
            for (const Boundary side : options_.boundary[d]) given += ", " + std::to_string(static_cast<int>(side));
            given += ", " + std::to_string(options_.spacing[d]);
            if (options_.spacing[d] == 0) options_.spacing[d] = 1.0 / static_cast<double>(shape[d]);
        }
        std::vector<int> numbers;
        if (wrong.empty()) wrong = fill_finest(numbers);
        agreed("Poisson", given + ", " + std::to_string(regions_.size()) + " regions that nothing fixes", wrong);
        request_.storage = StorageKind::plain;  // parts of fields lie plainly
        if (request_.planning == Planning::automatic) request_.planning = Planning::quick;  // of many nests
        while (levels_.back().halved) coarsen(levels_.back());
        for (Level<D>& level : levels_) make_fields(level);
        const Index& stored = levels_.front().shape;
        region_.emplace(context_, stored, [&](const Index& cell) { return numbers[place(cell, stored)]; });
        bind_all();
    }
    Poisson(const Poisson&) = delete;
    Poisson& operator=(const Poisson&) = delete;

    /// The solution, until the norm of the residual is at most `tol` times that of f. Collective.
    /// @pre f of the shape and finite, of mean 0 in each region that nothing fixes (ConfigError on every rank)
    Field<double> solve(Field<double>& f, double tol = 1e-8, int most_iterations = 100) {
        agreed("Poisson::solve", std::to_string(tol) + ", " + std::to_string(most_iterations),
               f.shape() == shape_
                   ? ""
                   : "f of shape " + to_string(f.shape()) + " was given; allowed: " + to_string(shape_));
        const double size = std::sqrt(take(*levels_.front().f, f, true));
        if (!std::isfinite(size)) throw ConfigError("Poisson: f has values that are not finite, or too large");
        norms_ = {size};
        for (auto* each : {&*x_, &*p_}) each->for_each_owned([](const Index&, double& value) { value = 0; });
        double before = 0;
        while (norms_.back() > tol * size && iterations() < most_iterations) {
            const double product = cycle_->run().reduced.back()[0].template value<double>();
            beta_ = before > 0 ? product / before : 0;
            const double curvature = direct_->run().reduced.back()[0].template value<double>();
            if (!(product > 0) || !(curvature > 0)) break;  // rounding is all that is left
            before = product;
            alpha_ = product / curvature;
            norms_.push_back(std::sqrt(advance_->run().reduced[0].template value<double>()));
        }
        Field<double> found(context_, shape_, [](const Index&) { return 0.0; });
        take(found, *x_, false);
        return found;
    }
    /// Of the last solve: the norm of the residual before the first iteration, and after each.
    const std::vector<double>& norms() const { return norms_; }
    int iterations() const { return static_cast<int>(norms_.size()) - 1; }

private:
    // What is wrong with what is given; empty: nothing.
    std::string refused() const {
        bool good = shape_.n == D && options_.sweeps >= 1;
        for (int d = 0; d < D && good; ++d) {
            const auto [low, high] = options_.boundary[d];
            good = shape_[d] >= 1 && options_.spacing[d] >= 0 && std::isfinite(options_.spacing[d]) &&
                   (low == Boundary::periodic) == (high == Boundary::periodic);
        }
        return good ? ""
                    : "Poisson: shape " + to_string(shape_) + " and " + std::to_string(options_.sweeps) +
                          " sweeps were given; allowed: " + std::to_string(D) +
                          " extents and sweeps from 1 on, finite spacings, both sides of an axis periodic or none";
    }
    void agreed(const char* call, const std::string& description, const std::string& wrong) {
        RankStatus status;
        status.caller = {call, ""};
        status.description = description;
        status.error = wrong;
        if (!wrong.empty()) status.kind = RankStatus::Kind::config;
        agree(context_, status);
    }
    bool periodic(int d) const { return options_.boundary[d][0] == Boundary::periodic; }

    Level<D>& add_level(const Index& cells) {
        Level<D>& level = levels_.emplace_back();
        level.cells = level.shape = cells;
        level.halved = cells != Index::filled(D, 1);
        for (int d = 0; d < D; ++d) level.halved &= !periodic(d) || cells[d] % 2 == 0 || cells[d] == 1;
        for (int d = 0; d < D && level.halved; ++d) level.shape[d] += cells[d] % 2;
        const auto points = static_cast<std::size_t>(Box{Index::filled(D, 0), level.shape}.points());
        level.sigma.resize(points);
        for (auto* each : {&level.conductances, &level.walls})
            for (auto& values : *each) values.resize(points);
        return level;
    }
    // Gives what is wrong with k and sigma; `numbers`: by cell that of a region, as find_regions() gives.
    std::string fill_finest(std::vector<int>& numbers) {
        Level<D>& level = add_level(shape_);
        std::vector<double> k(level.sigma.size());
        std::string wrong;
        each_cell(shape_, [&](const Index& cell) {
            const std::size_t c = place(cell, level.shape);
            k[c] = options_.k ? options_.k(cell) : 1;
            const double sigma = options_.sigma ? options_.sigma(cell) : 0;
            for (const double value : {k[c], sigma})
                if (!(value >= 0) || !std::isfinite(value))
                    wrong = "Poisson: k or sigma is " + std::to_string(value) + " at " + to_string(cell) +
                            "; allowed: finite numbers >= 0";
            level.sigma[c] = k[c] > 0 ? sigma : 0;
        });
        each_cell(shape_, [&](const Index& cell) {
            const std::size_t c = place(cell, level.shape);
            for (int d = 0; d < D; ++d) {
                const double unit = 2 / (options_.spacing[d] * options_.spacing[d]), a = k[c],
                             b = k[place(beside(cell, d, -1, shape_), level.shape)];
                if (a > 0 && b > 0 && (cell[d] > 0 || (periodic(d) && shape_[d] > 1)))
                    level.conductances[d][c] = unit * a * (b / (a + b));
                level.walls[d][c] = unit * a *
                                    ((cell[d] == 0 && options_.boundary[d][0] == Boundary::dirichlet) +
                                     (cell[d] == shape_[d] - 1 && options_.boundary[d][1] == Boundary::dirichlet));
            }
        });
        return wrong.empty() ? find_regions(level, k, numbers) : wrong;
    }
    // By cell: 0 where values are fixed, -1 without material, else the number of the region from 1 on. Gives what is
    // wrong with sigma.
    std::string find_regions(const Level<D>& level, const std::vector<double>& k, std::vector<int>& numbers) {
        std::vector<std::size_t> leads(k.size());  // to a cell before that is connected
        std::iota(leads.begin(), leads.end(), std::size_t{0});
        const auto first = [&](std::size_t c) {
            while (leads[c] != c) c = leads[c] = leads[leads[c]];
            return c;
        };
        each_cell(shape_, [&](const Index& cell) {
            for (int d = 0; d < D; ++d)
                if (const std::size_t c = place(cell, level.shape); level.conductances[d][c] > 0) {
                    const std::size_t a = first(c), b = first(place(beside(cell, d, -1, shape_), level.shape));
                    leads[std::max(a, b)] = std::min(a, b);
                }
        });
        // By first cell of a region: cells, what couples them most, and what fixes values.
        std::vector<double> cells(k.size()), most(k.size()), sigma(k.size()), walls(k.size());
        for (std::size_t c = 0; c < k.size(); ++c) {
            const std::size_t to = first(c);
            cells[to] += 1;
            sigma[to] += level.sigma[c];
            for (int d = 0; d < D; ++d) {
                walls[to] += level.walls[d][c];
                most[to] = std::max(most[to], level.conductances[d][c]);
            }
        }
        std::string wrong;
        numbers.assign(k.size(), -1);
        each_cell(shape_, [&](const Index& cell) {
            const std::size_t c = place(cell, level.shape), to = first(c);
            if (k[c] == 0) return;
            const bool free = walls[c] == 0 && sigma[c] <= least_sigma * most[c] * cells[c];
            if (to != c) {
                numbers[c] = numbers[to];
            } else if (free) {
                regions_.push_back({cell, cells[c]});
                if (sigma[c] > 0)
                    wrong = "Poisson: sigma is lost next to k / spacing**2 in " + regions_.back().name() +
                            ", where the boundary fixes no values; allowed: a larger one, or 0";
            }
            if (to == c) numbers[c] = free ? static_cast<int>(regions_.size()) : 0;
        });
        return wrong;
    }
    // What a cell has is the mean of its parts; half of it is left of what goes through faces, which are farther away.
    void coarsen(const Level<D>& fine) {
        Index half = fine.cells;
        for (int d = 0; d < D; ++d) half[d] = (half[d] + 1) / 2;
        Level<D>& coarse = add_level(half);
        constexpr double part = 1.0 / (1 << D);
        each_cell(fine.cells, [&](const Index& cell) {
            Index to = cell;
            for (int d = 0; d < D; ++d) to[d] /= 2;
            const std::size_t c = place(cell, fine.shape), i = place(to, coarse.shape);
            coarse.sigma[i] += part * fine.sigma[c];
            for (int d = 0; d < D; ++d) {
                const bool one = fine.cells[d] == 1;
                if (cell[d] % 2 == 0 && half[d] > 1) coarse.conductances[d][i] += 0.5 * part * fine.conductances[d][c];
                coarse.walls[d][i] += (one ? 1 : 0.5) * part * fine.walls[d][c];
            }
        });
    }
    void make_fields(Level<D>& level) {
        const auto value = [&](const std::vector<double>& values, const Index& cell) {
            return values[place(cell, level.shape)];
        };
        const auto diagonal = [&](const Index& cell) {
            double sum = value(level.sigma, cell);
            for (int d = 0; d < D; ++d)
                sum += value(level.walls[d], cell) + value(level.conductances[d], cell) +
                       value(level.conductances[d], beside(cell, d, 1, level.shape));
            return sum;
        };
        // Around an odd number of cells the first and the last one have one colour: what couples them is added to the
        // diagonal, so that they can be updated at once.
        const auto same_colour = [&](const Index& cell) {
            double sum = 0;
            for (int d = 0; d < D; ++d)
                if (level.shape[d] % 2 == 1 && (cell[d] == 0 || cell[d] == level.shape[d] - 1))
                    sum += value(level.conductances[d], cell[d] == 0 ? cell : beside(cell, d, 1, level.shape));
            return sum;
        };
        // The inverse in cells of one colour, 0 in others.
        const auto inverse = [&](int colour) {
            return [&, colour](const Index& cell) {
                const double all = diagonal(cell) + same_colour(cell);
                return std::accumulate(cell.begin(), cell.end(), colour) % 2 == 0 && all != 0 ? 1 / all : 0;
            };
        };
        for (const auto& each : level.conductances)
            level.faces.emplace_back(context_, level.shape, [&](const Index& cell) { return value(each, cell); });
        level.diagonal.emplace(context_, level.shape, diagonal);
        level.red.emplace(context_, level.shape, inverse(0));
        level.black.emplace(context_, level.shape, inverse(1));
        for (auto* each : {&level.u, &level.f, &level.r}) each->emplace(zeros(level.shape));
        for (auto* each : {&level.conductances, &level.walls})
            for (auto& values : *each) values = {};
        level.sigma = {};
    }
    Field<double> zeros(const Index& shape) const {
        return Field<double>(context_, shape, [](const Index&) { return 0.0; });
    }

    // to = from, without its mean in each region that nothing fixes, 0 without material. Gives the sum of squares.
    double take(Field<double>& to, Field<double>& from, bool mean_0) {
        std::vector<double> means{0};
        for (const Region& region : regions_) {
            const auto body = [number = static_cast<int>(means.size())](auto value, auto of) {
                const double taken = at<D>(of) == number ? at<D>(value) : 0;
                return std::tuple(taken, taken * taken);
            };
            const auto sums = run(context_, request_, reducing<double, double>({Reduction::sum, Reduction::sum}, body),
                                  only_reads<point<D>>(from), only_reads<point<D>>(*region_))
                                  .reduced;
            means.push_back(sums[0].template value<double>() / region.cells);
            const double norm = std::sqrt(sums[1].template value<double>());
            if (mean_0 && std::abs(means.back()) * std::sqrt(region.cells) > most_mean * norm)
                throw ConfigError("Poisson: the mean of f is " + std::to_string(means.back()) + " in " + region.name() +
                                  ", where neither the boundary nor sigma fixes values; allowed: a mean of 0 in each "
                                  "such region, sigma > 0, or a boundary there that is dirichlet");
        }
        const auto body = [means](auto, auto value, auto of) {
            const auto region = static_cast<int>(at<D>(of));
            const double taken = region < 0 ? 0 : at<D>(value) - means[static_cast<std::size_t>(region)];
            return std::tuple(taken, taken * taken);
        };
        return run(context_, request_, reducing<double>({Reduction::sum}, body), writes<point<D>>(to),
                   only_reads<point<D>>(from), only_reads<point<D>>(*region_))
            .reduced[0]
            .template value<double>();
    }

    template <class Body, class... Operands>
    BoundNest* bound(Body body, const Operands&... operands) {
        return &nests_.emplace_back(bind(context_, {}, request_, std::move(body), operands...));
    }
    // A periodic nest with the faces of a level after other operands.
    template <class Body, class... Operands>
    BoundNest* with_faces(Level<D>& level, Body body, const Operands&... operands) {
        return [&]<int... d>(std::integer_sequence<int, d...>) {
            return &nests_.emplace_back(bind(context_, NestLoops{.periodic = {d...}}, request_, std::move(body),
                                             operands..., only_reads<faces<D, d>>(level.faces[d])...));
        }(std::make_integer_sequence<int, D>());
    }
    // to = from + weights (f - A from).
    BoundNest* smooth(Level<D>& level, Field<double>& weights, Field<double>& from, Field<double>& to) {
        return with_faces(
            level,
            [](auto, auto u, auto f, auto w, auto diagonal, auto... c) {
                return at<D>(u) + at<D>(w) * (at<D>(f) + around<D>(u, c...) - at<D>(diagonal) * at<D>(u));
            },
            writes<point<D>>(to), only_reads<star<D>>(from), only_reads<point<D>>(*level.f),
            only_reads<point<D>>(weights), only_reads<point<D>>(*level.diagonal));
    }
    // The nests between a grid and the next one: from the residual r to the coarse f, and from the coarse u to u.
    template <std::size_t... P>
    std::pair<BoundNest*, BoundNest*> transfers(Level<D>& fine, Level<D>& coarse, std::index_sequence<P...>) {
        const auto part = [](Field<double>& field, std::size_t number) {
            Index residue = Index::filled(D, 0);
            for (int d = 0; d < D; ++d) residue[d] = static_cast<std::int64_t>(number >> d & 1u);
            return every(field, Index::filled(D, 2), residue);
        };
        return {bound([](auto, auto... r) { return (at<D>(r) + ...) / sizeof...(r); }, writes<point<D>>(*coarse.f),
                      only_reads<point<D>>(part(*fine.r, P))...),
                bound(
                    [](const auto&... views) {
                        const auto all = std::tie(views...);
                        const double e = at<D>(std::get<sizeof...(P)>(all));
                        return std::tuple((at<D>(std::get<P>(all)) + e)...);
                    },
                    writes<point<D>>(part(*fine.u, P))..., only_reads<point<D>>(*coarse.u))};
    }
    // From a grid down and back; u begins as 0.
    std::vector<BoundNest*> visit(std::size_t number) {
        Level<D>& level = levels_[number];
        const std::int64_t longest = *std::max_element(level.cells.begin(), level.cells.end());
        const auto sweeps =
            level.halved ? options_.sweeps : static_cast<int>(std::clamp<std::int64_t>(longest, 2, most_sweeps));
        BoundNest* const red = smooth(level, *level.red, *level.u, *level.r);
        BoundNest* const black = smooth(level, *level.black, *level.r, *level.u);
        std::vector<BoundNest*> nests{
            bound([](auto, auto f, auto w) { return at<D>(w) * at<D>(f); }, writes<point<D>>(*level.r),
                  only_reads<point<D>>(*level.f), only_reads<point<D>>(*level.red)),
            black};
        for (int sweep = 1; sweep < sweeps; ++sweep) nests.insert(nests.end(), {red, black});
        if (level.halved) {
            nests.push_back(with_faces(
                level,
                [](auto, auto u, auto f, auto diagonal, auto... c) {
                    return at<D>(f) + around<D>(u, c...) - at<D>(diagonal) * at<D>(u);
                },
                writes<point<D>>(*level.r), only_reads<star<D>>(*level.u), only_reads<point<D>>(*level.f),
                only_reads<point<D>>(*level.diagonal)));
            const auto [down, up] = transfers(level, levels_[number + 1], std::make_index_sequence<1 << D>());
            nests.push_back(down);
            const std::vector<BoundNest*> below = visit(number + 1);
            nests.insert(nests.end(), below.begin(), below.end());
            nests.push_back(up);
        }
        BoundNest* const back = smooth(level, *level.black, *level.u, *level.r);
        BoundNest* const last = smooth(level, *level.red, *level.r, *level.u);
        for (int sweep = 0; sweep < sweeps; ++sweep) nests.insert(nests.end(), {back, last});
        return nests;
    }
    void bind_all() {
        Level<D>& top = levels_.front();
        for (auto* each : {&x_, &p_, &q_}) each->emplace(zeros(top.shape));
        std::vector<BoundNest*> cycle = visit(0);
        cycle.push_back(bound(reducing<double>({Reduction::sum}, [](auto u, auto f) { return at<D>(u) * at<D>(f); }),
                              only_reads<point<D>>(*top.u), only_reads<point<D>>(*top.f)));
        BoundNest* const direction = bound([&beta = beta_](auto p, auto u) { return at<D>(u) + beta * at<D>(p); },
                                           writes<point<D>>(*p_), only_reads<point<D>>(*top.u));
        BoundNest* const apply =
            with_faces(top,
                       reducing<double>({Reduction::sum},
                                        [](auto, auto p, auto diagonal, auto... c) {
                                            const double image = at<D>(diagonal) * at<D>(p) - around<D>(p, c...);
                                            return std::tuple(image, image * at<D>(p));
                                        }),
                       writes<point<D>>(*q_), only_reads<star<D>>(*p_), only_reads<point<D>>(*top.diagonal));
        advance_ = bound(reducing<double>({Reduction::sum},
                                          [&alpha = alpha_](auto x, auto f, auto p, auto q) {
                                              const double rest = at<D>(f) - alpha * at<D>(q);
                                              return std::tuple(at<D>(x) + alpha * at<D>(p), rest, rest * rest);
                                          }),
                         writes<point<D>>(*x_), writes<point<D>>(*top.f), only_reads<point<D>>(*p_),
                         only_reads<point<D>>(*q_));
        cycle_.emplace(chain(context_, cycle));
        direct_.emplace(chain(context_, {direction, apply}));
    }

    static constexpr int most_sweeps = 64;        // of the coarsest grid
    static constexpr double most_mean = 1e-10;    // times the root of the cells, in terms of the norm: rounding
    static constexpr double least_sigma = 1e-14;  // its mean, in terms of what couples cells most

    Context& context_;
    PoissonOptions<D> options_;
    PlanRequest request_;
    Index shape_;
    std::deque<Level<D>> levels_;
    std::vector<Region> regions_;
    std::optional<Field<int>> region_;
    std::optional<Field<double>> x_, p_, q_;
    std::deque<BoundNest> nests_;
    std::optional<NestChain> cycle_, direct_;
    BoundNest* advance_ = nullptr;
    double alpha_ = 0, beta_ = 0;
    std::vector<double> norms_;
};

}  // namespace multigrid
