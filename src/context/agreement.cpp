#include "context/agreement.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "context/tuning.hpp"
#include "core/binomial.hpp"
#include "data/rows.hpp"
#include "execute/executor.hpp"
#include "execute/request_table.hpp"

namespace tilewave {

namespace {

std::int64_t hash_of(const std::string& text) {  // FNV-1a: the same on every rank and run
    std::uint64_t h = 14695981039346656037u;
    for (unsigned char c : text) h = (h ^ c) * 1099511628211u;
    return static_cast<std::int64_t>(h >> 2);
}

bool inside_character(char c) {
    return (c & 0xc0) == 0x80;
}  // of UTF-8, not at its begin

void write(char* to, std::size_t size, const std::string& text) {
    std::size_t n = std::min(text.size(), size - 1);
    while (n < text.size() && n > 0 && inside_character(text[n])) --n;
    std::memcpy(to, text.data(), n);
    to[n] = 0;
}

// The part of a text around the place where it differs from another one.
std::string about(const std::string& text, std::size_t differs) {
    constexpr std::size_t before = 300, most = 1200;
    if (text.size() <= most) return text;
    std::size_t first = differs > before ? differs - before : 0;
    while (first > 0 && inside_character(text[first])) --first;
    std::size_t last = std::min(first + most, text.size());
    while (last < text.size() && inside_character(text[last])) --last;
    return (first ? "..." : "") + text.substr(first, last - first) + (last < text.size() ? "..." : "");
}

std::string with_where(const std::string& call, const std::string& where) {
    return call + (where.empty() ? "" : ", " + where);
}

// Whether there is memory for the small things that a call allocates after the agreement, where a rank that has none
// could no longer report it.
bool has_memory_left() {
    void* const memory = ::operator new(tuning::memory_left_bytes, std::nothrow);
    asm volatile("" : : "r"(memory) : "memory");  // a compiler may leave both calls out
    ::operator delete(memory);
    return memory != nullptr;
}

thread_local bool deferred_interrupt = false;

int rounds_of(int ranks) {
    return std::bit_width(static_cast<unsigned>(ranks - 1));
}

constexpr std::int64_t padded(std::int64_t bytes) {
    return (bytes + 7) / 8 * 8;
}

}  // namespace

HashedStatus::HashedStatus(RankStatus status)
    : RankStatus(std::move(status)), hash(hash_of(caller.call + '\0' + description)) {}

std::string text_of_end(int ended, int rank, const std::string& call, const std::string& where) {
    return "rank " + std::to_string(ended) + " has ended; rank " + std::to_string(rank) + " calls " +
           with_where(call, where);
}

void defer_interrupt(bool defer) {
    deferred_interrupt = defer;
}

bool interrupt_deferred() {
    return deferred_interrupt;
}

void keep_until_exit(void* memory) noexcept {
    static std::mutex one_at_a_time;
    static auto* const all = new std::vector<void*>;
    const std::lock_guard lock(one_at_a_time);
    try {
        all->push_back(memory);
    } catch (const std::bad_alloc&) {  // it stays nevertheless
    }
}

void set_error(RankStatus& status, const std::exception_ptr& error, const std::string& during) noexcept {
    using Kind = RankStatus::Kind;
    try {
        try {
            std::rethrow_exception(error);
        } catch (const ConfigError& e) {
            status.kind = Kind::config, status.error = e.what();
        } catch (const KernelError& e) {
            status.kind = Kind::kernel, status.error = e.what();
        } catch (const MpiError& e) {
            status.kind = Kind::mpi, status.error = e.what();
        } catch (const Interrupted& e) {
            status.kind = Kind::interrupt, status.error = e.what();
        } catch (const OutOfResources& e) {
            status.kind = Kind::resources, status.error = e.what();
        } catch (const std::bad_alloc&) {
            status.kind = Kind::resources, status.error = "memory ran out " + during;
        } catch (const std::system_error& e) {
            status.kind = Kind::resources;
            status.error = "no further thread could be started " + during + " (" + e.what() +
                           "); fewer threads, or a higher limit of processes or memory, are needed";
        } catch (const std::exception& e) {
            status.kind = Kind::internal, status.error = e.what() + (" " + during);
        } catch (...) {
            status.kind = Kind::internal, status.error = "what is no std::exception was thrown " + during;
        }
    } catch (const std::bad_alloc&) {
        status.kind = Kind::resources;
        status.error = "memory ran out";  // needs none
    }
}

std::int64_t Agreement::most_piggyback_bytes(int ranks) {
    return std::min(tuning::most_piggyback_bytes,
                    tuning::piggyback_notes_bytes / std::max(rounds_of(ranks), 1) / 8 * 8);
}

Agreement::Agreement(Transport& port, std::shared_ptr<const HashedStatus> status, std::vector<std::int64_t> values)
    : port_(port) {
    set_status(std::move(status), std::move(values));
    binomial::for_children(port_.rank(), port_.size(), [&](int child) { children_.push_back(child); });
    if (port.size() == 1 || !port.connected()) return;
    rounds_ = rounds_of(port.size());
    const std::int64_t most = most_piggyback_bytes(port.size());
    piggyback_.reserve(static_cast<std::size_t>(most / piggyback_head_bytes));
    note_bytes_ = static_cast<std::int64_t>(sizeof(Head) + most_values * sizeof(std::int64_t)) + most;
    notes_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(2 * rounds_ * note_bytes_));
}

