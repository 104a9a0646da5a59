// What lanes are placed by: cores, SMT siblings, shared caches and NUMA nodes of a host.
#pragma once
#include <string>
#include <vector>

namespace tilewave {

/// CPUs of a host in an order in which neighbours share most. Numbers of cores, caches and nodes only tell them from
/// each other.
struct Topology {
    struct Cpu {
        int cpu = 0;    ///< the system's number
        int core = 0;   ///< equal for SMT siblings
        int cache = 0;  ///< equal for CPUs that share the last level of caches
        int node = 0;   ///< of its nearest memory
        bool operator==(const Cpu&) const = default;
    };
    std::vector<Cpu> cpus;
    /// Where it is from: "/sys", or "nothing", where each CPU counts as a core of one node.
    std::string source = "nothing";

    /// This host's, found once a process.
    static const Topology& here();
    /// As the Linux kernel tells. `root`: of the file system, for tests.
    static Topology by_files(const std::string& root = "");

    /// The allowed CPUs alone; those it does not know are cores of their own, on one more node.
    Topology only(const std::vector<int>& allowed) const;
    int cores() const;
    int nodes() const;
    /// In a line, as `tilewave doctor` shows it.
    std::string text() const;
};

/// The CPUs of each rank's lanes, where `ranks` ranks of a host share the CPUs of `topology`, in rank order. No CPU is
/// used twice, and no SMT sibling while a core is free. The lanes of a rank are on one node where there is room for
/// them, on cores that are next to each other; ranks are spread over the nodes, and within a node each has its part.
/// @pre ranks * lanes <= topology.cpus.size()
std::vector<std::vector<int>> place_lanes(const Topology& topology, int ranks, int lanes);

}  // namespace tilewave
