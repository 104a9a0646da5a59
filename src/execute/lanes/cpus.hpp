// Which CPUs ranks may use, how much of their time, and how the ranks of a host share them.
#pragma once
#include <limits>
#include <string>
#include <vector>

namespace tilewave {

/// CPUs this process may use, in order.
std::vector<int> allowed_cpus();

/// Time that a control group allows.
struct CpuQuota {
    double cpus = std::numeric_limits<double>::infinity();  ///< seconds of CPU time a second
    std::string group;                                      ///< equal for processes that share it; empty: no limit
};

/// The tightest limit of the control groups of this process, of version 1 or 2. `root`: of the file system, for tests.
CpuQuota cpu_quota(const std::string& root = "");

/// Where a rank is, as the others learn it.
struct Place {
    std::string host;
    CpuQuota quota;
    /// Ranks on the host by its launcher, where not all of them are among those that share; 0: they are.
    int announced = 0;
    std::vector<int> cpus;
    /// The host's name, different in containers of one machine, which share its CPUs.
    std::string name = {};
    /// Cores of these CPUs, fewer where some are SMT siblings; 0: each CPU is one.
    int cores = 0;
    /// So many ranks are placed alike.
    std::int64_t ranks = 1;

    /// This process's.
    static Place here(int announced);
    std::string text() const;
    /// What text() gave.
    static Place of(const std::string& text);
    bool same_cpus(const Place& other) const { return host == other.host && cpus == other.cpus; }
};

/// What a rank has a share of: CPUs, or cores, of which SMT siblings are a part each.
enum class ShareOf { cpus, cores };

/// The share of each rank of each place of the CPUs or cores that it may use, divided among all ranks that may use
/// them; no more than its part of a quota.
std::vector<double> shares_of(const std::vector<Place>& places, ShareOf what = ShareOf::cpus);

/// The most lanes that such a share has room for: whole ones, at least one.
int lanes_of(double share);

}  // namespace tilewave
