// Messages between ranks of one host through shared memory. Each message is announced in the queue of its receiver,
// those of one sender in order. Its bytes are in the announcement, or go through pieces of the shared memory, which the
// sender fills while the receiver copies out, or, where they are many or no piece is free, by the transport underneath.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/clock.hpp"
#include "data/memory.hpp"
#include "data/rows.hpp"
#include "tilewave/engine/transport.hpp"
#include "transport/host_link.hpp"
#include "transport/host_memory.hpp"
#include "transport/tuning.hpp"

namespace tilewave {

using namespace tuning;

namespace {

using namespace host;

/// How the bytes of most messages come into the shared memory.
struct FromMemory {
    const std::byte* data;
    void operator()(std::byte* to, std::int64_t at, std::int64_t n) const {
        if (n) copy_run(to, data + at, n);
    }
};

class SharedTransport final : public Transport {
public:
    SharedTransport(std::unique_ptr<Transport> inner, std::unique_ptr<HostMemory> memory, const Segment& segment,
                    const std::vector<int>& ranks)
        : inner_(std::move(inner)),
          memory_(std::move(memory)),
          segment_(segment),
          ranks_(ranks),
          links_(ranks.size()),
          alone_(static_cast<int>(ranks.size()) == inner_->size()) {
        segment_.at(memory_->data());
        place_ = static_cast<int>(std::ranges::find(ranks, rank()) - ranks.begin());
        uses_ = &segment_.uses(place_);
        queue_ = &segment_.queue(place_);
        for (std::size_t k = 0; k < links_.size(); ++k) {
            links_[k].to = &segment_.queue(static_cast<int>(k));
            links_[k].pieces = &segment_.uses(static_cast<int>(k));
            links_[k].rank = ranks[k];
        }
    }
    ~SharedTransport() override {
        if (failed()) inner_->mark_failed();
    }
    int rank() const override { return inner_->rank(); }
    int size() const override { return inner_->size(); }
    bool any_thread() const override { return inner_->any_thread(); }
    bool connected() const override { return inner_->connected(); }
    int max_tag() const override { return inner_->max_tag(); }
    bool native() const override { return inner_->native(); }
    bool has_ended(int peer, bool before_native) override { return inner_->has_ended(peer, before_native); }

    /// Finds the longest messages that are faster in pieces: the first two ranks of the host measure it, the others
    /// read it when it is known.
    void measure_longest() {
        if (place_ > 1) return;
        const auto memory = staging_memory(std::end(tried)[-1]);
        std::fill_n(memory.get(), std::end(tried)[-1], std::byte{0});
        std::int64_t longest = always_in_pieces;
        bool all = true;
        for (std::int64_t bytes : tried) {
            double best[2] = {1, 1};  // s; underneath, in pieces
            for (int i = 0; i < 2 * trials; ++i) {
                longest_ = i % 2 ? bytes : always_in_pieces;
                lately_ = 0;  // as after messages of the same kind
                const double begin = now_s();
                pass(place_ == 0, memory.get(), bytes);
                pass(place_ == 1, memory.get(), 1);
                best[i % 2] = std::min(best[i % 2], now_s() - begin);
            }
            all = all && best[1] < best[0];
            if (all) longest = bytes;
        }
        longest_ = 0;
        if (place_ == 0) segment_.longest().store(all ? most_in_pieces : longest, std::memory_order_release);
    }

    void post_native(int id, const NativeCall& call) override {
        ++below_;
        inner_->post_native(id, call);
    }

    void post_send(int id, const std::byte* data, std::int64_t bytes, int peer, int tag, bool synchronous) override {
        const int l = link_to(peer);
        if (l < 0) {
            ++below_;
            return inner_->post_send(id, data, bytes, peer, tag, synchronous);
        }
        send(links_[l], {id, peer, tag, synchronous, data, bytes, 0, links_[l].messages++});
    }

