// How ranks compare, at the beginning of every call, which function each calls and with which arguments.
#pragma once
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tilewave/context.hpp"

namespace tilewave {

/// A status with the hash of its function and description: made once for calls that are repeated.
struct HashedStatus : RankStatus {
    explicit HashedStatus(RankStatus status);
    std::int64_t hash;
};

/// The error of a caller that would wait for a rank that has ended.
std::string text_of_end(int ended, int rank, const std::string& call, const std::string& where);

/// Every rank learns whether all are fine and called the same, the least of each of `values`, and small matrices that
/// ranks add (piggyback). In ceil(log2 ranks) rounds each rank sends what it knows to the rank 1, 2, 4, ... further.
/// Where something is wrong, texts go up and down a binomial tree. Messages of agreements with equal numbers fit each
/// other's memory, whatever the calls are.
class Agreement {
public:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    /// The most that all ranks together may add, with piggyback_head_bytes for each that adds anything: less with more
    /// rounds, so that the messages of all rounds take the same memory for any number of ranks.
    static std::int64_t most_piggyback_bytes(int ranks);
    static constexpr std::int64_t piggyback_head_bytes = 3 * sizeof(std::int64_t);
    static constexpr std::size_t most_values = 10;

    /// `port` must live on; ranks with equal statuses must give equally many values.
    /// @pre values.size() <= most_values (InternalError)
    Agreement(Transport& port, std::shared_ptr<const HashedStatus> status, std::vector<std::int64_t> values);
    /// Another status and values, from the next start() on.
    void set_status(std::shared_ptr<const HashedStatus> status, std::vector<std::int64_t> values);
    /// May be called again, for the same status and values; sends nothing before advance(). `piggyback` is copied and
    /// goes to all ranks. `where` is the caller's place; where it is empty and needed, `ask` gives it.
    /// @pre all ranks' piggybacks together have at most most_piggyback_bytes() (not checked)
    void start(int tag, const MatrixView& piggyback = {}, std::string where = "",
               const std::function<std::string()>* ask = nullptr);
    /// True when it is over.
    bool advance();
    /// After that: throws what all agreed on, if anything. Texts are cut to about 4000 characters.
    void raise() const;
    std::int64_t value(std::size_t i) const { return values_[i]; }
    const std::vector<std::int64_t>& values() const { return values_; }
    /// The matrix that `rank` added, without gaps between rows; null where it added none. Until the next start().
    const std::byte* piggyback(int rank) const;

    /// What this rank does and for whom it waits: "in tw.run, script.py:7, for rank 1".
    std::string waits();
    const std::string& call() const { return status_->caller.call; }
    const std::string& where();
    /// The rank that has ended and so is not waited for; -1: none.
    int ended() const { return ended_; }
    /// Notifies the ranks that will begin the agreement of this number that this rank has ended. Does not wait; some
    /// memory is never freed.
    static void end(std::unique_ptr<Transport> port, int tag);

private:
    struct Head {
        std::int64_t hash = 0;  // of function and description
        std::int32_t rank = 0;
        RankStatus::Kind kind = RankStatus::Kind::fine;
        std::int32_t ended = -1;                 // a rank that has ended
        std::int32_t values = 0, piggyback = 0;  // how many follow
    };
    struct Piggyback {
        std::int64_t rank = 0, bytes = 0;
        const std::byte* data = nullptr;
    };
    // A message of the tree: a rank's error or description.
    struct Text {
        Head head;
        // `text` is of one rank, or of two whose arguments or functions differ
        enum class Verdict { one_rank, arguments, functions } verdict = Verdict::one_rank;
        char call[64], where[128], text[3800];
    };

    int peer(int distance) const { return (port_.rank() + distance + port_.size()) % port_.size(); }
    std::byte* note(int round, bool send) { return notes_.get() + (2 * round + send) * note_bytes_; }
    void begin();
    void send_round(int round);
    void take_round();
    bool ready(int id) const { return done_ids_ >> id & 1; }
    void poll();
    bool rounds_over();
    bool somebody_ended();

