// Rates on disk: what is stored is found, and what is wrong with a file costs a measurement only.
#include "measure/rate_store.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "measure/build_id.hpp"
#include "measure/nest_rates.hpp"
#include "support/ranks.hpp"

using namespace tilewave;
namespace fs = std::filesystem;

namespace {

// Tests store nothing in the user's folder.
[[maybe_unused]] const int elsewhere =
    setenv("TILEWAVE_CACHE_DIR", std::getenv("TILEWAVE_TEST_RATES") ? std::getenv("TILEWAVE_TEST_RATES") : "", 1);

struct Folder {
    Folder() {
        char name[] = "/tmp/tilewave-rates-XXXXXX";
        path = mkdtemp(name);
        setenv("TILEWAVE_CACHE_DIR", path.c_str(), 1);
    }
    ~Folder() {
        setenv("TILEWAVE_CACHE_DIR", "", 1);
        fs::remove_all(path);
    }
    std::string path;
};

MeasuredRate rate(const std::string& note = "measured on 1 rank at once") {
    Plan plan;
    plan.tile = {3, 40};
    plan.storage = StorageKind::skewed;
    return {plan, {1e-9, 2e-8, 3e-7, 0, 0.5, 2}, false, note, {30, 400}, 0.7};
}

}  // namespace

TEST(RateStore, WhatIsStoredIsFoundOnAllRanks) {
    const Folder folder;
    on_ranks(3, [](Context& context) {
        RateStore store;
        store.launch = "this one";
        EXPECT_TRUE(store.read(context, "one").rates.empty());
        BodyRates body{{rate(), rate()}};
        body.remember({7, 0.5, 0.25, 0.1, true});
        if (context.rank() == 0) store.store("one", body);
        if (context.rank() == 0) store.store("", {{rate()}});
        EXPECT_TRUE(store.read(context, "other").rates.empty());
        EXPECT_TRUE(store.read(context, "").rates.empty());
        const BodyRates read = store.read(context, "one");
        EXPECT_TRUE(read.call(7).settled);
        EXPECT_EQ(read.call(7).spent_s, 0.5);
        EXPECT_EQ(read.call(8).spent_s, 0);
        const auto& found = read.rates;
        ASSERT_EQ(found.size(), 2u);
        const MeasuredRate &there = found[1], was = rate();
        EXPECT_EQ(there.plan.to_string(), was.plan.to_string());
        EXPECT_EQ(there.rate.row_s, was.rate.row_s);
        EXPECT_EQ(there.rate.one_lane_factor, was.rate.one_lane_factor);
        EXPECT_EQ(there.rate.lanes, was.rate.lanes);
        EXPECT_EQ(to_string(there.extents), to_string(was.extents));
        EXPECT_EQ(there.spread, was.spread);
        EXPECT_TRUE(is_stored(there) && !is_stored(was));
        EXPECT_EQ(there.note.find(was.note + ", stored 20"), 0u);
        store.launch = "another";
        EXPECT_TRUE(store.read(context, "one").rates.empty());
    });
}

TEST(RateStore, RatesAreGoodForSomeTimeFromWhenTheyWereStored) {
    const Folder folder;
    on_ranks(1, [](Context& context) {
        RateStore store;
        store.launch = "this one";
        for (const auto& [age_s, good] : {std::pair(0.0, true), std::pair(tuning::most_rate_age_s - 60, true),
                                          std::pair(tuning::most_rate_age_s + 60, false), std::pair(-3600.0, false)}) {
            store.date = [] { return std::time_t{1000000000}; };
            store.store("one", {{rate()}});
            store.date = [age = age_s] { return static_cast<std::time_t>(1e9 + age); };
            const BodyRates found = store.read(context, "one");
            EXPECT_EQ(found.rates.size(), good) << age_s;
            // To store it with more makes it no younger.
            store.store("one", found.rates.empty() ? BodyRates{{rate()}, {}, 1000000000} : found);
            EXPECT_EQ(store.read(context, "one").rates.size(), good) << age_s;
        }
    });
}

TEST(RateStore, WhatIsNotMeasuredIsNotStored) {
    const Folder folder;
    on_ranks(1, [&](Context&) {
        RateStore store;
        store.launch = "this one";
        store.store("one", {{rate(std::string(not_measured) + ": no rank has a point to compute")}});
        EXPECT_TRUE(fs::is_empty(folder.path));
    });
}

TEST(RateStore, CodeOfAnotherPlaceHasAnotherDigest) {
    const std::string here = code_digest(reinterpret_cast<const void*>(&queued_s));
    EXPECT_EQ(here, code_digest(reinterpret_cast<const void*>(&queued_s)));
    EXPECT_NE(here, code_digest(reinterpret_cast<const void*>(&launch_text)));
    const int on_the_stack = 0;
    EXPECT_EQ(code_digest(&on_the_stack), "");
}

// Run by the test below in a process of its own; its status: the rates that were measured.
TEST(RateStore, DISABLED_Program) {
    int measured = 0;
    on_ranks(1, [&](Context& context) {
        context.component<RateStore>().renewed_spread = 1e9;
        // The budget lasts until all is measured: what the first run leaves, the next one would measure.
        context.component<PlanningClock>() = {[] { return 0.0; }, [] { return 0.0; }};
        Field<double> a(context, {300, 400}, [](const Index&) { return 1.0; });
        constexpr auto before = reads({-1, 0}, {0, -1});
        PlanRequest one_lane;
        one_lane.threads = 1;
        run(context, one_lane, [](auto x) { return x(-1, 0) + 0.5 * x(0, -1); }, writes<before>(a));
        for (const auto& [key, body] : context.component<KnownRates>())
            for (const MeasuredRate& r : body.rates) measured += r.note.find("stored") == r.note.npos;
    });
    std::_Exit(measured);
}

TEST(RateStore, AProgramThatRunsAgainMeasuresNothing) {
    const std::string digest = code_digest(reinterpret_cast<const void*>(&queued_s));
    if (digest.empty()) GTEST_SKIP() << "programs have no build ID";
    const Folder folder;
    const auto measured = [&](const std::string& program) {
        const std::string command =
            "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX TILEWAVE_TEST_RATES=" + folder.path + "/cache " + program +
            " --gtest_filter=RateStore.DISABLED_Program --gtest_also_run_disabled_tests"
            " > /dev/null";
        const int status = std::system(command.c_str());
        EXPECT_TRUE(WIFEXITED(status));
        return WEXITSTATUS(status);
    };
    const std::string program = fs::read_symlink("/proc/self/exe");
    EXPECT_GT(measured(program), 0);
    EXPECT_EQ(measured(program), 0);
    // A changed program: its build ID is another.
    std::ifstream file(program, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}}, id;
    for (std::size_t k = 0; k < digest.find(' '); k += 2)
        id += static_cast<char>(std::stoi(digest.substr(k, 2), nullptr, 16));
    const std::size_t at = bytes.find(id);
    ASSERT_NE(at, bytes.npos);
    bytes[at] ^= 1;
    const std::string changed = folder.path + "/" + fs::path(program).filename().string();
    std::ofstream(changed, std::ios::binary) << bytes;
    fs::permissions(changed, fs::perms::owner_all);
    EXPECT_GT(measured(changed), 0);
    // Damaged files.
    for (const auto& entry : fs::directory_iterator(folder.path + "/cache"))
        fs::resize_file(entry.path(), entry.file_size() - 3);
    EXPECT_GT(measured(program), 0);
    EXPECT_EQ(measured(program), 0);
}