    bool try_send(const MatrixView& matrix, std::int64_t at, std::int64_t bytes, int peer, int tag) override {
        const int l = link_to(peer);
        if (l < 0) return false;
        Link& link = links_[l];
        // Whether pieces are faster or not: by the transport underneath these bytes would need a copy first.
        if (!link.waiting.empty() || bytes > most_in_pieces || !get_room(link, bytes)) return false;
        Outgoing message{no_id, peer, tag, false, nullptr, bytes, 0, link.messages++};
        announce(link, message,
                 [&](std::byte* to, std::int64_t from, std::int64_t n) { copy_range(matrix, at + from, to, n, true); });
        return true;
    }

    std::byte* memory_for(std::int64_t bytes, int peer) override {
        const int l = link_to(peer);
        if (l < 0 || bytes <= inside_bytes || bytes > large_piece) return nullptr;
        Link& link = links_[l];
        const int piece = link.waiting.empty() ? free_piece(bytes) : -1;
        if (piece < 0) return nullptr;
        uses_->used[piece].store(1, std::memory_order_relaxed);
        return segment_.piece(place_, piece);
    }
    void post_written(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        Link& link = links_[link_to(peer)];
        Outgoing message{id, peer, tag, false, nullptr, bytes, bytes, link.messages++};
        message.piece = segment_.number_of(place_, data);
        message.written = true;
        send(link, message);
    }

    void post_recv_anywhere(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        post_recv({id, tag, data, bytes, true}, peer);
    }
    const std::byte* where_received(const std::byte* data) override {
        for (const Staying& s : staying_)
            if (s.data == data) return s.there;
        return data;
    }
    void release_received(const std::byte* data) override {
        std::erase_if(staying_, [&](const Staying& s) {
            if (s.data == data) s.used->store(0, std::memory_order_release);
            return s.data == data;
        });
    }

    void post_recv(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        post_recv({id, tag, data, bytes, false}, peer);
    }
    void post_recv(const Receive& to, int peer) {
        const int l = link_to(peer);
        if (l < 0) {
            ++below_;
            return inner_->post_recv(to.id, to.data, to.bytes, peer, to.tag);
        }
        Link& link = links_[l];
        const auto early = std::ranges::find_if(link.early, [&](const Incoming& in) { return in.what.tag == to.tag; });
        if (early == link.early.end()) {
            link.receives.push_back(to);
            return;
        }
        Incoming in = std::move(*early);
        link.early.erase(early);
        begin(link, std::move(in), to);
    }

    void reserve(std::size_t messages) override {
        over_.reserve(messages);
        inner_->reserve(messages);
    }
    bool has_message(int peer, int tag) override {
        const int l = link_to(peer);
        if (l < 0) return inner_->has_message(peer, tag);
        const auto& early = links_[l].early;
        return std::ranges::any_of(early, [&](const Incoming& in) { return in.what.tag == tag; });
    }

    bool alarms() const override { return inner_->alarms(); }
    void post_alarm(int peer, const Alarm& alarm) override {
        const int l = link_to(peer);
        if (l < 0) return inner_->post_alarm(peer, alarm);
        Link& link = links_[l];
        // A copy: the message may have to wait for room.
        const auto* const data = reinterpret_cast<const std::byte*>(&posted_alarms_.emplace_back(alarm));
        send(link, {no_id, peer, alarm_tag, false, data, sizeof alarm, 0, link.messages++});
    }
    void take_alarms(std::vector<Alarm>& alarms) override {
        alarms.insert(alarms.end(), alarms_.begin(), alarms_.end());
        alarms_.clear();
        if (!alone_) inner_->take_alarms(alarms);
    }

