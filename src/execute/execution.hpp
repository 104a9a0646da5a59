// One schedule under way on one rank: what the executor's lanes and a pattern in flight share.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "data/memory.hpp"
#include "data/rows.hpp"
#include "execute/executor.hpp"
#include "execute/mailroom.hpp"
#include "execute/rolling_window.hpp"
#include "execute/tuning.hpp"

namespace tilewave {

struct alignas(64) Counter {
    std::atomic<int> value{0};
};

// The rows of some planes of equal extents that are computed together.
struct LayerRows {
    std::int64_t up = 0, down = 0, count = 0, apart = 0;  // extents, planes, what their numbers of rows differ by
    std::vector<Span> spans;
};

// When a lane polls next while it computes: kept from tile to tile, so that small tiles poll too.
struct alignas(64) Pace {
    std::int64_t quota = 2048, left = quota;  // points between polls, adapted to the poll period; to the next
    double spent_s = 0;                       // computing since the last poll, in tiles before this one
    LayerRows
        layers[2];  // the rows of a tile's layers, as many together as may be and the rest; kept from tile to tile
};

/// What combine steps do to n points of a buffer and of what is joined to it.
struct Combine {
    CombineRow row = nullptr;
    void* env = nullptr;
    bool whole = false;  ///< one call a step: short rows are gathered first
    /// By step of lane 0, or empty: the unpack step right after, whose array gets what is joined at once; 0: none.
    std::vector<std::int32_t> straight = {};
};

/// Which combine steps of a schedule's first lane may write into the array that the step after them unpacks to, as in
/// Combine::straight: those whose buffer nobody reads after that.
std::vector<std::int32_t> straight_combines(const Schedule& schedule);

class TileRows;

class Execution {
public:
    Execution(const Schedule& s, std::span<const Binding> bindings, const Kernel& kernel, const Combine& combine,
              Transport& transport, const ExecuteOptions& options)
        : s_(s),
          bindings_(bindings),
          kernel_(kernel),
          combine_(combine),
          options_(options),
          transport_(transport),
          window_(options.window),
          mailroom_(s, transport, options.record),
          counters_(s.lanes.size()),
          paces_(s.lanes.size()),
          ends_(s.lanes.size()),
          begin_(now_s()) {
        for (std::int64_t bytes : s.buffers) buffers_.push_back(staging_memory(bytes));
        for (const PointReduction& r : kernel.reductions)
            reduced_.emplace_back(s.lanes.size(), LaneReduced{Reduced(r)});
        if (!kernel.values.empty())
            for (std::size_t l = 0; l < s.lanes.size(); ++l)
                row_values_.push_back(aligned_memory(value_room(kernel.values.size())));
        if (options.record)
            for (std::size_t l = 0; l < s.lanes.size(); ++l) ends_[l].reserve(s.lanes[l].size() + 1);
    }

    /// All steps of lane l, waiting where they say so.
    void lane(int l) {
        try {
            if (l == 0) begin_ = now_s();  // its thread is where it is to be
            run_steps(l);
            if (l == 0) serve_until_all_ended();
            if (l == 0 && stopped_.load(std::memory_order_acquire)) tell_others();
            if (l == 0) end_ = now_s();
        } catch (...) {
            std::scoped_lock guard(error_lock_);
            if (!error_) error_ = std::current_exception();
            broken_.store(true, std::memory_order_release);
        }
        ended_.fetch_add(1, std::memory_order_acq_rel);
    }

    /// For schedules of one lane, instead of lane(): the steps up to the first that must wait;
    /// true when all are done. Throws what the transport throws; it must then not be called again.
    bool advance();
    /// Ready to run once more, after advance() has returned true.
    void restart();
    /// What is pending may still be written to: the buffers stay, the transport is given up.
    void give_up() {
        transport_.mark_failed();
        (void)new auto(std::move(buffers_));
    }

