#include "generate/pivot/pivot.hpp"

#include <algorithm>

#include "generate/linalg/panel_ring.hpp"

namespace tilewave {

namespace {

// Even blocks of rows.
Layout rows_of_ranks(const PivotProblem& problem, const Plan& plan) {
    return {{problem.rows, problem.columns}, {plan.grid[1], 1}};
}

constexpr int kept_buffers = 2;  // of a block that is used and one that travels

class Pivot {
public:
    Pivot(const SweepProblem& problem, const Plan& plan, int rank, int ranks)
        : p_(problem),
          plan_(plan),
          rank_(rank),
          ranks_(plan.ranks()),
          lanes_(plan.lanes()),
          blocks_(pivot_blocks(p_, plan)),
          versions_(p_.changes_row() ? 2 : 1),
          list_(rank, std::max(ranks, ranks_), lanes_),
          relay_(list_) {
        const Layout layout = rows_of_ranks(p_, plan);
        const Box owned = rank < ranks_ ? layout.owned(rank) : Box{{0, 0}, {0, 0}};
        if (!owned.empty()) rows_ = {std::max(owned.lo[0], p_.space.lo[1]), std::min(owned.hi[0], p_.space.hi[1])};
        std::vector<Array>& arrays = list_.schedule().arrays;
        for (const NestArray& a : problem.arrays) {
            arrays.push_back({a.item_bytes, {{0, 0}, {0, 0}}, {{0, 0}, {0, 0}}});
            arrays.back().whole = true;
        }
        for (const auto& m : p_.matrices) arrays[m.array] = {m.item_bytes, owned, owned};
        for (const auto& m : p_.matrices) {
            if (!m.pivots) continue;
            kept_.push_back(static_cast<std::int32_t>(arrays.size()));
            const Box none{{0, 0, 0}, {0, 0, 0}};
            const auto count = static_cast<std::int64_t>(blocks_.size());
            Array a{m.item_bytes, {{0, 0, 0}, {count, versions_ * plan.tile[0], kept_columns(p_, m.item_bytes)}}, none};
            a.time_buffers = static_cast<int>(std::clamp<std::int64_t>(count, 1, kept_buffers));
            arrays.push_back(a);
        }
    }

    Schedule run() {
        if (rank_ >= ranks_) return list_.finish();
        const auto count = static_cast<std::int64_t>(blocks_.size());
        for (std::int64_t b = 0; b < std::min<std::int64_t>(count, kept_buffers); ++b) {
            open(b);
            if (b == 0 && has(0)) make(0);
        }
        for (std::int64_t b = 0; b < count; ++b) {
            const bool next = b + 1 < count;
            relay_.arrive(b);
            const std::int32_t there = lanes_ > 1 ? list_.signal(0) : 0;
            if (next && has(b + 1)) {
                update(0, b, {blocks_[b + 1].lo, blocks_[b + 1].hi}, false);
                make(b + 1);
            }
            std::vector<std::int32_t> done(lanes_, 0);
            for (int lane = lanes_ - 1; lane >= 0; --lane) {
                if (lane > 0) list_.add(lane, Op::await, 0, there);
                const std::int64_t rows = std::max<std::int64_t>(0, rows_.second - rows_.first);
                const Range part{rows_.first + block_start(rows, lanes_, lane),
                                 rows_.first + block_start(rows, lanes_, lane + 1)};
                update(lane, b, part, true);
                if (lane > 0) done[lane] = list_.signal(lane);
            }
            if (next) relay_.arrive(b + 1);
            for (int lane = 1; lane < lanes_; ++lane) list_.add(0, Op::await, lane, done[lane]);
            relay_.finish(b);
            if (b + kept_buffers < count) open(b + kept_buffers);
        }
        return list_.finish();
    }

private:
    using Range = std::pair<std::int64_t, std::int64_t>;

    bool has(std::int64_t b) const { return blocks_[b].owner == rank_; }
    // A panel and the updates of any rows.
    std::int64_t number(std::int64_t b, std::int64_t within) const { return b * (p_.rows + 1) + within; }
    Region kept(std::size_t n, std::int64_t b) const {
        const std::int64_t columns = list_of(kept_[n]).storage.hi[2];
        return {kept_[n], {{b, 0, 0}, {b + 1, versions_ * blocks_[b].steps(), columns}}};
    }
    const Array& list_of(std::int32_t a) const { return const_cast<TaskList&>(list_).schedule().arrays[a]; }

    void open(std::int64_t b) {
        if (!has(b)) travel(b);
    }
    void travel(std::int64_t b) {
        if (ranks_ == 1) return;
        const BroadcastPlace place = broadcast_place(BroadcastTree::least_rounds, ranks_, blocks_[b].owner, rank_);
        for (std::size_t n = 0; n < kept_.size(); ++n) {
            const auto tag = static_cast<int>(n * kept_buffers + static_cast<std::size_t>(b % kept_buffers));
            relay_.start(b, place, tag, kept_[n], kept(n, b).box);
        }
    }

