// Ranks comparing notes without stopping: agree() as something that goes on beside other work.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "tilewave/context.hpp"

namespace tilewave {

/// Up and down a binomial tree: every rank learns whether all are fine and described the same,
/// and the least of each of `values`. Two short messages a tree edge; two more, with texts, where something is wrong.
class Agreement {
public:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

    /// Sends nothing before advance(). `port` must live on; ranks whose agreements meet must give equally many values.
    Agreement(Transport& port, int tag, const Statement& mine, const std::vector<std::int64_t>& values);
    /// True when it is over.
    bool advance();
    /// After that: throws what all agreed on, if anything. Texts are cut to about 900 characters.
    void raise() const;
    std::int64_t value(std::size_t i) const { return values(note_)[i]; }
    std::vector<std::int64_t> values() const { return {values(note_), values(note_) + value_count_}; }

private:
    struct Head {
        std::int64_t hash = 0;  // of the description
        std::int32_t rank = 0;
        Statement::Kind kind = Statement::Kind::fine;
    };
    static constexpr std::size_t text_bytes = 1012;
    using Note = std::vector<std::byte>;  // a Head, the values; the second time a text: the error, or the description while all is fine

    static Head& head(Note& n) { return *reinterpret_cast<Head*>(n.data()); }
    static const Head& head(const Note& n) { return *reinterpret_cast<const Head*>(n.data()); }
    static std::int64_t* values(Note& n) { return reinterpret_cast<std::int64_t*>(n.data() + sizeof(Head)); }
    static const std::int64_t* values(const Note& n) { return reinterpret_cast<const std::int64_t*>(n.data() + sizeof(Head)); }
    char* text(Note& n) const { return reinterpret_cast<char*>(n.data() + sizeof(Head) + value_count_ * sizeof(std::int64_t)); }
    const char* text(const Note& n) const { return reinterpret_cast<const char*>(n.data() + sizeof(Head) + value_count_ * sizeof(std::int64_t)); }
    void with_texts();
    void join_texts(const Note& other);
    void join(const Note& other);
    void post(bool send, Note& note, int peer);
    bool idle();

    Transport& port_;
    int tag_;
    enum class Stage { start, children, parent, verdict, over } stage_ = Stage::start;
    std::size_t value_count_;
    Head mine_;
    std::string text_;
    bool texts_ = false;
    Note note_;
    std::vector<int> children_;
    std::vector<Note> theirs_;
    int next_ = 0, pending_ = 0;
    std::vector<int> done_;
};

}  // namespace tilewave
