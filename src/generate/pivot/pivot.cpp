#include "generate/pivot/pivot.hpp"

#include <algorithm>

#include "generate/linalg/panel_ring.hpp"

namespace tilewave {

namespace {

constexpr int kept_buffers = 2;  // of a block that is used and one that travels

class Pivot {
public:
    Pivot(const PivotProblem& problem, const PivotPlan& plan, int rank, int ranks)
        : p_(problem),
          plan_(plan),
          rank_(rank),
          ranks_(ranks),
          blocks_(pivot_blocks(problem, plan, ranks)),
          versions_(problem.changes_row() ? 2 : 1),
          list_(rank, ranks, plan.lanes),
          relay_(list_) {
        const Box owned = pivot_layout(problem, ranks).owned(rank);
        rows_ = {std::max(owned.lo[0], p_.space.lo[1]), std::min(owned.hi[0], p_.space.hi[1])};
        if (owned.empty()) rows_ = {0, 0};
        for (const auto& m : p_.matrices) list_.schedule().arrays.push_back({m.item_bytes, owned, owned});
        for (const auto& m : p_.matrices) {
            if (!m.pivots) continue;
            kept_.push_back(static_cast<std::int32_t>(list_.schedule().arrays.size()));
            const Box none{{0, 0, 0}, {0, 0, 0}};
            const auto count = static_cast<std::int64_t>(blocks_.size());
            Array a{m.item_bytes, {{0, 0, 0}, {count, versions_ * plan.block, kept_columns(p_, m.item_bytes)}}, none};
            a.time_buffers = static_cast<int>(std::clamp<std::int64_t>(count, 1, kept_buffers));
            list_.schedule().arrays.push_back(a);
        }
    }

    Schedule run() {
        const auto count = static_cast<std::int64_t>(blocks_.size());
        for (std::int64_t b = 0; b < std::min<std::int64_t>(count, kept_buffers); ++b) {
            open(b);
            if (b == 0 && has(0)) make(0);
        }
        for (std::int64_t b = 0; b < count; ++b) {
            const bool next = b + 1 < count;
            relay_.arrive(b);
            const std::int32_t there = plan_.lanes > 1 ? list_.signal(0) : 0;
            if (next && has(b + 1)) {
                update(0, b, {blocks_[b + 1].lo, blocks_[b + 1].hi}, false);
                make(b + 1);
            }
            std::vector<std::int32_t> done(plan_.lanes, 0);
            for (int lane = plan_.lanes - 1; lane >= 0; --lane) {
                if (lane > 0) list_.add(lane, Op::await, 0, there);
                const std::int64_t rows = std::max<std::int64_t>(0, rows_.second - rows_.first);
                const Range part{rows_.first + block_start(rows, plan_.lanes, lane),
                                 rows_.first + block_start(rows, plan_.lanes, lane + 1)};
                update(lane, b, part, true);
                if (lane > 0) done[lane] = list_.signal(lane);
            }
            if (next) relay_.arrive(b + 1);
            for (int lane = 1; lane < plan_.lanes; ++lane) list_.add(0, Op::await, lane, done[lane]);
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
        for (std::size_t m = 0; m < p_.matrices.size(); ++m)
            all.push_back({static_cast<std::int32_t>(m), {{rows.first, 0}, {rows.second, p_.columns}}});
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
            std::int64_t end = std::min(part.second, i + plan_.rows);
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

    const PivotProblem& p_;
    PivotPlan plan_;
    int rank_, ranks_;
    std::vector<PivotBlock> blocks_;
    std::int64_t versions_;
    TaskList list_;
    ChunkRelay relay_;
    std::vector<std::int32_t> kept_;  // arrays of kept rows
    Range rows_;
};

}  // namespace

bool PivotProblem::changes_row() const {
    // Points with i = k: k takes the coefficient of i.
    const Box box{{std::max(space.lo[0], space.lo[1]), 0, space.lo[2]},
                  {std::min(space.hi[0], space.hi[1]), 1, space.hi[2]}};
    return !box.empty() && std::ranges::none_of(bounds, [&](Bound bound) {
        bound.coefficients[0] += bound.coefficients[1];
        return extremes(bound, box).second < 0;
    });
}

Layout pivot_layout(const PivotProblem& problem, int ranks) {
    return {{problem.rows, problem.columns}, {ranks, 1}};
}

std::vector<PivotBlock> pivot_blocks(const PivotProblem& problem, const PivotPlan& plan, int ranks) {
    std::vector<PivotBlock> all;
    const Layout layout = pivot_layout(problem, ranks);
    if (problem.space.empty()) return all;
    for (int rank = 0; rank < ranks; ++rank) {
        const Box rows = layout.owned(rank);
        const std::int64_t end = std::min(rows.hi[0], problem.space.hi[0]);
        for (std::int64_t k = std::max(rows.lo[0], problem.space.lo[0]); k < end; k += plan.block)
            all.push_back({k, std::min(end, k + plan.block), rank});
    }
    if (problem.down[0]) std::ranges::reverse(all);
    return all;
}

std::int64_t kept_columns(const PivotProblem& problem, std::int64_t item_bytes) {
    const std::int64_t lines = ceil_div(problem.columns * item_bytes, std::int64_t{64});
    return (lines | 1) * 64 / item_bytes;
}

Schedule pivot_schedule(const PivotProblem& problem, const PivotPlan& plan, int rank, int ranks) {
    return Pivot(problem, plan, rank, ranks).run();
}

}  // namespace tilewave
