#include "nests/pivot.hpp"

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "data/memory.hpp"
#include "execute/computers/reduced_rows.hpp"
#include "execute/lanes/lanes.hpp"
#include "tilewave/engine/limits.hpp"
#include "tilewave/engine/task.hpp"

namespace tilewave {

// What the tasks of a run share.
struct PivotTasks::Calls {
    struct Place {
        PivotRead what = PivotRead::point;
        std::size_t number = 0;  // of the matrix; of an operand, of the place
    };

    PivotProblem problem;
    std::int64_t strip = 1;  // columns of a call of the kernel
    std::vector<PivotBlock> blocks;
    std::int64_t versions = 1;
    std::vector<Place> places;
    std::vector<int> kept_number;  // by matrix, its place among those with kept rows
    Kernel kernel;
    ReducedRows rows;
    int lanes = 1;
    std::vector<LoopMemory> operands;
    Explain explain;

    void row(int lane, char* const* pointers, const std::int64_t* step, std::int64_t points, const Index& index) {
        const std::int64_t code = rows.compute(lane, pointers, step, points, index, {0, 0, 1});
        if (code != 0) fail(code, index);
    }
    // Whether it takes several rows at once: none of them is to be reduced before the next.
    bool several() const { return kernel.rows && kernel.reductions.empty(); }
    [[noreturn]] void fail(std::int64_t code, Index index) const {
        index[2] += code / error_sites;
        throw KernelError(explain({code % error_sites, index}));
    }
};

namespace {

/// Steps of a panel for which some of its rows are carried ahead of its others: these then follow at the speed of
/// updates.
constexpr std::int64_t panel_steps = 8;

// Steps, rows or columns [lo, hi).
struct Range {
    std::int64_t lo = 0, hi = 0;
    std::int64_t size() const { return std::max<std::int64_t>(0, hi - lo); }
};

template <std::size_t item>
void copy_items(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t stride, std::int64_t count) {
    for (std::int64_t n = 0; n < count; ++n) std::memcpy(to + n * to_stride, from + n * stride, item);
}

// Items in any strides.
void copy_items(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t stride, std::int64_t count,
                std::int64_t item) {
    if (to_stride == item && stride == item)
        std::memcpy(to, from, static_cast<std::size_t>(count * item));
    else if (item == 8)
        copy_items<8>(to, to_stride, from, stride, count);
    else if (item == 4)
        copy_items<4>(to, to_stride, from, stride, count);
    else if (item == 16)
        copy_items<16>(to, to_stride, from, stride, count);
    else if (item == 2)
        copy_items<2>(to, to_stride, from, stride, count);
    else
        copy_items<1>(to, to_stride, from, stride, count);
}

// One task: some rows of the matrices, and the kept rows of a block of steps.
//
// Point (k, i, j) reads row k as it is before step k where i is k or comes before it, else as it is after the step; and
// column k likewise, by j and k. In step k only the elements of row k and column k decide about others: so they are
// kept, in both states, and all else is independent.
class PivotCall {
public:
    using Calls = PivotTasks::Calls;
    PivotCall(Calls& calls, const PivotProblem& problem, const TaskCall& call)
        : c_(calls),
          p_(problem),
          lane_(call.lane),
          rows_{call.writes[0].box.lo[0], call.writes[0].box.hi[0]},
          places_(calls.places.size()) {
        const std::size_t matrices = p_.matrices.size();
        for (std::size_t m = 0; m < matrices; ++m) matrices_.push_back(call.writes[m]);
        const auto& lists = call.writes.size() > matrices ? call.writes : call.reads;
        for (std::size_t n = matrices; n < lists.size(); ++n) kept_.push_back(lists[n]);
        const PivotBlock& block = c_.blocks[lists.back().box.lo[0]];
        block_ = {block.lo, block.hi};
        for (const auto& m : p_.matrices)
            columns_.emplace_back(
                static_cast<std::size_t>(m.pivots ? 2 * rows_.size() * block_.size() * m.item_bytes : 0));
        pointers_.resize(places_ + c_.kernel.tables.size());
        std::ranges::copy(c_.kernel.tables, pointers_.begin() + static_cast<std::ptrdiff_t>(places_));
        step_.resize(places_), next_.resize(places_), down_.resize(places_);
        const int turn = p_.down[0] ? -1 : 1;
        for (std::size_t q = 0; q < places_; ++q) set_steps(q, turn);
    }

