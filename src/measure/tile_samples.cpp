#include "measure/tile_samples.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>

#include "core/clock.hpp"
#include "data/memory.hpp"
#include "execute/executor.hpp"
#include "generate/nest/nest.hpp"
#include "measure/sample_pieces.hpp"
#include "measure/tuning.hpp"
#include "plan/nests/estimate.hpp"
#include "plan/nests/rates.hpp"
#include "predict/tile_work.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// The boxes widened by how far points read, so that what they read is filled too.
Box with_neighbours(const Box& box, const std::vector<Access>& places) {
    Box all = box;
    for (const Access& p : places) all = hull(all, box.shifted(p.offset));
    return all;
}

}  // namespace

void fill(const Binding& b, const Index& first, const Box& part, std::int64_t item_bytes, const std::byte* value) {
    if (part.empty()) return;
    int inner = 0;
    auto size = [&](int k) { return b.stride_bytes[k] < 0 ? -b.stride_bytes[k] : b.stride_bytes[k]; };
    for (int k = 0; k < part.dims(); ++k)
        if (part.extent(k) > 1 && (part.extent(inner) <= 1 || size(k) < size(inner))) inner = k;
    Index at = part.lo;
    do {
        std::intptr_t to = reinterpret_cast<std::intptr_t>(b.data);
        for (int k = 0; k < at.n; ++k) to += (at[k] - first[k]) * b.stride_bytes[k];
        // A size that is known when compiling is copied without a call.
        auto run = [&](auto size) {
            for (std::int64_t i = 0; i < part.extent(inner); ++i)
                std::memcpy(reinterpret_cast<std::byte*>(to + i * b.stride_bytes[inner]), value,
                            static_cast<std::size_t>(size));
        };
        switch (item_bytes) {
            case 4: run(std::integral_constant<int, 4>{}); break;
            case 8: run(std::integral_constant<int, 8>{}); break;
            default: run(item_bytes);
        }
    } while (next_point(at, part, 1u << inner));
}

void SampleMemory::fill_around(const Schedule& schedule, const Box& tile) const {
    for (std::size_t a = 0; a < bindings.size(); ++a) {
        if (!replaced[a] || filled[a]) continue;
        const Array& array = schedule.arrays[a];
        Box part = intersect(array.elements(with_neighbours(tile, only_nest(schedule).places)), array.storage);
        Index first = array.storage.lo;
        if (array.time_buffers > 0)  // in memory, one time buffer after the other
            part.lo[0] = 0, part.hi[0] = array.time_buffers, first[0] = 0;
        fill(bindings[a], first, part, array.item_bytes, values[a].data());
    }
}

namespace {

// What a run pays on average, too, for what disturbs its tiles; but one that was interrupted for long does not decide
// alone, nor does it count among few_times.
double usual(std::vector<double>& values) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    // While others have the CPU nothing is known of the tile.
    const double low = values[(values.size() - 1) / 4];
    values.erase(std::ranges::upper_bound(values, 1.5 * low + least_absence_s), values.end());
    const double middle = values[(values.size() - 1) / 2];
    if (values.size() < few_times) return middle;
    return std::accumulate(values.begin(), values.end(), 0.0,
                           [&](double sum, double v) { return sum + std::min(v, 2 * middle); }) /
           static_cast<double>(values.size());
}

// RateSample::spread of these times.
double spread(std::vector<double>& values) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const std::size_t last = values.size() - 1;
    return (values[3 * last / 4] - values[last / 4]) / std::max(values[last / 2], 1e-12);
}

// Elements of arrays that boxes have, in bytes; more where boxes have the same ones.
std::int64_t touched_bytes(const Schedule& s, const std::vector<bool>& replaced, const Pieces& boxes) {
    std::int64_t bytes = 0;
    for (std::size_t a = 0; a < replaced.size(); ++a)
        for (const auto& lane : boxes)
            for (const Box& box : lane)
                if (replaced[a]) bytes += s.arrays[a].elements(box).points() * s.arrays[a].item_bytes;
    return bytes;
}

