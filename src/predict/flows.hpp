// Messages that share links: each goes as fast as its max-min fair share.
#pragma once
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "tilewave/engine/network.hpp"

namespace tilewave {

/// Bytes that flow over a network. Rates are max-min fair: none can grow but at the cost of one that is no faster.
///
/// Each link has a level, the most that a flow may have of it: where it is full, its flows have the level, or less
/// where another link holds them back. A flow that begins or ends changes levels of its links; what that changes in
/// other links follows from link to link until nothing changes any more: then rates are max-min fair.
class Flows {
public:
    /// `byte_s`: seconds a byte of a flow that shares nothing.
    Flows(const Network& network, double byte_s) : network_(network), byte_s_(byte_s), most_(1 / byte_s) {}

    /// Bytes from one node to another leave now. Returns the flow's number; numbers are used again.
    std::int32_t begin(std::int64_t from, std::int64_t to, double bytes, double now);
    /// All its bytes are there.
    void end(std::int32_t flow, double now);

    /// When it ends, as fast as it goes now.
    double end_of(std::int32_t flow) const { return flows_[flow].end; }
    /// Latency of its links between switches, in addition to that of two nodes.
    double latency_s(std::int32_t flow) const {
        return static_cast<double>(flows_[flow].links.size() - 2) * network_.hop_s;
    }
    /// Bytes a second.
    double rate(std::int32_t flow) const { return flows_[flow].rate; }
    /// Flows whose end_of() is another since the last begin() or end().
    const std::vector<std::int32_t>& changed() const { return changed_; }

private:
    static constexpr double unlimited = std::numeric_limits<double>::infinity();
    // Levels that differ by less are the same: rates are wrong by as much.
    static constexpr double same = 1e-4;
    struct Link {
        double bytes_s = 0, level = unlimited;
        bool waits = false;  // to be looked at
        std::vector<std::int32_t> flows;
    };
    struct Flow {
        std::vector<std::int32_t> links;
        double left = 0, at = 0, rate = 0, end = 0;  // bytes that were left at a time
        bool touched = false;
    };

    void look_at(std::int32_t link);
    void settle(double now);
    void change_level(std::int32_t link);
    double level_without(const Flow& flow, std::int32_t link) const;

    const Network& network_;
    double byte_s_, most_;
    std::unordered_map<std::int64_t, std::int32_t> numbers_;  // of links, by key
    std::vector<Link> links_;
    std::vector<Flow> flows_;
    std::vector<std::int32_t> unused_, changed_, touched_, waiting_;
    std::vector<double> wanted_;
    std::vector<Network::Link> route_;
};

}  // namespace tilewave
