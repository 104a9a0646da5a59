#include "generate/gather/gather.hpp"

#include <algorithm>

#include "generate/linalg/task_list.hpp"

namespace tilewave {

namespace {

// Chunk c of a rank's part; empty behind the last one.
GatherRange chunk_of(const GatherProblem& problem, const GatherPlan& plan, int rank, int ranks, std::int64_t c) {
    const GatherRange part = gather_part(problem, rank, ranks);
    return {std::min(part.hi, part.lo + c * plan.chunk), std::min(part.hi, part.lo + (c + 1) * plan.chunk)};
}

// What a lane computes of a chunk.
GatherRange part_of_lane(const GatherRange& chunk, int lanes, int lane) {
    return {chunk.lo + block_start(chunk.size(), lanes, lane), chunk.lo + block_start(chunk.size(), lanes, lane + 1)};
}

class Gather {
public:
    Gather(const GatherProblem& problem, const GatherPlan& plan, int rank, int ranks)
        : p_(problem), plan_(plan), rank_(rank), ranks_(ranks), list_(rank, ranks, plan.lanes) {
        part_ = gather_part(p_, rank, ranks);
        chunks_ = std::max<std::int64_t>(1, ceil_div(gather_part(p_, 0, ranks).size(), plan.chunk));
        Array read_only{1, {{0}, {0}}, {{0}, {0}}};
        read_only.whole = true;
        list_.schedule().arrays.assign(p_.arrays, read_only);
        for (const auto& m : p_.matrices)
            list_.schedule().arrays[m.array] = {m.item_bytes, {{part_.lo}, {part_.hi}}, {{part_.lo}, {part_.hi}}};
        for (const auto& m : p_.matrices) {
            planes_of_.push_back(static_cast<std::int32_t>(list_.schedule().arrays.size()));
            if (m.depth == 0) continue;
            const GatherRange all = m.travels ? GatherRange{0, p_.extent} : part_;
            Array a{m.item_bytes, {{0, all.lo}, {p_.planes(), all.hi}}, {{0, 0}, {0, 0}}};
            a.time_buffers = p_.planes();
            list_.schedule().arrays.push_back(a);
        }
    }

    Schedule run() {
        const std::int64_t block = p_.planes(), repetitions = gather_repetitions(p_),
                           before = repetitions > 1 ? p_.steps - repetitions * block : p_.steps;
        for (int back = p_.planes() - 1; back > 0; --back) step(-back);
        for (std::int64_t k = 0; k < before; ++k) step(k);
        if (repetitions == 1) return list_.finish();
        for (const auto& lane : list_.schedule().lanes) list_.schedule().repeated.push_back({size_of(lane), 0});
        for (std::int64_t k = before; k < before + block; ++k) step(k);
        for (std::size_t l = 0; l < list_.schedule().lanes.size(); ++l)
            list_.schedule().repeated[l].end = size_of(list_.schedule().lanes[l]);
        return list_.finish();
    }

private:
    static std::int32_t size_of(const std::vector<Step>& lane) { return static_cast<std::int32_t>(lane.size()); }

    // The place of the plane that step k makes; of steps below 0 those from before.
    std::int64_t plane(std::int64_t k) const { return floor_mod(k, p_.planes()); }
    // Step -n loads planes of so many steps back.
    bool makes(std::size_t m, std::int64_t k) const { return p_.matrices[m].depth >= std::max<std::int64_t>(1, -k); }
    Region region(std::size_t m, std::int64_t k, const GatherRange& range) const {
        return {planes_of_[m], {{plane(k), range.lo}, {plane(k) + 1, range.hi}}};
    }

    void step(std::int64_t k) {
        const bool travels = p_.travels() && (k + 1 < p_.steps || gather_repetitions(p_) > 1);
        if (travels) receive_all(k);
        for (std::int64_t c = 0; c < chunks_; ++c) {
            const GatherRange chunk = chunk_of(p_, plan_, rank_, ranks_, c);
            std::vector<std::int32_t> done(plan_.lanes, 0);
            for (int lane = plan_.lanes - 1; lane >= 0; --lane) {
                task(lane, k, part_of_lane(chunk, plan_.lanes, lane));
                if (lane > 0 && travels) done[lane] = list_.signal(lane);
            }
            if (!travels) continue;
            for (int lane = 1; lane < plan_.lanes; ++lane) list_.add(0, Op::await, lane, done[lane]);
            send(k, c, 0);
            for (std::int64_t earlier = 0; earlier < c; ++earlier)
                if (next_[earlier] + 1 < rounds_[earlier].size()) go_on(k, earlier);
        }
        if (!travels) return;
        for (std::int64_t c = 0; c < chunks_; ++c)
            while (go_on(k, c)) {
            }
        for (const auto& chunk : rounds_)
            for (const Round& round : chunk) list_.wait(0, round.sends);
        if (plan_.lanes == 1) return;
        const std::int32_t there = list_.signal(0);
        for (int lane = 1; lane < plan_.lanes; ++lane) list_.add(lane, Op::await, 0, there);
    }

