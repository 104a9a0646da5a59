#include "generate/linalg/factor_column.hpp"

namespace tilewave {

FactorOnColumns::FactorOnColumns(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices,
                                 int rank, int ranks, std::int64_t more, std::int64_t items_more)
    : RightLooking(layout, item_bytes, choices, rank, ranks, more), column_(grid_column(layout, rank)) {
    if (!several_rows()) return;
    array_passing_ = static_cast<std::int32_t>(list_.schedule().arrays.size());
    list_.schedule().arrays.push_back(across_.array(item_bytes, buffers_, me_));
    rounds_.emplace(list_, column_, item_bytes, layout.columns.extent, 2, tiles_.block + items_more, 1, tag_kinds);
}

Region FactorOnColumns::under(const Box& chunk, std::int64_t j, std::int64_t t0, std::int64_t t1) const {
    Region columns = of_matrix(j, t0, t1);
    columns.box.hi[1] = of_matrix(across_.tile(me_, across_.before(me_, j) + chunk.extent(1) - 1), t0, t1).box.hi[1];
    return columns;
}

void FactorOnColumns::pass(std::int64_t k, Part part, std::vector<std::pair<std::int64_t, std::int64_t>> columns) {
    struct Chunk {
        Box tiles;
        std::int64_t j;
        int id;
    };
    const std::int64_t items = choices_.chunk_bytes / list_.schedule().arrays[factor_matrix].item_bytes;
    std::vector<Chunk> chunks;
    for (const auto& [j0, j1] : columns)
        for (const Box& tiles : across_.pieces(k, across_.place(me_, j0), across_.place(me_, j1), items))
            chunks.push_back({tiles, across_.tile(me_, tiles.lo[1] - across_.first(me_)), -1});
    const int p = tiles_.parts(), root = tiles_.part_of(k), at = (row_ - root + p) % p;
    const auto post = [&](bool send, Chunk& chunk) {
        const std::int64_t slot =
            (&chunk - chunks.data()) * 2 * buffers_ + 2 * (k % buffers_) + (part == of_the_others);
        chunk.id = list_.post(send, column_.rank((row_ + (send ? 1 : p - 1)) % p),
                              static_cast<int>(slot) * tag_kinds + 2, array_passing_, chunk.tiles);
    };
    const auto act = [&](const Chunk& chunk, Hop what, std::int64_t order) {
        hop(k, what, panel_numbers() + order * tiles_.block_columns() + chunk.j, chunk.tiles, chunk.j);
    };
    if (at > 0)
        for (Chunk& chunk : chunks) post(false, chunk);
    for (Chunk& chunk : chunks) {
        if (at > 0)
            list_.add(0, Op::wait, chunk.id);
        else
            act(chunk, begins, 0);
        if (has_rows(k, n_)) act(chunk, meets, 1 + at);
        post(true, chunk);
    }
    if (at > 0) {
        for (const Chunk& chunk : chunks) passed_[k].push_back(chunk.id);
    } else {
        for (Chunk& chunk : chunks) {
            list_.add(0, Op::wait, chunk.id);
            post(false, chunk);
        }
        for (Chunk& chunk : chunks) {
            list_.add(0, Op::wait, chunk.id);
            act(chunk, ends, 1 + p);
        }
    }
    send_down(k, part);
    arrive_down(k, part);
}

void FactorOnColumns::end_of(std::int64_t k) {
    list_.wait(0, passed_[k]);
    passed_.erase(k);
}

}  // namespace tilewave
