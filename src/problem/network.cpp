#include "tilewave/engine/network.hpp"

#include <algorithm>
#include <array>

#include "core/concat.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

namespace {

constexpr std::array<const char*, 5> names{"hosts", "switch", "fat tree", "torus", "dragonfly"};
constexpr std::int64_t most_nodes = std::int64_t{1} << 24, most_cards = 64;
constexpr std::size_t most_levels = 8;

// What a link is; the lowest bits of its key.
enum LinkKind : std::int64_t { card_out, card_in, whole_switch, ring, tree, within_group, between_groups, kinds };

// Keys of links of one kind: different numbers, each below its limit, give different keys.
class Key {
public:
    explicit Key(LinkKind kind) : kind_(kind) {}
    Key& digit(std::int64_t value, std::int64_t below) {
        number_ = number_ * below + value;
        return *this;
    }
    std::int64_t value() const { return number_ * kinds + kind_; }

private:
    std::int64_t kind_, number_ = 0;
};

class Route {
public:
    Route(const Network& network, std::vector<Network::Link>& links) : n_(network), links_(links) {}

    void card(LinkKind kind, std::int64_t node, std::int64_t peer, double byte_s) {
        add(Key(kind).digit(node, n_.nodes()).digit(peer % n_.cards, n_.cards), byte_s);
    }
    void between(std::int64_t from, std::int64_t to) {
        switch (n_.topology) {
            case NetworkShape::unknown: return;
            case NetworkShape::single_switch:
                if (!n_.link_byte_s.empty()) add(Key(whole_switch), n_.link_byte_s[0]);
                return;
            case NetworkShape::fat_tree: return up_and_down(from, to);
            case NetworkShape::torus: return along_dimensions(from, to);
            case NetworkShape::dragonfly: return minimal(from, to);
        }
    }

private:
    void add(const Key& key, double byte_s) { links_.push_back({key.value(), byte_s}); }
    double byte_s(std::size_t which) const { return n_.link_byte_s[n_.link_byte_s.size() == 1 ? 0 : which]; }

    void along_dimensions(std::int64_t from, std::int64_t to) {
        const std::int64_t nodes = n_.nodes();
        std::int64_t stride = nodes;
        for (std::size_t k = 0; k < n_.extents.size(); ++k) {
            const std::int64_t extent = n_.extents[k];
            stride /= extent;
            const std::int64_t end = to / stride % extent;
            std::int64_t at = from / stride % extent;
            const std::int64_t forth = (end - at + extent) % extent;
            const bool back = !n_.one_way && 2 * forth > extent;
            while (at != end) {
                const std::int64_t node = from + (at - from / stride % extent) * stride;
                add(Key(ring)
                        .digit(node, nodes)
                        .digit(static_cast<std::int64_t>(k), static_cast<std::int64_t>(most_levels))
                        .digit(back, 2),
                    byte_s(k));
                at = (at + (back ? extent - 1 : 1)) % extent;
            }
            from += (end - from / stride % extent) * stride;
        }
    }

    // Switch `place` of the subtree of a node, at a level: all of them are joined to the same nodes below.
    void up_and_down(std::int64_t from, std::int64_t to) {
        struct Level {
            std::int64_t below, places, place, parent, up;
        };
        std::vector<Level> levels;
        std::int64_t below = n_.extents[0], places = 1, place = 0;
        for (std::size_t l = 0; from / below != to / below; ++l) {
            const std::int64_t up = n_.up[l], parent = to / places % up;
            levels.push_back({below, places, place, parent, up});
            place += parent * places;
            places *= up;
            below *= n_.extents[l + 1];
        }
        const auto link = [&](std::size_t l, std::int64_t node, bool down) {
            const Level& at = levels[l];
            add(Key(tree)
                    .digit(node / at.below, n_.nodes())
                    .digit(at.place, at.places)
                    .digit(at.parent, at.up)
                    .digit(static_cast<std::int64_t>(l), static_cast<std::int64_t>(most_levels))
                    .digit(down, 2),
                byte_s(l));
        };
        for (std::size_t l = 0; l < levels.size(); ++l) link(l, from, false);
        for (std::size_t l = levels.size(); l-- > 0;) link(l, to, true);
    }

    // Each two groups share one link, which is on the routers of both that their distance says.
    void minimal(std::int64_t from, std::int64_t to) {
        const std::int64_t groups = n_.extents[0], routers = n_.extents[1], all = groups * routers;
        const std::int64_t last = to / n_.extents[2], there = last / routers;
        std::int64_t at = from / n_.extents[2];
        const std::int64_t here = at / routers;
        const auto step = [&](std::int64_t router, LinkKind kind) {
            if (router == at) return;
            add(Key(kind).digit(at, all).digit(router, all), byte_s(kind == between_groups));
            at = router;
        };
        if (here != there) {
            const std::int64_t links = (groups - 2) / routers + 1;  // of a router to other groups
            const auto end = [&](std::int64_t group, std::int64_t other) {
                return group * routers + ((other - group + groups) % groups - 1) / links;
            };
            step(end(here, there), within_group);
            step(end(there, here), between_groups);
        }
        step(last, within_group);
    }

