// Points, boxes and changes of coordinates against sets of points and plain definitions.
#include "tilewave/index.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

using namespace tilewave;

namespace {

using Random = std::mt19937;
using Points = std::set<std::vector<std::int64_t>>;

std::int64_t between(Random& random, std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
}

// Perhaps empty, perhaps from high to low.
Box random_box(Random& random, int n) {
    Box b{Index::filled(n, 0), Index::filled(n, 0)};
    for (int k = 0; k < n; ++k) {
        b.lo[k] = between(random, -3, 4);
        b.hi[k] = b.lo[k] + between(random, -1, 4);
    }
    return b;
}

// With points of `a`, and others: in each dimension within it, over an end of it, or around it.
Box box_that_meets(Random& random, const Box& a) {
    Box b = a;
    for (int k = 0; k < a.dims(); ++k) {
        b.lo[k] = between(random, a.lo[k] - 1, a.hi[k] - 1);
        b.hi[k] = between(random, std::max(b.lo[k], a.lo[k]) + 1, a.hi[k] + 1);
    }
    return b;
}

// By definition: every point of a range that holds all boxes here.
Points points_of(const Box& b) {
    Points all;
    const int n = b.dims();
    std::vector<std::int64_t> at(static_cast<std::size_t>(n), -5);
    while (true) {
        bool in = true;
        for (int k = 0; k < n; ++k)
            in = in && b.lo[k] <= at[static_cast<std::size_t>(k)] && at[static_cast<std::size_t>(k)] < b.hi[k];
        if (in) all.insert(at);
        int k = n - 1;
        while (k >= 0 && ++at[static_cast<std::size_t>(k)] == 10) at[static_cast<std::size_t>(k--)] = -5;
        if (k < 0) return all;
    }
}

// A product of elementary changes: its determinant is 1 or -1.
IndexMatrix unimodular(Random& random, int n) {
    IndexMatrix m = IndexMatrix::identity(n);
    for (int step = 0; step < 4; ++step) {
        IndexMatrix e = IndexMatrix::identity(n);
        const int k = static_cast<int>(between(random, 0, n - 1)), l = static_cast<int>(between(random, 0, n - 1));
        if (k == l)
            e.row[k][k] = -1;
        else if (random() % 3 == 0)
            std::swap(e.row[k], e.row[l]);
        else
            e.row[k][l] = between(random, -2, 2);
        m = e * m;
    }
    return m;
}

}  // namespace

TEST(Index, DivisionsRoundDownAndUp) {
    for (std::int64_t b = 1; b < 8; ++b)
        for (std::int64_t a = -30; a <= 30; ++a) {
            const double exact = static_cast<double>(a) / static_cast<double>(b);
            EXPECT_EQ(floor_div(a, b), static_cast<std::int64_t>(std::floor(exact))) << a << " / " << b;
            EXPECT_EQ(ceil_div(a, b), static_cast<std::int64_t>(std::ceil(exact))) << a << " / " << b;
            EXPECT_EQ(floor_mod(a, b), a - b * floor_div(a, b));
            EXPECT_TRUE(floor_mod(a, b) >= 0 && floor_mod(a, b) < b);
        }
    const std::int64_t least = INT64_MIN + 1, most = INT64_MAX;
    EXPECT_EQ(floor_div(least, most), -1);
    EXPECT_EQ(floor_div(least, 2), least / 2 - 1);
    EXPECT_EQ(ceil_div(most, 2), most / 2 + 1);
}

TEST(Index, TheOrderOfPointsIsRowMajorAndFixedDimensionsStay) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        Random random(seed);
        const int n = static_cast<int>(between(random, 1, 4));
        Box b = random_box(random, n);
        for (int k = 0; k < n; ++k) b.hi[k] = b.lo[k] + between(random, 1, 3);
        const auto fixed = static_cast<unsigned>(random() % (1u << n));
        Points expected = points_of(b), seen;
        std::erase_if(expected, [&](const auto& p) {
            for (int k = 0; k < n; ++k)
                if ((fixed >> k & 1u) && p[static_cast<std::size_t>(k)] != b.lo[k]) return true;
            return false;
        });
        std::vector<std::int64_t> before;
        Index at = b.lo;
        do {
            const std::vector<std::int64_t> here(at.begin(), at.end());
            EXPECT_TRUE(before.empty() || before < here) << seed;
            before = here;
            seen.insert(here);
        } while (next_point(at, b, fixed));
        EXPECT_EQ(seen, expected) << seed;
        EXPECT_EQ(at, b.lo) << seed;
    }
}