    void task(int lane, std::int64_t k, const GatherRange& range) {
        if (range.size() == 0) return;
        std::vector<Region> reads, writes;
        for (std::size_t m = 0; m < p_.matrices.size(); ++m) {
            const auto& matrix = p_.matrices[m];
            const Region own{matrix.array, {{range.lo}, {range.hi}}};
            reads.push_back(own);
            if (k >= 0) writes.push_back(own);  // updated: a point may leave what was there
            for (int back = 1; back <= matrix.depth && k >= 0; ++back)
                reads.push_back(region(m, k - back, matrix.travels ? GatherRange{0, p_.extent} : range));
            if (makes(m, k)) writes.push_back(region(m, k, range));
        }
        const std::int64_t number = (k + p_.planes()) * (p_.extent + 1) + range.lo;
        list_.task(lane, number, k < 0 ? gather_load : gather_step, std::move(reads), std::move(writes),
                   static_cast<double>(range.size()), {k, range.lo});
    }

    // One round of one chunk: what comes is handed on in the next.
    struct Round {
        std::int64_t distance = 1;
        std::vector<int> receives, sends;
    };

    // f(distance to the other rank, how many ranks' parts) for the messages of a round.
    template <class F>
    void peers(std::int64_t distance, F f) const {
        for (std::int64_t j = 1; j < plan_.radix && j * distance < ranks_; ++j)
            f(j * distance, std::min(distance, ranks_ - j * distance));
    }
    int rank_at(std::int64_t distance) const { return static_cast<int>(floor_mod(rank_ + distance, ranks_)); }

    // Chunk c of some ranks' parts, those that lie together as one.
    std::vector<GatherRange> parts(std::int64_t first, std::int64_t count, std::int64_t c) const {
        std::vector<GatherRange> all;
        for (std::int64_t n = 0; n < count; ++n) {
            const GatherRange next = chunk_of(p_, plan_, static_cast<int>((first + n) % ranks_), ranks_, c);
            if (next.size() == 0) continue;
            if (!all.empty() && all.back().hi == next.lo)
                all.back().hi = next.hi;
            else
                all.push_back(next);
        }
        return all;
    }

    void post(bool send, std::int64_t k, std::int64_t c, int peer, int first, std::int64_t count,
              std::vector<int>& into) {
        for (std::size_t m = 0; m < p_.matrices.size(); ++m) {
            if (!p_.matrices[m].travels || !makes(m, k)) continue;
            for (const GatherRange& range : parts(first, count, c))
                into.push_back(list_.post(send, peer, static_cast<int>(m), planes_of_[m], region(m, k, range).box));
        }
    }

    void receive_all(std::int64_t k) {
        rounds_.clear();
        next_.assign(chunks_, 0);
        for (std::int64_t c = 0; c < chunks_; ++c) {
            rounds_.emplace_back();
            for (std::int64_t distance = 1; distance < ranks_; distance *= plan_.radix) {
                Round round{distance, {}, {}};
                peers(distance, [&](std::int64_t to, std::int64_t count) {
                    post(false, k, c, rank_at(to), rank_at(to), count, round.receives);
                });
                rounds_.back().push_back(std::move(round));
            }
        }
    }
    void send(std::int64_t k, std::int64_t c, std::size_t r) {
        if (r >= rounds_[c].size()) return;
        Round& round = rounds_[c][r];
        peers(round.distance,
              [&](std::int64_t to, std::int64_t count) { post(true, k, c, rank_at(-to), rank_, count, round.sends); });
    }
    // Waits for the next round of a chunk, and begins the one behind it; false where there is none.
    bool go_on(std::int64_t k, std::int64_t c) {
        const std::size_t r = next_[c]++;
        if (r >= rounds_[c].size()) return false;
        list_.wait(0, rounds_[c][r].receives);
        send(k, c, r + 1);
        return true;
    }

