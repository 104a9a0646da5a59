// What a plan would take, from schedules of fewer ranks and tiles where there are many.
#include <algorithm>
#include <functional>

#include "core/concat.hpp"
#include "generate/nest/nest.hpp"
#include "plan/nests/estimate.hpp"
#include "plan/nests/planner.hpp"
#include "plan/nests/tuning.hpp"
#include "predict/machine_part.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// A dimension of which a part is simulated: `high` and `low` of its `full` ranks or tiles.
struct SimulatedAxis {
    int k;
    bool cut;
    std::int64_t full, high, low;
};

// From what `low` and `high` ranks or tiles take to what `full` do. The total goes on in a straight line, and does not
// fall. Of more ranks each has the same to do: only fill and drain grow, what the first and the last lack of the rest
// counts less.
Parts go_on(const Parts& low, const Parts& high, const SimulatedAxis& a) {
    const auto l = static_cast<double>(a.low), h = static_cast<double>(a.high), f = static_cast<double>(a.full);
    Parts r = high;
    r.total_s = high.total_s + std::max(0.0, high.total_s - low.total_s) * (f - h) / (h - l);
    const double x = a.cut ? (1 / f - 1 / h) / (1 / h - 1 / l) : (f - h) / (h - l);
    double inner = 0;
    for (double Parts::* part :
         {&Parts::compute_s, &Parts::pack_s, &Parts::post_s, &Parts::wait_s, &Parts::hand_over_s}) {
        r.*part = std::max(0.0, high.*part + (high.*part - low.*part) * x);
        inner += r.*part;
    }
    const double ends = high.fill_s + high.drain_s, rest = std::max(0.0, r.total_s - inner);
    r.fill_s = ends > 0 ? rest * high.fill_s / ends : rest / 2;
    r.drain_s = rest - r.fill_s;
    r.total_s = inner + rest;
    return r;
}

std::int64_t cells(const SweepProblem& problem, const Plan& plan, int k) {
    return ceil_div(std::max<std::int64_t>(largest_block(problem, plan.grid, k), 1), plan.tile[k]);
}

class Evaluation {
public:
    Evaluation(const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate,
               Simulated simulated)
        : problem_(problem),
          plan_(plan),
          machine_(machine),
          rate_(rate),
          all_ranks_(simulated == Simulated::all_ranks) {
        find_axes();
    }

    double steps() const {
        if (is_estimated()) return 0;
        auto steps = steps_of_a_tile * static_cast<double>(tiles_);
        for (const SimulatedAxis& a : axes_) steps *= 1 + static_cast<double>(a.low) / static_cast<double>(a.high);
        return steps;
    }

    Candidate result() {
        Candidate c;
        c.plan = plan_;
        c.estimate_s = estimate_s(problem_, plan_, machine_, rate_);
        if (is_estimated()) {
            c.sample = "nothing, but estimated by a closed form";
            c.time_s = c.parts.total_s = c.parts.compute_s = c.estimate_s;
            c.memory_bytes = memory_of(nullptr);
            return c;
        }
        std::vector<std::int64_t> counts;
        for (const SimulatedAxis& a : axes_) counts.push_back(a.full);
        c.parts = at(0, counts);
        c.time_s = c.parts.total_s;
        c.memory_bytes = memory_bytes_;
        c.sample = sample();
        return c;
    }

private:
    // Of blocks that fields give no part of the ranks is as all of them.
    bool is_estimated() const {
        const bool many_ranks = !all_ranks_ && !problem_.cuts.empty() && plan_.ranks() > most_ranks_played;
        return many_ranks || tiles_ > (all_ranks_ ? most_tiles_of_all_ranks : too_many_tiles);
    }

