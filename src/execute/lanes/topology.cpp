#include "execute/lanes/topology.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "core/concat.hpp"

namespace tilewave {

namespace {

using Cpus = std::set<int>;

// --- files

std::string first_line(const std::string& path) {
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    return line;
}

// Of a list such as 0-3,8.
Cpus cpus_of_list(const std::string& list) {
    Cpus cpus;
    std::istringstream in(list);
    for (std::string part; std::getline(in, part, ',');) {
        char* rest = nullptr;
        const long first = std::strtol(part.c_str(), &rest, 10);
        if (rest == part.c_str()) continue;
        const long last = *rest == '-' ? std::strtol(rest + 1, nullptr, 10) : first;
        for (long c = first; c <= last && last < (1 << 20); ++c) cpus.insert(static_cast<int>(c));
    }
    return cpus;
}

// --- placing

using Core = std::vector<int>;   // its CPUs
using Node = std::vector<Core>;  // its cores, those first that share a cache

std::vector<Node> nodes_of(const Topology& topology) {
    std::vector<Node> nodes;
    std::vector<int> node_numbers;
    std::vector<std::vector<int>> core_numbers;
    for (const auto& c : topology.cpus) {
        const auto n = static_cast<std::size_t>(std::ranges::find(node_numbers, c.node) - node_numbers.begin());
        if (n == nodes.size()) {
            nodes.emplace_back();
            core_numbers.emplace_back();
            node_numbers.push_back(c.node);
        }
        auto& numbers = core_numbers[n];
        const auto k = static_cast<std::size_t>(std::ranges::find(numbers, c.core) - numbers.begin());
        if (k == numbers.size()) {
            numbers.push_back(c.core);
            nodes[n].emplace_back();
        }
        nodes[n][k].push_back(c.cpu);
    }
    return nodes;
}

// The CPUs of cores [first, last): one of each core, then the second of each, ...
std::vector<int> siblings_last(const Node& node, std::size_t first, std::size_t last) {
    std::vector<int> cpus;
    for (std::size_t sibling = 0, before = 1; cpus.size() != std::exchange(before, cpus.size()); ++sibling)
        for (std::size_t k = first; k < last; ++k)
            if (sibling < node[k].size()) cpus.push_back(node[k][sibling]);
    return cpus;
}

// The lanes of `ranks` ranks that have a node for themselves, each on its part of the cores where that suffices.
std::vector<std::vector<int>> place_in(const Node& node, std::size_t ranks, std::size_t lanes) {
    std::vector<std::vector<int>> parts;
    bool fits = true;
    for (std::size_t r = 0; r < ranks; ++r) {
        parts.push_back(siblings_last(node, r * node.size() / ranks, (r + 1) * node.size() / ranks));
        fits = fits && parts.back().size() >= lanes;
    }
    const std::vector<int> all = siblings_last(node, 0, node.size());
    for (std::size_t r = 0; r < ranks; ++r) {
        if (!fits) parts[r].assign(all.begin() + static_cast<std::ptrdiff_t>(r * lanes), all.end());
        parts[r].resize(lanes);
    }
    return parts;
}

}  // namespace

Topology Topology::by_files(const std::string& root) {
    const std::string system = root + "/sys/devices/system/";
    Topology found;
    const auto first_of = [](const std::string& path, int otherwise) {
        const Cpus cpus = cpus_of_list(first_line(path));
        return cpus.empty() ? otherwise : *cpus.begin();
    };
    for (const int c : cpus_of_list(first_line(system + "cpu/online"))) {
        const std::string folder = system + "cpu/cpu" + std::to_string(c) + "/";
        Cpu cpu{c, first_of(folder + "topology/thread_siblings_list", c), c, 0};
        for (int level = 3; level >= 2 && cpu.cache == c; --level)
            cpu.cache = first_of(folder + "cache/index" + std::to_string(level) + "/shared_cpu_list", c);
        found.cpus.push_back(cpu);
    }
    for (const int n : cpus_of_list(first_line(system + "node/online"))) {
        const Cpus cpus = cpus_of_list(first_line(system + "node/node" + std::to_string(n) + "/cpulist"));
        for (Cpu& c : found.cpus)
            if (cpus.contains(c.cpu)) c.node = n;
    }
    if (!found.cpus.empty()) found.source = "/sys";
    std::ranges::sort(found.cpus, [](const Cpu& a, const Cpu& b) {
        return std::tie(a.node, a.cache, a.core, a.cpu) < std::tie(b.node, b.cache, b.core, b.cpu);
    });
    return found;
}

const Topology& Topology::here() {
    static const Topology found = by_files();
    return found;
}

Topology Topology::only(const std::vector<int>& allowed) const {
    Topology found;
    found.source = source;
    Cpus left(allowed.begin(), allowed.end());
    int node = 0;
    for (const Cpu& c : cpus) {
        if (left.erase(c.cpu)) found.cpus.push_back(c);
        node = std::max(node, c.node + 1);
    }
    for (const int c : left) found.cpus.push_back({c, -1 - c, -1 - c, found.cpus.empty() ? 0 : node});
    return found;
}

int Topology::cores() const {
    std::set<int> cores;
    for (const Cpu& c : cpus) cores.insert(c.core);
    return static_cast<int>(cores.size());
}

int Topology::nodes() const {
    std::set<int> nodes;
    for (const Cpu& c : cpus) nodes.insert(c.node);
    return static_cast<int>(nodes.size());
}

std::string Topology::text() const {
    std::set<int> caches;
    for (const Cpu& c : cpus) caches.insert(c.cache);
    return concat(counted(std::ssize(cpus), "CPU"), " on ", counted(cores(), "core"), ", ",
                  counted(std::ssize(caches), "last-level cache"), ", ", counted(nodes(), "NUMA node"), " (", source,
                  ")");
}

std::vector<std::vector<int>> place_lanes(const Topology& topology, int ranks, int lanes) {
    const std::vector<Node> nodes = nodes_of(topology);
    const bool siblings = ranks * lanes > topology.cores();
    std::vector<int> free, here(nodes.size(), 0);  // CPUs and ranks of each node
    for (const Node& node : nodes) {
        std::size_t room = 0;
        for (const Core& core : node) room += siblings ? core.size() : 1;
        free.push_back(static_cast<int>(room));
    }
    for (int r = 0; r < ranks; ++r) {
        const auto most = std::ranges::max_element(free);
        if (most == free.end() || *most < lanes) break;
        *most -= lanes;
        ++here[static_cast<std::size_t>(most - free.begin())];
    }
    std::vector<std::vector<int>> placed;
    Cpus used;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        if (here[n] == 0) continue;
        for (auto& cpus : place_in(nodes[n], static_cast<std::size_t>(here[n]), static_cast<std::size_t>(lanes))) {
            used.insert(cpus.begin(), cpus.end());
            placed.push_back(std::move(cpus));
        }
    }
    // The others have what is left: of all nodes together, siblings last.
    Node all;
    for (const Node& node : nodes) all.insert(all.end(), node.begin(), node.end());
    std::vector<int> left = siblings_last(all, 0, all.size());
    std::erase_if(left, [&](int c) { return used.contains(c); });
    for (auto next = left.begin(); placed.size() < static_cast<std::size_t>(ranks); next += lanes)
        placed.emplace_back(next, next + lanes);
    return placed;
}

}  // namespace tilewave
