#include "agreement.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "binomial.hpp"
#include "rows.hpp"

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

constexpr std::int64_t padded(std::int64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

Said::Said(Statement what) : statement(std::move(what)), hash(hash_of(statement.description)) {}

Agreement::Agreement(Transport& port, std::shared_ptr<const Said> mine, std::vector<std::int64_t> values)
    : port_(port), said_(std::move(mine)), given_(std::move(values)), carried_(static_cast<std::size_t>(port.size())) {
    mine_.hash = said_->hash;
    mine_.rank = port.rank();
    mine_.kind = said_->statement.kind;
    if (port.size() == 1 || !port.connected()) return;
    rounds_ = std::bit_width(static_cast<unsigned>(port.size() - 1));
    note_bytes_ = static_cast<std::int64_t>(sizeof(Head) + given_.size() * sizeof(std::int64_t)) + most_carried +
                  port.size() * static_cast<std::int64_t>(2 * sizeof(std::int64_t) + 8);
    notes_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(2 * rounds_ * note_bytes_));
}

void Agreement::start(int tag, const MatrixView& carried) {
    tag_ = tag;
    values_ = given_;
    round_ = -1;
    done_ids_ = 0;
    wrong_ = mine_.kind != Statement::Kind::fine;
    stage_ = Stage::rounds;
    std::fill(carried_.begin(), carried_.end(), Carried{});
    if (carried.data && carried.bytes() > 0) {
        if (own_bytes_ < carried.bytes()) own_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(own_bytes_ = carried.bytes()));
        copy_range(carried, 0, own_.get(), carried.bytes(), true);
        carried_[static_cast<std::size_t>(port_.rank())] = {port_.rank(), carried.bytes(), own_.get()};
    }
}

void Agreement::begin() {
    round_ = 0;
    for (int k = 0; k < rounds_; ++k) port_.post_recv(2 * k, note(k, false), note_bytes_, peer(-(1 << k)), tag_);
    if (rounds_ > 0) send_round();
}

// To the rank 2^k further: what is known here and not there.
void Agreement::send_round() {
    const int k = round_, p = port_.size(), known = std::min(1 << k, p - (1 << k));
    std::byte *const first = note(k, true), *at = first + sizeof(Head);
    Head head = mine_;
    if (wrong_) head.kind = Statement::Kind::config;
    std::size_t said = values_.size();
    while (said > 0 && values_[said - 1] == none) --said;  // the others' are no less
    head.values = static_cast<std::int32_t>(said);
    if (said) std::memcpy(at, values_.data(), said * sizeof(std::int64_t));
    at += said * sizeof(std::int64_t);
    for (int i = 0; i < known && !wrong_; ++i) {  // ranks that differ may give more together than they may
        const Carried& c = carried_[static_cast<std::size_t>(peer(-i))];
        if (!c.data) continue;
        ++head.carried;
        std::memcpy(at, &c.rank, sizeof c.rank);
        std::memcpy(at + sizeof c.rank, &c.bytes, sizeof c.bytes);
        at += sizeof c.rank + sizeof c.bytes;
        std::memcpy(at, c.data, static_cast<std::size_t>(c.bytes));
        at += padded(c.bytes);
    }
    std::memcpy(first, &head, sizeof head);
    port_.post_send(2 * k + 1, first, at - first, peer(1 << k), tag_, false);
}

void Agreement::take_round() {
    const std::byte* at = note(round_, false);
    Head head;
    std::memcpy(&head, at, sizeof head);
    at += sizeof head;
    // Of whom the sender has heard so far it has said whether all are as it is.
    if (head.kind != Statement::Kind::fine || head.hash != mine_.hash) wrong_ = true;
    for (std::size_t i = 0; i < static_cast<std::size_t>(head.values); ++i, at += sizeof(std::int64_t)) {
        std::int64_t value;
        std::memcpy(&value, at, sizeof value);
        if (i < values_.size()) values_[i] = std::min(values_[i], value);
    }
    for (int i = 0; i < head.carried; ++i) {
        Carried c;
        std::memcpy(&c.rank, at, sizeof c.rank);
        std::memcpy(&c.bytes, at + sizeof c.rank, sizeof c.bytes);
        c.data = at += sizeof c.rank + sizeof c.bytes;
        at += padded(c.bytes);
        carried_[static_cast<std::size_t>(c.rank)] = c;
    }
}

