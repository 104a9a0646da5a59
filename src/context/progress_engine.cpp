#include "context/progress_engine.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "context/agreement.hpp"

namespace tilewave {

class ProgressEngine::Port final : public Transport {
public:
    Port(std::shared_ptr<ProgressEngine> hold, ProgressEngine* engine, bool moves)
        : hold_(std::move(hold)), engine_(engine), moves_(moves) {}
    ~Port() override {
        std::scoped_lock guard(engine_->lock_);
        for (Slot& s : engine_->slots_)
            if (s.port == this) s.port = nullptr;
    }
    int rank() const override { return engine_->inner_->rank(); }
    int size() const override { return engine_->inner_->size(); }
    bool any_thread() const override { return engine_->inner_->any_thread(); }
    bool connected() const override { return engine_->inner_->connected(); }
    int max_tag() const override { return engine_->inner_->max_tag() - (moves_ ? engine_->operation_tags() : 0); }

    void post_send(int id, const std::byte* data, std::int64_t bytes, int peer, int tag, bool synchronous) override {
        engine_->post(this, id, peer,
                      [&](int slot) { engine_->inner_->post_send(slot, data, bytes, peer, tag, synchronous); });
    }
    bool try_send(const MatrixView& matrix, std::int64_t at, std::int64_t bytes, int peer, int tag) override {
        std::scoped_lock guard(engine_->lock_);
        return engine_->inner_->try_send(matrix, at, bytes, peer, tag);
    }
    void reserve(std::size_t messages) override {
        std::scoped_lock guard(engine_->lock_);
        done_.reserve(messages);
        engine_->reserve(messages);
    }
    bool has_message(int peer, int tag) override {
        std::scoped_lock guard(engine_->lock_);
        return engine_->inner_->has_message(peer, tag);
    }
    void post_recv(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        engine_->post(this, id, peer, [&](int slot) { engine_->inner_->post_recv(slot, data, bytes, peer, tag); });
    }
    std::byte* memory_for(std::int64_t bytes, int peer) override {
        std::scoped_lock guard(engine_->lock_);
        return engine_->inner_->memory_for(bytes, peer);
    }
    void post_written(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        engine_->post(this, id, peer, [&](int slot) { engine_->inner_->post_written(slot, data, bytes, peer, tag); });
    }
    void post_recv_anywhere(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        engine_->post(this, id, peer,
                      [&](int slot) { engine_->inner_->post_recv_anywhere(slot, data, bytes, peer, tag); });
    }
    const std::byte* where_received(const std::byte* data) override {
        std::scoped_lock guard(engine_->lock_);
        return engine_->inner_->where_received(data);
    }
    void release_received(const std::byte* data) override {
        std::scoped_lock guard(engine_->lock_);
        engine_->inner_->release_received(data);
    }
    void post_native(int id, const NativeCall& call) override {
        engine_->post(this, id, all_ranks, [&](int slot) { engine_->inner_->post_native(slot, call); });
    }
    bool native() const override { return engine_->inner_->native(); }
    bool has_ended(int peer, bool before_native) override {
        std::scoped_lock guard(engine_->lock_);
        return engine_->inner_->has_ended(peer, before_native);
    }
    bool alarms() const override { return engine_->inner_->alarms(); }
    void post_alarm(int peer, const Alarm& alarm) override {
        std::scoped_lock guard(engine_->lock_);
        engine_->inner_->post_alarm(peer, alarm);
    }
    void take_alarms(std::vector<Alarm>& alarms) override {
        std::scoped_lock guard(engine_->lock_);
        engine_->inner_->take_alarms(alarms);
    }
    std::string doing() const override {
        const Caller& c = engine_->caller;
        const std::string where = engine_->where_of(c);
        return c.call.empty() ? "" : "in " + c.call + (where.empty() ? "" : ", " + where) + ", ";
    }
    void poll(std::vector<int>& done) override {
        if (moves_) engine_->progress();
        if (!any_.load(std::memory_order_acquire)) return;
        std::scoped_lock guard(engine_->lock_);
        done.insert(done.end(), done_.begin(), done_.end());
        done_.clear();
        any_.store(false, std::memory_order_relaxed);
    }

