// What tests of kinds of nests share: ranks and threads, draws, plain loops.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/dice.hpp"
#include "support/grid.hpp"
#include "support/ranks.hpp"

namespace tilewave {

class Kinds : public ::testing::TestWithParam<std::pair<int, int>> {
protected:
    // Other sizes in each turn and each run of the tests; failures name the seed.
    void each_turn(int turns, const std::function<void()>& turn) {
        for (int k = 0; k < turns; ++k) {
            const unsigned seed = std::random_device()();
            SCOPED_TRACE("seed " + std::to_string(seed));
            draw = Dice(seed);
            turn();
        }
    }
    Dice draw{20261130};
    // All ranks along loop k, where they would else be too many for so few points.
    PlanRequest along(int k, int loops) const {
        PlanRequest request;
        request.grid = Index::filled(loops, 1);
        (*request.grid)[k] = GetParam().first;
        return request;
    }
    void run_on(const std::function<void(Context&)>& body) {
        const auto [ranks, threads] = GetParam();
        on_ranks(ranks, threads, body);
    }
};

/// Plain loops over a box with strides, perhaps downwards.
template <class F>
void each_point(const Box& over, const Index& strides, std::array<bool, 2> down, F f) {
    std::vector<std::int64_t> along[2];
    for (int k = 0; k < 2; ++k) {
        for (std::int64_t x = over.lo[k]; x < over.hi[k]; x += strides[k]) along[k].push_back(x);
        if (down[k]) std::ranges::reverse(along[k]);
    }
    for (const std::int64_t i : along[0])
        for (const std::int64_t j : along[1]) f(i, j);
}

inline double sum_of(const Report& report, int n = 0) {
    return report.reduced[static_cast<std::size_t>(n)].value<double>();
}

/// The pairs of ranks and threads.
inline const auto ranks_and_threads = ::testing::Values(std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1},
                                                        std::pair{3, 2}, std::pair{4, 1}, std::pair{6, 1});

}  // namespace tilewave
