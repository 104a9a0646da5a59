// The network between nodes: which links a message takes, and how fast each of them is.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilewave {

/// How the switches of a network are joined. unknown: messages share only the cards of each host.
enum class NetworkShape : std::uint8_t { unknown, single_switch, fat_tree, torus, dragonfly };

// The numbers of a network, each declared once: X(type, name, default, documentation).
// clang-format off
#define TILEWAVE_NETWORK_NUMBERS(X) \
    X(std::vector<std::int64_t>, extents, {}, \
      "switch: {nodes}. fat tree: the children of a switch of each level, the nodes of a first one first. " \
      "torus: nodes along each dimension. dragonfly: {groups, routers of a group, nodes of a router}.") \
    X(std::vector<std::int64_t>, up, {}, \
      "fat tree: the parents of a switch of each level but the last, the first level first.") \
    X(bool, one_way, false, \
      "torus: messages go round each dimension in one direction only, as in a ring of SCI.") \
    X(std::vector<double>, link_byte_s, {}, \
      "Seconds a byte of a link between switches, in each direction: one for all, or fat tree: of each level, the " \
      "first one first; torus: along each dimension; dragonfly: {within a group, between groups}. switch: of the " \
      "switch as a whole, or none.") \
    X(double, card_byte_s, 0, \
      "Seconds a byte of a node's card, in each direction; 0: as other_host.byte_s.") \
    X(std::int64_t, cards, 1, \
      "Cards of a node, of which a message takes one: that which its peer's number says; hosts: its rank's place on " \
      "its host. Cards that share each message are one.") \
    X(double, hop_s, 0, \
      "Seconds of latency of each link between switches, in addition to other_host.latency_s.")
// clang-format on

/// Nodes, cards, switches and their links: see TILEWAVE_NETWORK_NUMBERS.
struct Network {
    NetworkShape topology = NetworkShape::unknown;
#define TILEWAVE_NUMBER(type, name, otherwise, text) type name = otherwise;
    TILEWAVE_NETWORK_NUMBERS(TILEWAVE_NUMBER)
#undef TILEWAVE_NUMBER

    /// One direction of a link.
    struct Link {
        std::int64_t key;  ///< the same for all messages that take it
        double byte_s;
    };

    /// Number of nodes; the hosts of Machine::host_of are their numbers.
    std::int64_t nodes() const;
    /// The links from one node to another, the cards' included: along the dimensions of a torus in their order, the
    /// shorter way round; up a fat tree by the digits of the destination ("d mod k"); minimal in a dragonfly.
    /// @pre 0 <= from, to < nodes(), from != to, not wrong()
    void route(std::int64_t from, std::int64_t to, double stream_byte_s, std::vector<Link>& links) const;
    /// What makes no sense: "extents[1] is 0; allowed: ..."
    std::optional<std::string> wrong() const;
};

/// "hosts" of the unknown one, "switch", "fat tree", "torus", "dragonfly".
std::string name_of(NetworkShape topology);
/// @pre a name of the above (ConfigError)
NetworkShape topology_of(const std::string& name);

}  // namespace tilewave
