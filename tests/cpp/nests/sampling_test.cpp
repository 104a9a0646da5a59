// Rates are of the body, not of what other programs do with the CPUs meanwhile.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "nests/prepared_sweep.hpp"
#include "tilewave/tilewave.hpp"

using namespace tilewave;

namespace {

constexpr double absence_s = 2e-3;

// As if another program had the CPU for a while in each row.
std::int64_t row_with_pauses(char* const*, const std::int64_t*, std::int64_t, const std::int64_t*, const std::int64_t*,
                             const void*) {
    std::this_thread::sleep_for(std::chrono::duration<double>(absence_s));
    return 0;
}

}  // namespace

TEST(Sampling, TilesTakeWhatTheirThreadsHadOfACpu) {
    LocalFabric fabric(1);
    Context context(fabric.endpoint(0), 1);
    Field<double> a(context, {64, 64}, [](const Index&) { return 1.0; });
    const ArrayReads reads{&a.storage(), 8, {64, 64}, true, {{-1, 0}, {0, -1}}};
    const SweepProblem problem = nest_problem({}, std::span(&reads, 1)).problem;
    PreparedSweep sweep(context, problem, make_plan(problem, 1, {}, context.machine()));
    Kernel kernel;
    kernel.row = &row_with_pauses;
    kernel.uses_index = false;
    const RunArray arrays[] = {{&a.storage(), {}}};
    const std::vector<RateSample> samples = sweep.sample(arrays, kernel, 0.02);
    ASSERT_GE(samples.size(), 1u);
    EXPECT_GT(samples[0].rows, 0);
    EXPECT_LT(samples[0].tile_s, samples[0].rows * absence_s / 2);
}
