// Rates that ranks agree on and measure at once.
#include "measure/nest_rates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "context/slowest.hpp"
#include "support/dice.hpp"
#include "support/ranks.hpp"

using namespace tilewave;

namespace {

std::vector<MeasuredRate> rates(double point_s) {
    KernelRate rate;
    rate.point_s = point_s;
    return {{Plan{}, rate}};
}

std::vector<RateSample> samples(double point_s) {
    std::vector<RateSample> all{{50, 20000, 0}, {500, 12000, 0}, {4, 8, 0}};
    for (RateSample& s : all) s.tile_s = point_s * s.points, s.spread = 0.25;
    return all;
}

}  // namespace

TEST(NestRates, ThatSomeRankHasOtherwiseAreForgottenByAll) {
    on_ranks(3, [](Context& context) {
        const int rank = context.rank();
        std::vector<std::vector<MeasuredRate>> all{
            rates(1e-9), rates((2 + rank) * 1e-9), rank == 1 ? std::vector<MeasuredRate>{} : rates(3e-9), {}};
        std::vector<std::int64_t> least{5 - rank, 7};
        EXPECT_TRUE(agree_on_rates(context, false, all, least));
        EXPECT_EQ(least, (std::vector<std::int64_t>{3, 7}));
        EXPECT_EQ(all[0].size(), 1u);
        for (int k = 1; k < 4; ++k) EXPECT_TRUE(all[static_cast<std::size_t>(k)].empty()) << k;
        EXPECT_FALSE(agree_on_rates(context, rank == 2, all, least));
        all.resize(1 + static_cast<std::size_t>(rank % 2));
        EXPECT_FALSE(agree_on_rates(context, false, all, least));
    });
}

TEST(NestRates, AreThoseOfTheSlowestRankInItsBestVisit) {
    on_ranks(3, [](Context& context) {
        context.component<PlanningClock>().queued = [] { return 0.0; };  // nobody else has the CPUs
        const Plan plan;
        int visits = 0;
        const auto disturbed_at_first = [&](double) {
            return samples((1 + context.rank()) * 1e-9 * (++visits == 1 ? 100 : 1));
        };
        const auto raises = [&](double) -> std::vector<RateSample> { return {}; };
        const std::vector<RateExperiment> all{
            {&plan, true, disturbed_at_first},
            {&plan, context.rank() == 0, [](double) { return samples(5e-9); }},
            {&plan, true, [&](double s) { return context.rank() == 1 ? raises(s) : samples(1e-9); }}};
        const auto measured = measure_rates(context, all, 2, [&] { return 0.5 + context.rank(); });
        ASSERT_TRUE(measured);
        EXPECT_NEAR(measured->spent_s, 2.5, 1e-9);
        const auto* found = &measured->rates;
        EXPECT_EQ(visits, 2);
        EXPECT_NEAR((*found)[0].rate.point_s, 3e-9, 1e-11);
        EXPECT_EQ((*found)[0].spread, 0.25);
        EXPECT_EQ((*found)[0].note, "measured on 3 ranks at once");
        EXPECT_NEAR((*found)[1].rate.point_s, 5e-9, 1e-11);
        EXPECT_EQ((*found)[2].note.rfind(not_measured, 0), 0u);
        EXPECT_EQ((*found)[2].rate.point_s, context.machine().point_s);
    });
}

TEST(NestRates, OfRandomNumbersTheSlowestRanksCome) {
    constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::max();
    for (const int ranks : {1, 2, 3, 4, 6, 7}) {
        Dice dice(static_cast<std::uint64_t>(ranks));
        // By rank, three numbers of a body.
        std::vector<std::vector<std::int64_t>> all(static_cast<std::size_t>(ranks));
        for (int body = 0; body < 80; ++body)
            for (auto& mine : all) {
                const int kind = dice(0, 19);
                for (int k = 0; k < 3; ++k) mine.push_back(kind < 8 ? nothing : kind == 8 ? -1 : dice(0, 9));
            }
        on_ranks(ranks, [&](Context& context) {
            const auto found = slowest(context.transport(), all[static_cast<std::size_t>(context.rank())], 3, nothing);
            for (std::size_t body = 0; body < found.size(); ++body) {
                SlowestNumbers wanted;
                for (const auto& mine : all) {
                    const std::vector<std::int64_t> numbers(&mine[3 * body], &mine[3 * body] + 3);
                    if (numbers[0] == nothing) continue;
                    wanted.failed = wanted.failed || numbers[0] < 0;
                    if (wanted.ranks++ == 0 || numbers[2] > wanted.numbers[2]) wanted.numbers = numbers;
                }
                EXPECT_EQ(found[body].ranks, wanted.ranks);
                EXPECT_EQ(found[body].failed, wanted.failed);
                if (wanted.ranks > 0 && !wanted.failed) EXPECT_EQ(found[body].numbers[2], wanted.numbers[2]);
            }
        });
    }
}

TEST(NestRates, ThoseThatWereUsedLastAreRemembered) {
    KnownRates known;
    for (int k = 0; k < 600; ++k) {
        known.store(std::to_string(k), {rates(1e-9)});
        ASSERT_TRUE(known.find("0"));
    }
    EXPECT_EQ(known.size(), 512u);
    EXPECT_FALSE(known.find("1"));
}
