#include "agreement.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "binomial.hpp"

namespace tilewave {

namespace {

std::int64_t hash_of(const std::string& text) {  // FNV-1a: the same on every rank and run
    std::uint64_t h = 14695981039346656037u;
    for (unsigned char c : text) h = (h ^ c) * 1099511628211u;
    return static_cast<std::int64_t>(h >> 2);
}

void write(char* to, std::size_t size, const std::string& text) {
    std::size_t n = std::min(text.size(), size - 1);
    while (n < text.size() && n > 0 && (text[n] & 0xc0) == 0x80) --n;  // not within a character of UTF-8
    std::memcpy(to, text.data(), n);
    to[n] = 0;
}

}  // namespace

Agreement::Agreement(Transport& port, int tag, const Statement& mine, const std::vector<std::int64_t>& values)
    : port_(port), tag_(tag), value_count_(values.size()), note_(sizeof(Head) + values.size() * sizeof(std::int64_t)) {
    mine_ = {hash_of(mine.description), port.rank(), mine.kind};
    text_ = mine.kind == Statement::Kind::fine ? mine.description : mine.error;
    new (note_.data()) Head(mine_);
    std::copy(values.begin(), values.end(), Agreement::values(note_));
    if (port.size() == 1 || !port.connected()) {
        stage_ = Stage::over;
        if (mine_.kind != Statement::Kind::fine) with_texts();
        return;
    }
    binomial::for_children(port.rank(), port.size(), [&](int child) { children_.push_back(child); });
    theirs_.assign(children_.size(), note_);
}

void Agreement::post(bool send, Note& note, int peer) {
    const auto bytes = static_cast<std::int64_t>(note.size());
    if (send)
        port_.post_send(next_++, note.data(), bytes, peer, tag_, false);
    else
        port_.post_recv(next_++, note.data(), bytes, peer, tag_);
    ++pending_;
}

bool Agreement::idle() {
    if (pending_ == 0) return true;
    done_.clear();
    port_.poll(done_);
    pending_ -= static_cast<int>(done_.size());
    return pending_ == 0;
}

void Agreement::join(const Note& other) {
    std::int64_t* mine = values(note_);
    for (std::size_t i = 0; i < value_count_; ++i) mine[i] = std::min(mine[i], values(other)[i]);
    if (texts_) return join_texts(other);
    Head& a = head(note_);
    const Head& b = head(other);
    // What is wrong and whose error it is the texts will say.
    if (b.kind != Statement::Kind::fine || (a.kind == Statement::Kind::fine && a.hash != b.hash)) a.kind = Statement::Kind::config;
}

// The lowest rank's error wins; two descriptions that differ are an error of all.
void Agreement::join_texts(const Note& other) {
    Head& a = head(note_);
    const Head& b = head(other);
    const bool fine_a = a.kind == Statement::Kind::fine, fine_b = b.kind == Statement::Kind::fine;
    if (!fine_b && (fine_a || b.rank < a.rank)) {
        a = b;
        std::memcpy(text(note_), text(other), text_bytes);
    } else if (fine_a && fine_b && a.hash != b.hash) {
        a.kind = Statement::Kind::config;
        write(text(note_), text_bytes,
              "the ranks were given different arguments. Rank " + std::to_string(a.rank) + ": " + std::string(text(note_)).substr(0, 400) +
                  ". Rank " + std::to_string(b.rank) + ": " + std::string(text(other)).substr(0, 400) + ". They must be the same on every rank");
    }
}

// Once more from the beginning. The values stay as they are: to join them again changes nothing.
void Agreement::with_texts() {
    texts_ = true;
    note_.resize(note_.size() + text_bytes);
    head(note_) = mine_;
    write(text(note_), text_bytes, text_);
    theirs_.assign(children_.size(), note_);
}

bool Agreement::advance() {
    while (idle()) {
        const int up = binomial::parent(port_.rank());
        switch (stage_) {
            case Stage::start:
                stage_ = Stage::children;
                for (std::size_t c = 0; c < children_.size(); ++c) post(false, theirs_[c], children_[c]);
                break;
            case Stage::children:
                for (const Note& note : theirs_) join(note);
                stage_ = port_.rank() ? Stage::parent : Stage::verdict;
                if (!port_.rank()) break;
                theirs_.assign(1, note_);  // what is sent must not change
                post(true, theirs_[0], up);
                post(false, note_, up);
                break;
            case Stage::parent: stage_ = Stage::verdict; break;
            case Stage::verdict:
                for (auto c = children_.rbegin(); c != children_.rend(); ++c) post(true, note_, *c);
                stage_ = Stage::over;
                break;
            case Stage::over:
                if (texts_ || head(note_).kind == Statement::Kind::fine) return true;
                with_texts();
                stage_ = Stage::start;
                break;
        }
    }
    return false;
}

void Agreement::raise() const {
    const Head& h = head(note_);
    if (h.kind != Statement::Kind::fine) throw_as(h.kind, text(note_));
}

}  // namespace tilewave
