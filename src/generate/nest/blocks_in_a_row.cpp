// Blocks of time steps one behind the other, as one schedule: what a run of many steps does (run_blocks.cpp), for the
// checker and the predictor.
#include <algorithm>

#include "generate/nest/nest.hpp"

namespace tilewave {

namespace {

// All lanes begin a block when all have ended the one before.
void meet(Schedule& s, std::vector<std::int32_t>& last) {
    if (s.lanes.size() < 2) return;
    for (std::size_t l = 0; l < s.lanes.size(); ++l) s.lanes[l].push_back({Op::signal, 0, ++last[l]});
    for (std::size_t l = 0; l < s.lanes.size(); ++l)
        for (std::size_t other = 0; other < s.lanes.size(); ++other)
            if (other != l) s.lanes[l].push_back({Op::await, static_cast<std::int32_t>(other), last[other]});
}

}  // namespace

Schedule in_a_row(const SweepProblem& problem, const Plan& plan, const Schedule& block, int times) {
    if (times < 1)
        throw ConfigError("in_a_row: " + std::to_string(times) + " blocks were asked for; allowed: 1 or more");
    SweepProblem given = problem;
    given.complete();
    Index one = Index::filled(given.dims(), 0);
    one[0] = given.space.extent(0);
    const Index apart = given.loops * one;  // in z coordinates, of a block and the next
    const std::int64_t tiles = ceil_div(one[0], plan.tile[0]), steps = nest_steps(given, plan);
    Schedule s = block;
    std::vector<std::int32_t> last(block.lanes.size(), 0);
    for (std::size_t l = 0; l < block.lanes.size(); ++l)
        for (const Step& step : block.lanes[l])
            if (step.op == Op::signal) last[l] = std::max(last[l], step.count);
    const std::vector<std::int32_t> of_a_block = last;
    for (int b = 1; b < times; ++b) {
        Index shift = apart;
        for (auto& x : shift.v) x *= b;
        meet(s, last);
        const std::vector<std::int32_t> before = last;
        const auto first_tile = static_cast<std::int32_t>(s.tiles.size()),
                   first_message = static_cast<std::int32_t>(s.messages.size());
        for (Tile t : block.tiles) {
            t.box = t.box.shifted(shift);
            t.coord[0] += b * tiles;
            t.time += b * steps;
            s.tiles.push_back(t);
        }
        for (Message m : block.messages) {
            if (!m.region.empty() && !(block.arrays[static_cast<std::size_t>(m.array)].lacks & 1))
                m.region = m.region.shifted(shift);
            if (m.tile >= 0) m.tile += first_tile;
            if (m.aggregate >= 0) m.aggregate += first_message;
            s.messages.push_back(m);
        }
        for (std::size_t l = 0; l < block.lanes.size(); ++l)
            for (Step step : block.lanes[l]) {
                switch (step.op) {
                    case Op::compute: step.item += first_tile; break;
                    case Op::signal: step.count += before[l]; break;
                    case Op::await: step.count += before[static_cast<std::size_t>(step.item)]; break;
                    default: step.item += first_message;
                }
                s.lanes[l].push_back(step);
            }
        for (std::size_t l = 0; l < last.size(); ++l) last[l] = before[l] + of_a_block[l];
        NestWork& nest = *s.works[0].nest();
        nest.space = hull(nest.space, only_nest(block).space.shifted(shift));
        for (std::size_t a = 0; a < s.arrays.size(); ++a) {
            const Array& was = block.arrays[a];
            if (was.lacks & 1) continue;
            if (s.arrays[a].stride.n == 0) s.arrays[a].stride = row_major_strides(was.storage, 1);
            s.arrays[a].storage = hull(s.arrays[a].storage, was.storage.shifted(shift));
            s.arrays[a].owned = hull(s.arrays[a].owned, was.owned.shifted(shift));
        }
    }
    return s;
}

}  // namespace tilewave
