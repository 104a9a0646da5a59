// What products of many ranks are predicted to take from fewer: against playing all of them.
#include "plan/products/product_plan.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/dice.hpp"

namespace tilewave {
namespace {

std::vector<OperationRate> rates(const ProductCase& /*one*/, const std::vector<Schedule>& /*parts*/) {
    return {{1e-7, 1e-10}, {1e-7, 1e-10}, {1e-6, 1e-10}, {1e-6, 1e-10}, {1e-7, 1e-10}};
}

double whole_s(const ProductRequest& r, const ProductPlan& plan, const Machine& machine) {
    const ProductCase one = product_case("multiply", r, plan);
    std::vector<Schedule> parts;
    for (int rank = 0; rank < one.ranks; ++rank) parts.push_back(one.schedule(rank));
    PredictOptions options;
    options.record = false;
    options.threads = r.threads;
    return predict(parts, machine, Rates({KernelRate()}, rates(one, parts)), options).time_s;
}

}  // namespace

TEST(ProductPlans, ManyRanksArePredictedFromFewer) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        SCOPED_TRACE(seed);
        Dice dice(seed);
        const int p = static_cast<int>(dice(10, 16)), q = dice(0, 1) ? 1 : static_cast<int>(dice(8, 12));
        const int rows = q == 1 ? 8 * p : p;
        const std::int64_t block = dice(16, 40), m = rows * dice(40, 90), n = q * dice(40, 90), k = rows * dice(20, 40);
        ProductRequest r{.a = {BlockCyclic{{m, rows, block}, {k, q, block}}},
                         .b = {BlockCyclic{{k, rows, block}, {n, q, block}}},
                         .c = {BlockCyclic{{m, rows, block}, {n, q, block}}},
                         .ranks = rows * q,
                         .wish = {}};
        r.wish.panel = dice(16, 64);
        r.wish.lookahead = 1;
        Machine machine;
        for (int rank = 0; rank < r.ranks; ++rank) machine.host_of.push_back(rank / 16);
        const auto plans = played_products("multiply", r, product_plans("multiply", r), machine, rates);
        double first = 0, best = 1e9;
        for (const ProductPlan& plan : plans) {
            if (plan.moved != std::array<bool, 3>{}) continue;
            const double all = whole_s(r, plan, machine);
            EXPECT_LT(std::abs(std::log(plan.predicted_s / all)), std::log(1.4)) << plan.text();
            best = std::min(best, all);
            if (first == 0) first = all;
        }
        EXPECT_LE(first, 1.15 * best);
    }
}

}  // namespace tilewave
