// Tiles: their rows, several to a call of the kernel, and polls between the calls.
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "core/clock.hpp"
#include "execute/computers/nests.hpp"
#include "execute/step_visitor.hpp"
#include "execute/tuning.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// Rows that follow each other at equal distances.
struct Batch {
    const Span* spans;
    int count;
    std::int64_t points;          // at least so many as there are
    Index first;                  // point 0 of row number 0, perhaps outside the tile
    std::int64_t layer_rows = 0;  // above 0: a row's number over this is the number of its layer
};

// The rows of a tile, batch by batch.
class Batches {
public:
    // `single`: a row is a batch. `together`: the kernel computes some rows at once that depend on each other.
    // `layer_rows`: distance of layers in memory, in rows; the next layer may be computed a row behind this one. 0:
    // layers come one by one. `cut`: the most points of a span. `room`: of a batch's rows below each other, which are
    // then one span each; 0: no limit.
    Batches(TileRows& rows, LayerRows (&layers)[2], bool single, bool together, std::int64_t layer_rows,
            std::int64_t cut, std::int64_t room)
        : rows_(rows),
          lists_(layers),
          single_(single),
          layer_rows_(layer_rows),
          cut_(cut),
          room_(room > 0 ? room : std::numeric_limits<std::int64_t>::max()),
          apart_(room > 0) {
        longest_ = std::min(rows.extent_up(), rows.extent_down());
        layers_ = !single && rows.layers() && longest_ <= std::min(cut, longest_row);
        // Rows of a layer begin a point further on than the one before, or where that does.
        while (layers_ && most_rows_ > 1 && most_rows_ * (longest_ + most_rows_ - 1) > room_) --most_rows_;
        more_ = rows.first();
        at_ = rows.begin();
        if (together && !single && longest_ <= cut_) group_ = max_simd_rows * longest_;
    }

    // The next one, of about `limit` points or less; whole groups of rows that go together.
    bool next(Batch& batch, std::int64_t limit) {
        if (!more_) return false;
        if (group_ > 0) limit = std::max<std::int64_t>(limit / group_, 1) * group_;
        if (layers_)
            take(batch, limit);
        else
            fill(batch, limit);
        return true;
    }

private:
    // The next layers that go together; tiles of equal extents have the same rows in them.
    void begin_layers() {
        const std::int64_t up = rows_.extent_up(), down = rows_.extent_down(), rows = up + down - 1;
        const std::int64_t all = rows_.layers_in_line(),
                           most = layer_rows_ < rows ? 1 : ceil_div(all, ceil_div(all, max_layers_in_turn));
        together_ = std::min(rows_.layers_left(), most);
        left_ = rows * together_;
        diagonal_ = layer_ = 0;
        now_ = left_ <= most_listed_rows ? &lists_[together_ < most] : nullptr;
        if (!now_ || (now_->up == up && now_->down == down && now_->count == together_ &&
                      (together_ == 1 || now_->distance == layer_rows_)))
            return;
        *now_ = {up, down, together_, layer_rows_, std::move(now_->spans)};
        now_->spans.resize(left_);
        find(now_->spans.data(), left_);
    }

    // The next `count` rows of the layers that go together, by diagonals: row `diagonal_` of the first layer, row
    // `diagonal_` - 1 of the second and so on, then the next diagonal.
    void find(Span* span, std::int64_t count) {
        const std::int64_t up = rows_.extent_up(), down = rows_.extent_down();
        for (; count > 0; --count, ++layer_) {
            if (layer_ == std::min(together_, diagonal_ + 1)) {
                ++diagonal_;
                layer_ = std::max<std::int64_t>(0, diagonal_ - (up + down - 2));
            }
            const std::int64_t row = diagonal_ - layer_, begin = std::max<std::int64_t>(0, row - down + 1);
            *span++ = {row + layer_ * layer_rows_, begin, std::min(up, row + 1) - begin};
        }
    }

    void take(Batch& batch, std::int64_t limit) {
        if (left_ == 0) begin_layers();
        batch.count = static_cast<int>(std::min(std::clamp<std::int64_t>(limit / longest_, 1, most_rows_), left_));
        batch.spans = spans_.data();
        if (now_)
            batch.spans = now_->spans.data() + (static_cast<std::int64_t>(now_->spans.size()) - left_);
        else
            find(spans_.data(), batch.count);
        batch.points = batch.count * longest_;
        batch.first = rows_.layer();
        batch.layer_rows = together_ > 1 ? layer_rows_ : 0;
        left_ -= batch.count;
        for (std::int64_t layer = left_ == 0 ? together_ : 0; layer > 0; --layer) more_ = rows_.next_layer();
    }

