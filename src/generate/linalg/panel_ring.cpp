#include "generate/linalg/panel_ring.hpp"

#include <algorithm>

namespace tilewave {

Array PanelTiles::array(std::int64_t item_bytes, int buffers) const {
    const std::int64_t all = panels();
    Array a{item_bytes, {{0, 0, 0, 0}, {all, tile_rows() + more, block, block}}, {{0, 0, 0, 0}, {0, 0, 0, 0}}};
    if (all == 0) a.storage = a.owned;
    a.time_buffers = static_cast<int>(std::clamp<std::int64_t>(buffers, 1, std::max<std::int64_t>(1, all)));
    return a;
}

std::vector<Box> PanelTiles::pieces(std::int64_t panel, std::int64_t t0, std::int64_t t1, std::int64_t items) const {
    std::vector<Box> all;
    const std::int64_t step = std::max<std::int64_t>(1, items / (block * block));
    for (std::int64_t t = t0; t < t1; t += step) all.push_back(region(panel, t, std::min(t1, t + step)));
    return all;
}

std::vector<Box> PanelRing::chunks(std::int64_t panel, std::int64_t t0, std::int64_t t1) const {
    const std::int64_t item = list_.schedule().arrays[array_].item_bytes;
    return tiles_.pieces(panel, t0, t1, chunk_bytes_ / item);
}

void PanelRing::start(std::int64_t panel, int root, const std::vector<Box>& chunks, bool held) {
    if (chunks.empty() || ranks_ == 1) return;
    const BroadcastPlace at = broadcast_place(tree_, ranks_, root, me_);
    Way& way = ways_[panel];
    for (const Box& region : chunks) {
        Chunk chunk;
        chunk.region = region;
        chunk.tag = static_cast<int>(static_cast<std::int64_t>(way.chunks.size()) * buffers_ + panel % buffers_);
        chunk.children = at.children;
        if (at.parent >= 0)
            chunk.receive = list_.post(false, at.parent, chunk.tag, array_, chunk.region);
        else if (held)
            chunk.held = true;
        else
            hand_on(chunk);
        way.chunks.push_back(std::move(chunk));
    }
}

void PanelRing::hand_on(Chunk& chunk) {
    for (const int child : chunk.children)
        chunk.sends.push_back(list_.post(true, child, chunk.tag, array_, chunk.region));
}

void PanelRing::arrive(std::int64_t panel, std::size_t count) {
    const auto found = ways_.find(panel);
    if (found == ways_.end()) return;
    Way& way = found->second;
    for (; way.arrived < way.chunks.size() && count > 0; ++way.arrived, --count) {
        Chunk& chunk = way.chunks[way.arrived];
        if (chunk.receive < 0 && !chunk.held) continue;
        if (chunk.receive >= 0) list_.add(0, Op::wait, chunk.receive);
        hand_on(chunk);
    }
}

void PanelRing::finish(std::int64_t panel) {
    const auto found = ways_.find(panel);
    if (found == ways_.end()) return;
    for (const Chunk& chunk : found->second.chunks)
        for (const int send : chunk.sends) list_.add(0, Op::wait, send);
    ways_.erase(found);
}

}  // namespace tilewave