    void poll(std::vector<int>& done) override {
        receive();
        send_waiting();
        // The library must be polled for what other ranks need of it, but not at every poll: more often after a message
        // by it, as the sender may wait for the library's answer.
        if (below_ > 0 || !alone_ || lately_ > 0 || ++polls_ % 64 == 0) {
            const std::size_t before = done.size();
            inner_->poll(done);
            const int found = static_cast<int>(done.size() - before);
            below_ -= found;
            lately_ = found > 0 ? 64 : std::max(lately_ - 1, 0);
        }
        done.insert(done.end(), over_.begin(), over_.end());
        over_.clear();
    }

private:
    // The link to another rank of this host; -1: it is on another host, or this rank.
    int link_to(int peer) const {
        int place = peer - ranks_.front();  // right where the host's ranks follow each other
        if (place < 0 || place >= static_cast<int>(ranks_.size()) || ranks_[place] != peer)
            place = static_cast<int>(std::ranges::lower_bound(ranks_, peer) - ranks_.begin());
        return place == place_ || place == static_cast<int>(ranks_.size()) || ranks_[place] != peer ? -1 : place;
    }

    void pass(bool send, std::byte* data, std::int64_t bytes) {
        constexpr int tag = 1;
        const int peer = ranks_[1 - place_];
        if (send)
            post_send(0, data, bytes, peer, tag, false);
        else
            post_recv(0, data, bytes, peer, tag);
        std::vector<int> done;
        Backoff backoff;
        while (poll(done), done.empty()) backoff.pause();
    }

    std::int64_t longest_in_pieces() {
        if (longest_ == 0) longest_ = segment_.longest().load(std::memory_order_acquire);
        return std::max(longest_, always_in_pieces);
    }

    // Whether all of a message can be sent at once: then its entries are claimed.
    bool get_room(Link& link, std::int64_t bytes) {
        if (bytes <= inside_bytes) return link.claim(1);
        const std::int64_t need = (bytes + size_of_pieces(bytes) - 1) / size_of_pieces(bytes);
        std::int64_t pieces = 0;
        const auto [first, last] = pieces_for(bytes);
        for (int k = first; k < last && pieces < need; ++k) pieces += !reserved_[k] && is_free(k);
        return pieces == need && link.claim(static_cast<std::uint32_t>(need));
    }

    static std::pair<int, int> pieces_for(std::int64_t bytes) {
        return bytes <= small_piece ? std::pair(0, small_pieces) : std::pair(small_pieces, all_pieces);
    }
    int free_piece(std::int64_t bytes) {
        const auto [first, last] = pieces_for(bytes);
        for (int k = first; k < last; ++k)  // the first: it is most likely in the caches
            if (!reserved_[k] && is_free(k)) return k;
        return -1;
    }
    bool is_free(int piece) const { return uses_->used[piece].load(std::memory_order_acquire) == 0; }

    // So that the other copies a piece out while the next one is copied in.
    static std::int64_t size_of_pieces(std::int64_t bytes) {
        if (bytes <= small_piece) return bytes;
        return std::clamp<std::int64_t>((bytes / 8 + page_bytes - 1) / page_bytes * page_bytes, 2 * small_piece,
                                        large_piece);
    }

    template <class Copy>
    void fill(Outgoing& message, Announcement& what, int piece, Copy copy) {
        const std::int64_t n = std::min(size_of_pieces(message.bytes), message.bytes - message.at);
        uses_->used[piece].store(1, std::memory_order_relaxed);
        copy(segment_.piece(place_, piece), message.at, n);
        what.piece = piece;
        what.piece_bytes = static_cast<std::int32_t>(n);
        message.at += n;
    }

