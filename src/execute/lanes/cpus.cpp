#include "execute/lanes/cpus.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "execute/lanes/cpu_set.hpp"
#include "execute/lanes/topology.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

namespace {

// A mount of control groups: the group at its root, and its folder.
struct Mount {
    std::string group, folder;
};

bool has_word(const std::string& list, const std::string& word) {
    return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// The mount of version 2, or of version 1's controller of CPU time.
std::optional<Mount> mount_of(const std::string& root, bool second) {
    std::ifstream mounts(root + "/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream words(line);
        std::string word, type, source, options;
        Mount m;
        words >> word >> word >> word >> m.group >> m.folder;
        while (words >> word && word != "-") {
        }
        words >> type >> source >> options;
        if (second ? type == "cgroup2" : type == "cgroup" && has_word(options, "cpu")) return m;
    }
    return std::nullopt;
}

// The limit of one group; 0 where it has none.
double limit_of(const std::string& folder, bool second) {
    std::string quota = "max";
    double period_us = 0;
    if (second) {
        std::ifstream file(folder + "/cpu.max");
        file >> quota >> period_us;
    } else {
        std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
        std::ifstream(folder + "/cpu.cfs_period_us") >> period_us;
    }
    const double quota_us = std::strtod(quota.c_str(), nullptr);  // 0 for "max", -1 for none in version 1
    return quota_us > 0 && period_us > 0 ? quota_us / period_us : 0;
}

// Lowers `quota` to the limits of the group `path` and its parents, as far as they are mounted.
void tighten(CpuQuota& quota, const std::string& root, std::string path, bool second) {
    const auto mount = mount_of(root, second);
    if (!mount) return;
    if (mount->group != "/") {  // a part of the tree is mounted, as in containers
        if (path.compare(0, mount->group.size(), mount->group) != 0) path = mount->group;
        path.erase(0, mount->group.size());
    }
    while (true) {
        while (!path.empty() && path.back() == '/') path.pop_back();
        const std::string folder = root + mount->folder + path;
        if (const double cpus = limit_of(folder, second); cpus > 0 && cpus < quota.cpus) {
            struct stat s;
            quota.cpus = cpus;
            // Groups of two containers may have equal paths.
            quota.group = stat(folder.c_str(), &s) ? folder : std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino);
        }
        if (path.empty()) return;
        path.erase(path.rfind('/'));
    }
}

std::string host_name() {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return host;
}

// Ranks in containers of one machine share its CPUs under different host names.
std::string machine_name() {
    std::string text;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
    return text.empty() ? host_name() : text;
}

}  // namespace

std::vector<int> allowed_cpus() {
    const auto set = CpuSet::of_thread();
    std::vector<int> cpus;
    for (int c = 0; set && c < set->size(); ++c)
        if (set->has(c)) cpus.push_back(c);
    return cpus;
}

CpuQuota cpu_quota(const std::string& root) {
    CpuQuota quota;
    std::ifstream groups(root + "/proc/self/cgroup");  // lines such as 4:cpu,cpuacct:/a/b, and 0::/a/b of version 2
    for (std::string line; std::getline(groups, line);) {
        const auto first = line.find(':'), last = line.find(':', first + 1);
        if (first == std::string::npos || last == std::string::npos || line[last + 1] != '/') continue;
        const std::string controllers = line.substr(first + 1, last - first - 1);
        if (controllers.empty() || has_word(controllers, "cpu"))
            tighten(quota, root, line.substr(last + 1), controllers.empty());
    }
    return quota;
}

Place Place::here(int announced) {
    std::vector<int> cpus = allowed_cpus();
    const int cores = Topology::here().only(cpus).cores();
    return {machine_name(), cpu_quota(), announced, std::move(cpus), host_name(), cores};
}

std::string Place::text() const {
    std::ostringstream out;
    out.precision(17);
    const bool limited = !quota.group.empty();
    out << host << ' ' << (limited ? quota.group : "-") << ' ' << (limited ? quota.cpus : 0) << ' ' << announced << ' '
        << cores;
    for (const int c : cpus) out << ' ' << c;
    out << " | " << name;
    return out.str();
}

Place Place::of(const std::string& text) {
    std::istringstream in(text);
    Place place;
    in >> place.host >> place.quota.group >> place.quota.cpus >> place.announced >> place.cores;
    if (place.quota.group == "-") place.quota = {};
    for (int c = 0; in >> c;) place.cpus.push_back(c);
    in.clear();
    std::getline(in.ignore(std::numeric_limits<std::streamsize>::max(), '|').ignore(), place.name);
    return place;
}

std::vector<double> shares_of(const std::vector<Place>& places, ShareOf what) {
    std::map<std::pair<std::string, int>, std::int64_t> users;            // of each CPU of each host
    std::map<std::pair<std::string, std::string>, std::int64_t> members;  // of each group
    for (const Place& p : places) {
        for (const int c : p.cpus) users[{p.host, c}] += p.ranks;
        members[{p.host, p.quota.group}] += p.ranks;
    }
    std::vector<double> shares;
    for (const Place& p : places) {
        double share = 0;
        for (const int c : p.cpus)
            share += 1.0 / static_cast<double>(std::max<std::int64_t>(users[{p.host, c}], p.announced));
        if (what == ShareOf::cores && p.cores > 0) share *= p.cores / static_cast<double>(p.cpus.size());
        if (!p.quota.group.empty())
            share = std::min(share, p.quota.cpus / static_cast<double>(std::max<std::int64_t>(
                                                       members[{p.host, p.quota.group}], p.announced)));
        shares.push_back(share);
    }
    return shares;
}

int lanes_of(double share) {
    constexpr double rounding = 1e-9;
    return static_cast<int>(std::clamp(share + rounding, 1.0, static_cast<double>(max_lanes)));
}

}  // namespace tilewave
