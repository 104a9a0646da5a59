#include "generate/linalg/panel_ring.hpp"

namespace tilewave {

RankGroup grid_row(const BlockCyclic& layout, int rank) {
    const int row = std::max(0, layout.row_of(rank));
    return {layout.columns.parts, layout.column_of(rank), layout.rank_of(row, 0),
            layout.ranks_by_column ? layout.rows.parts : 1};
}

RankGroup grid_column(const BlockCyclic& layout, int rank) {
    const int column = std::max(0, layout.column_of(rank));
    return {layout.rows.parts, layout.row_of(rank), layout.rank_of(0, column),
            layout.ranks_by_column ? 1 : layout.columns.parts};
}

Array PanelTiles::array(std::int64_t item_bytes, int buffers, int part) const {
    const std::int64_t all = part < 0 ? 0 : panels(), lo = part < 0 ? 0 : first(part);
    Array a{item_bytes,
            {{0, lo, 0, 0}, {all, lo + (part < 0 ? 0 : count(part) + more), block, block}},
            {{0, 0, 0, 0}, {0, 0, 0, 0}}};
    if (all == 0) a.storage = a.owned;
    a.time_buffers = static_cast<int>(std::clamp<std::int64_t>(buffers, 1, std::max<std::int64_t>(1, panels())));
    return a;
}

std::vector<Box> PanelTiles::pieces(std::int64_t panel, std::int64_t first, std::int64_t end,
                                    std::int64_t items) const {
    std::vector<Box> all;
    const std::int64_t step = std::max<std::int64_t>(1, items / (block * block));
    for (std::int64_t at = first; at < end; at += step) all.push_back(region(panel, at, std::min(end, at + step)));
    return all;
}

std::vector<Box> PanelRing::chunks(std::int64_t panel, std::int64_t first, std::int64_t end) const {
    const std::int64_t item = list_.schedule().arrays[array_].item_bytes;
    return tiles_.pieces(panel, first, end, chunk_bytes_ / item);
}

void PanelRing::start(std::int64_t panel, int root, const std::vector<Box>& chunks, bool held, int number) {
    if (chunks.empty() || group_.size == 1) return;
    BroadcastPlace place = broadcast_place(tree_, group_.size, root, group_.me);
    if (place.parent >= 0) place.parent = group_.rank(place.parent);
    for (int& child : place.children) child = group_.rank(child);
    for (const Box& region : chunks)
        relay_.start(panel, place, static_cast<int>(number++ * buffers_ + panel % buffers_) * kinds_, array_, region,
                     held);
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
