#include "nests/pivot.hpp"

#include <algorithm>
#include <cstring>

#include "tilewave/engine/limits.hpp"

namespace tilewave {

namespace {

/// Steps of a panel for which some of its rows are carried ahead of its others: these then follow at the speed of
/// updates.
constexpr std::int64_t panel_steps = 8;
/// Bytes of a row that a call of the kernel computes: with the kept rows of a block it stays in the caches next to a
/// core.
constexpr std::int64_t strip_bytes = 2048;

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

// What the tasks of a run share.
struct PivotCalls {
    PivotProblem problem;
    PivotPlan plan;
    std::vector<PivotBlock> blocks;
    PivotBody body;
    std::int64_t versions = 1;
    std::vector<int> kept_number;  // by matrix, its place among those with kept rows
};

// One task: some rows of the matrices, and the kept rows of a block of steps.
//
// Point (k, i, j) reads row k as it is before step k where i is k or comes before it, else as it is after the step; and
// column k likewise, by j and k. In step k only the elements of row k and column k decide about others: so they are
// kept, in both states, and all else is independent.
class PivotCall {
public:
    PivotCall(const PivotCalls& calls, const TaskCall& call)
        : c_(calls),
          p_(calls.problem),
          rows_{call.writes[0].box.lo[0], call.writes[0].box.hi[0]},
          places_(calls.body.places.size()) {
        const std::size_t matrices = p_.matrices.size();
        for (std::size_t m = 0; m < matrices; ++m) matrices_.push_back(call.writes[m]);
        const auto& lists = call.writes.size() > matrices ? call.writes : call.reads;
        for (std::size_t n = matrices; n < lists.size(); ++n) kept_.push_back(lists[n]);
        const PivotBlock& block = c_.blocks[lists.back().box.lo[0]];
        block_ = {block.lo, block.hi};
        for (const auto& m : p_.matrices)
            columns_.emplace_back(
                static_cast<std::size_t>(m.pivots ? 2 * rows_.size() * block_.size() * m.item_bytes : 0));
        pointers_.resize(places_ + c_.body.kernel.tables.size());
        std::ranges::copy(c_.body.kernel.tables, pointers_.begin() + static_cast<std::ptrdiff_t>(places_));
        step_.resize(places_), next_.resize(places_), down_.resize(places_);
        const int turn = p_.down[0] ? -1 : 1;
        for (std::size_t q = 0; q < places_; ++q) set_steps(q, turn);
        strip_ = strip_bytes;
        for (const auto& m : p_.matrices) strip_ = std::min(strip_, strip_bytes / m.item_bytes);
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
        const auto [what, a] = c_.body.places[q];
        if (what == PivotRead::operand) {
            const Index& stride = c_.body.operands[a].stride_bytes;
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

    const RegionView& kept_of(int a) const { return kept_[c_.kept_number[a]]; }
    std::byte* element(int a, std::int64_t i, std::int64_t j) const {
        const RegionView& v = matrices_[a];
        return v.data + (i - v.box.lo[0]) * v.stride_bytes[0] + (j - v.box.lo[1]) * v.stride_bytes[1];
    }
    // Row k from column j on, before its step or after.
    std::byte* row(int a, std::int64_t k, std::int64_t j, bool after) const {
        const RegionView& v = kept_of(a);
        return v.data + ((after ? c_.versions - 1 : 0) * block_.size() + k - block_.lo) * v.stride_bytes[1] +
               j * v.item_bytes;
    }
    // Row i of column k, before step k or after.
    std::byte* column(int a, std::int64_t i, std::int64_t k, bool after) {
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
            const int a = static_cast<int>(m);
            std::byte *to = row(a, k, columns.lo, after), *from = element(a, k, columns.lo);
            copy_items(to, item, from, stride, columns.size(), item);
        }
    }
    void keep_column(const Range& rows, std::int64_t k, bool after) {
        for (std::size_t m = 0; m < p_.matrices.size(); ++m) {
            if (!p_.matrices[m].pivots) continue;
            const int a = static_cast<int>(m);
            copy_items(column(a, rows.lo, k, after), block_.size() * p_.matrices[m].item_bytes, element(a, rows.lo, k),
                       matrices_[m].stride_bytes[0], rows.size(), p_.matrices[m].item_bytes);
        }
    }

    // Pointers of the places at a point; column k is past its step there or not.
    void point_at(std::int64_t k, std::int64_t i, std::int64_t j, bool after_column) {
        const bool after_row = past(1, i, k);
        for (std::size_t q = 0; q < places_; ++q) {
            const auto [what, a] = c_.body.places[q];
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
                at = c_.body.operands[a].data + k * c_.body.operands[a].stride_bytes[0] +
                     i * c_.body.operands[a].stride_bytes[1] + j * c_.body.operands[a].stride_bytes[2];
            pointers_[q] = reinterpret_cast<char*>(at);
        }
    }

    // Row (k, i) within some columns that are all on one side of column k.
    void points(std::int64_t k, std::int64_t i, Range columns, bool after_column) {
        const auto [lo, hi] = p_.clipped({k, i, 0}, columns.lo, columns.hi);
        if (lo >= hi) return;
        point_at(k, i, lo, after_column);
        c_.body.row(pointers_.data(), step_.data(), hi - lo, {k, i, lo});
    }

    // Rows on one side of row k, or row k, within some columns that are all on one side of column k.
    void all_rows(std::int64_t k, const Range& rows, const Range& columns, bool after_column) {
        const Box box = intersect({{k, rows.lo, columns.lo}, {k + 1, rows.hi, columns.hi}}, p_.space);
        if (p_.none_in(box)) return;
        if (c_.body.kernel.rows && p_.all_in(box)) return several(box, {0, 1, 0}, down_, after_column);
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
        const Kernel& kernel = c_.body.kernel;
        const std::int64_t code = kernel.rows(pointers_.data(), step_.data(), count, spans_.data(), move.data(), index,
                                              along, turn.v.data(), kernel.env);
        const std::int64_t row = code >> 32;
        if (code != 0) c_.body.fail(code & 0xffffffff, {k + turn[0] * row, index[1] + turn[1] * row, index[2]});
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
            for (std::int64_t j = side.lo; j < side.hi; j += strip_)
                f(Range{j, std::min(side.hi, j + strip_)}, p_.down[2] == (j < steps.lo));
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
        const bool together = c_.body.kernel.rows && p_.all_in(box);
        Box row = box;
        for (std::int64_t i = box.lo[1]; i < box.hi[1]; ++i) {
            row.lo[1] = i, row.hi[1] = i + 1;
            if (together)
                several(row, {p_.down[0] ? -1 : 1, 0, 0}, next_, after);
            else
                in_order(steps, [&](std::int64_t k) { points(k, i, strip, after); });
        }
    }

    const PivotCalls& c_;
    const PivotProblem& p_;
    Range rows_, block_;
    std::size_t places_;
    std::vector<RegionView> matrices_, kept_;
    std::vector<std::vector<std::byte>> columns_;  // by matrix: [state][row][step]
    std::vector<char*> pointers_;
    std::vector<std::int64_t> step_, next_, down_;  // bytes from point to point, step to step, row to row
    std::vector<Span> spans_;
    std::int64_t strip_ = 0;  // points
};

}  // namespace

std::vector<TaskFunction> pivot_tasks(const PivotProblem& problem, const PivotPlan& plan, int ranks, PivotBody body) {
    auto calls = std::make_shared<PivotCalls>(PivotCalls{
        problem, plan, pivot_blocks(problem, plan, ranks), std::move(body), problem.changes_row() ? 2 : 1, {}});
    int kept = 0;
    for (const auto& m : problem.matrices) calls->kept_number.push_back(m.pivots ? kept++ : -1);
    return {[calls](const TaskCall& call) { PivotCall(*calls, call).panel(); },
            [calls](const TaskCall& call) { PivotCall(*calls, call).update(); }};
}

}  // namespace tilewave
