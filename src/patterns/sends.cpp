// Buffered sends and their receives. On the wire: a head with the first bytes of the matrix in one
// message, the rest in pieces; all with one tag, as messages of a link keep their order.
#include <algorithm>
#include <cstring>

#include "context/in_flight.hpp"
#include "context/waiting.hpp"
#include "data/memory.hpp"
#include "data/rows.hpp"
#include "patterns/tuning.hpp"
#include "tilewave/patterns.hpp"

namespace tilewave {

using namespace tuning;

namespace {

struct Head {
    std::int64_t rows, cols, type;
};
constexpr auto head_bytes = static_cast<std::int64_t>(sizeof(Head));
constexpr std::int64_t first_bytes =
    head_bytes + page_bytes;  // of the first message; pages keep their places in what follows

std::string shape(std::int64_t rows, std::int64_t cols, Dtype type) {
    return std::to_string(rows) + "x" + std::to_string(cols) + " " + to_string(type);
}

void check(const char* what, const MatrixView& m, const char* role, int rank, int tag, const Context& context) {
    if (rank < 0 || rank >= context.size())
        throw ConfigError(std::string(what) + ": " + role + " " + std::to_string(rank) + " was given; allowed: 0 to " +
                          std::to_string(context.size() - 1));
    if (tag < 0 || tag >= ProgressEngine::send_tags)
        throw ConfigError(std::string(what) + ": tag " + std::to_string(tag) + " was given; allowed: 0 to " +
                          std::to_string(ProgressEngine::send_tags - 1));
    if (m.rows < 0 || m.cols < 0 || (m.rows > 1 && m.row_stride_bytes < m.row_bytes()))
        throw ConfigError(std::string(what) + ": the matrix is " + shape(m.rows, m.cols, m.type) +
                          " with a row stride of " + std::to_string(m.row_stride_bytes) +
                          " bytes; allowed: at least the row's " + std::to_string(m.row_bytes()));
}

// Bytes of a piece of a message of `bytes`, its head counted.
std::int64_t piece_of(std::int64_t bytes) {
    return std::clamp((bytes / most_pieces / page_bytes + 1) * page_bytes, least_piece_bytes, most_piece_bytes);
}

class SendOperation final : public Operation {
public:
    SendOperation(std::shared_ptr<ProgressEngine> engine, const MatrixView& m, int to, int tag,
                  std::shared_ptr<void> memory)
        : engine_(std::move(engine)),
          port_(engine_->port()),
          memory_(std::move(memory)),
          size_(head_bytes + m.bytes()),
          block_(engine_->spare->lend(size_ + page_bytes + head_bytes)),
          copy_(place(m)) {
        const Head head{m.rows, m.cols, static_cast<std::int64_t>(m.type)};
        std::memcpy(copy_, &head, sizeof head);
        engine_->buffered_bytes += size_;
        try {
            post(m, to, engine_->tag(ProgressEngine::first_send + tag));
        } catch (...) {
            (void)new auto(std::move(block_));
            engine_->main().mark_failed();
            throw;
        }
    }
    // Each piece is sent as soon as it is copied, or without a copy where it need not wait.
    void post(const MatrixView& m, int to, int wire) {
        const std::int64_t piece_bytes = piece_of(size_);
        std::int64_t n = std::min(size_, first_bytes);
        for (std::int64_t at = 0; at < size_; at += n, n = std::min(piece_bytes, size_ - at), ++pending_) {
            const std::int64_t skip = at ? 0 : head_bytes;
            if (at && port_->try_send(m, at - head_bytes, n, to, wire)) {
                --pending_;
                continue;
            }
            if (n > skip) copy_range(m, at + skip - head_bytes, copy_ + at + skip, n - skip, true);
            port_->post_send(pending_, copy_ + at, n, to, wire, false);
        }
    }
    ~SendOperation() override {
        if (pending_) (void)new auto(std::move(block_));  // the library may still read it
    }
    bool advance() override {
        done_.clear();
        port_->poll(done_);
        pending_ -= static_cast<int>(done_.size());
        if (pending_) return false;
        engine_->buffered_bytes -= size_;
        block_.reset();
        return true;
    }

private:
    /// Where the head begins: half a page off the matrix's place in its page, which is likely the receiver's, too
    /// (staging_memory).
    std::byte* place(const MatrixView& m) const {
        const auto at = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); };
        const std::byte* first = block_.get() + head_bytes;
        return block_.get() + (at(m.data) + page_bytes / 2 - at(first)) % page_bytes;
    }

