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
    const BroadcastPlace place = broadcast_place(tree_, ranks_, root, me_);
    int number = 0;
    for (const Box& region : chunks)
        relay_.start(panel, place, static_cast<int>(number++ * buffers_ + panel % buffers_), array_, region, held);
}

void ChunkRelay::start(std::int64_t panel, const BroadcastPlace& place, int tag, std::int32_t array, const Box& region,
                       bool held) {
    Chunk chunk{-1, tag, held && place.parent < 0, array, region, place.children, {}};
    if (place.parent >= 0)
        chunk.receive = list_.post(false, place.parent, tag, array, region);
    else if (!held)
        hand_on(chunk);
    panels_[panel].chunks.push_back(std::move(chunk));
}

void ChunkRelay::hand_on(Chunk& chunk) {
    for (const int child : chunk.children)
        chunk.sends.push_back(list_.post(true, child, chunk.tag, chunk.array, chunk.region));
}

void ChunkRelay::arrive(std::int64_t panel, std::size_t count) {
    const auto found = panels_.find(panel);
    if (found == panels_.end()) return;
    auto& [chunks, arrived] = found->second;
    for (; arrived < chunks.size() && count > 0; ++arrived, --count) {
        Chunk& chunk = chunks[arrived];
        if (chunk.receive < 0 && !chunk.held) continue;
        if (chunk.receive >= 0) list_.add(0, Op::wait, chunk.receive);
        hand_on(chunk);
    }
}

void ChunkRelay::finish(std::int64_t panel) {
    const auto found = panels_.find(panel);
    if (found == panels_.end()) return;
    for (const Chunk& chunk : found->second.chunks) list_.wait(0, chunk.sends);
    panels_.erase(found);
}

std::size_t ChunkRelay::missing(std::int64_t panel) const {
    const auto found = panels_.find(panel);
    return found == panels_.end() ? 0 : found->second.chunks.size() - found->second.arrived;
}

bool ChunkRelay::relays(std::int64_t panel) const {
    const auto found = panels_.find(panel);
    return found != panels_.end() && std::ranges::any_of(found->second.chunks, [](const Chunk& c) {
               return c.receive >= 0 && !c.children.empty();
           });
}

}  // namespace tilewave