    void make(std::int64_t b) {
        const std::vector<Region> rows = of_matrices({blocks_[b].lo, blocks_[b].hi});
        std::vector<Region> writes;
        for (std::size_t n = 0; n < kept_.size(); ++n) writes.push_back(kept(n, b));
        writes.insert(writes.begin(), rows.begin(), rows.end());
        task(0, b, pivot_panel, rows, std::move(writes), {blocks_[b].lo, blocks_[b].hi}, number(b, 0));
        travel(b);
    }

    std::vector<Region> of_matrices(Range rows) const {
        std::vector<Region> all;
        for (const auto& m : p_.matrices) all.push_back({m.array, {{rows.first, 0}, {rows.second, p_.columns}}});
        return all;
    }

    void task(int lane, std::int64_t b, PivotTask operation, std::vector<Region> reads, std::vector<Region> writes,
              Range rows, std::int64_t number) {
        const auto points = blocks_[b].steps() * (rows.second - rows.first) * (p_.space.hi[2] - p_.space.lo[2]);
        list_.task(lane, number, operation, std::move(reads), std::move(writes), static_cast<double>(points),
                   {b, rows.first});
    }

    // Rows of a part by the steps of block b, but for the panel's own; `others`: but for those of the next panel, too.
    void update(int lane, std::int64_t b, Range part, bool others) {
        const auto own = [&](std::int64_t at, std::int64_t i) {
            return at < static_cast<std::int64_t>(blocks_.size()) && blocks_[at].lo <= i && i < blocks_[at].hi;
        };
        part = {std::max(part.first, rows_.first), std::min(part.second, rows_.second)};
        for (std::int64_t i = part.first; i < part.second;) {
            if (own(b, i) || (others && own(b + 1, i))) {
                i = blocks_[own(b, i) ? b : b + 1].hi;
                continue;
            }
            std::int64_t end = std::min(part.second, i + plan_.tile[1]);
            for (const std::int64_t at : {b, b + 1})
                if (at < static_cast<std::int64_t>(blocks_.size()) && (at == b || others) && blocks_[at].lo > i)
                    end = std::min(end, blocks_[at].lo);
            const Box points{{blocks_[b].lo, i, p_.space.lo[2]}, {blocks_[b].hi, end, p_.space.hi[2]}};
            if (!p_.none_in(points)) {
                std::vector<Region> rows = of_matrices({i, end}), reads = rows;
                for (std::size_t n = 0; n < kept_.size(); ++n) reads.push_back(kept(n, b));
                task(lane, b, pivot_update, std::move(reads), std::move(rows), {i, end}, number(b, 1 + i));
            }
            i = end;
        }
    }

    PivotProblem p_;
    const Plan& plan_;
    int rank_, ranks_, lanes_;
    std::vector<PivotBlock> blocks_;
    std::int64_t versions_;
    TaskList list_;
    ChunkRelay relay_;
    std::vector<std::int32_t> kept_;  // arrays of kept rows
    Range rows_;
};

}  // namespace

PivotProblem::PivotProblem(const SweepProblem& problem) : BoundedLoops{problem.space, problem.bounds} {
    for (int k = 0; k < 3; ++k) down[k] = problem.loops.row[k][k] < 0;
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a) {
        if (!problem.written(a)) continue;
        const NestArray& array = problem.arrays[a];
        rows = array.shape[0], columns = array.shape[1];
        matrices.push_back({a, array.item_bytes});
        for (std::size_t q = 0; q < problem.accesses.size(); ++q)
            if (problem.accesses[q].array == a && problem.pivots[q] != PivotRead::point) matrices.back().pivots = true;
    }
}

bool PivotProblem::changes_row() const {
    // Points with i = k: k takes the coefficient of i.
    const Box box{{std::max(space.lo[0], space.lo[1]), 0, space.lo[2]},
                  {std::min(space.hi[0], space.hi[1]), 1, space.hi[2]}};
    return !box.empty() && std::ranges::none_of(bounds, [&](Bound bound) {
        bound.coefficients[0] += bound.coefficients[1];
        return extremes(bound, box).second < 0;
    });
}

std::vector<PivotBlock> pivot_blocks(const PivotProblem& problem, const Plan& plan) {
    std::vector<PivotBlock> all;
    const Layout layout = rows_of_ranks(problem, plan);
    if (problem.space.empty()) return all;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
        const Box rows = layout.owned(rank);
        const std::int64_t end = std::min(rows.hi[0], problem.space.hi[0]);
        for (std::int64_t k = std::max(rows.lo[0], problem.space.lo[0]); k < end; k += plan.tile[0])
            all.push_back({k, std::min(end, k + plan.tile[0]), rank});
    }
    if (problem.down[0]) std::ranges::reverse(all);
    return all;
}

std::int64_t kept_columns(const PivotProblem& problem, std::int64_t item_bytes) {
    const std::int64_t lines = ceil_div(problem.columns * item_bytes, std::int64_t{64});
    return (lines | 1) * 64 / item_bytes;
}

Schedule pivot_schedule(const SweepProblem& problem, const Plan& plan, int rank, int ranks) {
    return Pivot(problem, plan, rank, ranks).run();
}

}  // namespace tilewave
