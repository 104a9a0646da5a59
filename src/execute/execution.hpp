// One execution of a schedule on one rank, by the executor's lanes or as a pattern in flight.
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
#include "execute/computer.hpp"
#include "execute/executor.hpp"
#include "execute/request_table.hpp"
#include "execute/step_visitor.hpp"
#include "schedule/repeat.hpp"
#include "schedule/round_robin.hpp"
#include "transport/ended_look.hpp"

namespace tilewave {

struct alignas(64) Counter {
    std::atomic<int> value{0};
};

// When a lane polls next while it computes; continues from tile to tile, so that small tiles poll, too.
struct alignas(64) Pace {
    std::int64_t quota = 2048, left = quota;  // points between polls, adapted to the poll period; to the next
    double spent_s = 0;                       // computing since the last poll, in tiles before this one
};

/// What combine steps do to n points of a buffer and of what is joined to it.
struct Combine {
    CombineRow row = nullptr;
    void* env = nullptr;
    bool whole = false;  ///< one call a step: short rows are gathered first
    /// By step of lane 0, or empty: the unpack step right after, whose array gets what is joined at once; 0: none.
    std::vector<std::int32_t> straight = {};
    std::vector<CombineRow> of_arrays = {};  ///< by the message's array, in place of `row`; may be empty
};

/// Which combine steps of a schedule's first lane may write into the array that the step after them unpacks to, as in
/// Combine::straight: those whose buffer nobody reads after that.
std::vector<std::int32_t> straight_combines(const Schedule& schedule);

class Execution final : private Run {
public:
    Execution(const Schedule& s, std::span<const Binding> bindings, const Computers& computers, const Combine& combine,
              Transport& transport, const ExecuteOptions& options)
        : s_(s),
          bindings_(bindings),
          computers_(computers),
          combine_(combine),
          options_(options),
          threads_(RoundRobin::threads_for(s.lanes.size(), options.threads)),
          transport_(transport),
          request_table_(s, transport, options.record, options.first_tag),
          counters_(s.lanes.size()),
          paces_(s.lanes.size()),
          ends_(s.lanes.size()),
          begins_(s.lanes.size()),
          cursors_(s.lanes.size()),
          holders_(s.lanes.size()),
          growth_(growth(s)),
          requests_(s.lanes.size()),
          begin_(now_s()) {
        place_arrays();
        if (lends()) begin_lent();
        for (std::int64_t bytes : s.buffers) buffers_.push_back(staging_memory(bytes));
        if (options.in_transport) written_.resize(s.messages.size(), nullptr);
        if (options.record)
            for (std::size_t l = 0; l < s.lanes.size(); ++l) ends_[l].reserve(s.lanes[l].size() + 1);
        if (!combine.whole) return;
        std::int64_t longest = 0;
        for (const Message& m : s.messages) longest = std::max(longest, m.buffer >= 0 ? s.buffers[m.buffer] : 0);
        gathered_.resize(longest);
    }

    /// Whether threads take each other's steps where they wait long: where lanes exchange nothing with other ranks.
    bool lends() const {
        return threads_ > 1 && transport_.size() == 1 && s_.messages.empty() && !options_.cpu_time &&
               !without(options_.paths_off, FastPath::lent_lanes);
    }
    /// All steps of lane l, with their waits. Where there are fewer threads than lanes, those of all lanes of thread l,
    /// round robin. False where they wait for those of other threads, which lends() allows: to be called again.
    bool lane(int l) {
        try {
            if (l == 0) begin_ = now_s();  // its thread is where it is to be
            if (lends()) {
                if (!run_lent(l)) return false;
            } else {
                runs_round_robin() ? run_round_robin(l) : run_steps(l);
                if (l == 0) serve_until_all_ended();
            }
            if (l == 0 && stopped_.load(std::memory_order_acquire)) notify_others();
            if (l == 0) end_ = now_s();
        } catch (...) {
            std::scoped_lock guard(error_lock_);
            if (!error_) error_ = std::current_exception();
            broken_.store(true, std::memory_order_release);
        }
        ended_.fetch_add(1, std::memory_order_acq_rel);
        return true;
    }