    void fill(Batch& batch, std::int64_t limit) {
        batch.spans = spans_.data();
        batch.count = 0;
        batch.points = 0;
        batch.first = rows_.point();
        batch.layer_rows = 0;
        std::int64_t number = 0, lo = at_, hi = at_;
        while (batch.count < most_rows_of_a_call && batch.points < limit) {
            const std::int64_t points = std::min(cut_, rows_.end() - at_);
            lo = std::min(lo, at_);
            hi = std::max(hi, at_ + points);
            if (batch.count > 0 && (number + 1) * (hi - lo) > room_) return;
            spans_[batch.count++] = {number, at_, points};
            batch.points += points;
            at_ += points;
            if (at_ < rows_.end()) {
                if (single_ || apart_) return;
                continue;
            }
            if (!(more_ = rows_.next())) return;
            at_ = rows_.begin();
            if (single_ || rows_.fresh()) return;
            ++number;
        }
    }

    TileRows& rows_;
    LayerRows (&lists_)[2];
    LayerRows* now_ = nullptr;  // the list of their rows; none where they are too many
    bool single_, layers_ = false, more_ = false;
    std::int64_t layer_rows_, cut_, room_;
    bool apart_;  // a cut row's pieces are of a batch each
    std::int64_t most_rows_ = most_rows_of_a_call,
                 group_ = 0;             // points of a span, at most; of the rows that go together, 0 where none do
    std::int64_t at_ = 0, longest_ = 0;  // the point of the present row to go on from; points of a layer's longest row
    std::int64_t together_ = 0, left_ = 0, diagonal_ = 0,
                 layer_ = 0;  // layers; their rows that are left; whose the next one is
    std::array<Span, most_rows_of_a_call> spans_;
};

// What a kernel without a function for several rows is given, or one that tells the best values of each: these are
// those of the batch's rows, best after best. `places`: with row values.
std::int64_t row_by_row(const Kernel& kernel, std::size_t places, char* const* ptr, const std::int64_t* step,
                        const Batch& batch, const std::int64_t* next, const Index& index, const Index& direction,
                        const Index& next_index) {
    char* here[max_places];
    char** const bests = std::copy(ptr + places, ptr + places + kernel.tables.size(), here + places);
    std::copy(ptr + places + kernel.tables.size(),
              ptr + places + kernel.tables.size() + static_cast<std::size_t>(kernel.bests()), bests);
    Index x = index;
    for (int i = 0; i < batch.count; ++i) {
        const Span& span = batch.spans[i];
        for (std::size_t p = 0; p < places; ++p)
            here[p] = reinterpret_cast<char*>(reinterpret_cast<std::intptr_t>(ptr[p]) + span.number * next[p] +
                                              span.begin * step[p]);
        for (int k = 0; k < x.n; ++k) x[k] = index[k] + span.number * next_index[k] + span.begin * direction[k];
        if (const std::int64_t code = kernel.row(here, step, span.points, x.begin(), direction.begin(), kernel.env);
            code != 0)
            return code | static_cast<std::int64_t>(i) << 32;
        for (const PointReduction& r : kernel.reductions)
            if (r.best >= 0 && r.positions) bests[r.best] += sizeof(std::int64_t);
    }
    return 0;
}

}  // namespace

NestComputer::NestComputer(const Schedule& schedule, std::span<const Kernel> kernels, PathsOff off)
    : s_(schedule), off_(off), nests_(schedule.works.size()), layers_(schedule.lanes.size()) {
    std::vector<char> used(s_.works.size(), 0);
    for (const Tile& t : s_.tiles) used[t.work] = 1;
    for (std::size_t w = 0; w < s_.works.size(); ++w) {
        const NestWork* work = s_.works[w].nest();
        if (!work) continue;
        const auto k = static_cast<std::size_t>(work->kernel);
        const bool given = work->kernel >= 0 && k < kernels.size();
        if (used[w] && !(given && kernels[k].row))
            throw ConfigError("execute: a nest is computed by kernel " + std::to_string(work->kernel) +
                              "; no such kernel was given, of " + std::to_string(kernels.size()));
        if (!given) continue;
        nests_[w].work = work;
        nests_[w].begin(kernels[k], work->places.size(), s_.lanes.size());
    }
}

void NestComputer::restart() {
    for (Nest& nest : nests_) nest.restart();
}

std::vector<Reduced> NestComputer::reduced() const {
    std::vector<Reduced> all;
    for (const Nest& nest : nests_)
        if (!nest.work || nest.work->last) std::ranges::move(nest.all(), std::back_inserter(all));
    return all;
}

