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

#include "context/kept_tags.hpp"
#include "data/memory.hpp"
#include "execute/alarms.hpp"
#include "execute/mailroom.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

/// Something under way beside what the caller waits for.
class Operation : public std::enable_shared_from_this<Operation> {
public:
    virtual ~Operation() = default;
    /// Goes as far as it can without waiting; true when it is over. Must not throw.
    virtual bool advance() = 0;
    /// Which of the started ones it is, where another must not start before it is over.
    std::int64_t number = -1;

protected:
    /// After the transport has failed: what is pending may still be written to, so all stays.
    void stay_for_ever() { (void)new std::shared_ptr<Operation>(shared_from_this()); }
};

class PatternTransfer;
struct Comparison;

/// One a context. Any thread that waits on it advances every operation in flight.
class ProgressEngine : public std::enable_shared_from_this<ProgressEngine> {
public:
    /// Tags above main().max_tag() belong to operations: `tag(0)` to `tag(operation_tags() - 1)`.
    int operation_tags() const { return inner_->max_tag() < 1 << 20 ? 8192 : 1 << 17; }
    int tag(int number) const { return inner_->max_tag() - operation_tags() + 1 + number; }
    /// How many calls have been started here, of patterns and of all else: the same on every rank that keeps to one
    /// order.
    std::int64_t started = 0;
    /// Calls in flight take turns with this many tags, so the one that had a tag before must be over.
    static constexpr std::int64_t turns = 2048;
    /// Numbers for tag(): agreements, data, buffered sends (a tag of the caller's each), then one for each kept call.
    static constexpr int first_data = turns, first_send = 2 * turns, send_tags = 2048,
                         first_kept = first_send + send_tags;
    /// Of the call that this rank has agreed on last or agrees on now, for what is told of long waits.
    Caller caller;
    /// What says where the caller stands, where `caller` does not.
    std::function<std::string()> where;
    std::string where_of(const Caller& c) const { return c.where.empty() && where ? where() : c.where; }
    /// The rank that has ended, as this one has learned; -1: none.
    std::atomic<int> ended{-1};
    /// Whether this rank has waited for a rank that had ended: what is in flight may never be over.
    std::atomic<bool> in_vain{false};
    /// @throws MpiError where a rank has ended
    void refuse_if_ended(const Caller& caller) const;
    /// For blocking agreements, one after another; its user takes it out while it needs it.
    std::unique_ptr<Comparison> meeting;
    /// Of what may be run again.
    std::shared_ptr<KeptTags> kept_tags;
    /// Held by the thread whose call is under way. What only waits, sends or receives does without it: another thread's
    /// call may wait for just that.
    std::recursive_timed_mutex calls;
    /// The library's own calls must be made in one order on all ranks. Who may make one takes a
    /// place in line when it is started, and leaves when it has made it or will not.
    std::int64_t enter_line();
    bool first_in_line(std::int64_t place);
    void leave_line(std::int64_t place);
    /// Bytes that buffered sends keep now.
    std::atomic<std::int64_t> kept_bytes{0};
    /// Of what the ranks do together on main().
    std::unique_ptr<Alarms> alarms;
    /// Memory of buffered sends and of runs that are over, for the next ones. A rank alone has no others beside it on
    /// its host that keep as much.
    std::shared_ptr<SpareMemory> spare;
    /// Transfers of patterns that no call uses now, the last used last.
    struct {
        std::mutex lock;
        std::vector<std::shared_ptr<PatternTransfer>> idle;
    } transfers;
    /// Receives of buffered sends by (rank, tag), in order: the first alone may post.
    struct {
        std::mutex lock;
        std::map<std::pair<int, int>, std::deque<Operation*>> queues;
    } receivers;

    static std::shared_ptr<ProgressEngine> make(std::unique_ptr<Transport> inner);
    ~ProgressEngine();

    /// For runs and collectives: its polls move everything.
    Transport& main();
    /// For one operation: its polls only collect what a progress() has found.
    std::unique_ptr<Transport> port();
    /// As port(), for what this engine itself may keep: its user must see to it that the engine lives.
    std::unique_ptr<Transport> kept_port();
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
    std::string at_rest(What what) {
        const std::scoped_lock guard(advancing_);
        return what();
    }
    bool busy() const { return in_flight() > 0; }
    /// A rank that has ended and that something under way here waits for; -1: none is known. Asks the ranks in question
    /// the first time, so a later call knows more.
    /// @throws MpiError
    int waits_for_ended();
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