    // False: there is no room for it now.
    template <class Copy>
    bool announce(Link& link, Outgoing& message, Copy copy) {
        Entry* const entry = link.free_entry();
        if (!entry) return false;
        Announcement& what = entry->what;
        what.location = Location::elsewhere;
        what.tag = message.tag;
        what.bytes = message.bytes;
        what.message = message.message;
        what.from = place_;
        if (message.written) {
            what.location = Location::pieces;
            what.piece = message.piece;
            what.piece_bytes = static_cast<std::int32_t>(message.bytes);
            message.piece = -1;  // no longer kept for it
        } else if (!message.synchronous && message.bytes <= inside_bytes) {
            what.location = Location::inside;
            copy(what.inside, 0, message.bytes);
            message.at = message.bytes;
        } else if (!message.synchronous && (message.bytes <= longest_in_pieces() || message.id == no_id)) {
            if (const int piece = free_piece(message.bytes); piece >= 0) {
                what.location = Location::pieces;
                fill(message, what, piece, copy);
                // A piece to go on with: all others may hold messages that are received after this one.
                if (message.at < message.bytes) reserved_[message.piece = piece] = true;
            }
        }
        const bool below = what.location == Location::elsewhere;
        link.publish(*entry);
        if (below) {
            ++below_;
            inner_->post_send(message.id, message.data, message.bytes, message.peer, message.tag, message.synchronous);
        } else if (!send_more(link, message, copy)) {
            parts_.push_back(message);
        }
        return true;
    }

    // True when all of it has been copied.
    template <class Copy>
    bool send_more(Link& link, Outgoing& message, Copy copy) {
        while (message.at < message.bytes) {
            const int piece = is_free(message.piece) ? message.piece : free_piece(message.bytes);
            Entry* const entry = piece < 0 ? nullptr : link.free_entry();
            if (!entry) return false;
            entry->what.location = Location::more;
            entry->what.message = message.message;
            entry->what.from = place_;
            fill(message, entry->what, piece, copy);
            link.publish(*entry);
        }
        if (message.piece >= 0) reserved_[message.piece] = false;
        if (message.id != no_id) over_.push_back(message.id);
        return true;
    }

    void send(Link& link, Outgoing message) {
        if (link.waiting.empty() && announce(link, message, FromMemory{message.data})) return;
        link.waiting.push_back(message);
        ++waiting_;
    }

    // Sends what could not be sent when it was posted.
    void send_waiting() {
        std::size_t left = 0;
        for (Outgoing& m : parts_)
            if (!send_more(links_[link_to(m.peer)], m, FromMemory{m.data})) parts_[left++] = m;
        parts_.resize(left);
        if (waiting_ == 0) return;
        for (Link& link : links_)
            for (; !link.waiting.empty() && announce(link, link.waiting.front(), FromMemory{link.waiting.front().data});
                 --waiting_)
                link.waiting.pop_front();
    }

    void receive() {
        // The entry is free for senders, also where its message cannot be received.
        struct Taken {
            SharedTransport& here;
            ~Taken() { here.queue_->taken.store(++here.received_, std::memory_order_release); }
        };
        while (true) {
            const Entry& entry = queue_->entries[received_ % queue_entries];
            if (entry.number.load(std::memory_order_acquire) != received_ + 1) return;
            const Taken taken{*this};
            take(links_[entry.what.from], entry.what);
        }
    }

    void take(Link& link, const Announcement& what) {
        if (what.location == Location::more) return take_piece(link, what);
        if (what.tag == alarm_tag) {
            std::memcpy(&alarms_.emplace_back(), what.inside, sizeof(Alarm));
            return;
        }
        const auto receive = std::ranges::find_if(link.receives, [&](const Receive& r) { return r.tag == what.tag; });
        Incoming in{what, {}, 0, {}};
        if (what.location == Location::pieces) in.pieces.push_back({what.piece, what.piece_bytes});
        if (receive == link.receives.end()) {
            link.early.push_back(std::move(in));
            return;
        }
        const Receive to = *receive;
        link.receives.erase(receive);
        begin(link, std::move(in), to);
    }