void Agreement::poll() {
    done_.clear();
    port_.poll(done_);
    for (int id : done_) done_ids_ |= std::uint64_t{1} << id;
}

bool Agreement::rounds_over() {
    if (round_ < 0) begin();
    const std::uint64_t all = (std::uint64_t{1} << 2 * rounds_) - 1;
    while (true) {
        while (round_ < rounds_ && ready(2 * round_)) {
            take_round();
            if (++round_ < rounds_) send_round();
        }
        if (done_ids_ == all) return true;
        poll();
        if (done_.empty()) return false;
    }
}

void Agreement::post(bool send, Text& text, int peer) {
    auto* const data = reinterpret_cast<std::byte*>(&text);
    if (send)
        port_.post_send(next_++, data, sizeof text, peer, tag_, false);
    else
        port_.post_recv(next_++, data, sizeof text, peer, tag_);
    ++pending_;
}

// The lowest rank's error wins; two descriptions that differ are an error of all.
void Agreement::join(const Text& other) {
    const bool fine = all_.head.kind == Statement::Kind::fine, fine_other = other.head.kind == Statement::Kind::fine;
    if (!fine_other && (fine || other.head.rank < all_.head.rank)) {
        all_ = other;
    } else if (fine && fine_other && all_.head.hash != other.head.hash) {
        all_.head.kind = Statement::Kind::config;
        write(all_.text, sizeof all_.text,
              "the ranks were given different arguments. Rank " + std::to_string(all_.head.rank) + ": " + std::string(all_.text).substr(0, 400) +
                  ". Rank " + std::to_string(other.head.rank) + ": " + std::string(other.text).substr(0, 400) + ". They must be the same on every rank");
    }
}

// What is wrong, and whose error it is: up and down a binomial tree.
void Agreement::with_texts() {
    std::memset(all_.text, 0, sizeof all_.text);
    all_.head = mine_;
    write(all_.text, sizeof all_.text, mine_.kind == Statement::Kind::fine ? said_->statement.description : said_->statement.error);
    stage_ = Stage::over;
    if (rounds_ == 0) return;  // alone
    children_.clear();
    binomial::for_children(port_.rank(), port_.size(), [&](int child) { children_.push_back(child); });
    theirs_.assign(children_.size(), all_);
    for (std::size_t c = 0; c < children_.size(); ++c) post(false, theirs_[c], children_[c]);
    stage_ = Stage::children;
}

bool Agreement::texts_over() {
    while (true) {
        if (pending_ > 0) {
            done_.clear();
            port_.poll(done_);
            pending_ -= static_cast<int>(done_.size());
            if (pending_ > 0) return false;
        }
        const int up = binomial::parent(port_.rank());
        switch (stage_) {
            case Stage::children:
                for (const Text& text : theirs_) join(text);
                stage_ = port_.rank() ? Stage::parent : Stage::verdict;
                if (!port_.rank()) break;
                theirs_.assign(1, all_);  // what is sent must not change
                post(true, theirs_[0], up);
                post(false, all_, up);
                break;
            case Stage::parent: stage_ = Stage::verdict; break;
            case Stage::verdict:
                for (auto c = children_.rbegin(); c != children_.rend(); ++c) post(true, all_, *c);
                stage_ = Stage::over;
                break;
            case Stage::rounds:
            case Stage::over: return true;
        }
    }
}

bool Agreement::advance() {
    if (stage_ == Stage::rounds) {
        if (!rounds_over()) return false;
        if (wrong_)
            with_texts();
        else
            stage_ = Stage::over;
    }
    return !wrong_ || texts_over();
}

void Agreement::raise() const {
    if (wrong_) throw_as(all_.head.kind, all_.text);
}

}  // namespace tilewave