    const Network& n_;
    std::vector<Network::Link>& links_;
};

std::string counts_of(NetworkShape topology) {
    switch (topology) {
        case NetworkShape::single_switch: return "1, the nodes";
        case NetworkShape::dragonfly: return "3: groups, routers of a group, nodes of a router";
        default: return concat("1 to ", most_levels);
    }
}

}  // namespace

std::string name_of(NetworkShape topology) {
    return names[static_cast<std::size_t>(topology)];
}

NetworkShape topology_of(const std::string& name) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
        throw ConfigError("topology is '" + name + "'; allowed: hosts, switch, fat tree, torus, dragonfly");
    return static_cast<NetworkShape>(at - names.begin());
}

std::int64_t Network::nodes() const {
    std::int64_t all = 1;
    for (const std::int64_t extent : extents) all *= extent;
    return all;
}

void Network::route(std::int64_t from, std::int64_t to, double stream_byte_s, std::vector<Link>& links) const {
    const double card = card_byte_s > 0 ? card_byte_s : stream_byte_s;
    links.clear();
    Route route(*this, links);
    route.card(card_out, from, to, card);
    route.between(from, to);
    route.card(card_in, to, from, card);
}

std::optional<std::string> Network::wrong() const {
    const auto given = [](const std::string& what, const auto& value, const std::string& allowed) {
        return what + " is " + concat(value) + "; allowed: " + allowed;
    };
    if (cards < 1 || cards > most_cards) return given("cards", cards, concat("1 to ", most_cards));
    if (topology == NetworkShape::unknown) {
        const bool more = !extents.empty() || !up.empty() || one_way || !link_byte_s.empty() || card_byte_s != 0;
        return more || hop_s != 0 ? std::optional("topology is 'hosts'; allowed with it: cards, nothing else")
                                  : std::nullopt;
    }
    const std::size_t counts = extents.size();
    const bool fine = topology == NetworkShape::single_switch ? counts == 1
                      : topology == NetworkShape::dragonfly   ? counts == 3
                                                              : counts >= 1 && counts <= most_levels;
    if (!fine) return concat("extents has ", counts, " numbers; allowed: ", counts_of(topology));
    std::int64_t nodes = 1;
    for (std::size_t k = 0; k < counts; ++k) {
        if (extents[k] < 1 || extents[k] > most_nodes || (nodes *= extents[k]) > most_nodes)
            return given(concat("extents[", k, "]"), extents[k],
                         concat("1 and more, at most ", most_nodes, " nodes in all"));
    }
    const std::size_t parents = topology == NetworkShape::fat_tree ? counts - 1 : 0;
    if (up.size() != parents)
        return concat(
            "up has ", up.size(), " numbers; allowed: ", parents,
            topology == NetworkShape::fat_tree ? ", one for each level but the last" : ", but for a fat tree");
    std::int64_t switches = 1;
    for (std::size_t l = 0; l < parents; ++l)
        if (up[l] < 1 || up[l] > most_nodes || (switches *= up[l]) > most_nodes)
            return given(concat("up[", l, "]"), up[l],
                         concat("1 and more, at most ", most_nodes, " switches of the last level"));
    if (one_way && topology != NetworkShape::torus) return "one_way is true; allowed: false, but for a torus";
    const std::size_t links = topology == NetworkShape::single_switch ? 1
                              : topology == NetworkShape::fat_tree    ? parents
                              : topology == NetworkShape::torus       ? counts
                                                                      : 2;
    const bool none = topology == NetworkShape::single_switch || links == 0;
    if (link_byte_s.size() != links && !(link_byte_s.empty() && none) && link_byte_s.size() != 1)
        return concat("link_byte_s has ", link_byte_s.size(), " numbers; allowed: ", none ? "none, " : "", "1",
                      links > 1 ? concat(" or ", links) : "");
    for (std::size_t k = 0; k < link_byte_s.size(); ++k)
        if (!(link_byte_s[k] > 0 && link_byte_s[k] <= 1))
            return given(concat("link_byte_s[", k, "]"), link_byte_s[k], "seconds above 0, at most 1");
    if (!(card_byte_s >= 0 && card_byte_s <= 1)) return given("card_byte_s", card_byte_s, "seconds from 0 to 1");
    if (!(hop_s >= 0 && hop_s <= 1)) return given("hop_s", hop_s, "seconds from 0 to 1");
    return std::nullopt;
}

}  // namespace tilewave