    std::shared_ptr<ProgressEngine> engine_;
    std::unique_ptr<Transport> port_;
    std::shared_ptr<void> memory_;
    std::int64_t size_;  // bytes of head and matrix
    std::shared_ptr<std::byte[]> block_;
    std::byte* copy_;
    int pending_ = 0;
    std::vector<int> done_;
};

class ReceiveOperation final : public InFlight {
public:
    ReceiveOperation(Context& context, const MatrixView& m, int from, int tag, std::shared_ptr<void> memory)
        : InFlight(context, "receive"),
          port_(engine_->port()),
          matrix_(m),
          from_(from),
          tag_(tag),
          memory_(std::move(memory)) {
        const std::scoped_lock guard(engine_->receivers.lock);
        queue().push_back(this);
    }
    std::string waits() override {
        return "for the receive of " + shape(matrix_.rows, matrix_.cols, matrix_.type) + " from rank " +
               std::to_string(from_) + ", tag " + std::to_string(tag_);
    }

private:
    // Under the lock of the receivers.
    std::deque<Operation*>& queue() { return engine_->receivers.queues[{from_, tag_}]; }
    bool is_first() {
        const std::scoped_lock guard(engine_->receivers.lock);
        return queue().front() == this;
    }
    int wire() const { return engine_->tag(ProgressEngine::first_send + tag_); }