    void find_axes() {
        std::int64_t& tiles = tiles_;
        tiles = plan_.slices;
        for (int k = 0; plan_.generator == GeneratorKind::gather && k < problem_.dims(); ++k)
            if (k != problem_.gathers) tiles *= cells(problem_, plan_, k) * plan_.grid[k];
        if (plan_.generator == GeneratorKind::gather) return;  // its steps repeat
        for (int k = 0; k < problem_.dims(); ++k) tiles *= cells(problem_, plan_, k) * plan_.grid[k];
        if (plan_.generator == GeneratorKind::pivot) tiles /= cells(problem_, plan_, 2);  // a task has whole rows
        double messages = chunks_of_faces(static_cast<double>(tiles));
        if (all_ranks_ || messages < 8 * static_cast<double>(tiles)) messages = 0;  // tiles say enough
        const std::int64_t enough = all_ranks_ ? most_tiles_of_all_ranks : most_tiles;
        auto reduce = [&](int k, bool cut, std::int64_t full, std::int64_t most, std::int64_t fewer) {
            const bool too_many_ranks = cut && !all_ranks_ && plan_.ranks() > most_ranks_played;
            if ((tiles <= enough && messages <= most_chunks && !too_many_ranks) || full <= most) return;
            axes_.push_back({k, cut, full, most, most - fewer});
            messages *= static_cast<double>(most) / static_cast<double>(full);
            tiles = std::max<std::int64_t>(tiles / full, 1) * most;
        };
        if (problem_.sequential) return;
        if (plan_.generator == GeneratorKind::pivot && !problem_.bounds.empty()) return;
        // Bounds give tiles along a dimension different work, and so do skewed loops.
        const bool even = problem_.bounds.empty();
        const int m = plan_.mapping_dim;
        const std::vector<double> speeds = machine_.lane_speeds(plan_.ranks(), plan_.lanes());
        const bool equal = std::ranges::adjacent_find(speeds, std::not_equal_to()) == speeds.end() &&
                           problem_.weights.empty() && problem_.cuts.empty();
        auto whole = [&](int k) { return even && plan_.grid[k] == 1 && problem_.loops.keeps(k); };
        auto fewer_tiles = [&](int k) {
            const std::int64_t together = k == 0 ? plan_.temporal_block : 1;
            std::int64_t most = messages > most_chunks ? few_steps_played : steps_played;
            // Of all ranks as many steps as there is room for.
            if (all_ranks_)
                most = std::clamp(enough / std::max<std::int64_t>(tiles / cells(problem_, plan_, k), 1), least_steps,
                                  most_steps);
            most = std::max<std::int64_t>({most / together * together, 2 * plan_.factors[k], 2 * together});
            if (whole(k)) reduce(k, false, cells(problem_, plan_, k), most, together > 1 ? together : most / 3);
        };
        // Of the blocks of many ranks, with faces as much smaller. Pipelines of a sweep would fill otherwise.
        const auto smaller_blocks = [&](int k) {
            const std::int64_t most = std::max<std::int64_t>(tiles_of_blocks, 2 * plan_.factors[k]);
            if (plan_.generator == GeneratorKind::stencil && even && plan_.grid[k] > 1 && problem_.loops.keeps(k) &&
                equal && tiles > many_tiles)
                reduce(k, false, cells(problem_, plan_, k), most, most / 2);
        };
        const auto fewer_ranks = [&] {
            for (int k = 0; k < problem_.dims(); ++k)
                if (plan_.grid[k] > 1 && equal) reduce(k, true, plan_.grid[k], ranks_played, 2);
        };
        fewer_tiles(m);
        if (plan_.generator == GeneratorKind::pivot) return;
        if (!all_ranks_) fewer_ranks();
        for (int k = 0; k < problem_.dims(); ++k)
            if (k != m) fewer_tiles(k);
        if (all_ranks_) fewer_ranks();
        for (int k = 0; k < problem_.dims() && !all_ranks_; ++k) smaller_blocks(k);
    }

    // About how many messages so many tiles have: their faces at borders of ranks, in chunks.
    double chunks_of_faces(double tiles) const {
        double found = 0;
        for (int k = 0; k < problem_.dims(); ++k) {
            if (plan_.grid[k] == 1 || problem_.arrays.empty()) continue;
            auto bytes = static_cast<double>(problem_.arrays.front().item_bytes);
            for (int l = 0; l < problem_.dims(); ++l)
                if (l != k) bytes *= static_cast<double>(plan_.tile[l]);
            const double chunks =
                std::max(bytes / static_cast<double>(std::max<std::int64_t>(plan_.chunk_bytes, 1)), 1.0);
            found += tiles / static_cast<double>(cells(problem_, plan_, k)) * chunks;
        }
        return found;
    }

    std::string sample() const {
        std::string text, ranks = "all ranks";
        for (const SimulatedAxis& a : axes_) {
            const std::string one =
                concat(a.low, " and ", a.high, " of ", a.full, a.cut ? " ranks" : " tiles", " along loop ", a.k + 1);
            (a.cut ? ranks : text) = a.cut && ranks == "all ranks" ? one : (a.cut ? ranks : text) + ", " + one;
        }
        return ranks + text;
    }

    // Along axis i and those after it as `counts` says.
    Parts at(std::size_t i, std::vector<std::int64_t> counts) {
        if (i == axes_.size()) return play(counts);
        const SimulatedAxis& a = axes_[i];
        counts[i] = a.low;
        const Parts low = at(i + 1, counts);
        counts[i] = a.high;
        const Parts high = at(i + 1, counts);
        return go_on(low, high, a);
    }