    Outcome outcome() {
        if (error_) leave();
        Outcome o;
        o.time_s = (end_ > 0 ? end_ : now_s()) - begin_;
        o.interrupted = interrupted_;
        o.stopped = others_first_;
        o.error = lacking_;
        if (failed_ && !others_first_) o.failure = failure_;
        if (options_.record) o.recording = recording();
        if (options_.record && options_.events) o.timeline = timeline_of(s_, std::exchange(o.recording, {}));
        for (const auto& lanes : reduced_) {
            o.reduced.push_back(lanes.empty() ? Reduced() : lanes[0].value);
            for (std::size_t l = 1; l < lanes.size(); ++l) o.reduced.back().join(lanes[l].value);
        }
        return o;
    }

private:
    void run_steps(int l);
    bool ready(const Step& step) const;
    void perform(int l, const Step& step);
    void compute(int l, const Tile& tile);
    void compute_in_window(int l, const Tile& tile);
    class PieceWalk;
    bool pace(int l, std::int64_t points, double& begin);
    bool worse(const Reduced& r, char* const* ptr, const std::int64_t* step, std::int64_t n) const;
    void reduce(int l, char* const* ptr, const std::int64_t* step, std::int64_t n, const Index& index,
                const Index& direction);
    // Bytes of the memory of some row values, each a cache line further than the rows before it: not all at the same
    // place of their pages.
    static std::int64_t value_room(std::size_t values) {
        return static_cast<std::int64_t>(values) * (tuning::longest_value_row * 8 + tuning::line_bytes);
    }
    std::byte* row_value(int l, std::size_t k) const {
        return row_values_[static_cast<std::size_t>(l)].get() + value_room(k);
    }
    void carry_time_buffers(const Tile& tile);
    std::intptr_t place_at(std::size_t p, const Index& point) const;
    Index loop_index(const TileRows& rows, const Index& row, std::int64_t q) const;
    std::int64_t layers_apart(const TileRows& rows, const std::int64_t* next) const;
    void copy(const Message& m, bool pack);
    void copy_time_buffers(const Message& m, bool pack);
    static bool copy_few(std::byte* array, const Index& stride, const Index& extents, std::int64_t item,
                         std::byte* buffer, bool pack);
    void combine(const Message& m, std::int32_t with, const Message* straight);
    bool unpacked_before(std::size_t step) const;
    void wait_for(int l, std::size_t step);
    void serve_until_all_ended();
    void look_around(int l);
    void look_for_alarms(double now);
    void tell_others();
    [[noreturn]] void leave();
    void fail(const Index& point, std::int64_t site);
    void stop_for(std::exception_ptr error);
    // After a stop messages are empty, and nothing is done with what they bring, where the other ranks stop, too.
    bool draining() const { return options_.alarms && stopped_.load(std::memory_order_relaxed); }
    std::byte* address(int array, const Index& point) const {
        const Binding& b = bindings_[array];
        const Array& a = s_.arrays[array];
        if (a.planes > 0) return window_->message(array, point);
        std::int64_t at = a.time_buffers > 0 ? time_buffer(array, point[0]) * b.stride_bytes[0]
                                             : (point[0] - a.storage.lo[0]) * b.stride_bytes[0];
        for (int k = 1; k < point.n; ++k) at += (point[k] - a.storage.lo[k]) * b.stride_bytes[k];
        return b.data + at;
    }
    // The buffer in which an array keeps time `t`.
    std::int64_t time_buffer(int array, std::int64_t t) const {
        const Array& a = s_.arrays[array];
        return floor_mod(bindings_[array].first_time_buffer - (t - a.storage.lo[0]), a.time_buffers);
    }
    std::byte* message_data(const Message& m) const {
        return m.buffer >= 0 ? buffers_[m.buffer].get() : address(m.array, m.region.lo);
    }
    Recording recording();

    const Schedule& s_;
    std::span<const Binding> bindings_;
    const Kernel& kernel_;
    const Combine& combine_;
    const ExecuteOptions& options_;
    Transport& transport_;
    WindowMemory* window_;
    Mailroom mailroom_;
    std::vector<std::shared_ptr<std::byte[]>> buffers_;
    std::vector<std::byte> gathered_;  // of a combine step that wants one run
    std::vector<Counter> counters_;
    std::vector<Pace> paces_;
    std::vector<std::vector<double>> ends_;  // by lane, step
    struct alignas(64) LaneReduced {
        Reduced value;
    };
    std::vector<std::vector<LaneReduced>> reduced_;         // by reduction, lane
    std::vector<std::shared_ptr<std::byte[]>> row_values_;  // by lane
    double begin_, end_ = 0;                                // the end: of all lanes, where threads ran them
    std::atomic<int> ended_{0};
    std::atomic<bool> stopped_{options_.stopped};  // compute nothing more: failed or interrupted
    std::atomic<bool> broken_{false};              // the transport threw: leave at once
    bool failed_ = false, interrupted_ = false;
    Failure failure_;
    bool told_ = false, others_first_ = false;  // lane 0's: that it has stopped; another rank has before
    std::exception_ptr lacking_;                // what ended the computing beside the kernel
    double last_look_ =
        now_s();  // lane 0's alone, as is position_; a run that ends soon does not call into the interpreter
    std::size_t position_ = 0;
    std::mutex error_lock_;
    std::exception_ptr error_;
};

}  // namespace tilewave
