// Schedules that all ranks run together: the one path of nests, chains, matrices and users' schedules.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "execute/alarms.hpp"
#include "execute/cached_execution.hpp"
#include "execute/recording.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

/// Which of the schedules of a run.
enum class BlockKind : std::uint8_t { one, several, rest };

/// The schedules of a run on this rank: a block so often, then what is left.
struct RunBlocks {
    CachedExecution* block = nullptr;
    /// The block as one that repeats: lanes do not meet between two. Null: they do.
    CachedExecution* repeated = nullptr;
    CachedExecution* rest = nullptr;    ///< once, after the blocks; may be null
    std::int64_t whole = 1;             ///< times that the block runs
    std::int64_t most_repetitions = 1;  ///< of `repeated` without a meeting; equal on all ranks
    std::int64_t steps = 0;             ///< time steps of a block
    /// By array: bytes from one time to the next, of those that have time as a dimension, else 0. Empty: none has.
    std::span<const std::int64_t> time_bytes = {};
    /// Called before each block but the first, while nothing moves; not where they repeat.
    std::function<void(std::int64_t)> before_block = {};
    bool last_reduced = false;  ///< reductions are those of the last block, not of all

    /// How often lanes begin anew. @pre as many blocks as on the other ranks
    std::int64_t meetings() const { return ceil_div(whole, most_repetitions) + (rest != nullptr); }
};

/// Seconds of a call on this rank: of moving arrays, and all.
struct CallTimes {
    double moving_s = 0, call_s = 0;
};

/// How a run ended, equal on all ranks; seconds of the slowest rank.
struct RunEnding {
    bool interrupted = false;
    double time_s = 0, moving_s = 0, call_s = 0;
};

/// One run, after the ranks have agreed on it: its arrays are made ready, its schedules run, and all ranks agree on the
/// end. A rank that lacks memory, whose kernel fails or that is interrupted stops the others: nobody computes on, and
/// messages go on, empty, until nobody waits for one.
class CollectiveRun {
public:
    /// From here on the ranks can stop each other. `meetings`: of all blocks that it is going to run. `before`: what
    /// the call took on this rank until now.
    CollectiveRun(Context& context, std::int64_t meetings, const CallTimes& before = {});

    /// Obtains a part of the run's memory or threads by `get`. What this rank lacks is an error of all at the end: the
    /// other parts move fields together with the other ranks, and these may compute already.
    template <class Get>
    void obtain(Get get) {
        try {
            get();
        } catch (const std::bad_alloc&) {
            note_lack();
        } catch (const std::system_error&) {
            note_lack();
        }
    }
    bool lacks() const { return lacking_ != nullptr; }
    /// All arrays are ready: this rank has moved some; another rank may have, which is the same on every rank.
    void arrays_are_ready(bool moved, bool others_may);
    void add_moving(double seconds) { times_.moving_s += seconds; }

    /// Runs the blocks with all other ranks running theirs, without agreement between blocks: a rank begins the next
    /// one when its lanes and messages are done, or each lane when it has ended the one before, where blocks repeat;
    /// messages of a tag follow each other in order. After a failure or an interrupt messages go on to the end of the
    /// last block that a rank has begun (Alarms::last_block). Called again, other blocks follow these in the same way.
    /// @throws MpiError
    void execute(const RunBlocks& blocks, std::span<const Binding> bindings, const Programs& programs,
                 ExecuteOptions options);
    /// The same of blocks that move arrays: their time counts as such.
    void move(const RunBlocks& blocks, std::span<const Binding> bindings, ExecuteOptions options);

    /// Agrees with all ranks on how the run ended: one small allreduce, two after an interrupt. `explain` makes the
    /// text of this rank's kernel failure.
    /// @throws the error of the lowest rank that failed in the first block in which any did, on every rank
    RunEnding end(const std::function<std::string(const Failure&)>& explain);

    bool failed() const { return outcome_.failure || outcome_.error; }  ///< on this rank
    /// What points have been reduced to on this rank since the last call; and what the run as a whole gives of it.
    std::vector<Reduced> take_reduced() { return std::exchange(outcome_.reduced, {}); }
    void set_reduced(std::vector<Reduced> reduced) { outcome_.reduced = std::move(reduced); }
    /// What the kernels' points are reduced to, of all ranks; after end(). Collective.
    std::vector<Reduced> reduced();
    const Notes& notes() const { return notes_; }       ///< where recorded without events
    Timeline& timeline() { return outcome_.timeline; }  ///< where recorded with events

private:
    void note_lack() {
        if (!lacking_) lacking_ = std::current_exception();
    }
    Alarms& alarms() const;
    void add(Outcome& one, std::int64_t meeting);

    Context& context_;
    std::int64_t meetings_, met_ = 0;  // of all blocks, and of those that have run
    bool over_ = false;                // nothing follows: a rank has stopped the others
    double begun_ = now_s();
    CallTimes times_;
    std::exception_ptr lacking_;
    Outcome outcome_;                  // of all blocks; the first failure
    std::int64_t failed_meeting_ = 0;  // counted as in RunBlocks::meetings
    Notes notes_;
};

}  // namespace tilewave