void NestComputer::compute(Run& run, int lane, const Tile& tile) {
    Nest& nest = nests_[tile.work];
    const bool reduces = !nest.reduced.empty() && nest.work->last && run.reduces(lane);
    if (!reduces) return static_cast<void>(compute_steps(run, lane, tile, nest, false));
    // The points that are reduced: of late time steps, and the rank's own. None of the rank's own reads points of other
    // ranks in the same time step, so these come last.
    const std::int64_t first = run.first_time(lane) + nest.work->step;
    Box counted = nest.work->own.dims() == 0 ? tile.box : intersect(tile.box, nest.work->own);
    counted.lo[0] = std::min(std::max(run.reduced_time(), first + counted.lo[0]) - first, tile.box.hi[0]);
    if (counted == tile.box) return static_cast<void>(compute_steps(run, lane, tile, nest, true));
    Tile part = tile;
    const auto compute_part = [&](const Box& box, bool reduced) {
        part.box = box;
        return box.empty() || compute_steps(run, lane, part, nest, reduced);
    };
    Box early = tile.box, late = tile.box;
    early.hi[0] = late.lo[0] = counted.lo[0];
    if (!compute_part(early, false) || !compute_part(counted, true)) return;
    for (const Box& others : subtract(late, counted))
        if (!compute_part(others, false)) return;
}

bool NestComputer::compute_steps(Run& run, int lane, const Tile& tile, Nest& nest, bool reduces) {
    const Kernel& kernel = !reduces && nest.kernel->unreduced ? *nest.kernel->unreduced : *nest.kernel;
    if (!kernel.row) return true;  // it would only reduce
    if (nest.work->window.along >= 0) return compute_in_window(run, lane, tile, nest, kernel, reduces);
    const StepVisitor* const visitor = run.visitor(nest.work->kernel);
    if (!visitor) return compute_rows(run, lane, tile, nest, kernel, reduces);
    Tile step = tile;  // the next time step of a tile reads what is changed, and may overwrite what is noted
    for (std::int64_t t = tile.box.lo[0]; t < tile.box.hi[0]; ++t) {
        step.box = tile.box.with(0, t, t + 1);
        if (!compute_rows(run, lane, step, nest, kernel, reduces)) return false;
        visitor->visit(*nest.work, step.box, run.first_time(lane) + nest.work->step, run.memory(lane));
    }
    return true;
}

// What points of the tile leave out keeps the value of the time before, which is in other memory.
void NestComputer::carry_time_buffers(const ArrayMemory& memory, const NestWork& nest, const Tile& tile) const {
    for (const Access& w : nest.places) {
        const Array& a = s_.arrays[w.array];
        if (!w.writes || !w.keeps || a.time_buffers < 2) continue;
        const Box now = tile.box.shifted(w.offset);
        Index before = now.lo;
        before[0] -= 1;
        const Index& stride = memory.binding(w.array).stride_bytes;
        copy_box(memory.address(w.array, now.lo), stride, memory.address(w.array, before), stride, now.hi - now.lo,
                 a.item_bytes);
    }
}

// The address of a place at a point, as a number: the point may be outside.
std::intptr_t NestComputer::place_at(const ArrayMemory& memory, const Access& place, const Index& point) const {
    const Array& a = s_.arrays[place.array];
    const Binding& b = memory.binding(place.array);
    std::intptr_t at = reinterpret_cast<std::intptr_t>(b.data);
    if (a.time_buffers > 0) at += memory.time_buffer(place.array, point[0] + place.offset[0]) * b.stride_bytes[0];
    for (int k = a.time_buffers > 0 ? 1 : 0; k < point.n; ++k)
        at += (point[k] + place.offset[k] - a.storage.lo[k]) * b.stride_bytes[k];
    return at;
}

// The distance of a tile's layers in rows, where it is equal in every array, so that one number gives row and layer; 0
// where it differs, or where layers do not go together.
std::int64_t NestComputer::rows_of_layer(const ArrayMemory& memory, const NestWork& work, const Kernel& kernel,
                                         const TileRows& rows, const std::int64_t* next) const {
    if (!kernel.reductions.empty() || !work.layers_together || work.rows_depend || kernel.uses_index ||
        !rows.layers() || without(off_, FastPath::layers))
        return 0;
    std::int64_t layer_rows = 0;
    for (std::size_t p = 0; p < work.places.size(); ++p) {
        const int a = work.places[p].array;
        if (s_.arrays[a].time_buffers > 0 && rows.beyond()[0] != 0) return 0;
        std::int64_t bytes = 0;
        for (int k = 0; k < rows.dims(); ++k) bytes += rows.beyond()[k] * memory.binding(a).stride_bytes[k];
        if (next[p] == 0 || bytes % next[p] != 0 || (p > 0 && bytes / next[p] != layer_rows)) return 0;
        layer_rows = bytes / next[p];
    }
    return std::max<std::int64_t>(layer_rows, 0);
}

