// Counts the seconds spent inside another transport: the rest is the executor's.
#include <chrono>

#include "tilewave/engine/transport.hpp"

namespace tilewave {

namespace {

class TimedTransport final : public Transport {
public:
    TimedTransport(std::unique_ptr<Transport> inner, std::shared_ptr<double> seconds)
        : inner_(std::move(inner)), seconds_(std::move(seconds)) {}
    int rank() const override { return inner_->rank(); }
    int size() const override { return inner_->size(); }
    bool any_thread() const override { return inner_->any_thread(); }
    bool launched() const override { return inner_->launched(); }
    int announced_on_host() const override { return inner_->announced_on_host(); }
    int max_tag() const override { return inner_->max_tag(); }
    void post_send(int id, const std::byte* data, std::int64_t bytes, int peer, int tag, bool synchronous) override {
        timed([&] { inner_->post_send(id, data, bytes, peer, tag, synchronous); });
    }
    void post_recv(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        timed([&] { inner_->post_recv(id, data, bytes, peer, tag); });
    }
    void reserve(std::size_t messages) override { inner_->reserve(messages); }
    bool has_message(int peer, int tag) override { return inner_->has_message(peer, tag); }
    bool native() const override { return inner_->native(); }
    bool has_ended(int peer, bool before_native) override { return inner_->has_ended(peer, before_native); }
    void post_native(int id, const NativeCall& call) override {
        timed([&] { inner_->post_native(id, call); });
    }
    bool alarms() const override { return inner_->alarms(); }
    void post_alarm(int peer, const Alarm& alarm) override { inner_->post_alarm(peer, alarm); }
    void take_alarms(std::vector<Alarm>& alarms) override { inner_->take_alarms(alarms); }
    void poll(std::vector<int>& done) override {
        timed([&] { inner_->poll(done); });
    }

private:
    template <class F>
    void timed(F f) {
        const auto begin = std::chrono::steady_clock::now();
        f();
        *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    std::unique_ptr<Transport> inner_;
    std::shared_ptr<double> seconds_;
};

}  // namespace

std::unique_ptr<Transport> make_timed_transport(std::unique_ptr<Transport> inner, std::shared_ptr<double> seconds) {
    return std::make_unique<TimedTransport>(std::move(inner), std::move(seconds));
}

}  // namespace tilewave