// Evicts the caches of all lanes between samples, as the rest of the arrays would in a run.
class Displacement {
public:
    Displacement(Context& context, int lanes, std::int64_t bytes)
        : context_(context), each_(std::max<std::int64_t>(bytes, 0) / lanes / cache_line_bytes * cache_line_bytes) {
        for (int l = 0; l < lanes && each_ > 0; ++l) memory_.push_back(aligned_memory(each_));
    }
    void operator()() const {
        if (each_ <= 0) return;
        context_.lanes().run(static_cast<int>(memory_.size()), [&](int l) {
            std::byte* at = memory_[l].get();
            for (std::byte* const end = at + each_; at != end; at += 64) *at = std::byte{1};
        });
    }

private:
    Context& context_;
    std::int64_t each_;
    std::vector<std::shared_ptr<std::byte[]>> memory_;
};

// Computes the boxes again and again; what a tile takes on the slowest lane, with its rows and points.
class Trial {
public:
    // `whole`: the schedule that the boxes are from, as it says how tiles are cut into rows. `point_s`: about what a
    // point takes, 0 where that is not known.
    Trial(const Schedule& whole, const Schedule& schedule, std::span<const Binding> bindings, const Kernel& kernel,
          Context& context, double point_s)
        : s_(schedule), bindings_(bindings), kernel_(kernel), context_(context), options_(context.options()) {
        options_.record = true;
        times_.resize(schedule.lanes.size());
        options_.poll_period_s = 0;
        options_.heartbeat = nullptr;
        TileWork work(whole, only_nest(whole));
        for (const Tile& t : s_.tiles) {
            work_.push_back(work.of(t.box));
            if (work_.back().points > most_.points) most_ = work_.back();
        }
        // What other threads and programs take of the CPUs meanwhile is none of the body's, and the predictor's to say.
        options_.cpu_time = options_.crowded || static_cast<int>(schedule.lanes.size()) > context.threads() ||
                            point_s * most_.points > least_cpu_timed_s;
    }
    void keep_window(WindowMemory* memory) { options_.window = memory; }

    // False where the kernel raised.
    bool run(double budget_s, int most_rounds, const std::function<void()>& before = {}) {
        const double end = now_s() + budget_s;
        for (int round = 0;
             round < most_rounds && (round < 2 || now_s() < end + (round < least_rounds ? 2 * budget_s : 0)); ++round) {
            if (round > 0 && before) before();
            const Outcome o = execute(s_, bindings_, kernel_, context_.transport(), context_.lanes(), options_);
            o.must_have_run();
            if (o.failure) return false;
            if (round == 0) continue;
            for (const Event& e : o.timeline.events) {
                const Step& step = s_.lanes[e.lane][e.step];
                const RowCount& w = work_[step.item];
                // Tiles that are nearly as large count, too: of a deep_halo there is less with each step of time, and
                // the first steps are those that fetch from memory.
                if (alike_points * w.points < (alike_points - 1) * most_.points ||
                    alike_points * w.rows < (alike_points - 1) * most_.rows)
                    continue;
                times_[e.lane].push_back((e.end_s - e.begin_s) * static_cast<double>(most_.points) /
                                         static_cast<double>(w.points));
            }
        }
        return true;
    }
    RateSample sample() {
        if (most_.points == 0) return {};
        // Lanes wait for each other, so that all end with the slowest.
        double slowest = 0, most_spread = 0;
        for (auto& times : times_) {
            most_spread = std::max(most_spread, spread(times));
            slowest = std::max(slowest, usual(times));
        }
        return {static_cast<double>(most_.rows), static_cast<double>(most_.points), slowest, most_spread};
    }

private:
    const Schedule& s_;
    std::span<const Binding> bindings_;
    const Kernel& kernel_;
    Context& context_;
    ExecuteOptions options_;
    std::vector<RowCount> work_;              // by tile
    RowCount most_;                           // tiles with less are at an edge
    std::vector<std::vector<double>> times_;  // by lane
};

// Its points; 0 without tiles.
std::int64_t largest_tile(const Schedule& schedule) {
    std::int64_t most = 0;
    for (const Tile& tile : schedule.tiles) most = std::max(most, tile.box.points());
    return most;
}

}  // namespace

std::int64_t element_bytes(const SweepProblem& problem, const Plan& plan) {
    std::int64_t bytes = 0;
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a) {
        const NestArray& n = problem.arrays[a];
        if (n.replicated) continue;
        std::int64_t items = std::max(n.time_buffers, 1);
        for (const std::int64_t extent : n.shape) items *= extent;
        bytes += items * n.item_bytes;
    }
    for (const std::int64_t g : plan.grid) bytes /= g;
    return bytes;
}

