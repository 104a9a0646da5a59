// Poisson and Helmholtz problems by conjugate gradients with a multigrid cycle, made of nests.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tilewave/nest.hpp"

namespace tilewave {

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

namespace detail::multigrid {

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
/// By the faces around a cell: what its neighbours add.
template <int D, class U, class... C>
[[gnu::always_inline]] inline double around(const U& u, const C&... c) {
    return [&]<int... d>(std::integer_sequence<int, d...>) {
        return ((at<D>(c) * at<D, d, -1>(u) + at<D, d, 1>(c) * at<D, d, 1>(u)) + ...);
    }(std::make_integer_sequence<int, D>());
}

/// One grid. All arrays have an even extent along an axis that is halved: beyond an odd number of cells there is one
/// that nothing is coupled to. All loops are periodic, with faces of conductance 0 where no axis wraps.
template <int D>
struct Level {
    Index cells, shape, scale;               // scale: 2 along axes that the next grid has half of, else 1
    std::deque<Field<double>> faces, walls;  // by axis: below each cell; of Dirichlet's boundaries
    std::optional<Field<double>> sigma, diagonal, red, black, u, f, r;
};

}  // namespace detail::multigrid

/// Solves -div(k grad u) + sigma u = f on a box of cells in D = 1 to 3 dimensions; values belong to the centres of
/// cells, and between cells k is the harmonic mean. Conjugate gradients, whose preconditioner is a V cycle: red-black
/// sweeps, mirrored after the coarser grid; corrections are equal in all of a coarse cell, so that k may jump. Where k
/// is 0 there is no material. An axis is halved while it has more than one cell, a periodic one while its number of
/// cells is even.
template <int D>
class Poisson {
public:
    /// Collective.
    /// @pre D extents >= 1, sweeps >= 1; both sides of an axis periodic, or none; finite k >= 0 and sigma >= 0
    /// (ConfigError on every rank)
    Poisson(Context& context, const Index& shape, PoissonOptions<D> options = {}, PlanRequest request = {})
        : context_(context), options_(std::move(options)), request_(std::move(request)) {
        std::string given = to_string(shape) + ", " + std::to_string(options_.sweeps) + " sweeps";
        for (int d = 0; d < D; ++d)
            for (const Boundary side : options_.boundary[d])
                given += ", " + std::to_string(options_.spacing[d]) + " " + std::to_string(static_cast<int>(side));
        agreed("Poisson", given, refused(shape));
        request_.storage = StorageKind::plain;  // parts of fields lie plainly
        if (request_.planning == Planning::automatic) request_.planning = Planning::quick;  // of many nests
        for (int d = 0; d < D; ++d)
            if (options_.spacing[d] == 0) options_.spacing[d] = 1.0 / static_cast<double>(shape[d]);
        add_level(shape);
        agreed("Poisson", "k and sigma", fill_finest());
        double fixed = levels_[0].sigma->sum();
        for (auto& wall : levels_[0].walls) fixed += wall.sum();
        singular_ = fixed == 0;
        while (levels_.back().scale != Index::filled(D, 1)) {
            Index half = shape;
            for (int d = 0; d < D; ++d)
                half[d] = (levels_.back().cells[d] + levels_.back().scale[d] - 1) / levels_.back().scale[d];
            add_level(half);
            coarsen(levels_[levels_.size() - 2], levels_.back());
        }
        for (Level& level : levels_) finish(level);
        bind_all();
    }
    Poisson(const Poisson&) = delete;
    Poisson& operator=(const Poisson&) = delete;

