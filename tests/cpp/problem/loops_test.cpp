// Changes of loop coordinates, skews, and the order of a tile's points, against brute force.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "schedule/tile_rows.hpp"
#include "support/dice.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {
namespace {

using Int = std::int64_t;

struct IndexDice : Dice {
    using Dice::Dice;
    Index index(int n, Int least, Int most) {
        Index x = Index::filled(n, 0);
        for (auto& v : x.v) v = &v - x.v.data() < n ? (*this)(least, most) : 0;
        return x;
    }
    Index positive(int n) {
        while (true)
            if (const Index d = index(n, -3, 3); lexicographically_positive(d)) return d;
    }
    // Sums, exchanges and changes of sign of rows: the determinant stays 1 or -1.
    IndexMatrix unimodular(int n) {
        IndexMatrix m = IndexMatrix::identity(n);
        for (Int times = (*this)(0, 8); times > 0; --times) {
            const auto a = static_cast<int>((*this)(0, n - 1)), b = static_cast<int>((*this)(0, n - 1));
            const Int s = (*this)(-2, 2);
            if (a == b)
                m.row[a] = Index::filled(n, 0) - m.row[a];
            else if (s == 2)
                std::swap(m.row[a], m.row[b]);
            else
                for (int k = 0; k < n; ++k) m.row[a][k] += s * m.row[b][k];
        }
        return m;
    }
    // Loops as written, some of them downwards.
    IndexMatrix directions(int n) {
        IndexMatrix m = IndexMatrix::identity(n);
        for (int k = 0; k < n; ++k) m.row[k][k] = (*this)(0, 1) ? 1 : -1;
        return m;
    }
};

std::vector<Index> points_of(const Box& box) {
    std::vector<Index> all;
    for (Int q = 0; q < box.points(); ++q) {
        Index x = box.lo;
        Int rest = q;
        for (int k = x.n - 1; k >= 0; --k) {
            x[k] += rest % box.extent(k);
            rest /= box.extent(k);
        }
        all.push_back(x);
    }
    return all;
}

Int dot(const Index& a, const Index& b) {
    Int sum = 0;
    for (int k = 0; k < a.n; ++k) sum += a[k] * b[k];
    return sum;
}

bool less(const Index& a, const Index& b) {
    return lexicographically_positive(b - a);
}

std::string to_string(const IndexMatrix& m) {
    std::string s;
    for (int k = 0; k < m.n; ++k) s += tilewave::to_string(m.row[k]);
    return s;
}

constexpr std::uint64_t cases = 2000;

// Runs f(dice) for as many seeds; a failure names its own.
template <class F>
void repeat(F f) {
    for (std::uint64_t seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        IndexDice dice(seed);
        f(dice);
    }
}

TEST(IndexMatrix, the_inverse_undoes_it) {
    repeat([](IndexDice& dice) {
        const auto n = static_cast<int>(dice(1, max_dims));
        const IndexMatrix m = dice.unimodular(n), back = inverse(m);
        EXPECT_TRUE((back * m).is_identity()) << to_string(m);
        EXPECT_TRUE((m * back).is_identity()) << to_string(m);
        const Index x = dice.index(n, -9, 9), c = dice.index(n, -9, 9);
        EXPECT_EQ(back * (m * x), x) << to_string(m);
        EXPECT_EQ(dot(c, m * x), dot(c * m, x)) << to_string(m);
    });
}

TEST(IndexMatrix, keeps_a_coordinate_that_is_one_index) {
    const IndexMatrix m({{1, 0, 0}, {0, -1, 0}, {1, 0, 1}});
    EXPECT_TRUE(m.keeps(0) && m.keeps(1));
    EXPECT_FALSE(m.keeps(2));
    EXPECT_FALSE(IndexMatrix(std::vector<Index>{{2}}).keeps(0));
}

TEST(IndexMatrix, refuses_what_has_no_inverse_in_integers) {
    EXPECT_THROW(inverse(IndexMatrix({{1, 2}, {2, 4}})), ConfigError);
    EXPECT_THROW(inverse(IndexMatrix({{1, 1}, {-1, 1}})), ConfigError);
    EXPECT_THROW(IndexMatrix({{1, 0}, {0}}), ConfigError);
    EXPECT_THROW(IndexMatrix(std::vector<Index>{}), ConfigError);
}

TEST(IndexMatrix, the_image_is_the_least_box) {
    repeat([](IndexDice& dice) {
        const auto n = static_cast<int>(dice(1, max_dims));
        const IndexMatrix m = dice.unimodular(n);
        const Index lo = dice.index(n, -5, 5);
        const Box box{lo, lo + dice.index(n, dice(0, 3) ? 1 : 0, 4)};
        Box expected;
        for (const Index& x : points_of(box)) {
            const Index z = m * x;
            expected = expected.dims() ? hull(expected, {z, z + Index::filled(n, 1)}) : Box{z, z + Index::filled(n, 1)};
        }
        const Box got = image(m, box);
        EXPECT_TRUE(box.empty() ? got.empty() : got == expected) << to_string(m) << " of " << tilewave::to_string(box);
    });
}

SweepProblem reading(int n, const std::vector<Index>& dependences) {
    SweepProblem p;
    p.shape = Index::filled(n, 9);
    p.space = {Index::filled(n, 4), Index::filled(n, 5)};
    p.arrays = {{4}};
    p.accesses = {{0, Index::filled(n, 0), true}};
    for (const Index& d : dependences) p.accesses.push_back({0, Index::filled(n, 0) - d});
    return p;
}

bool negative(const Index& d) {
    return std::any_of(d.begin(), d.end(), [](auto x) { return x < 0; });
}

TEST(LegalSkew, makes_every_dependence_non_negative) {
    repeat([](IndexDice& dice) {
        const auto n = static_cast<int>(dice(1, max_dims));
        std::vector<Index> vectors(static_cast<std::size_t>(dice(1, 5)));
        for (Index& d : vectors) d = dice.positive(n);
        SweepProblem p = reading(n, vectors);
        p.loops = dice.directions(n);
        p.complete();
        const IndexMatrix loops = p.loops;
        const std::vector<Index> before = p.dependences();
        p.loops = legal_skew(p);
        EXPECT_EQ(p.dependences().size(), before.size());
        for (const Index& d : p.dependences())
            EXPECT_FALSE(negative(d)) << tilewave::to_string(d) << " by " << to_string(p.loops);
        EXPECT_NO_THROW(inverse(p.loops));
        // Outer coordinates added to inner ones: the order of the loops stays.
        const IndexMatrix skew = p.loops * inverse(loops);
        for (int k = 0; k < n; ++k)
            for (int l = k; l < n; ++l) EXPECT_EQ(skew.row[k][l], k == l);
        for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(skew * before[i], p.dependences()[i]);
        EXPECT_TRUE(skew.is_identity() || std::any_of(before.begin(), before.end(), negative)) << to_string(skew);
        EXPECT_EQ(p.unit_dims(), std::vector<bool>(static_cast<std::size_t>(n), false));
    });
}

TEST(LegalSkew, is_the_least) {
    auto skew = [](const std::vector<Index>& dependences) {
        SweepProblem p = reading(dependences[0].n, dependences);
        p.complete();
        return legal_skew(p);
    };
    EXPECT_EQ(skew({{1, -1}, {0, 1}}), IndexMatrix({{1, 0}, {1, 1}}));
    EXPECT_EQ(skew({{2, -3}, {1, 0}}), IndexMatrix({{1, 0}, {2, 1}}));
    EXPECT_EQ(skew({{1, -2, 1}, {0, 1, -1}}), IndexMatrix({{1, 0, 0}, {2, 1, 0}, {2, 1, 1}}));
}

TEST(LegalSkew, leaves_an_index_that_an_array_lacks) {
    repeat([](IndexDice& dice) {
        const auto n = static_cast<int>(dice(2, max_dims));
        std::vector<Index> vectors(static_cast<std::size_t>(dice(1, 5)));
        for (Index& d : vectors) d = dice.positive(n);
        SweepProblem p = reading(n, vectors);
        p.loops = dice.directions(n);
        const auto lacking = static_cast<int>(dice(0, n - 1));
        NestArray row;
        for (int k = 0; k < n; ++k)
            if (k != lacking) row.axes.v[row.axes.n++] = k;
        p.arrays.push_back(row);
        p.accesses.push_back({1, Index::filled(n, 0)});
        p.complete();
        p.loops = legal_skew(p);
        EXPECT_TRUE(p.loops.keeps(lacking));
        for (int k = 0; k < n; ++k) EXPECT_TRUE(k == lacking || p.loops.row[k][lacking] == 0) << to_string(p.loops);
        const std::vector<bool> unit = p.unit_dims();
        for (const Index& d : p.dependences()) {
            if (!negative(d)) continue;
            const auto first = std::find_if(d.begin(), d.end(), [](auto x) { return x != 0; }) - d.begin();
            EXPECT_TRUE(unit[static_cast<std::size_t>(first)]);
            for (int k = 0; k < n; ++k)
                EXPECT_TRUE(d[k] >= 0 || first == lacking || k == lacking) << tilewave::to_string(d);
        }
    });
}

// A row along a dimension, or along the difference of two.
Index any_row(int n, IndexDice& dice) {
    Index row = Index::filled(n, 0);
    const auto up = static_cast<int>(dice(0, n - 1)), down = static_cast<int>(dice(0, n - 1));
    row[down] = -1;
    row[up] = 1;
    return row;
}

TEST(TileRows, every_point_once_in_the_order_of_the_nest) {
    repeat([](IndexDice& dice) {
        const auto n = static_cast<int>(dice(1, max_dims));
        Plan plan;
        if (dice(0, 3)) plan.row = any_row(n, dice);
        NestWork s;
        const IndexMatrix order = plan.order(n);
        if (plan.row.n || dice(0, 1)) s.order = order;
        const IndexMatrix loops = dice(0, 1) ? dice.unimodular(n) : IndexMatrix::identity(n);
        if (!loops.is_identity() || dice(0, 1)) s.loops = loops;
        for (Int i = dice(0, 3); i > 0; --i) s.bounds.push_back({dice.index(n, -2, 2), dice(-4, 6)});
        const Index lo = dice.index(n, -4, 4);
        const Box tile{lo, lo + dice.index(n, dice(0, 5) ? 1 : 0, n < 3 ? 9 : 5)};
        SCOPED_TRACE("tile " + tilewave::to_string(tile) + ", row " + tilewave::to_string(plan.row) + ", loops " +
                     to_string(loops));

        std::vector<Index> expected;
        for (const Index& z : points_of(tile))
            if (std::all_of(s.bounds.begin(), s.bounds.end(),
                            [&](const Bound& b) { return dot(b.coefficients, z) + b.constant >= 0; }))
                expected.push_back(z);
        std::sort(expected.begin(), expected.end(),
                  [&](const Index& a, const Index& b) { return less(order * a, order * b); });

        std::vector<Index> got;
        TileRows rows(s, tile);
        Index before;
        for (bool more = rows.first(); more; more = rows.next()) {
            EXPECT_LT(rows.begin(), rows.end());
            EXPECT_EQ(rows.direction(), loops * rows.along());
            EXPECT_TRUE(rows.fresh() || (before.n == n && rows.point() == before + rows.across()));
            before = rows.point();
            for (Int q = rows.begin(); q < rows.end(); ++q) {
                Index z = rows.point();
                for (int k = 0; k < n; ++k) z[k] += q * rows.along()[k];
                got.push_back(z);
                EXPECT_EQ(rows.index(q), loops * z);
            }
        }
        EXPECT_EQ(got, expected);
    });
}

TEST(TileRows, rows_that_a_plan_allows_honour_every_dependence) {
    repeat([](IndexDice& dice) {
        const auto n = static_cast<int>(dice(1, max_dims));
        std::vector<Index> vectors(static_cast<std::size_t>(dice(1, 4)));
        for (Index& d : vectors) d = dice.positive(n);
        SweepProblem p = reading(n, vectors);
        p.space = {Index::filled(n, 3), Index::filled(n, 6)};
        p.complete();
        p.loops = legal_skew(p);
        Plan plan;
        plan.row = any_row(n, dice);
        NestWork s;
        s.order = plan.order(n);
        const std::vector<Index> dependences = p.dependences();
        const bool allowed = std::all_of(dependences.begin(), dependences.end(),
                                         [&](const Index& d) { return lexicographically_positive(s.order * d); });
        const Box tile{Index::filled(n, 0), Index::filled(n, n < 3 ? 6 : 4)};
        std::map<std::vector<Int>, std::pair<Int, Int>> place;  // of a point: its row, its place among all
        Int row = 0, number = 0;
        TileRows rows(s, tile);
        for (bool more = rows.first(); more; more = rows.next(), ++row)
            for (Int q = rows.begin(); q < rows.end(); ++q) {
                const Index z = rows.index(q);
                place[{z.begin(), z.end()}] = {row, number++};
            }
        if (!allowed) return;
        const bool independent = plan.independent_rows(p);
        for (const Index& d : dependences)
            for (const Index& z : points_of(tile)) {
                const Index later = z + d;
                if (!tile.contains(later)) continue;
                const auto [row_of, at] = place[{z.begin(), z.end()}];
                const auto [later_row, later_at] = place[{later.begin(), later.end()}];
                EXPECT_LT(at, later_at) << tilewave::to_string(d);
                EXPECT_FALSE(row_of == later_row && independent) << tilewave::to_string(d);
            }
    });
}

TEST(PlanOrder, refuses_other_rows) {
    for (const Index& row : {Index{0, 0}, Index{0, -1}, Index{2, 0}, Index{1, 1}, Index{1, 0, -1}}) {
        Plan plan;
        plan.row = row;
        EXPECT_THROW(plan.order(2), ConfigError) << tilewave::to_string(row);
    }
}

}  // namespace
}  // namespace tilewave