    const GatherProblem& p_;
    GatherPlan plan_;
    int rank_, ranks_;
    TaskList list_;
    GatherRange part_;
    std::int64_t chunks_ = 1;
    std::vector<std::int32_t> planes_of_;     // by matrix, the array of its planes
    std::vector<std::vector<Round>> rounds_;  // of the step at hand, by chunk
    std::vector<std::size_t> next_;           // by chunk, the round to wait for
};

}  // namespace

GatherProblem::GatherProblem(const SweepProblem& problem, const Plan& plan)
    : steps(problem.space.extent(problem.gathers)),
      time(problem.gathers),
      cut(problem.dims() - 1),
      arrays(static_cast<int>(problem.arrays.size())) {
    for (int k = 0; k < problem.dims(); ++k)
        if (plan.grid[k] * plan.factors[k] > 1) cut = k;
    const bool aside = problem.reads_aside(cut);
    for (int a = 0; a < arrays; ++a) {
        if (!problem.written(a)) continue;
        const NestArray& array = problem.arrays[a];
        Matrix m{a, array.item_bytes};
        for (int d = 0; d < array.axes.n; ++d) {
            if (array.axes[d] == cut) extent = array.shape[d];
            if (array.axes[d] != cut && array.axes[d] != time) m.item_bytes *= array.shape[d];
        }
        const Index written = problem.shift(a);
        for (std::size_t q = 0; q < problem.accesses.size(); ++q) {
            const Access& p = problem.accesses[q];
            if (p.array != a) continue;
            bool moves = q < problem.wholes.size() && problem.wholes[q];
            for (int k = 0; k < problem.dims(); ++k)
                moves = moves || (k != time && !problem.lacks(a, k) && p.offset[k] != written[k]);
            m.travels = m.travels || moves;
            m.depth = std::max(m.depth, static_cast<int>(std::abs(written[time] - p.offset[time])));
        }
        if (!m.travels && !problem.lacks(a, time)) m.depth = 0;
        if (array.time_buffers > 1) m.depth = std::max(m.depth, 1);
        m.travels = m.travels && aside;
        matrices.push_back(m);
    }
}

int GatherProblem::planes() const {
    int depth = 0;
    for (const Matrix& m : matrices) depth = std::max(depth, m.depth);
    return depth + 1;
}

bool GatherProblem::travels() const {
    return std::ranges::any_of(matrices, [](const Matrix& m) { return m.travels; });
}

GatherRange gather_part(const GatherProblem& problem, int rank, int ranks) {
    return {block_start(problem.extent, ranks, rank), block_start(problem.extent, ranks, rank + 1)};
}

std::vector<GatherRange> gather_ranges(const GatherProblem& problem, const Plan& plan, int rank, int lane) {
    std::vector<GatherRange> all;
    const GatherPlan parts(problem, plan);
    for (std::int64_t c = 0; c * parts.chunk < gather_part(problem, rank, plan.ranks()).size(); ++c) {
        const GatherRange range = part_of_lane(chunk_of(problem, parts, rank, plan.ranks(), c), parts.lanes, lane);
        if (range.size() > 0) all.push_back(range);
    }
    return all;
}

std::int64_t gather_repetitions(const GatherProblem& problem) {
    return std::max<std::int64_t>(1, problem.steps / problem.planes() - 1);
}

Schedule gather_steps(const GatherProblem& problem, const GatherPlan& plan, int rank, int ranks) {
    return Gather(problem, plan, rank, ranks).run();
}

Schedule gathered_schedule(const SweepProblem& problem, const Plan& plan, int rank, int ranks) {
    const GatherProblem steps(problem, plan);
    if (rank < plan.ranks()) {
        Schedule s = gather_steps(steps, GatherPlan(steps, plan), rank, plan.ranks());
        s.ranks = std::max(ranks, s.ranks);
        return s;
    }
    GatherProblem nothing = steps;
    nothing.steps = nothing.extent = 0;
    Schedule s = gather_steps(nothing, {}, 0, 1);
    s.rank = rank, s.ranks = ranks;
    if (gather_repetitions(steps) > 1) s.repeated.assign(s.lanes.size(), {0, 0});
    return s;
}

}  // namespace tilewave