    Parts play(const std::vector<std::int64_t>& counts) {
        SweepProblem p = problem_;
        Plan plan = plan_;
        for (std::size_t i = 0; i < axes_.size(); ++i) {
            const SimulatedAxis& a = axes_[i];
            if (a.cut) {
                // The last point of an array may make one block larger that has no more points to compute.
                const SweepProblem before = p;
                plan.grid[a.k] = counts[i];
                shorten(p, a.k, ceil_div(p.shape[a.k], a.full) * counts[i]);
                if (largest_block(p, plan.grid, a.k) > largest_block(problem_, plan_.grid, a.k)) {
                    p = before;
                    shorten(p, a.k, std::max<std::int64_t>(p.shape[a.k] / a.full, 1) * counts[i]);
                }
                p.bounds.clear();
            } else {
                const std::int64_t points = counts[i] * plan.tile[a.k] * plan.grid[a.k];
                shorten(p, a.k, p.shape[a.k] - (p.space.extent(a.k) - std::min(points, p.space.extent(a.k))));
            }
        }
        const Layout all(problem_.shape, plan_.grid), some(p.shape, plan.grid);
        std::vector<int> ranks;
        for (int r = 0; r < some.ranks(); ++r) {
            const Index at = some.coords(r);
            int rank = 0;
            for (int k = 0; k < at.n; ++k) rank = rank * static_cast<int>(plan_.grid[k]) + static_cast<int>(at[k]);
            ranks.push_back(rank);
        }
        Machine machine = part_of(machine_, ranks, plan_.ranks());
        // Few tiles end before all ranks compute at once, as they do most of the time where there are many.
        if (!axes_.empty() || machine.set_of.empty()) {
            machine.speeds = machine_.lane_speeds(plan_.ranks(), plan_.lanes());
            machine.set_of.clear();
        }
        std::vector<Schedule> schedules;
        for (int r = 0; r < some.ranks(); ++r) schedules.push_back(nest_schedule(p, plan, r));
        memory_bytes_ = 0;
        for (const Schedule& s : schedules) memory_bytes_ = std::max(memory_bytes_, memory_of(&s));
        PredictOptions options{plan_.poll_period_s, false};
        options.times = nest_repetitions(p, plan);
        return predict(schedules, machine, nest_rates(p, plan, rate_), options).parts;
    }

    // A rank's parts of the arrays of the whole problem, and the staging of the schedule that was simulated.
    std::int64_t memory_of(const Schedule* s) const {
        std::int64_t bytes = s ? s->buffer_bytes() : 0;
        const auto first = problem_.weights.begin(),
                   end = first + std::min<std::ptrdiff_t>(plan_.ranks(), std::ssize(problem_.weights));
        const auto largest = static_cast<int>(std::max_element(first, end) - first);
        for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a) {
            const NestArray& n = problem_.arrays[a];
            if (n.replicated) continue;
            if (s && s->arrays[a].planes > 0) {
                bytes += window_bytes(s->arrays[a], *s);
                continue;
            }
            bytes += array_bytes(problem_, plan_, a, largest);
        }
        for (std::size_t a = problem_.arrays.size(); s && a < s->arrays.size(); ++a) {  // what is kept in addition
            const Array& kept = s->arrays[a];
            Box one = kept.storage;
            one.lo[0] = 0, one.hi[0] = kept.time_buffers;
            bytes += kept.item_bytes * one.points();
        }
        return bytes;
    }

    // The planes, and as much in addition as tiles leave for the next ones.
    std::int64_t window_bytes(const Array& array, const Schedule& s) const {
        const WindowShape& window = only_nest(s).window;
        std::int64_t row = array.item_bytes, across = array.item_bytes;
        for (int k = 0; k < problem_.dims(); ++k) {
            const std::int64_t extent = std::max<std::int64_t>(image(problem_.loops, problem_.space).extent(k), 1);
            if (k != window.across) row *= ceil_div(extent, plan_.grid[k]) + array.reach[k];
            if (k != window.along) across *= extent + array.reach[k];
        }
        return row * array.planes + across * std::max<std::int64_t>(array.reach[window.along], 1) * plan_.lanes();
    }

    const SweepProblem& problem_;
    const Plan& plan_;
    const Machine& machine_;
    const KernelRate& rate_;
    bool all_ranks_;
    std::vector<SimulatedAxis> axes_;
    std::int64_t memory_bytes_ = 0, tiles_ = 0;
};

}  // namespace

double simulated_steps(const SweepProblem& problem, const Plan& plan, const Machine& machine) {
    return Evaluation(problem, plan, machine, {}, Simulated::some_ranks).steps();
}

Candidate evaluate(const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate,
                   Simulated simulated) {
    plan.validate(problem, plan.ranks());
    return Evaluation(problem, plan, machine, rate, simulated).result();
}

double border_s(const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate) {
    if (problem.sequential || has_tasks(plan) || (plan.ranks() == 1 && plan.lanes() == 1)) return 0;
    SweepProblem p = problem;
    const std::int64_t together = std::max<std::int64_t>(plan.temporal_block, plan.tile[0]);
    const std::int64_t steps =
        std::min(problem.space.extent(0), std::max(steps_played / together, std::int64_t{2}) * together);
    p.shape[0] += steps - problem.space.extent(0);
    p.space.hi[0] += steps - problem.space.extent(0);
    std::int64_t tiles = plan.slices;
    for (int k = 0; k < p.dims(); ++k) tiles *= cells(p, plan, k) * plan.grid[k];
    if (tiles > most_tiles) return 0;
    std::vector<Schedule> schedules;
    for (int r = 0; r < plan.ranks(); ++r) schedules.push_back(repeated_block(p, nest_schedule(p, plan, r)));
    double time_s[2];
    for (int times : {1, 2}) {
        PredictOptions options{plan.poll_period_s, false};
        options.times = times;
        time_s[times - 1] = predict(schedules, machine, rate, options).time_s;
    }
    return time_s[1] - 2 * time_s[0];
}

}  // namespace tilewave