std::pair<SweepProblem, Plan> sample_case(const SweepProblem& problem, const Plan& plan, int rank) {
    const Index row = plan.row.n ? plan.row : Index::unit(problem.dims(), problem.dims() - 1);
    SweepProblem less = problem;
    while (held_bytes(less, plan, rank) > most_sample_bytes) {
        // The dimension that leaves least. Of equals one that rows do not go along, as what lies between two rows is to
        // stay; then the longest in tiles, which stay as they are; then the first, as layers stay. 512^3 floats with
        // all three halved: 2.5 points a ns, where a run has 1.1.
        int best = -1;
        auto merit = [&](int k) {
            const std::int64_t tiles = less.space.extent(k) / std::max<std::int64_t>(plan.tile[k], 1);
            return std::pair{row[k] == 0, tiles > 1 ? tiles : 0};
        };
        auto holds = [&](int k) {
            for (int a = 0; a < static_cast<int>(less.arrays.size()); ++a)
                if (!less.arrays[a].replicated && !less.lacks(a, k)) return true;
            return false;
        };
        auto halved = [&](int k) {
            SweepProblem p = less;
            shorten(p, k, p.shape[k] / 2);
            return p;
        };
        std::int64_t least = 0;
        for (int k = 0; k < less.dims(); ++k) {
            if (!holds(k) || less.space.extent(k) <= 1 || less.shape[k] / 2 <= less.shape[k] - less.space.extent(k))
                continue;
            const std::int64_t left = held_bytes(halved(k), plan, rank);
            // Padding makes halves differ a little.
            if (best >= 0 && (left > least + least / 8 || (left > least - least / 8 && merit(k) <= merit(best))))
                continue;
            best = k;
            least = left;
        }
        if (best < 0) break;
        less = halved(best);
    }
    // Rows of a few points would not tell a row's cost from a point's. Longer ones are measured as they are: what a row
    // costs depends on how it lies. Linear 64 x 64 x 8192 floats on two ranks, skewed rows of 16 of 63 points: 52 ns a
    // row, of which rows of 63 points show 9.
    const bool few_points = tile_row_points(plan) < least_row;
    Plan taken = plan;
    const std::vector<bool> single = less.unit_dims();
    for (int k = 0; k < less.dims(); ++k) {
        const std::int64_t most = std::max<std::int64_t>(largest_block(less, plan.grid, k), 1);
        const bool widen = few_points && row[k] != 0 && !less.sequential && !single[k];
        // Not into the share of other lanes, which would have no tiles then.
        const std::int64_t wide = std::min(telling_row, ceil_div(most, plan.factors[k]));
        const bool whole = less.sequential && !single[k];
        taken.tile[k] = whole ? most : std::min(widen ? std::max(taken.tile[k], wide) : taken.tile[k], most);
    }
    return {std::move(less), std::move(taken)};
}

std::vector<RateSample> sample_tiles(const Schedule& schedule, const SampleMemory& memory, const Kernel& kernel,
                                     Context& context, double budget_s, std::int64_t run_bytes) {
    std::vector<RateSample> samples(3);
    const Pieces tiles = tiles_by_lane(schedule);
    const std::vector<bool> rows = varied_by_rows(schedule), all(rows.size(), true);
    std::mutex filling;  // what is around the tiles of one lane is around those of others, too
    auto prepare = [&](const Pieces& boxes) {
        context.lanes().run(static_cast<int>(boxes.size()), [&](int l) {
            const std::lock_guard<std::mutex> turn(filling);
            for (const Box& box : boxes[l]) memory.fill_around(schedule, box);
        });
    };
    double point_s = 0;
    auto time = [&](const Pieces& boxes, double seconds, int rounds, RateSample& sample,
                    const std::function<void()>& before = {}) {
        const Schedule s = computing(schedule, boxes);
        Trial trial(schedule, s, memory.bindings, kernel, context, point_s);
        if (!trial.run(seconds, rounds, before)) return false;
        sample = trial.sample();
        return true;
    };
    for (const std::int64_t points : {probe_points, second_probe_points}) {
        if (static_cast<double>(points) * point_s > budget_s / 50) break;
        const Pieces first = cut(tiles, points, points, rows);
        prepare(first);
        if (!time(first, 0, 3, samples[0])) return {};
        point_s = std::max(samples[0].tile_s / std::max(samples[0].points, 1.0), 1e-11);
    }
    const std::int64_t largest = largest_tile(schedule);
    // Memory is filled once and computed at least twice.
    const auto total =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(budget_s / 5 / point_s), probe_points, most_sample_points);
    // A whole tile, if there is time: parts of skewed rows lie further from each other than whole ones.
    const Pieces fresh = cut(tiles, largest <= total ? total : total / 3, total, rows);
    prepare(fresh);
    // A run finds in the caches what is left there by all of its arrays, not by the part that there is time for.
    const std::int64_t caches = context.machine().shared_cache_bytes;
    const std::int64_t displaced = std::min({run_bytes, most_displaced, caches > 0 ? caches + caches / 2 : run_bytes});
    const Displacement rest(context, static_cast<int>(fresh.size()),
                            displaced - touched_bytes(schedule, memory.replaced, fresh));
    const auto before = [&] { rest(); };
    if (!time(fresh, budget_s / 3, 50, samples[0], before)) return {};
    const bool streams = touched_bytes(schedule, memory.replaced, fresh) >
                         2 * context.machine().cache_bytes * static_cast<std::int64_t>(fresh.size());
    if (!time(strips(fresh, rows, streams ? short_row_of_streams : short_row, std::max(total / 3, largest)),
              budget_s / 10, 20, samples[1], before))
        return {};
    if (!time(middles(fresh, all, tiny_extent), budget_s / 20, 20, samples[2])) return {};
    if (fresh.size() > 1) {  // as many points as a lane has: a lane that is alone has those of the others, too
        RateSample alone;
        if (!time(on_one_lane(fresh, total), budget_s / 10, 20, alone, before)) return {};
        if (alone.points > 0) samples.push_back(alone);
    }
    return samples;
}