    void panel() {
        for (std::int64_t at = 0; at < block_.size(); at += panel_steps) {
            const std::int64_t size = std::min(panel_steps, block_.size() - at);
            const Range steps = p_.down[0] ? Range{block_.hi - at - size, block_.hi - at}
                                           : Range{block_.lo + at, block_.lo + at + size};
            own_rows(steps);
            other_rows(steps, {rows_.lo, steps.lo});
            other_rows(steps, {steps.hi, rows_.hi});
        }
    }
    void update() { other_rows(block_, rows_); }

private:
    void set_steps(std::size_t q, int turn) {
        const auto [what, a] = c_.places[q];
        if (what == PivotRead::operand) {
            const Index& stride = c_.operands[a].stride_bytes;
            step_[q] = stride[2], next_[q] = turn * stride[0], down_[q] = stride[1];
            return;
        }
        const std::int64_t item = p_.matrices[a].item_bytes;
        step_[q] = what == PivotRead::point ? matrices_[a].stride_bytes[1] : what == PivotRead::row ? item : 0;
        if (what == PivotRead::point) down_[q] = matrices_[a].stride_bytes[0];
        if (what == PivotRead::column) next_[q] = turn * item, down_[q] = block_.size() * item;
        if (what == PivotRead::row) next_[q] = turn * kept_of(a).stride_bytes[1];
        if (what == PivotRead::corner) next_[q] = turn * (kept_of(a).stride_bytes[1] + item);
    }

    const RegionView& kept_of(std::size_t a) const { return kept_[c_.kept_number[a]]; }
    std::byte* element(std::size_t a, std::int64_t i, std::int64_t j) const {
        const RegionView& v = matrices_[a];
        return v.data + (i - v.box.lo[0]) * v.stride_bytes[0] + (j - v.box.lo[1]) * v.stride_bytes[1];
    }
    // Row k from column j on, before its step or after.
    std::byte* row(std::size_t a, std::int64_t k, std::int64_t j, bool after) const {
        const RegionView& v = kept_of(a);
        return v.data + ((after ? c_.versions - 1 : 0) * block_.size() + k - block_.lo) * v.stride_bytes[1] +
               j * v.item_bytes;
    }
    // Row i of column k, before step k or after.
    std::byte* column(std::size_t a, std::int64_t i, std::int64_t k, bool after) {
        return columns_[a].data() + (((after ? rows_.size() : 0) + i - rows_.lo) * block_.size() + k - block_.lo) *
                                        p_.matrices[a].item_bytes;
    }

    // Whether loop d is past step k at x.
    bool past(int d, std::int64_t x, std::int64_t k) const { return x != k && p_.down[d] == (x < k); }

    void keep_row(std::int64_t k, const Range& columns, bool after) {
        if (after && c_.versions == 1) return;
        for (std::size_t m = 0; m < p_.matrices.size(); ++m) {
            if (!p_.matrices[m].pivots) continue;
            const std::int64_t item = p_.matrices[m].item_bytes, stride = matrices_[m].stride_bytes[1];
            std::byte *to = row(m, k, columns.lo, after), *from = element(m, k, columns.lo);
            copy_items(to, item, from, stride, columns.size(), item);
        }
    }
    void keep_column(const Range& rows, std::int64_t k, bool after) {
        for (std::size_t m = 0; m < p_.matrices.size(); ++m) {
            if (!p_.matrices[m].pivots) continue;
            copy_items(column(m, rows.lo, k, after), block_.size() * p_.matrices[m].item_bytes, element(m, rows.lo, k),
                       matrices_[m].stride_bytes[0], rows.size(), p_.matrices[m].item_bytes);
        }
    }

    // Pointers of the places at a point; column k is past its step there or not.
    void point_at(std::int64_t k, std::int64_t i, std::int64_t j, bool after_column) {
        const bool after_row = past(1, i, k);
        for (std::size_t q = 0; q < places_; ++q) {
            const auto [what, a] = c_.places[q];
            std::byte* at = nullptr;
            if (what == PivotRead::point)
                at = element(a, i, j);
            else if (what == PivotRead::row)
                at = row(a, k, j, after_row);
            else if (what == PivotRead::column)
                at = column(a, i, k, after_column);
            else if (what == PivotRead::corner)  // of row k itself the row after the step is not kept yet
                at = i == k ? column(a, k, k, after_column) : row(a, k, k, after_row);
            else
                at = c_.operands[a].data + k * c_.operands[a].stride_bytes[0] + i * c_.operands[a].stride_bytes[1] +
                     j * c_.operands[a].stride_bytes[2];
            pointers_[q] = reinterpret_cast<char*>(at);
        }
    }