    /// The solution, until the norm of the residual is at most `tol` times that of f. Collective.
    /// @pre f of the shape; of mean 0 where neither the boundary nor sigma fixes values, where the solution has mean 0
    /// too (ConfigError on every rank)
    Field<double> solve(Field<double>& f, double tol = 1e-8, int most_iterations = 100) {
        using namespace detail::multigrid;
        const std::string wrong =
            f.shape() == shape() ? ""
                                 : "f of shape " + to_string(f.shape()) + " was given; allowed: " + to_string(shape());
        agreed("Poisson::solve", std::to_string(tol) + ", " + std::to_string(most_iterations), wrong);
        Level& top = levels_.front();
        const auto taken = run(context_, request_,
                               reducing<double>({Reduction::sum},
                                                [](auto, auto given, auto w) {
                                                    const double value = at<D>(w) != 0 ? at<D>(given) : 0;
                                                    return std::tuple(value, value * value);
                                                }),
                               writes<point<D>>(*top.f), only_reads<point<D>>(f), only_reads<point<D>>(*top.diagonal));
        const double size = std::sqrt(taken.reduced[0].template value<double>()),
                     cells = static_cast<double>(Box{Index::filled(D, 0), shape()}.points());
        if (singular_ && std::abs(top.f->sum()) > 1e-8 * size * std::sqrt(cells))
            throw ConfigError("Poisson: neither the boundary nor sigma fixes values; allowed: f of mean 0");
        norms_ = {size};
        clear(*x_), clear(*p_);
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
        Field<double> found(context_, shape(), [](const Index&) { return 0.0; });
        double shift = 0;
        const auto hand_over = [&] {
            return run(
                context_, request_, [shift](auto, auto x, auto w) { return at<D>(w) != 0 ? at<D>(x) - shift : 0; },
                writes<point<D>>(found), only_reads<point<D>>(*x_), only_reads<point<D>>(*top.diagonal));
        };
        hand_over();
        if (singular_) {
            shift = found.sum() / cells;
            hand_over();
        }
        return found;
    }
    const Index& shape() const { return levels_.front().cells; }
    int levels() const { return static_cast<int>(levels_.size()); }
    /// Of the last solve: the norm of the residual before the first iteration, and after each.
    const std::vector<double>& norms() const { return norms_; }
    int iterations() const { return static_cast<int>(norms_.size()) - 1; }

private:
    using Level = detail::multigrid::Level<D>;