    // After an error pieces may still come.
    bool step() override {
        try {
            return take_what_came();
        } catch (...) {
            engine_->main().mark_failed();
            never_free();
            throw;
        }
    }
    void finish() override {
        if (!released_) release();
    }
    bool take_what_came() {
        if (stage_ == 0) {
            if (!is_first()) return false;  // an earlier one reads this tag's messages
            port_->post_recv(0, first_, first_bytes, from_, wire());
            stage_ = 1;
        }
        done_.clear();
        port_->poll(done_);
        if (stage_ == 1) {
            if (done_.empty()) return false;
            done_.clear();
            read_head();
        }
        for (int id : done_) take(id);
        while (posted_ < pieces() && posted_ - taken_ < staged_pieces) post();
        if (posted_ == pieces() && !released_) release();
        if (taken_ < pieces()) return false;
        staging_.clear();
        memory_.reset();
        return true;
    }
    void read_head() {
        Head h;
        std::memcpy(&h, first_, sizeof h);
        const auto type = static_cast<Dtype>(h.type);
        bytes_ = h.rows * h.cols * item_bytes(type);
        if (h.rows != matrix_.rows || h.cols != matrix_.cols || type != matrix_.type) {
            wrong_ = true;
            error_ = std::make_exception_ptr(
                ConfigError("receive: rank " + std::to_string(from_) + " sent " + shape(h.rows, h.cols, type) +
                            " with tag " + std::to_string(tag_) + ", the matrix given is " +
                            shape(matrix_.rows, matrix_.cols, matrix_.type) + "; they must be equal"));
        }
        const std::int64_t here = std::min(bytes_, first_bytes - head_bytes);
        if (!wrong_ && here) copy_range(matrix_, 0, first_ + head_bytes, here, false);
        rest_ = here;
        piece_bytes_ = piece_of(head_bytes + bytes_);
        stage_ = 2;
    }
    std::size_t pieces() const { return static_cast<std::size_t>((bytes_ - rest_ + piece_bytes_ - 1) / piece_bytes_); }
    bool direct() const { return !wrong_ && matrix_.contiguous(); }
    std::int64_t start(std::size_t k) const { return rest_ + static_cast<std::int64_t>(k) * piece_bytes_; }
    std::int64_t length(std::size_t k) const { return std::min(piece_bytes_, bytes_ - start(k)); }
    // Pieces complete in any order: they are counted, and each has a buffer.
    void post() {
        std::byte* to = nullptr;
        if (direct()) {
            to = matrix_.data + start(posted_);
        } else {
            if (free_.empty()) {
                staging_.push_back(staging_memory(piece_bytes_));
                free_.push_back(staging_.size() - 1);
            }
            used_[posted_] = free_.back();
            to = staging_[free_.back()].get();
            free_.pop_back();
        }
        port_->post_recv(static_cast<int>(posted_), to, length(posted_), from_, wire());
        ++posted_;
    }
    void take(int id) {
        const auto k = static_cast<std::size_t>(id);
        ++taken_;
        if (direct()) return;
        const std::size_t b = used_[k];
        if (!wrong_) copy_range(matrix_, start(k), staging_[b].get(), length(k), false);
        used_.erase(k);
        free_.push_back(b);
    }
    void release() {
        const std::scoped_lock guard(engine_->receivers.lock);
        auto& q = queue();
        q.erase(std::ranges::find(q, this));
        if (q.empty()) engine_->receivers.queues.erase({from_, tag_});
        released_ = true;
    }
    std::unique_ptr<Transport> port_;
    MatrixView matrix_;
    int from_, tag_, stage_ = 0;
    std::shared_ptr<void> memory_;
    alignas(64) std::byte first_[first_bytes];
    std::int64_t bytes_ = 0, rest_ = 0, piece_bytes_ = least_piece_bytes;
    std::size_t posted_ = 0, taken_ = 0;
    std::vector<std::shared_ptr<std::byte[]>> staging_;
    std::vector<std::size_t> free_;
    std::map<std::size_t, std::size_t> used_;  // piece -> its staging buffer
    bool wrong_ = false, released_ = false;
    std::vector<int> done_;
};

}  // namespace

void send_buffered(Context& context, const MatrixView& matrix, int to, int tag, const SendLimits& limits,
                   std::shared_ptr<void> memory) {
    InsideReduction::refuse();
    check("send", matrix, "rank", to, tag, context);
    context.transport().must_work();
    const auto& engine = context.engine();
    const std::int64_t need = head_bytes + matrix.bytes();
    const std::string text = "send: a message of " + std::to_string(matrix.bytes()) + " bytes";
    if (need > limits.bytes)
        throw ConfigError(text + " was given; the limit of what is buffered is " + std::to_string(limits.bytes) +
                          " bytes, " + std::to_string(head_bytes) + " of them for its head; give a larger limit_bytes");
    auto fits = [&] { return engine->buffered_bytes + need <= limits.bytes; };
    if (!fits()) engine->progress();
    if (!fits() && !limits.wait)
        throw ConfigError(text + " finds " + std::to_string(engine->buffered_bytes.load()) +
                          " bytes buffered that nobody has received yet; the limit is " + std::to_string(limits.bytes) +
                          ": receive first, give a larger limit_bytes, or let it wait");
    wait_until(context, fits, [&] {
        return "receivers: " + text + " has no room next to " + std::to_string(engine->buffered_bytes.load()) +
               " bytes not yet received";
    });
    engine->add(std::make_shared<SendOperation>(engine, matrix, to, tag, std::move(memory)));
}

Handle start_receive(Context& context, const MatrixView& matrix, int from, int tag, std::shared_ptr<void> memory) {
    InsideReduction::refuse();
    check("receive", matrix, "rank", from, tag, context);
    context.transport().must_work();
    auto operation = std::make_shared<ReceiveOperation>(context, matrix, from, tag, std::move(memory));
    context.engine()->add(operation);
    return Handle(operation);
}

}  // namespace tilewave
