// Random programs of all ranks on a simulated fabric: what each seed does, it does again. TILEWAVE_SEEDS=FIRST:COUNT
// runs others than the first ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "context/agreement.hpp"
#include "core/concat.hpp"
#include "simulation/programs.hpp"
#include "support/simulated_ranks.hpp"

namespace tilewave {
namespace {

struct Seeds {
    std::uint64_t first = 0, count;
    explicit Seeds(std::uint64_t some) : count(some) {
        if (const char* const given = std::getenv("TILEWAVE_SEEDS")) {
            char* end = nullptr;
            first = std::strtoull(given, &end, 10);
            if (*end == ':') count = std::strtoull(end + 1, nullptr, 10);
        }
    }
};

}  // namespace

TEST(Simulation, ProgramsGiveWhatTheirDefinitionsSay) {
    if (!memory_can_end()) GTEST_SKIP() << "a sanitizer knows nothing of ranks on one thread";
    const Seeds seeds(500);
    for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count && !::testing::Test::HasFailure(); ++seed) {
        const SimulatedRun run(seed);
        EXPECT_EQ(run.wrong(), "") << run.text();
    }
}

TEST(Simulation, AFaultOfOneRankHoldsNobody) {
    if (!memory_can_end()) GTEST_SKIP() << "a sanitizer knows nothing of ranks on one thread";
    const Seeds seeds(500);
    int struck = 0;
    for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count && !::testing::Test::HasFailure(); ++seed) {
        const SimulatedRun run(seed, true);
        struck += run.struck();
        EXPECT_EQ(run.wrong(), "") << run.text();
    }
    if (seeds.count >= 50) EXPECT_GT(struck, 0);
}

TEST(Simulation, ASeedRepeatsItself) {
    if (!memory_can_end()) GTEST_SKIP() << "a sanitizer knows nothing of ranks on one thread";
    std::map<std::uint64_t, std::uint64_t> hashes;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const std::uint64_t hash = SimulatedRun(seed).hash();
        EXPECT_EQ(hash, SimulatedRun(seed).hash()) << "seed " << seed;
        hashes[hash] = seed;
    }
    EXPECT_EQ(hashes.size(), 20u);
}

}  // namespace tilewave