    /// For schedules of one lane, instead of lane(): the steps up to the first that must wait;
    /// true when all are done. Throws what the transport throws; it must then not be called again.
    bool advance();
    /// Ready to run once more, after advance() has returned true or outcome() was asked for. What bindings, kernel,
    /// options and window are is looked at anew, but for the kernel's reductions and options.record.
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
        if (computers_.nests) o.reduced = computers_.nests->reduced();
        if (options_.record) note_steps(o);
        return o;
    }

private:
    void run_steps(int l);
    void run_round_robin(int thread);
    void run_slice(RoundRobin& order, int l, double& last);
    bool repeats() const { return options_.times > 1 && !s_.repeated.empty(); }
    bool runs_round_robin() const { return threads_ < static_cast<int>(s_.lanes.size()) || repeats() || lends(); }
    // The position of a lane that shares its thread, repeats its block or is lent.
    struct Cursor {
        std::size_t step = 0;
        std::int64_t repetition = 0;
        Repetitions repetitions = {};
    };
    void begin_lane(int l, double at);
    bool unfinished(int l) const { return cursors_[l].step < s_.lanes[l].size(); }
    bool goes(int l) const { return unfinished(l) && ready(next_step(l)); }
    void begin_lent();
    bool run_lent(int thread);
    bool take(int l, int thread);
    void give_back(int l);
    Step next_step(int l) const;
    void note_request(int l, const Step& step);
    // Whether the lane runs on thread 0, which may always call the transport and the interpreter.
    bool serves(int l) const {
        if (lends()) return holders_[l].value.load(std::memory_order_relaxed) == 0;
        return l == 0 || (runs_round_robin() && l % threads_ == 0);
    }
    bool ready(const Step& step) const;
    void perform(int l, const Step& step);
    void compute(int l, const Tile& tile);
    const ArrayMemory& memory(int l) const override {
        return memories_[moved_.empty() ? 0 : static_cast<std::size_t>(l)];
    }
    std::int64_t first_time(int l) const override {
        return options_.first_time +
               cursors_[l].repetition * (s_.advance.n ? s_.advance[0] : options_.time_of_repetition);
    }
    const StepVisitor* visitor(int kernel) const override {
        const auto at = static_cast<std::size_t>(kernel);
        return at < options_.visitors.size() && !options_.visitors[at].empty() ? &options_.visitors[at] : nullptr;
    }
    bool reduces(int l) const override { return cursors_[l].repetition >= options_.reduced_from; }
    std::int64_t reduced_time() const override { return options_.reduced_time; }
    std::int64_t& points_to_poll(int l) override { return paces_[l].left; }
    bool polls() const override { return options_.poll_period_s > 0; }
    bool pace(int l, std::int64_t points, double& begin) override;
    void spent(int l, double begin_s) override { paces_[l].spent_s += now_s() - begin_s; }
    void fail(const Failure& failure) override;
    void place_arrays();
    void move_arrays(int l);
    void copy(int l, const Message& m, bool pack, std::byte* staged);
    bool moves_in_transport(const Step& step);
    static bool copy_few(std::byte* array, const Index& stride, const Index& extents, std::int64_t item,
                         std::byte* buffer, bool pack);
    void combine(int l, const Message& m, std::int32_t with, const Message* straight);
    bool unpacked_before(std::size_t step) const;
    struct Waiting {
        explicit Waiting(bool crowded) : backoff(crowded ? Backoff::Kind::shared : Backoff::Kind::dedicated) {}
        Backoff backoff;
        int rounds = 0;
        double since = 0;
        bool reported = false;
        EndedLook ended;
    };
    void wait_for(int l, std::size_t step);
    void progress(int l);
    void pause(Waiting& waiting, int l, std::size_t step);
    void report_stall(Waiting& waiting, double now, int l, std::size_t step);
    void pause_while_lent(Waiting& waiting);
    void serve_until_all_ended();
    void look_around(int l);
    void look_for_alarms(double now);
    void look_for_ended(int l, double now, EndedLook& look);
    void notify_others();
    [[noreturn]] void leave();
    void stop_for(std::exception_ptr error);
    // After a stop messages are empty, and nothing is done with what they bring, where the other ranks stop, too.
    bool draining() const { return options_.alarms && stopped_.load(std::memory_order_relaxed); }
    std::byte* address(int l, int array, const Index& point) const { return memory(l).address(array, point); }
    std::byte* message_data(int l, const Message& m) const {
        return m.buffer >= 0 ? buffers_[m.buffer].get() : address(l, m.array, m.region.lo);
    }
    Recording recording();
    void note_steps(Outcome& outcome);

    const Schedule& s_;
    std::span<const Binding> bindings_;
    std::vector<std::vector<Binding>> moved_;  // by lane, those of its repetition; empty where these are all equal
    std::vector<ArrayMemory> memories_;        // by lane; of those that are all equal, one
    Computers computers_;
    const Combine& combine_;
    const ExecuteOptions& options_;
    const int threads_;  // fewer than lanes: these share threads
    Transport& transport_;
    RequestTable request_table_;
    std::vector<std::shared_ptr<std::byte[]>> buffers_;
    std::vector<std::byte*> written_;  // by message, packed and not sent: where in the transport's memory
    std::vector<std::byte> gathered_;  // of a combine step that wants one run
    std::vector<Counter> counters_;
    std::vector<Pace> paces_;
    std::vector<std::vector<double>> ends_;       // by lane, step
    std::vector<std::vector<double>> begins_;     // by lane, step; where run_round_robin() runs
    std::vector<Cursor> cursors_;                 // by lane; where run_round_robin() runs
    std::vector<Counter> holders_;                // by lane, the thread that has it; where it lends()
    std::vector<char> waited_;                    // by thread, whether its lanes have waited long since they went
    std::vector<std::int32_t> growth_;            // by lane: what a repetition adds to its counter
    std::vector<std::vector<Request>> requests_;  // by lane: finished messages, of those that are posted again
    double begin_, end_ = 0;                      // the end: of all lanes, where threads ran them
    std::atomic<int> ended_{0};
    std::atomic<bool> stopped_{options_.stopped};  // compute nothing more: failed or interrupted
    std::atomic<bool> broken_{false};              // the transport threw: leave at once
    bool failed_ = false, interrupted_ = false;
    Failure failure_;
    bool notified_ = false, others_first_ = false;  // by lane 0: the others know; another rank has stopped before
    std::exception_ptr lacking_;                    // what ended the computing, if not the kernel
    double last_look_ =
        now_s();  // lane 0's alone, as is position_; a run that ends soon does not call into the interpreter
    std::size_t position_ = 0;
    std::int64_t repetition_ = 0;  // as position_
    std::mutex error_lock_;
    std::exception_ptr error_;
};

}  // namespace tilewave
