// Point to point (wolfmann2010): part i of C meets block j of B in wave i + j. Each block goes from its owner to one
// rank after another. In order of the waves, or with a pending block of every other rank, whichever is there.
#include <algorithm>

#include "generate/linalg/product_writer.hpp"

namespace tilewave {

namespace {

// A panel of B's columns.
struct Block {
    int owner = 0;  // rank
    ColumnPanel panel;
};

std::vector<Block> blocks_of(const MatmulProblem& p, std::int64_t most) {
    std::vector<Block> all;
    for (const ColumnPanel& panel : column_panels(p, most, true))
        all.push_back({p.b.rank_of(0, p.b.columns.part_of({panel.columns.lo})), panel});
    return all;
}

std::vector<ColumnPanel> panels_of(const std::vector<Block>& blocks) {
    std::vector<ColumnPanel> all;
    for (const Block& block : blocks) all.push_back(block.panel);
    return all;
}

// What the owner of a block does with it: it reads the block in place.
PanelStep step_in_place(const ProductWriter& writer, const Block& block) {
    PanelStep step = writer.step_of(block.panel, moving_b, 0);
    step.right = {array_b, writer.panel_of(block.panel, 0, moving_b, 0).source};
    return step;
}

}  // namespace

Schedule wavefront_product(const MatmulProblem& p, const MatmulChoices& choices, int rank, int ranks) {
    const int grid = p.c.ranks(), me = p.c.row_of(rank), lanes = choices.lanes;
    const std::int64_t depth = p.b.rows.extent;
    const std::vector<Block> blocks = blocks_of(p, choices.panel);
    const int n = static_cast<int>(blocks.size()), ahead = panels_ahead(choices.lookahead, n);
    ProductWriter writer(p, choices, rank, ranks, lanes);
    TaskList& list = writer.list();
    // In any wave the blocks between the one that has been sent to all and the one that is being sent.
    const int slots = grid + ahead + 1;
    writer.add_moving(0, 0, 0, 0, 1);
    writer.add_moving(me >= 0 ? panels_of(blocks) : std::vector<ColumnPanel>(), slots);
    if (depth == 0) writer.scale();
    if (me < 0 || depth == 0) return list.finish();

    std::vector<std::vector<int>> receives(blocks.size()), sends(blocks.size());  // by block
    std::vector<std::int32_t> done(lanes, 0);
    const auto panel_of = [&](int j) { return writer.panel_of(blocks[j].panel, 0, moving_b, j); };
    for (int wave = -ahead; wave < n + grid; ++wave) {
        // Block j leaves for part i `ahead` waves before they meet, and is done with when it has left for all.
        for (int i = std::max(0, wave + ahead - n + 1); i <= std::min(grid - 1, wave + ahead); ++i) {
            const int j = wave + ahead - i;
            if (blocks[j].owner != rank) continue;
            if (i == 0 && grid > 1) writer.copy(0, j, ranks, panel_of(j));
            if (i != me) writer.post(sends[j], true, p.c.rank_of(i, 0), panel_of(j), slots);
        }
        const int next = wave + ahead - me, now = wave - me;
        if (next >= 0 && next < n && blocks[next].owner != rank)
            writer.post(receives[next], false, blocks[next].owner, panel_of(next), slots);
        if (now >= 0 && now < n) {
            const Block& block = blocks[now];
            list.wait(0, receives[now]);
            const PanelStep step =
                block.owner == rank ? step_in_place(writer, block) : writer.step_of(block.panel, moving_b, now);
            const std::int32_t there = lanes > 1 ? list.signal(0) : 0;
            for (int lane = 0; lane < lanes; ++lane) {
                if (lane > 0) list.add(lane, Op::await, 0, there);
                writer.products(lane, now, step, lane, lanes);
                if (lane > 0) done[lane] = list.signal(lane);
            }
            for (int lane = 1; lane < lanes; ++lane) list.add(0, Op::await, lane, done[lane]);
        }
        const int left = wave + ahead - grid;  // it has left for the last part in the wave before
        if (left >= 0 && left < n) list.wait(0, sends[left]);
    }
    return list.finish();
}

Schedule pending_product(const MatmulProblem& p, const MatmulChoices& choices, int rank, int ranks) {
    const int grid = p.c.ranks(), me = p.c.row_of(rank);
    const std::int64_t depth = p.b.rows.extent;
    const std::vector<Block> blocks = blocks_of(p, choices.panel);
    std::vector<std::vector<Block>> by_owner(grid);
    for (const Block& b : blocks) by_owner[p.c.row_of(b.owner)].push_back(b);
    // Lane 0 sends and multiplies the blocks that this rank owns. Lane l has those of the rank l above.
    ProductWriter writer(p, choices, rank, ranks, me < 0 ? 1 : grid);
    TaskList& list = writer.list();
    const int slots = panels_ahead(choices.lookahead, static_cast<std::int64_t>(blocks.size())) + 1;
    writer.add_moving(0, 0, 0, 0, 1);
    for (int owner = 0; owner < grid; ++owner) {
        const auto& all = by_owner[owner];
        writer.add_moving(me >= 0 ? panels_of(all) : std::vector<ColumnPanel>(), slots);
    }
    if (depth == 0) writer.scale();
    if (me < 0 || depth == 0) return list.finish();
    std::vector<std::int64_t> numbers;  // of each owner's first block, counting owner by owner
    std::int64_t first = 0;
    for (const auto& all : by_owner) {
        numbers.push_back(first);
        first += static_cast<std::int64_t>(all.size());
    }
    const auto array_of = [](int owner) { return static_cast<std::int32_t>(moving_b + owner); };
    const auto& local = by_owner[me];
    const auto n = static_cast<std::int64_t>(local.size());
    std::vector<std::vector<int>> sends(local.size());
    const auto leave = [&](std::int64_t t) {
        const MovingPanel panel = writer.panel_of(local[t].panel, 0, array_of(me), t);
        writer.copy(0, numbers[me] + t, ranks, panel);
        for (int up = 1; up < grid; ++up) writer.post(sends[t], true, p.c.rank_of((me + up) % grid, 0), panel, slots);
    };
    for (std::int64_t t = 0; t < std::min<std::int64_t>(n, slots); ++t) leave(t);
    for (std::int64_t t = 0; t < n; ++t) {
        writer.products(0, numbers[me] + t, step_in_place(writer, local[t]), 0, 1);
        list.wait(0, sends[t]);
        if (t + slots < n) leave(t + slots);
    }
    for (int lane = 1; lane < grid; ++lane) {
        const int owner = (me + lane) % grid;
        const auto& all = by_owner[owner];
        const auto count = static_cast<std::int64_t>(all.size());
        std::vector<std::vector<int>> receives(all.size());
        const auto expect = [&](std::int64_t t) {
            const MovingPanel panel = writer.panel_of(all[t].panel, 0, array_of(owner), t);
            writer.post(receives[t], false, p.c.rank_of(owner, 0), panel, slots, lane);
        };
        for (std::int64_t t = 0; t < std::min<std::int64_t>(count, slots); ++t) expect(t);
        for (std::int64_t t = 0; t < count; ++t) {
            list.wait(lane, receives[t]);
            writer.products(lane, numbers[owner] + t, writer.step_of(all[t].panel, array_of(owner), t), 0, 1);
            if (t + slots < count) expect(t + slots);
        }
    }
    return list.finish();
}

}  // namespace tilewave