    // What is wrong with what is given; empty: nothing.
    std::string refused(const Index& shape) const {
        bool good = shape.n == D && options_.sweeps >= 1;
        for (int d = 0; d < D && good; ++d) {
            const auto [low, high] = options_.boundary[d];
            good = shape[d] >= 1 && options_.spacing[d] >= 0 && std::isfinite(options_.spacing[d]) &&
                   (low == Boundary::periodic) == (high == Boundary::periodic);
        }
        return good ? ""
                    : "Poisson: shape " + to_string(shape) + " and " + std::to_string(options_.sweeps) +
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
    Field<double> zeros(const Index& shape) const {
        return Field<double>(context_, shape, [](const Index&) { return 0.0; });
    }
    void clear(Field<double>& field) {
        field.for_each_owned([](const Index&, double& value) { value = 0; });
    }

    void add_level(const Index& cells) {
        Level& level = levels_.emplace_back();
        level.cells = level.shape = cells;
        level.scale = Index::filled(D, 1);
        for (int d = 0; d < D; ++d) {
            if (periodic(d) ? cells[d] % 2 == 0 && cells[d] > 2 : cells[d] > 1) level.scale[d] = 2;
            level.shape[d] += level.scale[d] == 2 ? cells[d] % 2 : 0;
        }
        for (int d = 0; d < D; ++d)
            level.faces.push_back(zeros(level.shape)), level.walls.push_back(zeros(level.shape));
        for (auto* each : {&level.sigma, &level.diagonal, &level.red, &level.black, &level.u, &level.f, &level.r})
            each->emplace(zeros(level.shape));
    }
    // Gives what is wrong with k and sigma on this rank.
    std::string fill_finest() {
        Level& level = levels_.front();
        std::string wrong;
        const auto value = [&](const auto& function, const Index& cell, double otherwise) {
            const double found = function ? function(cell) : otherwise;
            if (!(found >= 0) || !std::isfinite(found))
                wrong = "Poisson: k or sigma is " + std::to_string(found) + " at " + to_string(cell) +
                        "; allowed: finite numbers >= 0";
            return found;
        };
        const auto inside = [&](const Index& cell) { return Box{Index::filled(D, 0), level.cells}.contains(cell); };
        level.sigma->for_each_owned([&](const Index& cell, double& s) {
            if (inside(cell) && value(options_.k, cell, 1) > 0) s = value(options_.sigma, cell, 0);
        });
        for (int d = 0; d < D; ++d) {
            const double unit = 1 / (options_.spacing[d] * options_.spacing[d]);
            const std::int64_t last = level.cells[d] - 1;
            level.faces[d].for_each_owned([&](const Index& cell, double& face) {
                if (!inside(cell) || (cell[d] == 0 && (!periodic(d) || last == 0))) return;
                Index below = cell;
                below[d] = cell[d] == 0 ? last : cell[d] - 1;
                const double a = value(options_.k, cell, 1), b = value(options_.k, below, 1);
                face = a > 0 && b > 0 ? 2 * unit * a * (b / (a + b)) : 0;
            });
            level.walls[d].for_each_owned([&](const Index& cell, double& wall) {
                if (!inside(cell)) return;
                const int sides = (cell[d] == 0 && options_.boundary[d][0] == Boundary::dirichlet) +
                                  (cell[d] == last && options_.boundary[d][1] == Boundary::dirichlet);
                wall = 2 * unit * sides * value(options_.k, cell, 1);
            });
        }
        return wrong;
    }

    // f(parts...) with the parts of a field that make up a coarse cell; `along`: only the lower ones along that axis.
    template <class F>
    static void with_parts(Field<double>& field, const Index& scale, F f, int along = -1) {
        std::vector<FieldPart<double>> parts;
        Index upper = scale;
        if (along >= 0) upper[along] = 1;
        Index residue = Index::filled(D, 0);
        do parts.push_back(every(field, scale, residue));
        while (next_point(residue, {Index::filled(D, 0), upper}));
        const auto call = [&]<std::size_t... P>(std::index_sequence<P...>) { f(parts[P]...); };
        switch (parts.size()) {
            case 1: return call(std::make_index_sequence<1>());
            case 2: return call(std::make_index_sequence<2>());
            case 4: return call(std::make_index_sequence<4>());
            default: return call(std::make_index_sequence<8>());
        }
    }
    // Calls use(body, operands...) of a nest of which a coarse field is `factor` times the mean of a finer one.
    template <class Use>
    static void mean(Field<double>& coarse, Field<double>& fine, const Index& scale, double factor, Use use,
                     int along = -1) {
        using namespace detail::multigrid;
        with_parts(
            fine, scale,
            [&](const auto&... part) {
                const double weight = factor / sizeof...(part);
                use([weight](auto, auto... each) { return weight * (at<D>(each) + ...); }, writes<point<D>>(coarse),
                    only_reads<point<D>>(part)...);
            },
            along);
    }
    void coarsen(Level& fine, Level& coarse) {
        const auto now = [&](auto body, const auto&... operands) { run(context_, request_, body, operands...); };
        mean(*coarse.sigma, *fine.sigma, fine.scale, 1, now);
        for (int d = 0; d < D; ++d) {
            const bool halved = fine.scale[d] == 2;
            mean(coarse.faces[d], fine.faces[d], fine.scale, halved ? 0.25 : 1, now, halved ? d : -1);
            mean(coarse.walls[d], fine.walls[d], fine.scale, halved ? 0.5 : 1, now);
        }
    }
    template <int d = 0>
    void add_faces(Level& level) {
        using namespace detail::multigrid;
        run(
            context_, around_all(), request_,
            [](auto diagonal, auto wall, auto face) {
                return at<D>(diagonal) + at<D>(wall) + at<D>(face) + at<D, d, 1>(face);
            },
            writes<point<D>>(*level.diagonal), only_reads<point<D>>(level.walls[d]),
            only_reads<faces<D, d>>(level.faces[d]));
        if constexpr (d + 1 < D) add_faces<d + 1>(level);
    }
    // What a cell's value is multiplied by, and its inverse in cells of one colour, 0 in others.
    void finish(Level& level) {
        using namespace detail::multigrid;
        run(
            context_, request_, [](auto, auto sigma) { return at<D>(sigma); }, writes<point<D>>(*level.diagonal),
            only_reads<point<D>>(*level.sigma));
        add_faces(level);
        int parity = 0;
        for (auto* colour : {&level.red, &level.black}) {
            (*colour)->for_each_owned([&](const Index& cell, double& value) {
                std::int64_t sum = parity;
                for (const std::int64_t each : cell) sum += each;
                value = sum % 2 == 0 ? 1 : 0;
            });
            run(
                context_, request_,
                [](auto mask, auto diagonal) { return at<D>(diagonal) != 0 ? at<D>(mask) / at<D>(diagonal) : 0; },
                writes<point<D>>(**colour), only_reads<point<D>>(*level.diagonal));
            parity = 1;
        }
        level.walls.clear();
        level.sigma.reset();
    }
    static NestLoops around_all() {
        NestLoops loops;
        for (int d = 0; d < D; ++d) loops.periodic.push_back(d);
        return loops;
    }

    template <class Body, class... Operands>
    BoundNest* bound(const NestLoops& loops, Body body, const Operands&... operands) {
        return &nests_.emplace_back(bind(context_, loops, request_, std::move(body), operands...));
    }
    // A nest with the faces of a level after other operands.
    template <class Body, class... Operands>
    BoundNest* with_faces(Level& level, Body body, const Operands&... operands) {
        using namespace detail::multigrid;
        return [&]<int... d>(std::integer_sequence<int, d...>) {
            return bound(around_all(), std::move(body), operands..., only_reads<faces<D, d>>(level.faces[d])...);
        }(std::make_integer_sequence<int, D>());
    }
    // to = from + weights (f - A from).
    BoundNest* smooth(Level& level, Field<double>& weights, Field<double>& from, Field<double>& to) {
        using namespace detail::multigrid;
        return with_faces(
            level,
            [](auto, auto u, auto f, auto w, auto diagonal, auto... c) {
                return at<D>(u) + at<D>(w) * (at<D>(f) + around<D>(u, c...) - at<D>(diagonal) * at<D>(u));
            },
            writes<point<D>>(to), only_reads<star<D>>(from), only_reads<point<D>>(*level.f),
            only_reads<point<D>>(weights), only_reads<point<D>>(*level.diagonal));
    }
    // From a grid down and back; u begins as 0.
    std::vector<BoundNest*> visit(std::size_t number) {
        using namespace detail::multigrid;
        Level& level = levels_[number];
        const bool coarsest = number + 1 == levels_.size();
        const std::int64_t longest = *std::max_element(level.cells.begin(), level.cells.end());
        const int sweeps =
            coarsest ? static_cast<int>(std::clamp<std::int64_t>(longest, 2, most_coarsest_sweeps)) : options_.sweeps;
        BoundNest* const red = smooth(level, *level.red, *level.u, *level.r);
        BoundNest* const black = smooth(level, *level.black, *level.r, *level.u);
        std::vector<BoundNest*> nests{bound(
            {}, [](auto, auto f, auto w) { return at<D>(w) * at<D>(f); }, writes<point<D>>(*level.r),
            only_reads<point<D>>(*level.f), only_reads<point<D>>(*level.red))};
        nests.push_back(black);
        for (int sweep = 1; sweep < sweeps; ++sweep) nests.insert(nests.end(), {red, black});
        if (!coarsest) {
            Level& coarse = levels_[number + 1];
            nests.push_back(with_faces(
                level,
                [](auto, auto u, auto f, auto diagonal, auto... c) {
                    return at<D>(f) + around<D>(u, c...) - at<D>(diagonal) * at<D>(u);
                },
                writes<point<D>>(*level.r), only_reads<star<D>>(*level.u), only_reads<point<D>>(*level.f),
                only_reads<point<D>>(*level.diagonal)));
            mean(*coarse.f, *level.r, level.scale, 1,
                 [&](auto body, const auto&... operands) { nests.push_back(bound({}, body, operands...)); });
            const std::vector<BoundNest*> below = visit(number + 1);
            nests.insert(nests.end(), below.begin(), below.end());
            with_parts(*level.u, level.scale, [&](const auto&... part) {
                nests.push_back(bound(
                    {},
                    [](const auto&... views) {
                        const auto all = std::tie(views...);
                        return [&]<std::size_t... P>(std::index_sequence<P...>) {
                            const double e = at<D>(std::get<sizeof...(P)>(all));
                            return std::tuple((at<D>(std::get<P>(all)) + e)...);
                        }(std::make_index_sequence<sizeof...(views) - 1>());
                    },
                    writes<point<D>>(part)..., only_reads<point<D>>(*coarse.u)));
            });
        }
        BoundNest* const back = smooth(level, *level.black, *level.u, *level.r);
        BoundNest* const last = smooth(level, *level.red, *level.r, *level.u);
        for (int sweep = 0; sweep < sweeps; ++sweep) nests.insert(nests.end(), {back, last});
        return nests;
    }
    void bind_all() {
        using namespace detail::multigrid;
        Level& top = levels_.front();
        for (auto* each : {&x_, &p_, &q_}) each->emplace(zeros(top.shape));
        std::vector<BoundNest*> cycle = visit(0);
        cycle.push_back(bound({},
                              reducing<double>({Reduction::sum}, [](auto u, auto f) { return at<D>(u) * at<D>(f); }),
                              only_reads<point<D>>(*top.u), only_reads<point<D>>(*top.f)));
        BoundNest* const direction = bound(
            {}, [&beta = beta_](auto p, auto u) { return at<D>(u) + beta * at<D>(p); }, writes<point<D>>(*p_),
            only_reads<point<D>>(*top.u));
        BoundNest* const apply =
            with_faces(top,
                       reducing<double>({Reduction::sum},
                                        [](auto, auto p, auto diagonal, auto... c) {
                                            const double image = at<D>(diagonal) * at<D>(p) - around<D>(p, c...);
                                            return std::tuple(image, image * at<D>(p));
                                        }),
                       writes<point<D>>(*q_), only_reads<star<D>>(*p_), only_reads<point<D>>(*top.diagonal));
        advance_ = bound({},
                         reducing<double>({Reduction::sum},
                                          [&alpha = alpha_](auto x, auto f, auto p, auto q) {
                                              const double rest = at<D>(f) - alpha * at<D>(q);
                                              return std::tuple(at<D>(x) + alpha * at<D>(p), rest, rest * rest);
                                          }),
                         writes<point<D>>(*x_), writes<point<D>>(*top.f), only_reads<point<D>>(*p_),
                         only_reads<point<D>>(*q_));
        cycle_.emplace(chain(context_, cycle));
        direct_.emplace(chain(context_, {direction, apply}));
    }

    // Of the coarsest grid, where an axis that wraps has an odd number of cells, and so many.
    static constexpr int most_coarsest_sweeps = 64;

    Context& context_;
    PoissonOptions<D> options_;
    PlanRequest request_;
    std::deque<Level> levels_;
    std::optional<Field<double>> x_, p_, q_;
    std::deque<BoundNest> nests_;
    std::optional<NestChain> cycle_, direct_;
    BoundNest* advance_ = nullptr;
    bool singular_ = false;
    double alpha_ = 0, beta_ = 0;
    std::vector<double> norms_;
};

}  // namespace tilewave
