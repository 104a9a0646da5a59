// Rates of kernels from samples of tiles.
#include "predict/rate.hpp"

#include <gtest/gtest.h>

#include "support/dice.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

TEST(Rate, IsFoundAgainInSamplesThatItHasMade) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Dice dice(seed);
        const double point_s = 1e-10 * static_cast<double>(dice(2, 200)),
                     row_s = 1e-9 * static_cast<double>(dice(1, 200)),
                     tile_s = 1e-8 * static_cast<double>(dice(1, 300));
        const auto sample = [&](double rows, double points) {
            return RateSample{rows, points, tile_s + rows * row_s + points * point_s};
        };
        std::vector<RateSample> samples{sample(64, 64.0 * 2000), sample(2000, 2000.0 * 20), sample(3, 12)};
        const KernelRate rate = fit_rate(samples);
        EXPECT_NEAR(rate.point_s, point_s, 1e-3 * point_s) << "seed " << seed;
        EXPECT_NEAR(rate.row_s, row_s, 1e-2 * row_s) << "seed " << seed;
        EXPECT_NEAR(rate.tile_s, tile_s, 1e-2 * tile_s) << "seed " << seed;
        RateSample alone = samples[0];
        alone.tile_s *= 0.6;  // one lane that has the memory for itself
        samples.push_back(alone);
        EXPECT_NEAR(fit_rate(samples).one_lane_factor, 0.6, 1e-6) << "seed " << seed;
    }
}

TEST(Rate, IsNeverNegative) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        Dice dice(seed);
        std::vector<RateSample> samples;
        for (int k = 0; k < 3; ++k) {  // noise
            const auto rows = static_cast<double>(dice(1, 3000));
            samples.push_back(
                {rows, rows * static_cast<double>(dice(1, 2000)), 1e-9 * static_cast<double>(dice(1, 1000000))});
        }
        const KernelRate rate = fit_rate(samples);
        EXPECT_GE(rate.point_s, 0) << "seed " << seed;
        EXPECT_GE(rate.row_s, 0) << "seed " << seed;
        EXPECT_GE(rate.tile_s, 0) << "seed " << seed;
        EXPECT_GT(rate.point_s + rate.row_s + rate.tile_s, 0) << "seed " << seed;
    }
}

TEST(Rate, NeedsThreeSamplesWithPoints) {
    const RateSample one{10, 100, 1e-6};
    EXPECT_THROW(fit_rate(std::vector<RateSample>{one, one}), ConfigError);
    EXPECT_THROW(fit_rate(std::vector<RateSample>{one, one, {0, 0, 0}}), ConfigError);
}

}  // namespace tilewave
