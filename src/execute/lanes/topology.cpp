#include "execute/lanes/topology.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/concat.hpp"

namespace tilewave {

namespace {

using Cpus = std::set<int>;

// --- hwloc

// Functions of hwloc 2. Its topology is read as the XML that it writes: then nothing here depends on its structs.
struct Hwloc {
    unsigned (*version)();
    int (*init)(void**);
    int (*synthetic)(void*, const char*);
    int (*flags)(void*, unsigned long);
    int (*load)(void*);
    int (*text)(void*, char**, int*, unsigned long);
    void (*free_text)(void*, char*);
    void (*destroy)(void*);
};

std::optional<Hwloc> hwloc() {
    void* const library = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
    if (!library) return {};
    Hwloc h{};
    bool all = true;
    const auto find = [&](auto& function, const char* name) {
        void* const found = dlsym(library, name);
        all = all && found;
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    };
    find(h.version, "hwloc_get_api_version");
    find(h.init, "hwloc_topology_init");
    find(h.synthetic, "hwloc_topology_set_synthetic");
    find(h.flags, "hwloc_topology_set_flags");
    find(h.load, "hwloc_topology_load");
    find(h.text, "hwloc_topology_export_xmlbuffer");
    find(h.free_text, "hwloc_free_xmlbuffer");
    find(h.destroy, "hwloc_topology_destroy");
    if (!all || h.version() >> 16 != 2) return {};
    return h;
}

std::string xml_of(const Hwloc& h, const std::string& synthetic) {
    constexpr unsigned long with_disallowed = 1;  // a process with other CPUs must find the same host
    void* topology = nullptr;
    if (h.init(&topology) != 0) return {};
    std::string found;
    char* text = nullptr;
    int bytes = 0;
    const bool fine =
        synthetic.empty() ? h.flags(topology, with_disallowed) == 0 : h.synthetic(topology, synthetic.c_str()) == 0;
    if (fine && h.load(topology) == 0 && h.text(topology, &text, &bytes, 0) == 0) {
        found = text;
        h.free_text(topology, text);
    }
    h.destroy(topology);
    return found;
}

// The value of an attribute of a tag; empty where it has none.
std::string_view attribute(std::string_view tag, const std::string& name) {
    const std::string begin = " " + name + "=\"";
    const auto at = tag.find(begin);
    if (at == std::string_view::npos) return {};
    tag.remove_prefix(at + begin.size());
    return tag.substr(0, tag.find('"'));
}

// Of words of 32 bits, the highest first, as "0x00000003,,0x000000ff".
Cpus cpus_of_mask(std::string_view mask) {
    Cpus cpus;
    for (int first = 0; !mask.empty(); first += 32) {
        const auto comma = mask.rfind(',');
        const std::string word(comma == std::string_view::npos ? mask : mask.substr(comma + 1));
        mask = comma == std::string_view::npos ? std::string_view{} : mask.substr(0, comma);
        for (auto bits = std::strtoull(word.c_str(), nullptr, 16); bits; bits &= bits - 1)
            cpus.insert(first + std::countr_zero(bits));
    }
    return cpus;
}

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
        const auto n = static_cast<std::size_t>(std::find(node_numbers.begin(), node_numbers.end(), c.node) -
                                                node_numbers.begin());
        if (n == nodes.size()) {
            nodes.emplace_back();
            core_numbers.emplace_back();
            node_numbers.push_back(c.node);
        }
        auto& numbers = core_numbers[n];
        const auto k = static_cast<std::size_t>(std::find(numbers.begin(), numbers.end(), c.core) - numbers.begin());
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

std::optional<Topology> Topology::by_hwloc(const std::string& synthetic) {
    const auto h = hwloc();
    if (!h) return {};
    const std::string xml = xml_of(*h, synthetic);
    struct Group {
        int number;
        Cpus cpus;
    };
    std::vector<Group> cores, caches, nodes;
    std::vector<int> order;
    int level = 0;
    for (std::size_t at = 0; (at = xml.find("<object ", at)) != std::string::npos; ++at) {
        const std::string_view tag = std::string_view(xml).substr(at, xml.find('>', at) - at);
        const std::string_view type = attribute(tag, "type"), mask = attribute(tag, "cpuset");
        const int number = std::atoi(std::string(attribute(tag, "os_index")).c_str());
        if (type == "PU") order.push_back(number);
        if (type == "Core") cores.push_back({static_cast<int>(cores.size()), cpus_of_mask(mask)});
        if (type == "NUMANode") nodes.push_back({number, cpus_of_mask(mask)});
        if (type.size() == 7 && type.substr(2) == "Cache" && type[1] - '0' >= level) {
            if (type[1] - '0' > level) caches.clear();
            level = type[1] - '0';
            caches.push_back({static_cast<int>(caches.size()), cpus_of_mask(mask)});
        }
    }
    // Memory of another kind has a node of its own with more CPUs, or the same ones and a higher number.
    const auto least = [](const std::vector<Group>& groups, int cpu, int otherwise) {
        const Group* best = nullptr;
        for (const Group& g : groups)
            if (g.cpus.contains(cpu) && (!best || g.cpus.size() < best->cpus.size())) best = &g;
        return best ? best->number : otherwise;
    };
    Topology found;
    for (const int c : order)
        found.cpus.push_back({c, least(cores, c, -1 - c), least(caches, c, -1 - c), least(nodes, c, 0)});
    if (found.cpus.empty()) return {};
    found.source = "hwloc " + std::to_string(h->version() >> 16) + "." + std::to_string(h->version() >> 8 & 255);
    return found;
}

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
    std::sort(found.cpus.begin(), found.cpus.end(), [](const Cpu& a, const Cpu& b) {
        return std::tie(a.node, a.cache, a.core, a.cpu) < std::tie(b.node, b.cache, b.core, b.cpu);
    });
    return found;
}

const Topology& Topology::here() {
    static const Topology found = [] {
        const std::string system = "/sys/devices/system/";
        const bool plain = first_line(system + "cpu/smt/active") == "0" && first_line(system + "node/online") == "0";
        std::optional<Topology> found = plain ? std::nullopt : by_hwloc();
        return found ? std::move(*found) : by_files();
    }();
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
        const auto most = std::max_element(free.begin(), free.end());
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
