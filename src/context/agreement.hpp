// Ranks comparing notes at the begin of every call: what each calls and is given. Goes on beside other work.
#pragma once
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tilewave/context.hpp"

namespace tilewave {

/// What a rank says, with the hash of its function and description: made once where it is said again and again.
struct Said {
    explicit Said(Statement what);
    Statement statement;
    std::int64_t hash;
};

/// What is told of a rank that has ended, to a caller that would wait for it.
std::string text_of_end(int ended, int rank, const std::string& call, const std::string& where);

/// Every rank learns whether all are fine and called the same, the least of each of `values`, and small matrices that
/// ranks give along. In ceil(log2 ranks) rounds each rank passes what it knows to the rank 1, 2, 4, ... further, so the
/// last hears as soon as by a tree. Twice the height of a tree more, with texts, where something is wrong. Agreements
/// of one number meet whatever they are of: their messages fit each other's memory.
class Agreement {
public:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    /// The most that ranks may give along, all together.
    static constexpr std::int64_t most_piggyback_bytes = 4 << 10;

    /// `port` must live on; ranks that say the same must give equally many values.
    /// @pre values.size() <= most_values(ranks) (InternalError)
    Agreement(Transport& port, std::shared_ptr<const Said> mine, std::vector<std::int64_t> values);
    static std::size_t most_values(int ranks) { return 5 + 2 * static_cast<std::size_t>(ranks); }
    /// Something else to say, before the next start().
    void restate(std::shared_ptr<const Said> mine, std::vector<std::int64_t> values);
    /// The first time or, with the same words and values, once more; sends nothing before advance(). `piggyback` is
    /// copied and goes to all ranks. Where the caller stands says `where` or, when that is empty and it is needed,
    /// `ask`.
    /// @pre piggyback.bytes() <= most_piggyback_bytes / ranks, or <= most_piggyback_bytes where no other rank gives one
    /// (not checked)
    void start(int tag, const MatrixView& piggyback = {}, std::string where = "",
               const std::function<std::string()>* ask = nullptr);
    /// True when it is over.
    bool advance();
    /// After that: throws what all agreed on, if anything. Texts are cut to about 4000 characters.
    void raise() const;
    std::int64_t value(std::size_t i) const { return values_[i]; }
    const std::vector<std::int64_t>& values() const { return values_; }
    /// Of what goes between ranks.
    std::int64_t memory_bytes() const { return 2 * rounds_ * note_bytes_; }
    /// The matrix that rank gave along, without gaps between rows; null where it gave none. Until the next start().
    const std::byte* piggyback(int rank) const { return piggyback_[rank].data; }

    /// "in tw.run, script.py:7, for rank 1": what this rank is at, and for whom it waits.
    std::string waits();
    const std::string& call() const { return said_->statement.caller.call; }
    const std::string& where();
    /// The rank that has ended and so is not waited for; -1: none.
    int ended() const { return ended_; }
    /// Tells the ranks whose agreement of this number is to come that this rank has ended. Does not wait; keeps some
    /// memory for ever.
    static void end(std::unique_ptr<Transport> port, int tag);

private:
    struct Head {
        std::int64_t hash = 0;  // of function and description
        std::int32_t rank = 0;
        Statement::Kind kind = Statement::Kind::fine;
        std::int32_t ended = -1;                 // a rank that is waited for in vain
        std::int32_t values = 0, piggyback = 0;  // how many follow
    };
    struct Piggyback {
        std::int64_t rank = 0, bytes = 0;
        const std::byte* data = nullptr;
    };
    // The second time: whose error or description it is, and its text.
    struct Text {
        Head head;
        enum class Verdict {
            said,
            arguments,
            functions
        } verdict = Verdict::said;  // how far `text` speaks of two ranks
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
    void join(const Text& other);
    void post(bool send, Text& text, int peer);
    bool texts_over();

    Transport& port_;
    int tag_ = 0;
    Head mine_;
    std::shared_ptr<const Said> said_;
    std::string where_;
    const std::function<std::string()>* ask_ = nullptr;
    std::vector<std::int64_t> given_, values_;  // this rank's, and what is known
    std::vector<Piggyback> piggyback_;          // by rank
    std::int64_t note_bytes_ = 0;
    std::unique_ptr<std::byte[]> notes_;  // received and sent in each round
    std::unique_ptr<std::byte[]> own_;    // what this rank gives along
    std::int64_t own_bytes_ = 0;          // there is room for
    int rounds_ = 0, round_ = -1;
    std::uint64_t done_ids_ = 0;  // 2 k: received in round k, 2 k + 1: sent
    bool wrong_ = false;
    int ended_ = -1;

    enum class Stage { rounds, children, parent, verdict, over } stage_ = Stage::rounds;
    Text all_, other_;           // what is known; another rank's, or what is sent
    std::vector<int> children_;  // in a tree of the ranks
    std::size_t heard_ = 0;      // of them have said theirs
    int next_ = 0, pending_ = 0;
    bool lacks_ = false, interrupted_ = false;  // this rank has no memory; it keeps an interrupt
    std::vector<int> done_;
};

/// How an operation's ranks compare their arguments, over a port for all of its messages.
struct Comparison {
    Comparison(std::unique_ptr<Transport> own, std::shared_ptr<const Said> mine,
               const std::vector<std::int64_t>& values)
        : port(std::move(own)), agreement(*port, std::move(mine), values) {}
    std::unique_ptr<Transport> port;
    Agreement agreement;
};

/// Of this thread: an interrupt that ranks can stop for together only. The next agreement that the thread begins, and
/// for which nothing is wrong here, takes it and throws Interrupted on every rank.
void keep_interrupt(bool keep);
bool interrupt_kept();

/// Of memory that nobody frees, as messages may still come there when nobody waits: leak checkers find it here.
void keep_until_exit(void* memory) noexcept;

/// As agree(context, statement), of what has been said before.
bool agree(Context& context, std::shared_ptr<const Said> said);

/// Makes `mine` say what this rank has caught, "memory ran out " + `during`, for example. Never throws.
void blame(Statement& mine, const std::exception_ptr& error, const std::string& during) noexcept;

/// Where a call does something on this rank alone: local() makes what the rest of the call needs, may complete `mine`,
/// and may throw; then the ranks agree on `mine`, or all throw what any of them has thrown. As agree().
template <class Local>
bool agree_after(Context& context, Statement& mine, Local local) {
    try {
        local();
    } catch (...) {
        blame(mine, std::current_exception(), "on rank " + std::to_string(context.rank()));
    }
    return agree(context, mine);
}
/// The same of what has been said before.
template <class Local>
bool agree_after(Context& context, const std::shared_ptr<const Said>& said, Local local) {
    try {
        local();
    } catch (...) {
        Statement mine = said->statement;
        blame(mine, std::current_exception(), "on rank " + std::to_string(context.rank()));
        return agree(context, mine);
    }
    return agree(context, said);
}

/// agree() of ranks that have no context yet, which use nothing else with this tag.
void agree(Transport& transport, int tag, const Statement& mine);

}  // namespace tilewave
