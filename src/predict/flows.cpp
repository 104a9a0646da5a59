#include "predict/flows.hpp"

#include <algorithm>
#include <cmath>

namespace tilewave {

std::int32_t Flows::begin(std::int64_t from, std::int64_t to, double bytes, double now) {
    std::int32_t id = static_cast<std::int32_t>(flows_.size());
    if (unused_.empty()) {
        flows_.emplace_back();
    } else {
        id = unused_.back();
        unused_.pop_back();
    }
    Flow& flow = flows_[id];
    network_.route(from, to, byte_s_, route_);
    flow.links.clear();
    for (const Network::Link& l : route_) {
        const auto [it, fresh] = numbers_.try_emplace(l.key, static_cast<std::int32_t>(links_.size()));
        if (fresh) links_.push_back({1 / l.byte_s, unlimited, false, {}});
        flow.links.push_back(it->second);
        links_[it->second].flows.push_back(id);
        look_at(it->second);
    }
    flow.left = bytes;
    flow.at = now;
    flow.rate = 0;
    flow.touched = true;
    changed_.clear();
    touched_.assign(1, id);
    settle(now);
    return id;
}

void Flows::end(std::int32_t id, double now) {
    Flow& flow = flows_[id];
    for (const std::int32_t l : flow.links) {
        auto& all = links_[l].flows;
        *std::ranges::find(all, id) = all.back();
        all.pop_back();
        if (links_[l].level < unlimited) look_at(l);
    }
    changed_.clear();
    touched_.clear();
    settle(now);
    unused_.push_back(id);
}

void Flows::look_at(std::int32_t link) {
    if (std::exchange(links_[link].waits, true)) return;
    waiting_.push_back(link);
}

double Flows::level_without(const Flow& flow, std::int32_t link) const {
    double least = most_;
    for (const std::int32_t l : flow.links)
        if (l != link) least = std::min(least, links_[l].level);
    return least;
}

// The level at which a link is just full.
void Flows::change_level(std::int32_t id) {
    Link& link = links_[id];
    const double before = link.level;
    wanted_.clear();
    for (const std::int32_t f : link.flows) wanted_.push_back(level_without(flows_[f], id));
    std::ranges::sort(wanted_);
    double left = link.bytes_s;
    link.level = unlimited;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
        const double share = left / static_cast<double>(wanted_.size() - i);
        if (wanted_[i] > share * (1 + 1e-12)) {
            link.level = share;
            break;
        }
        left -= wanted_[i];
    }
    if (link.level == before || (before < unlimited && std::abs(link.level - before) <= same * before)) {
        link.level = before;
        return;
    }
    const double lower = std::min(link.level, before);
    for (const std::int32_t f : link.flows) {
        Flow& flow = flows_[f];
        if (!std::exchange(flow.touched, true)) touched_.push_back(f);
        // A link that holds the flow back further notices nothing.
        for (const std::int32_t l : flow.links)
            if (l != id && lower < links_[l].level) look_at(l);
    }
}

void Flows::settle(double now) {
    // In the order of their coming, so that the tightest links settle first.
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        links_[waiting_[i]].waits = false;
        change_level(waiting_[i]);
    }
    waiting_.clear();
    for (const std::int32_t f : touched_) {
        Flow& flow = flows_[f];
        flow.touched = false;
        const double rate = level_without(flow, -1);
        if (std::abs(rate - flow.rate) <= same * flow.rate) continue;
        flow.left = std::max(flow.left - flow.rate * (now - flow.at), 0.0);
        flow.at = now;
        flow.rate = rate;
        flow.end = now + flow.left / rate;
        changed_.push_back(f);
    }
}

}  // namespace tilewave