    void begin(Link& link, Incoming in, const Receive& to) {
        if (in.what.bytes > to.bytes) {
            for (const Piece& piece : in.pieces) give_back(link, piece);
            throw MpiError("a message of " + std::to_string(in.what.bytes) + " bytes from rank " +
                           std::to_string(link.rank) + ", tag " + std::to_string(to.tag) + ", meets a receive of " +
                           std::to_string(to.bytes));
        }
        if (in.what.location == Location::elsewhere) {
            ++below_;
            return inner_->post_recv(to.id, to.data, to.bytes, link.rank, to.tag);
        }
        in.to = to;
        if (in.what.location == Location::inside) {
            if (in.what.bytes) std::memcpy(to.data, in.what.inside, static_cast<std::size_t>(in.what.bytes));
            over_.push_back(to.id);
            return;
        }
        if (to.anywhere && in.what.piece_bytes == in.what.bytes) {
            const int piece = in.pieces[0].number;
            staying_.push_back({to.data, segment_.piece(in.what.from, piece), &link.pieces->used[piece]});
            over_.push_back(to.id);
            return;
        }
        for (const Piece& piece : in.pieces) copy_out(link, in, piece);
        in.pieces.clear();
        if (in.at < in.what.bytes)
            link.active.push_back(std::move(in));
        else
            over_.push_back(to.id);
    }

    void take_piece(Link& link, const Announcement& what) {
        const Piece piece{what.piece, what.piece_bytes};
        auto same = [&](const Incoming& in) { return in.what.message == what.message; };
        if (const auto in = std::ranges::find_if(link.active, same); in != link.active.end()) {
            copy_out(link, *in, piece);
            if (in->at < in->what.bytes) return;
            over_.push_back(in->to.id);
            link.active.erase(in);
            return;
        }
        if (const auto in = std::ranges::find_if(link.early, same); in != link.early.end())
            in->pieces.push_back(piece);
        else  // of a message that could not be received
            give_back(link, piece);
    }

    static void give_back(const Link& link, const Piece& piece) {
        link.pieces->used[piece.number].store(0, std::memory_order_release);
    }

    void copy_out(Link& link, Incoming& in, const Piece& piece) {
        copy_run(in.to.data + in.at, segment_.piece(in.what.from, piece.number), piece.bytes);
        give_back(link, piece);
        in.at += piece.bytes;
    }

    std::unique_ptr<Transport> inner_;
    std::unique_ptr<HostMemory> memory_;
    Segment segment_;
    std::vector<int> ranks_;    // of this host
    std::vector<Link> links_;   // to each of them; this rank's is not used
    bool alone_;                // all ranks are on this host
    int place_ = 0;             // among its ranks
    std::int64_t longest_ = 0;  // message in pieces, once it is known
    Uses* uses_ = nullptr;
    Queue* queue_ = nullptr;      // of what comes
    std::uint32_t received_ = 0;  // of its entries
    std::size_t waiting_ = 0;     // messages that wait at links
    int below_ = 0;               // messages of the transport underneath that are not over
    unsigned polls_ = 0;
    int lately_ = 0;                  // polls of the transport underneath still to follow its last message
    bool reserved_[all_pieces] = {};  // for one of parts_
    std::vector<Outgoing> parts_;     // announced, not all copied
    std::vector<int> over_;
    std::vector<Staying> staying_;     // few
    std::deque<Alarm> posted_alarms_;  // posted: few, as each follows a failure
    std::vector<Alarm> alarms_;
};

}  // namespace

std::unique_ptr<Transport> share_memory(std::unique_ptr<Transport> inner, bool wanted) {
    if (inner->size() == 1 || !inner->connected()) return inner;
    const std::vector<int> ranks = inner->host_ranks();
    std::vector<std::int64_t> all{-static_cast<std::int64_t>(ranks.size()), wanted};
    allreduce_min(*inner, all);
    if (all[0] >= -1 || !all[1]) return inner;
    const Segment segment(static_cast<int>(ranks.size()));
    auto memory = HostMemory::make(*inner, ranks, segment.bytes());
    if (!memory) return inner;
    auto shared = std::make_unique<SharedTransport>(std::move(inner), std::move(memory), segment, ranks);
    shared->measure_longest();
    return shared;
}

}  // namespace tilewave