    void arrived(int id) {  // under the engine's lock
        done_.push_back(id);
        any_.store(true, std::memory_order_release);
    }

private:
    std::shared_ptr<ProgressEngine> hold_;  // empty in ports that the engine itself holds
    ProgressEngine* engine_;
    bool moves_;
    std::vector<int> done_;
    std::atomic<bool> any_{false};
};

std::vector<std::weak_ptr<ProgressEngine>>& engines_of_thread() {
    thread_local std::vector<std::weak_ptr<ProgressEngine>> list;
    return list;
}

std::shared_ptr<ProgressEngine> ProgressEngine::make(std::unique_ptr<Transport> inner) {
    std::shared_ptr<ProgressEngine> e(new ProgressEngine);
    e->inner_ = std::move(inner);
    e->spare = std::make_shared<SpareMemory>(std::int64_t{e->inner_->size() > 1 ? 64 : 256} << 20);
    e->persistent_tags = std::make_shared<PersistentTags>(e->operation_tags() - first_persistent);
    e->main_ = std::make_unique<Port>(nullptr, e.get(), true);
    e->alarms = std::make_unique<Alarms>(*e->main_);
    e->main_->meanwhile = [alarms = e->alarms.get()] { (void)alarms->heard(); };  // throws where a rank has left
    return e;
}

ProgressEngine::~ProgressEngine() {  // their ports look at the slots once more
    transfers.idle.clear();
    comparisons.idle.clear();
    main_.reset();
}

void ProgressEngine::refuse_if_ended(const Caller& c) const {
    if (ended >= 0) throw MpiError(text_of_end(ended, inner_->rank(), c.call, where_of(c)));
}

Transport& ProgressEngine::main() {
    return *main_;
}

std::unique_ptr<Transport> ProgressEngine::port() {
    return std::make_unique<Port>(shared_from_this(), this, false);
}

std::unique_ptr<Transport> ProgressEngine::borrowed_port() {
    return std::make_unique<Port>(nullptr, this, false);
}

std::unique_ptr<Comparison> ProgressEngine::take_comparison(std::shared_ptr<const HashedStatus> status,
                                                            std::vector<std::int64_t> values, bool blocking) {
    std::unique_ptr<Comparison> found;
    {
        const std::scoped_lock guard(comparisons.lock);
        if (comparisons.idle.size() > (blocking ? 0 : 1)) {
            found = std::move(comparisons.idle.back());
            comparisons.idle.pop_back();
        }
        comparisons.idle.reserve(comparisons.idle.size() + 1);  // so that it can come back
    }
    if (!found) return std::make_unique<Comparison>(borrowed_port(), std::move(status), std::move(values));
    found->agreement.set_status(std::move(status), std::move(values));
    return found;
}

void ProgressEngine::give_back(std::unique_ptr<Comparison> comparison) noexcept {
    const std::scoped_lock guard(comparisons.lock);
    if (comparisons.idle.size() < comparisons.idle.capacity()) comparisons.idle.push_back(std::move(comparison));
}

// Under the lock.
void ProgressEngine::reserve(std::size_t messages) {
    const std::size_t slots = slots_.size() - free_.size() + messages;
    for (auto* const numbers : {&free_, &found_}) numbers->reserve(slots);
    slots_.reserve(slots);
    inner_->reserve(slots);
}

template <class Start>
void ProgressEngine::post(Port* port, int id, int peer, Start start) {
    std::scoped_lock guard(lock_);
    int slot;
    if (free_.empty()) {
        slot = static_cast<int>(slots_.size());
        slots_.push_back({port, id, peer});
    } else {
        slot = free_.back();
        free_.pop_back();
        slots_[slot] = {port, id, peer};
    }
    try {
        start(slot);
    } catch (const MpiError&) {
        main_->mark_failed();  // the others wait for what is lost: this rank must not wait for them
        throw;
    }
}

bool ProgressEngine::move() {
    if (!lock_.try_lock()) return false;  // another lane is at it
    std::scoped_lock guard(std::adopt_lock, lock_);
    found_.clear();
    try {
        inner_->poll(found_);
    } catch (const MpiError&) {
        main_->mark_failed();
        throw;
    }
    for (int slot : found_) {
        const Slot s = std::exchange(slots_[slot], Slot());
        if (s.port) s.port->arrived(s.id);
        free_.push_back(slot);
    }
    return !found_.empty();
}

int ProgressEngine::find_ended_peer() {
    if (ended == inner_->rank()) return -1;  // it still serves messages of others
    std::scoped_lock guard(lock_);
    std::map<int, bool> peers;  // false: messages alone
    for (const Slot& s : slots_) {
        if (!s.port) continue;
        if (s.peer != all_ranks) peers.emplace(s.peer, false);
        for (int r = 0; s.peer == all_ranks && r < inner_->size(); ++r) peers[r] = true;
    }
    peers.erase(inner_->rank());
    int found = -1;
    for (const auto& [peer, native] : peers)  // all are asked at once
        if (inner_->has_ended(peer, native) && found < 0) found = peer;
    return found;
}

void ProgressEngine::advance_all() {
    if (!busy() || !advancing_.try_lock()) return;
    std::scoped_lock guard(std::adopt_lock, advancing_);
    {
        std::scoped_lock added(new_lock_);
        operations_.insert(operations_.end(), new_operations_.begin(), new_operations_.end());
        new_operations_.clear();
    }
    bool any = false;
    for (auto& operation : operations_) {
        if (!operation->advance()) continue;
        over_.push_back(std::move(operation));
        any = true;
    }
    if (!any) return;
    std::erase(operations_, nullptr);
    {
        std::scoped_lock changed(new_lock_);
        for (const auto& operation : over_)
            if (operation->number >= 0) open_.erase(open_.find(operation->number));
    }
    count_.fetch_sub(static_cast<int>(over_.size()), std::memory_order_relaxed);
    over_.clear();
}

std::int64_t ProgressEngine::oldest() {
    std::scoped_lock guard(new_lock_);
    return open_.empty() ? std::numeric_limits<std::int64_t>::max() : *open_.begin();
}

std::int64_t ProgressEngine::enter_line() {
    std::scoped_lock guard(new_lock_);
    line_.insert(places_);
    return places_++;
}

bool ProgressEngine::first_in_line(std::int64_t place) {
    std::scoped_lock guard(new_lock_);
    return *line_.begin() == place;
}

void ProgressEngine::leave_line(std::int64_t place) {
    std::scoped_lock guard(new_lock_);
    line_.erase(place);
}

void ProgressEngine::add(std::shared_ptr<Operation> operation) {
    {
        std::scoped_lock added(new_lock_);
        if (operation->number >= 0) open_.insert(operation->number);
        new_operations_.push_back(std::move(operation));
    }
    count_.fetch_add(1, std::memory_order_relaxed);
    auto& list = engines_of_thread();
    const bool known = std::ranges::any_of(list, [&](const auto& e) { return e.lock().get() == this; });
    if (!known) list.push_back(weak_from_this());
    advance_all();
}

bool ProgressEngine::progress() {
    bool moved = move();
    advance_all();
    auto& list = engines_of_thread();
    if (list.empty() || (list.size() == 1 && list.front().lock().get() == this)) return moved;
    std::erase_if(list, [&](const auto& weak) {
        const auto other = weak.lock();
        if (!other || !other->busy()) return true;
        if (other.get() != this) {
            moved = other->move() || moved;
            other->advance_all();
        }
        return false;
    });
    return moved;
}

}  // namespace tilewave