    // Row (k, i) within some columns that are all on one side of column k.
    void points(std::int64_t k, std::int64_t i, Range columns, bool after_column) {
        const auto [lo, hi] = p_.clipped({k, i, 0}, columns.lo, columns.hi);
        if (lo >= hi) return;
        point_at(k, i, lo, after_column);
        c_.row(lane_, pointers_.data(), step_.data(), hi - lo, {k, i, lo});
    }

    // Rows on one side of row k, or row k, within some columns that are all on one side of column k.
    void all_rows(std::int64_t k, const Range& rows, const Range& columns, bool after_column) {
        const Box box = intersect({{k, rows.lo, columns.lo}, {k + 1, rows.hi, columns.hi}}, p_.space);
        if (p_.none_in(box)) return;
        if (c_.several() && p_.all_in(box)) return several(box, {0, 1, 0}, down_, after_column);
        for (std::int64_t i = rows.lo; i < rows.hi; ++i) points(k, i, columns, after_column);
    }

    // So many rows in one call, each a step or a row further on.
    void several(const Box& box, const Index& turn, const std::vector<std::int64_t>& move, bool after_column) {
        const std::int64_t k = turn[0] < 0 ? box.hi[0] - 1 : box.lo[0],
                           count = turn[0] != 0 ? box.extent(0) : box.extent(1);
        point_at(k, box.lo[1], box.lo[2], after_column);
        while (std::ssize(spans_) < count) spans_.push_back({std::ssize(spans_), 0, 0});
        for (std::int64_t n = 0; n < count; ++n) spans_[n].points = box.extent(2);
        const std::int64_t index[3] = {k, box.lo[1], box.lo[2]}, along[3] = {0, 0, 1};
        const Kernel& kernel = c_.kernel;
        const std::int64_t code = kernel.rows(pointers_.data(), step_.data(), count, spans_.data(), move.data(), index,
                                              along, turn.v.data(), kernel.env);
        const std::int64_t row = code >> 32;
        if (code != 0) c_.fail(code & 0xffffffff, {k + turn[0] * row, index[1] + turn[1] * row, index[2]});
    }

    // Rows in step k, in the columns of the steps: keeps their elements of column k.
    void carry(const Range& rows, std::int64_t k, const Range& steps) {
        if (rows.size() == 0) return;
        keep_column(rows, k, false);
        all_rows(k, rows, p_.down[2] ? Range{k, steps.hi} : Range{steps.lo, k + 1}, false);
        keep_column(rows, k, true);
        all_rows(k, rows, p_.down[2] ? Range{steps.lo, k} : Range{k + 1, steps.hi}, true);
    }

    // f(k) for the steps in their order.
    template <class F>
    void in_order(const Range& steps, F f) const {
        for (std::int64_t n = 0; n < steps.size(); ++n) f(p_.down[0] ? steps.hi - 1 - n : steps.lo + n);
    }
    // f(strip, whether column k is past its step there) for the columns beside those of the steps.
    template <class F>
    void strips(const Range& steps, F f) const {
        for (const Range& side : {Range{0, steps.lo}, Range{steps.hi, p_.columns}})
            for (std::int64_t j = side.lo; j < side.hi; j += c_.strip)
                f(Range{j, std::min(side.hi, j + c_.strip)}, p_.down[2] == (j < steps.lo));
    }

    // The rows of the steps, which are kept.
    void own_rows(const Range& steps) {
        in_order(steps, [&](std::int64_t k) {
            keep_row(k, steps, false);
            carry({k, k + 1}, k, steps);
            keep_row(k, steps, true);
            carry({steps.lo, k}, k, steps);
            carry({k + 1, steps.hi}, k, steps);
        });
        strips(steps, [&](const Range& strip, bool after) {
            in_order(steps, [&](std::int64_t k) {
                keep_row(k, strip, false);
                points(k, k, strip, after);
                keep_row(k, strip, true);
                all_rows(k, {steps.lo, k}, strip, after);
                all_rows(k, {k + 1, steps.hi}, strip, after);
            });
        });
    }

