// The progress engine of a context: one transport, several users. Each Port numbers its messages, and whoever polls
// moves all that is in flight.
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "context/persistent_tags.hpp"
#include "data/memory.hpp"
#include "execute/alarms.hpp"
#include "execute/request_table.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

/// Something in flight that the caller does not wait for.
class Operation : public std::enable_shared_from_this<Operation> {
public:
    virtual ~Operation() = default;
    /// Progresses as far as it can without waiting; true when it is over. Must not throw.
    virtual bool advance() = 0;
    /// The number of the call; -1: another call need not wait until it is over.
    std::int64_t number = -1;

protected:
    /// After the transport has failed, pending receives may still write: the memory is never freed.
    void never_free() { (void)new std::shared_ptr<Operation>(shared_from_this()); }
};

class PatternTransfer;
struct Comparison;
struct HashedStatus;

class ProgressEngine;
/// The engines that this thread has added operations to, while they have any.
std::vector<std::weak_ptr<ProgressEngine>>& engines_of_thread();

/// One a context. Any thread that waits on it advances every operation in flight.
class ProgressEngine : public std::enable_shared_from_this<ProgressEngine> {
public:
    /// Tags above main().max_tag() belong to operations: `tag(0)` to `tag(operation_tags() - 1)`.
    int operation_tags() const { return inner_->max_tag() < 1 << 20 ? 8192 : 1 << 17; }
    int tag(int number) const { return inner_->max_tag() - operation_tags() + 1 + number; }
    /// Calls started so far, patterns included: equal on ranks that make the same calls.
    std::int64_t started = 0;
    /// Seconds of all runs so far, of each those of its slowest rank: equal on all ranks.
    double ran_s = 0;
    /// Numbered calls use this many tags cyclically; the call that had a tag before must be over.
    static constexpr std::int64_t call_tags = 2048;
    /// Numbers for tag(): agreements, data, buffered sends (one for each of the caller's tags), persistent calls.
    static constexpr int first_data = call_tags, first_send = 2 * call_tags, send_tags = 2048,
                         first_persistent = first_send + send_tags;
    /// The last call that this rank has begun to agree on, for reports of long waits.
    Caller caller;
    /// Gives the caller's place in its program where `caller` has none.
    std::function<std::string()> where;
    std::string where_of(const Caller& c) const { return c.where.empty() && where ? where() : c.where; }
    /// A rank that has ended, as far as this one knows; -1: none.
    std::atomic<int> ended{-1};
    /// Whether this rank has waited for a rank that had ended: calls in flight may never be over.
    std::atomic<bool> waited_for_ended{false};
    /// @throws MpiError where a rank has ended
    void refuse_if_ended(const Caller& caller) const;
    /// An agreement with this status and these values. One is left for blocking calls, which tell of errors.
    /// @throws std::bad_alloc
    std::unique_ptr<Comparison> take_comparison(std::shared_ptr<const HashedStatus> status,
                                                std::vector<std::int64_t> values, bool blocking = false);
    /// For the calls to come. Its messages must be over.
    void give_back(std::unique_ptr<Comparison> comparison) noexcept;
    /// Tags of calls that are prepared once and repeated.
    std::shared_ptr<PersistentTags> persistent_tags;
    /// Held by the thread that makes a call. Waits, sends and receives do not take it: another thread's call may depend
    /// on them.
    std::recursive_timed_mutex calls;
    /// Collectives of the MPI library must be called in one order on all ranks: an operation that may call one gets a
    /// place in line when it starts, and leaves the line after the call, or when it does without.
    std::int64_t enter_line();
    bool first_in_line(std::int64_t place);
    void leave_line(std::int64_t place);
    /// Bytes that buffered sends hold now.
    std::atomic<std::int64_t> buffered_bytes{0};
    /// For runs and collectives on main().
    std::unique_ptr<Alarms> alarms;
    /// Memory of finished sends and runs, for the next ones. A single rank may hold more: no other rank of its host
    /// does.
    std::shared_ptr<SpareMemory> spare;
    /// Idle transfers of patterns, the last used last.
    struct {
        std::mutex lock;
        std::vector<std::shared_ptr<PatternTransfer>> idle;
    } transfers;
    /// Agreements that nobody uses.
    struct {
        std::mutex lock;
        std::vector<std::unique_ptr<Comparison>> idle;
    } comparisons;
    /// Receives of buffered sends by (rank, tag), in order: the first alone may post.
    struct {
        std::mutex lock;
        std::map<std::pair<int, int>, std::deque<Operation*>> queues;
    } receivers;

    static std::shared_ptr<ProgressEngine> make(std::unique_ptr<Transport> inner);
    ~ProgressEngine();

    /// For runs and collectives: its polls move everything.
    Transport& main();
    /// For one operation: its polls only collect what progress() has found.
    std::unique_ptr<Transport> port();
    /// As port(), but does not keep the engine alive: for objects that the engine holds.
    std::unique_ptr<Transport> borrowed_port();
    Transport& inner() { return *inner_; }

    /// Advances `operation`, now and in every progress(), until it is over.
    void add(std::shared_ptr<Operation> operation);
    /// Moves messages and advances what is in flight, here and in the other engines that this
    /// thread has put operations into: ranks may wait for them in different orders.
    /// True when a message has arrived or left.
    bool progress();
    /// Moves messages alone.
    bool move();
    /// The least number in flight; the largest there is where none is.
    std::int64_t oldest();
    /// what(), while no thread advances what is in flight.
    template <class What>
    std::string paused(What what) {
        const std::scoped_lock guard(advancing_);
        return what();
    }
    bool busy() const { return in_flight() > 0; }
    /// A rank that has ended and that an operation waits for; -1: none is known. The first call asks the ranks in
    /// question, so a later one knows more.
    /// @throws MpiError
    int find_ended_peer();
    int in_flight() const { return count_.load(std::memory_order_relaxed); }

private:
    class Port;
    static constexpr int all_ranks = -1;
    struct Slot {
        Port* port = nullptr;  // null: nobody waits for it
        int id = 0, peer = 0;  // all_ranks: of a native call
    };

    ProgressEngine() = default;
    void reserve(std::size_t messages);
    template <class Start>
    void post(Port* port, int id, int peer, Start start);
    void advance_all();

    std::unique_ptr<Transport> inner_;
    std::unique_ptr<Port> main_;
    std::mutex lock_;  // of the transport, the slots and the ports' lists
    std::vector<Slot> slots_;
    std::vector<int> free_, found_;
    SpinLock advancing_;  // held while operations advance; of operations_
    std::vector<std::shared_ptr<Operation>> operations_, over_;
    std::mutex new_lock_;  // of the next four
    std::vector<std::shared_ptr<Operation>> new_operations_;
    std::multiset<std::int64_t> open_;
    std::set<std::int64_t> line_;
    std::int64_t places_ = 0;
    std::atomic<int> count_{0};
};

}  // namespace tilewave
