// Ranks comparing notes without stopping: agree() as something that goes on beside other work.
#pragma once
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tilewave/context.hpp"

namespace tilewave {

/// What a rank says, with the hash of its description: made once where it is said again and again.
struct Said {
    explicit Said(Statement what);
    Statement statement;
    std::int64_t hash;
};

/// Every rank learns whether all are fine and described the same, the least of each of `values`, and small matrices that
/// ranks give along. In ceil(log2 ranks) rounds each rank passes what it knows to the rank 1, 2, 4, ... further, so the last
/// hears as soon as by a tree. Twice the height of a tree more, with texts, where something is wrong.
class Agreement {
public:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    /// The most that ranks may give along, all together.
    static constexpr std::int64_t most_carried = 4 << 10;

    /// `port` must live on; ranks whose agreements meet must give equally many values.
    Agreement(Transport& port, std::shared_ptr<const Said> mine, std::vector<std::int64_t> values);
    /// The first time or, with the same words and values, once more; sends nothing before advance(). `carried` is copied
    /// and goes to all ranks.
    /// @pre carried.bytes() <= most_carried / ranks, or <= most_carried where no other rank gives one (not checked)
    void start(int tag, const MatrixView& carried = {});
    /// True when it is over.
    bool advance();
    /// After that: throws what all agreed on, if anything. Texts are cut to about 900 characters.
    void raise() const;
    std::int64_t value(std::size_t i) const { return values_[i]; }
    const std::vector<std::int64_t>& values() const { return values_; }
    /// Of what goes between ranks.
    std::int64_t memory_bytes() const { return 2 * rounds_ * note_bytes_; }
    /// The matrix that rank gave along, without gaps between rows; null where it gave none. Until the next start().
    const std::byte* carried(int rank) const { return carried_[static_cast<std::size_t>(rank)].data; }

private:
    struct Head {
        std::int64_t hash = 0;  // of the description
        std::int32_t rank = 0;
        Statement::Kind kind = Statement::Kind::fine;
        std::int32_t values = 0, carried = 0;  // how many follow
    };
    struct Carried {
        std::int64_t rank = 0, bytes = 0;
        const std::byte* data = nullptr;
    };
    // The second time: whose error or description it is, and its text.
    struct Text {
        Head head;
        char text[1000];
    };

    int peer(int distance) const { return (port_.rank() + distance + port_.size()) % port_.size(); }
    std::byte* note(int round, bool send) { return notes_.get() + (2 * round + send) * note_bytes_; }
    void begin();
    void send_round();
    void take_round();
    bool ready(int id) const { return done_ids_ >> id & 1; }
    void poll();
    bool rounds_over();

    void with_texts();
    void join(const Text& other);
    void post(bool send, Text& text, int peer);
    bool texts_over();

    Transport& port_;
    int tag_ = 0;
    Head mine_;
    std::shared_ptr<const Said> said_;
    std::vector<std::int64_t> given_, values_;  // this rank's, and what is known
    std::vector<Carried> carried_;         // by rank
    std::int64_t note_bytes_ = 0;
    std::unique_ptr<std::byte[]> notes_;   // received and sent in each round
    std::unique_ptr<std::byte[]> own_;     // what this rank gives along
    std::int64_t own_bytes_ = 0;           // there is room for
    int rounds_ = 0, round_ = -1;
    std::uint64_t done_ids_ = 0;           // 2 k: received in round k, 2 k + 1: sent
    bool wrong_ = false;

    enum class Stage { rounds, children, parent, verdict, over } stage_ = Stage::rounds;
    Text all_;
    std::vector<int> children_;
    std::vector<Text> theirs_;
    int next_ = 0, pending_ = 0;
    std::vector<int> done_;
};

}  // namespace tilewave