    // Rows before or behind those of the steps, from the kept ones.
    void other_rows(const Range& steps, const Range& rows) {
        in_order(steps, [&](std::int64_t k) { carry(rows, k, steps); });
        strips(steps, [&](const Range& strip, bool after) { all_steps(steps, rows, strip, after); });
    }

    // Rows in all steps, within a strip.
    void all_steps(const Range& steps, const Range& rows, const Range& strip, bool after) {
        const Box box = intersect({{steps.lo, rows.lo, strip.lo}, {steps.hi, rows.hi, strip.hi}}, p_.space);
        if (p_.none_in(box)) return;
        const bool together = c_.several() && p_.all_in(box);
        Box row = box;
        for (std::int64_t i = box.lo[1]; i < box.hi[1]; ++i) {
            row.lo[1] = i, row.hi[1] = i + 1;
            if (together)
                several(row, {p_.down[0] ? -1 : 1, 0, 0}, next_, after);
            else
                in_order(steps, [&](std::int64_t k) { points(k, i, strip, after); });
        }
    }

    Calls& c_;
    const PivotProblem& p_;
    int lane_;
    Range rows_, block_;
    std::size_t places_;
    std::vector<RegionView> matrices_, kept_;
    std::vector<std::vector<std::byte>> columns_;  // by matrix: [state][row][step]
    std::vector<char*> pointers_;
    std::vector<std::int64_t> step_, next_, down_;  // bytes from point to point, step to step, row to row
    std::vector<Span> spans_;
};

}  // namespace

PivotTasks::PivotTasks(const SweepProblem& problem, const Plan& plan)
    : calls_(new Calls{PivotProblem(problem), plan.tile[2], {}, 1, {}, {}, {}, {}, plan.lanes(), {}, {}}) {
    const std::vector<PivotProblem::Matrix>& matrices = calls_->problem.matrices;
    calls_->blocks = pivot_blocks(calls_->problem, plan);
    calls_->versions = calls_->problem.changes_row() ? 2 : 1;
    for (std::size_t q = 0; q < problem.accesses.size(); ++q) {
        const auto of = std::ranges::find(matrices, problem.accesses[q].array, &PivotProblem::Matrix::array);
        const bool written = of != matrices.end();
        calls_->places.push_back({written ? problem.pivots[q] : PivotRead::operand,
                                  written ? static_cast<std::size_t>(of - matrices.begin()) : q});
    }
    int kept = 0;
    for (const auto& m : matrices) calls_->kept_number.push_back(m.pivots ? kept++ : -1);
}

void PivotTasks::set(const Kernel& kernel, std::vector<LoopMemory> places, std::span<const Binding> /*moving*/,
                     Explain explain) {
    calls_->kernel = kernel;
    calls_->rows.begin(calls_->kernel, calls_->places.size(), static_cast<std::size_t>(calls_->lanes));
    calls_->operands = std::move(places);
    calls_->explain = std::move(explain);
}

std::vector<Reduced> PivotTasks::reduced() const {
    return calls_->rows.all();
}

std::vector<TaskFunction> PivotTasks::functions() {
    return {[calls = calls_](const TaskCall& call) { PivotCall(*calls, calls->problem, call).panel(); },
            [calls = calls_](const TaskCall& call) { PivotCall(*calls, calls->problem, call).update(); }};
}

// Kept rows and columns are tight.
std::vector<std::int64_t> PivotTasks::row_steps(std::vector<std::int64_t> plain) const {
    for (std::size_t q = 0; q < plain.size(); ++q) {
        const Calls::Place& place = calls_->places[q];
        if (place.what == PivotRead::row) plain[q] = calls_->problem.matrices[place.number].item_bytes;
        if (place.what == PivotRead::column || place.what == PivotRead::corner) plain[q] = 0;
    }
    return plain;
}

namespace {

// A call of a task on memory of its own.
class PivotTrial {
public:
    PivotTrial(const Schedule& schedule, const TaskWork& task, const std::vector<std::vector<std::byte>>& values) {
        const auto add = [&](const std::vector<Region>& regions, std::vector<RegionView>& into) {
            for (const Region& r : regions) {
                const auto same = std::ranges::find(regions_, r);
                if (same == regions_.end()) regions_.push_back(r), make(schedule, r, values);
                into.push_back(views_[static_cast<std::size_t>(std::ranges::find(regions_, r) - regions_.begin())]);
            }
        };
        add(task.reads, call.reads);
        add(task.writes, call.writes);
    }
    TaskCall call;

private:
    // Kept rows are of a matrix with pivots, in their order.
    void make(const Schedule& schedule, const Region& r, const std::vector<std::vector<std::byte>>& values) {
        const std::int64_t item = schedule.arrays[r.array].item_bytes;
        // A kernel may be compiled for rows that lie backwards: from an element on it goes down by a row.
        const std::int64_t before = ceil_div(r.box.extent(r.box.dims() - 1), 64) * 64;
        memory_.push_back(aligned_memory((before + r.box.points()) * item));
        for (std::int64_t n = 0; n < before + r.box.points(); ++n)
            std::memcpy(memory_.back().get() + n * item, values[r.array].data(), static_cast<std::size_t>(item));
        views_.push_back({memory_.back().get() + before * item, r.box, row_major_strides(r.box, item), item});
    }
    std::vector<Region> regions_;
    std::vector<RegionView> views_;
    std::vector<std::shared_ptr<std::byte[]>> memory_;
};

// The task that has most to compute: an update where there is one.
const TaskWork* largest_task(const Schedule& schedule) {
    const TaskWork* found = nullptr;
    for (const Work& work : schedule.works) {
        const TaskWork& task = *work.task();
        const auto size = [](const TaskWork& t) { return std::pair{t.operation, t.amount}; };
        if (!found || size(task) > size(*found)) found = &task;
    }
    return found;
}

}  // namespace

std::vector<RateSample> PivotTasks::sample(const Schedule& schedule, const std::vector<std::vector<std::byte>>& values,
                                           Context& context, double budget_s) {
    std::vector<RateSample> samples(3);
    const TaskWork* const task = largest_task(schedule);
    if (!task) return samples;
    std::vector<std::vector<std::byte>> of_arrays = values;
    for (const auto& m : calls_->problem.matrices)
        if (m.pivots) of_arrays.push_back(values[m.array]);
    const Range rows{task->writes[0].box.lo[0], task->writes[0].box.hi[0]};
    const PivotBlock& block =
        calls_->blocks[(task->operation == pivot_panel ? task->writes : task->reads).back().box.lo[0]];
    // Seconds of a call on so many lanes, of the slowest; below 0 where the kernel has raised.
    const auto time = [&](const PivotProblem& part, int lanes, double seconds) {
        std::vector<double> times(static_cast<std::size_t>(lanes), -1);
        context.lanes().run(lanes, [&](int lane) {
            PivotTrial trial(schedule, *task, of_arrays);
            trial.call.lane = lane;
            times[lane] = median_time(seconds, [&] {
                PivotCall call(*calls_, part, trial.call);
                task->operation == pivot_panel ? call.panel() : call.update();
            });
        });
        return std::ranges::min(times) < 0 ? -1 : std::ranges::max(times);
    };
    const auto count = [&](PivotProblem part) {
        part.space =
            intersect(part.space, {{block.lo, rows.lo, part.space.lo[2]}, {block.hi, rows.hi, part.space.hi[2]}});
        return static_cast<double>(part.points());
    };
    const int lanes = static_cast<int>(schedule.lanes.size());
    const std::int64_t columns = calls_->problem.space.extent(2);
    // Long rows, short rows and few points: the columns beyond those of the block, or all, first.
    const std::int64_t widths[] = {columns, std::min<std::int64_t>(columns, 64), std::min<std::int64_t>(columns, 8)};
    for (int shape = 0; shape < 3; ++shape) {
        PivotProblem part = calls_->problem;
        part.space.lo[2] = part.space.hi[2] - widths[shape];
        if (shape == 2) part.space.hi[1] = std::min(part.space.hi[1], std::max(part.space.lo[1], rows.lo) + 1);
        const double points = count(part);
        if (points == 0) continue;
        const double seconds = time(part, lanes, budget_s / 4);
        if (seconds < 0) return {};
        samples[shape] = {points / static_cast<double>(widths[shape]), points, seconds};
    }
    if (lanes > 1 && samples[0].points > 0) {
        PivotProblem part = calls_->problem;
        RateSample alone = samples[0];
        alone.tile_s = time(part, 1, budget_s / 4);
        if (alone.tile_s > 0) samples.push_back(alone);
    }
    return samples;
}

}  // namespace tilewave