std::vector<RateSample> sample_window(const SweepProblem& problem, const Plan& by_plan, const Schedule& schedule,
                                      const SampleMemory& memory, const Kernel& kernel, Context& context,
                                      double budget_s) {
    std::vector<RateSample> samples(3);
    double point_s = 0;
    bool cut_short = true;
    for (const int shape : {2, 1, 0, 0}) {
        // Points of short rows take longer: where they made tiles shorter, the largest are measured once more.
        if (!cut_short) break;
        cut_short = shape > 0;
        Plan plan = by_plan;
        std::int64_t& height = plan.tile[problem.window.across];
        height = std::min<std::int64_t>(height, planes_of_window_tiles[shape]);
        // Rows of two lengths, and not as many everywhere; but there is a limit to how many tiles are worth it.
        if (const int width = width_of_tiles[problem.window.slant != 0][shape]) {
            std::int64_t& along = plan.tile[problem.window.along];
            along = std::min<std::int64_t>(along, std::max<std::int64_t>(width, ceil_div(along, most_tiles_along)));
        }
        Schedule whole = nest_schedule(problem, plan, context.rank(), context.size());
        const double seconds = point_s * static_cast<double>(largest_tile(whole));
        if (seconds > budget_s / 6) {
            cut_short = true;
            height = std::clamp<std::int64_t>(
                static_cast<std::int64_t>(static_cast<double>(height) * budget_s / 6 / seconds), 1, height);
            whole = nest_schedule(problem, plan, context.rank(), context.size());
        }
        Pieces tiles = tiles_by_lane(whole);
        for (auto& lane : tiles) lane.resize(std::min<std::size_t>(lane.size(), shape == 0 ? 4 : 8));
        const Schedule s = computing(whole, tiles);
        if (s.tiles.empty()) return samples;
        const RollingWindow window(whole);
        for (const auto& lane : tiles)
            for (const Box& box : lane) memory.fill_around(schedule, box);
        WindowMemory planes(window, memory.initial);
        auto time = [&](const Schedule& part, RateSample& sample) {
            Trial trial(whole, part, memory.bindings, kernel, context, point_s);
            trial.keep_window(&planes);
            if (!trial.run(budget_s / 4, 20)) return false;
            sample = trial.sample();
            return true;
        };
        RateSample& found = samples[shape];
        if (!time(s, found)) return {};
        point_s = found.tile_s / std::max(found.points, 1.0);
        if (shape == 0 && tiles.size() > 1) {
            samples.resize(3);
            for (std::size_t lane = 1; lane < tiles.size(); ++lane) tiles[lane].clear();
            RateSample alone;
            if (!time(computing(whole, tiles), alone)) return {};
            if (alone.points > 0) samples.push_back(alone);
        }
    }
    return samples;
}

}  // namespace tilewave