void Agreement::set_status(std::shared_ptr<const HashedStatus> status, std::vector<std::int64_t> values) {
    ensure(values.size() <= most_values, "an agreement was given more values than there is room for");
    status_ = std::move(status);
    given_ = std::move(values);
    head_.hash = status_->hash;
    head_.rank = port_.rank();
}

void Agreement::start(int tag, const MatrixView& piggyback, std::string where,
                      const std::function<std::string()>* ask) {
    tag_ = tag;
    where_ = std::move(where);
    ask_ = ask;
    ended_ = -1;
    next_ = pending_ = 0;
    values_ = given_;
    round_ = -1;
    done_ids_ = 0;
    head_.kind = status_->kind;
    interrupted_ = head_.kind == RankStatus::Kind::fine && std::exchange(deferred_interrupt, false);
    if (interrupted_) head_.kind = RankStatus::Kind::interrupt;
    lacks_ = head_.kind == RankStatus::Kind::fine && !has_memory_left();
    if (lacks_) head_.kind = RankStatus::Kind::resources;
    wrong_ = head_.kind != RankStatus::Kind::fine;
    stage_ = Stage::rounds;
    piggyback_.clear();
    if (piggyback.data && piggyback.bytes() > 0) {
        if (added_bytes_ < piggyback.bytes())
            added_ =
                std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(added_bytes_ = piggyback.bytes()));
        copy_range(piggyback, 0, added_.get(), piggyback.bytes(), true);
        piggyback_.push_back({port_.rank(), piggyback.bytes(), added_.get()});
    }
}

void Agreement::begin() {
    round_ = 0;
    for (int k = 0; k < rounds_; ++k) port_.post_recv(2 * k, note(k, false), note_bytes_, peer(-(1 << k)), tag_);
    if (rounds_ > 0) send_round(0);
}

