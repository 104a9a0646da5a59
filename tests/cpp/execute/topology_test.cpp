// Where lanes are placed: on topologies as plain data, and from files as the kernel writes them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>
#include <set>

#include "execute/lanes/cpus.hpp"
#include "execute/lanes/topology.hpp"

namespace tilewave {
namespace {

using Lists = std::vector<std::vector<int>>;

// CPUs in the order of most hosts: the first of every core, then their siblings.
Topology host(int nodes, int cores, int siblings) {
    Topology t;
    for (int n = 0; n < nodes; ++n)
        for (int k = 0; k < cores; ++k)
            for (int s = 0; s < siblings; ++s) {
                const int core = n * cores + k;
                t.cpus.push_back({s * nodes * cores + core, core, n, n});
            }
    return t;
}

Topology part(const Topology& t, std::vector<int> allowed) {
    return t.only(allowed);
}

TEST(PlaceLanes, a_core_before_siblings) {
    const Topology t = host(1, 4, 2);  // core k has CPUs k and k + 4
    EXPECT_EQ(place_lanes(t, 1, 4), (Lists{{0, 1, 2, 3}}));
    EXPECT_EQ(place_lanes(t, 1, 6), (Lists{{0, 1, 2, 3, 4, 5}}));
    EXPECT_EQ(place_lanes(t, 2, 2), (Lists{{0, 1}, {2, 3}}));
    EXPECT_EQ(place_lanes(t, 2, 3), (Lists{{0, 1, 4}, {2, 3, 6}}));  // ranks share no core
    EXPECT_EQ(place_lanes(t, 2, 4), (Lists{{0, 1, 4, 5}, {2, 3, 6, 7}}));
}

TEST(PlaceLanes, a_rank_on_one_node) {
    const Topology t = host(2, 4, 2);
    EXPECT_EQ(place_lanes(t, 2, 2), (Lists{{0, 1}, {4, 5}}));
    EXPECT_EQ(place_lanes(t, 2, 4), (Lists{{0, 1, 2, 3}, {4, 5, 6, 7}}));
    EXPECT_EQ(place_lanes(t, 4, 2), (Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
    EXPECT_EQ(place_lanes(t, 1, 8), (Lists{{0, 1, 2, 3, 4, 5, 6, 7}}));  // more lanes than a node has cores
    EXPECT_EQ(place_lanes(host(2, 5, 1), 3, 3), (Lists{{0, 1, 2}, {5, 6, 7}, {3, 4, 8}}));  // no room for the third
    EXPECT_EQ(place_lanes(t, 1, 0), (Lists{{}}));
}

TEST(PlaceLanes, within_the_allowed_cpus) {
    const Topology t = host(2, 4, 2);  // node 0 has CPUs 0 to 3 and 8 to 11
    EXPECT_EQ(place_lanes(part(t, {0, 8, 1, 9}), 1, 2), (Lists{{0, 1}}));
    EXPECT_EQ(place_lanes(part(t, {0, 8, 1, 9}), 2, 2), (Lists{{0, 8}, {1, 9}}));
    EXPECT_EQ(place_lanes(part(t, {3, 4, 5}), 1, 2), (Lists{{4, 5}}));
    EXPECT_EQ(part(t, {3, 11, 4}).cores(), 2);
    EXPECT_EQ(place_lanes(part(t, {5, 99, 98}), 1, 3), (Lists{{5, 98, 99}}));  // CPUs that nobody told of
    EXPECT_EQ(place_lanes(part({}, {4, 2}), 2, 1), (Lists{{2}, {4}}));
}

TEST(PlaceLanes, random_hosts_and_sets) {
    const auto seed = std::random_device{}();
    std::cout << "seed " << seed << "\n";
    std::mt19937 random(seed);
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
    for (int round = 0; round < 2000; ++round) {
        const Topology whole = host(draw(1, 4), draw(1, 6), draw(1, 3));
        std::vector<int> allowed;
        for (const auto& c : whole.cpus)
            if (draw(0, 3) > 0) allowed.push_back(c.cpu);
        const Topology t = whole.only(allowed);
        if (t.cpus.empty()) continue;
        const int lanes = draw(1, static_cast<int>(t.cpus.size()));
        const int ranks = draw(1, static_cast<int>(t.cpus.size()) / lanes);
        const Lists placed = place_lanes(t, ranks, lanes);
        ASSERT_EQ(placed.size(), static_cast<std::size_t>(ranks));
        std::set<int> cpus, cores;
        for (const auto& rank : placed) {
            ASSERT_EQ(rank.size(), static_cast<std::size_t>(lanes));
            for (const int cpu : rank) {
                const auto at = std::find_if(t.cpus.begin(), t.cpus.end(), [&](auto& c) { return c.cpu == cpu; });
                ASSERT_NE(at, t.cpus.end());
                cpus.insert(cpu);
                cores.insert(at->core);
            }
        }
        ASSERT_EQ(static_cast<int>(cpus.size()), ranks * lanes);
        if (ranks * lanes <= t.cores()) {
            ASSERT_EQ(static_cast<int>(cores.size()), ranks * lanes);
        }
    }
}

TEST(Topology, of_files) {
    namespace fs = std::filesystem;
    const fs::path root = fs::temp_directory_path() / ("tilewave-topology-" + std::to_string(getpid()));
    const auto write = [&](const std::string& path, const std::string& text) {
        const fs::path file = root / "sys/devices/system" / path;
        fs::create_directories(file.parent_path());
        std::ofstream(file) << text << "\n";
    };
    write("cpu/online", "0-3,8-11");
    write("node/online", "0-1");
    write("node/node0/cpulist", "0-1,8-9");
    write("node/node1/cpulist", "2-3,10-11");
    for (int c : {0, 1, 2, 3}) {
        const std::string both = std::to_string(c) + "," + std::to_string(c + 8);
        for (int sibling : {c, c + 8}) {
            write("cpu/cpu" + std::to_string(sibling) + "/topology/thread_siblings_list", both);
            write("cpu/cpu" + std::to_string(sibling) + "/cache/index3/shared_cpu_list",
                  c < 2 ? "0-1,8-9" : "2-3,10-11");
        }
    }
    const Topology t = Topology::by_files(root.string());
    fs::remove_all(root);
    EXPECT_EQ(t.source, "/sys");
    EXPECT_EQ(t.text(), "8 CPUs on 4 cores, 2 last-level caches, 2 NUMA nodes (/sys)");
    ASSERT_EQ(t.cpus.size(), 8u);
    EXPECT_EQ(t.cpus[1], (Topology::Cpu{8, 0, 0, 0}));
    EXPECT_EQ(place_lanes(t, 2, 2), (Lists{{0, 1}, {2, 3}}));
    EXPECT_EQ(Topology::by_files("/nowhere").text(), "0 CPUs on 0 cores, 0 last-level caches, 0 NUMA nodes (nothing)");
}

TEST(Topology, of_this_host) {
    const Topology t = Topology::here().only(allowed_cpus());
    EXPECT_EQ(t.cpus.size(), allowed_cpus().size());
}

}  // namespace
}  // namespace tilewave