TEST(Box, SetsOfPoints) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        Random random(seed);
        const int n = static_cast<int>(between(random, 1, 3));
        const Box a = random_box(random, n);
        // Two that are drawn apart rarely meet: 5 of 150 did, none of them in several dimensions.
        const Box b = a.empty() || seed % 2 ? random_box(random, n) : box_that_meets(random, a);
        const Points of_a = points_of(a), of_b = points_of(b);
        Points both, rest;
        for (const auto& p : of_a) (of_b.count(p) ? both : rest).insert(p);
        EXPECT_EQ(a.points(), static_cast<std::int64_t>(of_a.size())) << seed;
        EXPECT_EQ(a.empty(), of_a.empty()) << seed;
        EXPECT_EQ(points_of(intersect(a, b)), both) << seed;
        EXPECT_EQ(a.contains(b), both == of_b) << seed;
        for (const auto& p : of_b) EXPECT_EQ(a.contains(Index(std::span(p))), of_a.count(p) == 1) << seed;
        Points parts;
        const std::vector<Box> found = subtract(a, b);
        EXPECT_LE(found.size(), 2u * static_cast<unsigned>(n)) << seed;
        for (const Box& part : found) {
            const Points of_part = points_of(part);
            EXPECT_FALSE(of_part.empty()) << seed;
            for (const auto& p : of_part) EXPECT_TRUE(parts.insert(p).second) << seed;
        }
        EXPECT_EQ(parts, rest) << seed;
        const Box h = hull(a, b);
        EXPECT_TRUE(h.contains(a) && h.contains(b)) << seed;
        for (int k = 0; k < n && !a.empty() && !b.empty(); ++k) {
            EXPECT_EQ(h.lo[k], std::min(a.lo[k], b.lo[k])) << seed;
            EXPECT_EQ(h.hi[k], std::max(a.hi[k], b.hi[k])) << seed;
        }
    }
}

TEST(IndexMatrix, InversesAndImages) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        Random random(seed);
        const int n = static_cast<int>(between(random, 1, 4));
        const IndexMatrix m = unimodular(random, n), back = inverse(m);
        EXPECT_TRUE((m * back).is_identity() && (back * m).is_identity()) << seed;
        Box b = random_box(random, n);
        for (int k = 0; k < n; ++k) b.hi[k] = b.lo[k] + between(random, 1, 3);
        const Box z = image(m, b);
        Index least = Index::filled(n, INT64_MAX), most = Index::filled(n, INT64_MIN), at = b.lo;
        do {
            const Index to = m * at;
            EXPECT_EQ(back * to, at) << seed;
            for (int k = 0; k < n; ++k) {
                least[k] = std::min(least[k], to[k]);
                most[k] = std::max(most[k], to[k] + 1);
            }
        } while (next_point(at, b));
        EXPECT_EQ(z.lo, least) << seed;
        EXPECT_EQ(z.hi, most) << seed;
        b.hi[static_cast<int>(between(random, 0, n - 1))] = b.lo[0] - 9;
        EXPECT_TRUE(image(m, b).empty()) << seed;
    }
}

TEST(IndexMatrix, RefusesWhatIsNoChangeOfCoordinates) {
    EXPECT_THROW(inverse(IndexMatrix({{1, 2}, {2, 4}})), ConfigError);
    EXPECT_THROW(inverse(IndexMatrix({{2, 0}, {0, 1}})), ConfigError);
    EXPECT_THROW(IndexMatrix({{1, 2}}), ConfigError);
    EXPECT_THROW(IndexMatrix(std::vector<Index>{}), ConfigError);
    EXPECT_THROW(Index({1, 2, 3, 4, 5, 6, 7}), ConfigError);
    EXPECT_TRUE(lexicographically_positive({0, 1, -5}));
    EXPECT_FALSE(lexicographically_positive({0, -1, 5}));
    EXPECT_FALSE(lexicographically_positive({0, 0}));
}