    void with_texts();
    void merge(const Text& other);
    void post(bool send, Text& text, int peer);
    bool texts_over();

    Transport& port_;
    int tag_ = 0;
    Head head_;  // this rank's
    std::shared_ptr<const HashedStatus> status_;
    std::string where_;
    const std::function<std::string()>* ask_ = nullptr;
    std::vector<std::int64_t> given_, values_;  // this rank's, and what is known
    std::vector<Piggyback> piggyback_;          // that have come so far, and this rank's
    std::int64_t note_bytes_ = 0;
    std::unique_ptr<std::byte[]> notes_;  // received and sent in each round
    std::unique_ptr<std::byte[]> added_;  // a copy of what this rank adds
    std::int64_t added_bytes_ = 0;        // size of that memory
    int rounds_ = 0, round_ = -1;
    std::uint64_t done_ids_ = 0;  // 2 k: received in round k, 2 k + 1: sent
    bool wrong_ = false;
    int ended_ = -1;

    enum class Stage { rounds, children, parent, verdict, over } stage_ = Stage::rounds;
    Text all_, other_;           // what is known; another rank's, or what is sent
    std::vector<int> children_;  // in a tree of the ranks
    std::size_t heard_ = 0;      // children whose text has arrived
    int next_ = 0, pending_ = 0;
    bool lacks_ = false, interrupted_ = false;  // this rank has no memory; it had deferred an interrupt
    std::vector<int> done_;
};

/// An agreement with its port.
struct Comparison {
    Comparison(std::unique_ptr<Transport> port_, std::shared_ptr<const HashedStatus> status,
               std::vector<std::int64_t> values)
        : port(std::move(port_)), agreement(*port, std::move(status), std::move(values)) {}
    std::unique_ptr<Transport> port;
    Agreement agreement;
};

/// An interrupt of this thread that all ranks must stop for together. The next agreement that the thread begins without
/// an error takes it and throws Interrupted on every rank.
void defer_interrupt(bool defer);
bool interrupt_deferred();

/// For memory that nobody frees because messages may still arrive there: leak checkers find it here.
void keep_until_exit(void* memory) noexcept;

/// Who called the function that this rank is in.
const Caller& caller_of(Context& context);

/// As agree(context, status).
bool agree(Context& context, std::shared_ptr<const HashedStatus> status);

/// Sets kind and text of `status` from an exception of this rank: "memory ran out " + `during`, for example. Never
/// throws.
void set_error(RankStatus& status, const std::exception_ptr& error, const std::string& during) noexcept;

/// Before a step that one rank alone may fail in: local() makes what the rest of the call needs, may complete `status`,
/// and may throw. Then the ranks agree on `status`, or all throw what any of them has thrown. As agree().
template <class Local>
bool agree_after(Context& context, RankStatus& status, Local local) {
    try {
        local();
    } catch (...) {
        set_error(status, std::current_exception(), "on rank " + std::to_string(context.rank()));
    }
    return agree(context, status);
}
template <class Local>
bool agree_after(Context& context, const std::shared_ptr<const HashedStatus>& status, Local local) {
    try {
        local();
    } catch (...) {
        RankStatus failed = *status;
        set_error(failed, std::current_exception(), "on rank " + std::to_string(context.rank()));
        return agree(context, failed);
    }
    return agree(context, status);
}
/// The same in the middle of a call; `text` must be equal on all ranks.
template <class Local>
void agree_after(Context& context, const std::string& text, Local local) {
    RankStatus status;
    status.description = text;
    status.caller = caller_of(context);
    agree_after(context, status, local);
}

/// agree() of ranks that have no context yet, which use nothing else with this tag.
void agree(Transport& transport, int tag, const RankStatus& status);

}  // namespace tilewave
