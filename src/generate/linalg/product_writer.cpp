#include "generate/linalg/product_writer.hpp"

#include <algorithm>

namespace tilewave {

ProductWriter::ProductWriter(const MatmulProblem& problem, const MatmulChoices& choices, int rank, int ranks, int lanes)
    : p_(problem), choices_(choices), rank_(rank), ranks_(ranks), list_(rank, ranks, lanes) {
    const BlockCyclic* all[] = {&problem.a, &problem.b, &problem.c};
    for (int m = 0; m < 3; ++m) {
        owned_[m] = all[m]->owned(rank);
        Array array{problem.item_bytes, owned_[m], owned_[m]};
        const std::int64_t rows = std::max<std::int64_t>(1, owned_[m].extent(0)),
                           columns = std::max<std::int64_t>(1, owned_[m].extent(1));
        array.stride = problem.flipped[m] ? Index{columns, 1} : Index{1, rows};
        list_.schedule().arrays.push_back(array);
    }
}

void ProductWriter::add_moving(std::int64_t panels, std::int64_t rows, std::int64_t lo, std::int64_t hi, int buffers) {
    Array array{p_.item_bytes, {{0, 0, lo}, {panels, rows, hi}}, {{0, 0, lo}, {0, 0, lo}}};
    if (panels == 0 || rows == 0 || hi <= lo) array.storage = array.owned;
    array.time_buffers = static_cast<int>(std::clamp<std::int64_t>(buffers, 1, std::max<std::int64_t>(panels, 1)));
    list_.schedule().arrays.push_back(array);
}

void ProductWriter::add_moving(const std::vector<ColumnPanel>& panels, int buffers) {
    std::int64_t widest = 0;
    for (const ColumnPanel& panel : panels) widest = std::max(widest, panel.columns.extent());
    add_moving(static_cast<std::int64_t>(panels.size()), widest, 0, panels.empty() ? 0 : panels.front().room, buffers);
}

MovingPanel ProductWriter::panel_of(const ColumnPanel& panel, int root, std::int32_t array, std::int64_t k) const {
    const auto [lo, hi] = place(p_.b.columns, panel.columns);
    return {root,
            {{panel.common.lo, lo}, {panel.common.hi, hi}},
            array,
            {{k, 0, 0}, {k + 1, panel.columns.extent(), panel.room}}};
}

PanelStep ProductWriter::step_of(const ColumnPanel& panel, std::int32_t array, std::int64_t k) const {
    const Box& c = owned_[2];
    PanelStep step;
    step.c = {{c.lo[0], panel.columns.lo}, {c.hi[0], panel.columns.hi}};
    step.depth = panel.common.extent();
    step.first = panel.common.lo == 0;
    step.left = {array_a, {{owned_[0].lo[0], panel.common.lo}, {owned_[0].hi[0], panel.common.hi}}};
    step.right = {array, {{k, 0, 0}, {k + 1, panel.columns.extent(), panel.common.extent()}}};
    return step;
}

void ProductWriter::copy(int lane, std::int64_t step, int which, const MovingPanel& panel) {
    const bool of_a = which < ranks_;
    if (panel.region.empty()) return;
    list_.task(lane, number(step, which), of_a ? copy_a : copy_b, {{of_a ? array_a : array_b, panel.source}},
               {{panel.array, panel.region}}, static_cast<double>(panel.region.points() * p_.item_bytes), {step});
}

void ProductWriter::product(int lane, std::int64_t step, const PanelStep& what, const Box& part) {
    Region left = what.left, right = what.right;
    // The rows of A and the columns of B that belong to the part.
    const int i = left.box.dims() == 3 ? 2 : 0, j = what.right_columns;
    left.box.lo[i] = part.lo[0];
    left.box.hi[i] = part.hi[0];
    const std::int64_t shift = right.box.lo[j] - what.c.lo[1];
    right.box.lo[j] = part.lo[1] + shift;
    right.box.hi[j] = part.hi[1] + shift;
    const Region c{array_c, part};
    std::vector<Region> reads{left, right};
    if (!what.first || p_.adds) reads.push_back(c);
    if (products_.size() <= static_cast<std::size_t>(step)) products_.resize(step + 1, 0);
    const std::int64_t count = products_[step]++;
    if (count >= most_products_) throw ConfigError("matmul: too many tasks on one panel; allowed: larger task_flops");
    list_.task(lane, number(step, 2 * ranks_ + rank_ * most_products_ + count),
               what.first ? first_product : add_product, std::move(reads), {c},
               2.0 * static_cast<double>(part.points()) * static_cast<double>(what.depth),
               {step, part.lo[0], part.lo[1]});
}

void ProductWriter::products(int lane, std::int64_t step, const PanelStep& what, int share, int shares) {
    for (const Box& part : tasks_of(what, share, shares, true, shares)) product(lane, step, what, part);
}

void ProductWriter::post(std::vector<int>& ids, bool send, int peer, const MovingPanel& panel, int slots, int lane) {
    int number = 0;
    for (const Box& chunk : chunks(panel.region)) {
        const std::int64_t tag = std::int64_t{number++} * slots + panel.region.lo[0] % slots;
        ids.push_back(list_.post(send, peer, static_cast<int>(tag), panel.array, chunk, lane));
    }
}

void ProductWriter::scale() {
    const Box& c = owned_[2];
    if (c.empty()) return;
    std::vector<Region> reads;
    if (p_.adds) reads.push_back({array_c, c});
    list_.task(0, rank_, scale_c, std::move(reads), {{array_c, c}}, static_cast<double>(c.points() * p_.item_bytes));
}

std::vector<Box> ProductWriter::tasks_of(const PanelStep& what, int lane, int lanes, bool finely, int least) const {
    const std::vector<Box> all =
        pieces_of(what.c, what.depth, finely ? choices_.task_flops : 1e300, least, p_.flipped[2]);
    const auto n = static_cast<std::int64_t>(all.size());
    return {all.begin() + n * lane / lanes, all.begin() + n * (lane + 1) / lanes};
}

std::vector<Box> ProductWriter::chunks(const Box& region) const {
    std::vector<Box> all;
    if (region.empty()) return all;
    const std::int64_t row = region.extent(2) * p_.item_bytes;
    // Chunks are runs of memory: whole rows of what the array keeps of a panel.
    const std::int64_t rows = std::max<std::int64_t>(1, choices_.chunk_bytes / row);
    const std::int64_t count = (region.extent(1) + rows - 1) / rows;
    for (std::int64_t c = 0; c < count; ++c) {
        Box chunk = region;
        chunk.lo[1] = region.lo[1] + region.extent(1) * c / count;
        chunk.hi[1] = region.lo[1] + region.extent(1) * (c + 1) / count;
        all.push_back(chunk);
    }
    return all;
}

}  // namespace tilewave