// To the rank 2^k further: what is known here and not there.
void Agreement::send_round(int k) {
    const int p = port_.size(), known = std::min(1 << k, p - (1 << k));
    std::byte *const first = note(k, true), *at = first + sizeof(Head);
    Head head = head_;
    if (wrong_) head.kind = RankStatus::Kind::config;
    head.ended = ended_;
    std::size_t count = values_.size();
    while (count > 0 && values_[count - 1] == none) --count;  // the others' are no less
    head.values = static_cast<std::int32_t>(count);
    if (count) std::memcpy(at, values_.data(), count * sizeof(std::int64_t));
    at += count * sizeof(std::int64_t);
    for (const Piggyback& c : piggyback_) {
        const auto behind = (port_.rank() - c.rank + p) % p;
        if (behind >= known || wrong_) continue;  // ranks that differ may together exceed most_piggyback_bytes
        ++head.piggyback;
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
    // The kind says whether all ranks that the sender has heard of are fine and equal.
    if (head.kind != RankStatus::Kind::fine || head.hash != head_.hash) wrong_ = true;
    for (std::size_t i = 0; i < static_cast<std::size_t>(head.values); ++i, at += sizeof(std::int64_t)) {
        std::int64_t value;
        std::memcpy(&value, at, sizeof value);
        if (i < values_.size()) values_[i] = std::min(values_[i], value);
    }
    for (int i = 0; i < head.piggyback; ++i) {
        Piggyback c;
        std::memcpy(&c.rank, at, sizeof c.rank);
        std::memcpy(&c.bytes, at + sizeof c.rank, sizeof c.bytes);
        c.data = at += sizeof c.rank + sizeof c.bytes;
        at += padded(c.bytes);
        if (!wrong_) piggyback_.push_back(c);
    }
}

const std::byte* Agreement::piggyback(int rank) const {
    const auto at = std::ranges::find_if(piggyback_, [&](const auto& c) { return c.rank == rank; });
    return at == piggyback_.end() ? nullptr : at->data;
}

void Agreement::poll() {
    done_.clear();
    port_.poll(done_);
    for (int id : done_) done_ids_ |= std::uint64_t{1} << id;
}

bool Agreement::rounds_over() {
    if (round_ < 0) begin();
    const std::uint64_t all = (std::uint64_t{1} << 2 * rounds_) - 1;
    while (!somebody_ended()) {
        while (round_ < rounds_ && ready(2 * round_)) {
            take_round();
            if (++round_ < rounds_) send_round(round_);
        }
        if (done_ids_ == all) return true;
        poll();
        if (done_.empty()) return false;
    }
    return true;
}

// A rank that has ended has sent so in all rounds at once. A rank that receives this sends it in all rounds that are
// left, and waits for nobody.
bool Agreement::somebody_ended() {
    for (int k = round_; k < rounds_; ++k) {
        if (!ready(2 * k)) continue;
        Head head;
        std::memcpy(&head, note(k, false), sizeof head);
        if (head.ended < 0) continue;
        ended_ = head.ended;
        (void)where();
        for (int later = round_ + 1; later < rounds_; ++later) send_round(later);
        keep_until_exit(notes_.release());
        return true;
    }
    return false;
}

void Agreement::end(std::unique_ptr<Transport> port, int tag) {
    static const auto status = std::make_shared<const HashedStatus>(RankStatus{});
    auto* const last = new Agreement(*port.release(), status, {});  // others read it after this rank's last call
    keep_until_exit(last);
    last->start(tag);
    last->ended_ = last->port_.rank();
    // Receives what the others send at their end: a library may complain of messages that nobody receives.
    for (int k = 0; k < last->rounds_; ++k)
        last->port_.post_recv(2 * k, last->note(k, false), last->note_bytes_, last->peer(-(1 << k)), tag);
    for (int k = 0; k < last->rounds_; ++k) last->send_round(k);
    last->poll();
}

const std::string& Agreement::where() {
    try {
        if (where_.empty() && ask_ && *ask_) where_ = (*ask_)();
    } catch (const std::exception&) {  // it is only shown
    }
    return where_;
}

std::string Agreement::waits() {
    const std::string in = "in " + with_where(call(), where()) + ", for ";
    if (stage_ != Stage::rounds || round_ < 0 || round_ >= rounds_) return in + "the other ranks' texts";
    // The missing note stands for all ranks that its sender hears first.
    const int p = port_.size(), step = 1 << round_, known = std::min(step, p - step), last = peer(-step),
              first = (last - known + 1 + p) % p;
    if (known == 1) return in + "rank " + std::to_string(last);
    return in + "one of ranks " + std::to_string(first) + " to " + std::to_string(last) +
           (first > last ? ", counted around" : "");
}

void Agreement::post(bool send, Text& text, int peer) {
    auto* const data = reinterpret_cast<std::byte*>(&text);
    if (send)
        port_.post_send(next_++, data, sizeof text, peer, tag_, false);
    else
        port_.post_recv(next_++, data, sizeof text, peer, tag_);
    ++pending_;
}

// The first of these is reported: an interrupt, ranks that call different functions, the error of the lowest rank,
// arguments that differ.
void Agreement::merge(const Text& other) {
    using Kind = RankStatus::Kind;
    using Verdict = Text::Verdict;
    const auto weight = [](const Text& t) {
        if (t.head.kind == Kind::interrupt) return 4;
        if (t.verdict == Verdict::functions) return 3;
        return t.verdict == Verdict::arguments ? 1 : t.head.kind == Kind::fine ? 0 : 2;
    };
    const auto both = [&](Verdict verdict, const std::string& text) {
        all_.verdict = verdict;
        all_.head.kind = Kind::config;
        write(all_.text, sizeof all_.text, text);
    };
    const auto one = [](const Text& t) {
        const std::string text = t.text;  // a description, where it is short
        const bool shown =
            t.head.kind == Kind::fine && t.verdict == Verdict::one_rank && !text.empty() && text.size() <= 80;
        return "rank " + std::to_string(t.head.rank) + " " +
               with_where(t.call + (shown ? "(" + text + ")" : ""), t.where);
    };
    const int here = weight(all_), there = weight(other);
    // An error in the middle of a call names no function: the others may be at any part.
    const bool named = all_.call[0] != 0 && other.call[0] != 0;
    if (std::max(here, there) < 3 && named && std::strcmp(all_.call, other.call) != 0) {
        both(Verdict::functions, "the ranks called different functions: " + one(all_) + "; " + one(other) +
                                     "; all ranks must make the same calls in the same order");
    } else if (there > here || (there == here && there > 1 && other.head.rank < all_.head.rank)) {
        all_ = other;
    } else if (here == 0 && there == 0 && all_.head.hash != other.head.hash) {
        const std::string a = all_.text, b = other.text;
        const auto differs =
            static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
        const auto given = [&](const Text& t, const std::string& text) {
            return "Rank " + std::to_string(t.head.rank) + ", " + with_where(t.call, t.where) + ": " +
                   about(text, differs) + ". ";
        };
        both(Verdict::arguments, "the ranks were given different arguments. " + given(all_, a) + given(other, b) +
                                     "They must be the same on every rank");
    }
}

// Begins the tree: what is wrong, and whose error it is.
void Agreement::with_texts() {
    std::memset(all_.text, 0, sizeof all_.text);
    all_.head = head_;
    all_.verdict = Text::Verdict::one_rank;
    if (interrupted_)
        std::snprintf(all_.text, sizeof all_.text, "rank %d was interrupted", port_.rank());
    else if (lacks_)
        std::snprintf(all_.text, sizeof all_.text, "memory ran out on rank %d; nothing was done", port_.rank());
    else
        write(all_.text, sizeof all_.text,
              head_.kind == RankStatus::Kind::fine ? status_->description : status_->error);
    write(all_.call, sizeof all_.call, call());
    write(all_.where, sizeof all_.where, where());
    stage_ = Stage::over;
    if (rounds_ == 0) return;  // alone
    heard_ = 0;
    stage_ = Stage::children;
}

bool Agreement::texts_over() {
    while (true) {
        if (pending_ > 0) {
            done_.clear();
            port_.poll(done_);
            pending_ -= static_cast<int>(done_.size());
            if (pending_ > 0) return false;
            if (stage_ == Stage::children) merge(other_);
        }
        switch (stage_) {
            case Stage::children:
                if (heard_ < children_.size()) {
                    post(false, other_, children_[heard_++]);
                    break;
                }
                stage_ = port_.rank() ? Stage::parent : Stage::verdict;
                if (!port_.rank()) break;
                other_ = all_;  // what is sent must not change
                post(true, other_, binomial::parent(port_.rank()));
                post(false, all_, binomial::parent(port_.rank()));
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
        if (ended_ >= 0)
            stage_ = Stage::over;
        else if (wrong_)
            with_texts();
        else
            stage_ = Stage::over;
    }
    return !wrong_ || ended_ >= 0 || texts_over();
}

void Agreement::raise() const {
    if (ended_ >= 0) throw MpiError(text_of_end(ended_, port_.rank(), status_->caller.call, where_));
    if (wrong_) throw_as(all_.head.kind, all_.text);
}

void agree(Transport& t, int tag, const RankStatus& status) {
    Agreement agreement(t, std::make_shared<const HashedStatus>(status), {});
    agreement.start(tag, {}, status.caller.where);
    Backoff backoff;
    double since = 0;
    while (!agreement.advance()) {
        backoff.pause();
        if (!backoff.yielding() || since < 0) continue;
        const double now = now_s();
        if (since == 0) since = now;
        if (now - since <= patience_s()) continue;
        std::fprintf(stderr, "tilewave: rank %d waits %s\n", t.rank(), agreement.waits().c_str());
        since = -1;
    }
    agreement.raise();
}

}  // namespace tilewave