bool NestComputer::compute_rows(Run& run, int l, const Tile& tile, Nest& nest, const Kernel& kernel, bool reduces) {
    const ArrayMemory& memory = run.memory(l);
    const NestWork& work = *nest.work;
    carry_time_buffers(memory, work, tile);
    TileRows rows(work, tile.box);
    const std::size_t places = work.places.size();
    char* ptr[max_places];
    std::int64_t step[max_places], next[max_places];
    const std::size_t all = places + kernel.values.size();
    char** argument = std::copy(kernel.tables.begin(), kernel.tables.end(), ptr + all);
    nest.place_bests(kernel, l, reduces, argument);
    std::fill(step + all, step + all + kernel.tables.size(), 0);
    for (std::size_t k = 0; k < kernel.values.size(); ++k) {
        step[places + k] = kernel.values[k];
        next[places + k] = 0;
    }
    const Index origin = work.period_shift(tile.box);
    // A row a call: the row after this one is in another time buffer, or has a point that takes the place of what is
    // reduced.
    bool single = without(off_, FastPath::rows_together);
    bool each = false;  // so does each point of a row
    for (std::size_t p = 0; p < places; ++p) {
        const int a = work.places[p].array;
        const bool time_buffers = s_.arrays[a].time_buffers > 0;
        const Index& stride = memory.binding(a).stride_bytes;
        step[p] = next[p] = 0;
        for (int k = time_buffers ? 1 : 0; k < rows.dims(); ++k) {
            step[p] += rows.along()[k] * stride[k];
            next[p] += rows.across()[k] * stride[k];
        }
        single = single || (s_.arrays[a].time_buffers > 1 && rows.across()[0] != 0) ||
                 (reduces && work.places[p].writes && (next[p] == 0 || (time_buffers && rows.along()[0] != 0)));
        each = each || (reduces && work.places[p].writes && step[p] == 0);
    }
    // The loop index of point q of a row, time counted from the first block of steps.
    const auto loop_index = [&](const Index& row, std::int64_t q) {
        Index x = rows.index(row, q) - origin;
        x[0] += run.first_time(l) + work.step;
        return x;
    };
    std::int64_t& left = run.points_to_poll(l);
    const bool together = work.rows_depend && kernel.rows != nullptr;
    double begin = now_s();
    const bool values = kernel.stores_values(), rows_apart = kernel.bests_by_row();
    Batches batches(rows, layers_[l].rows, single, together, rows_of_layer(memory, work, kernel, rows, next),
                    each       ? 1
                    : values   ? longest_value_row
                    : together ? longest_simd_row
                               : longest_row,
                    values ? most_row_values : 0);
    const std::int64_t most =
        kernel.reductions.empty() || together ? most_rows_of_a_call * longest_row : most_reduced_points;
    for (Batch batch; batches.next(batch, run.polls() ? std::clamp<std::int64_t>(left, 1, most) : most);) {
        for (std::size_t p = 0; p < places; ++p)
            ptr[p] = reinterpret_cast<char*>(place_at(
                memory, work.places[p], s_.arrays[work.places[p].array].whole ? batch.first - origin : batch.first));
        for (int i = 0; rows_apart && i < batch.count; ++i) nest.begin_bests(l, i, true);
        const ReducedRows::RowValues room =
            !kernel.values.empty()
                ? nest.place_values(l, {batch.spans, static_cast<std::size_t>(batch.count)}, ptr, step, next)
                : ReducedRows::RowValues{};
        const Index x = kernel.uses_index || reduces ? loop_index(batch.first, 0) : batch.first;
        const std::int64_t code =
            kernel.rows && !rows_apart
                ? kernel.rows(ptr, step, batch.count, batch.spans, next, x.begin(), rows.direction().begin(),
                              rows.turn().begin(), kernel.env)
                : row_by_row(kernel, all, ptr, step, batch, next, x, rows.direction(), rows.turn());
        if (code != 0) {
            const Span& span = batch.spans[code >> 32];
            Index row = batch.first;
            const std::int64_t layer = batch.layer_rows > 0 ? span.number / batch.layer_rows : 0;
            for (int k = 0; k < row.n; ++k)
                row[k] += (span.number - layer * batch.layer_rows) * rows.across()[k] + layer * rows.beyond()[k];
            const std::int64_t q = (code & 0xffffffff) / error_sites;
            run.fail({code % error_sites, loop_index(row, span.begin + q), tile.work});
            return false;
        }
        if (reduces)
            nest.reduce(l, {ptr,
                            step,
                            next,
                            {batch.spans, static_cast<std::size_t>(batch.count)},
                            room,
                            x,
                            rows.direction(),
                            rows.turn()});
        left -= batch.points;
        if (left <= 0 && !run.pace(l, 0, begin)) return false;
    }
    run.spent(l, begin);
    return true;
}

}  // namespace tilewave
