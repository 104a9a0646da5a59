// Ranks agree that all have the memory for a pattern: the first call of its kind pays for it, the others do not.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <mutex>
#include <thread>

#include "tilewave/patterns.hpp"
#include "tilewave/tilewave.hpp"

using namespace tilewave;

namespace {

// Counts what is sent.
class Counting final : public Transport {
public:
    Counting(std::unique_ptr<Transport> inner, std::atomic<int>& sends) : inner_(std::move(inner)), sends_(sends) {}
    int rank() const override { return inner_->rank(); }
    int size() const override { return inner_->size(); }
    void post_send(int id, const std::byte* d, std::int64_t n, int peer, int tag, bool s) override {
        ++sends_;
        inner_->post_send(id, d, n, peer, tag, s);
    }
    void post_recv(int id, std::byte* d, std::int64_t n, int peer, int tag) override {
        inner_->post_recv(id, d, n, peer, tag);
    }
    bool has_message(int peer, int tag) override { return inner_->has_message(peer, tag); }
    void poll(std::vector<int>& done) override { inner_->poll(done); }

private:
    std::unique_ptr<Transport> inner_;
    std::atomic<int>& sends_;
};

// Messages of all ranks in each of several calls alike.
template <class Run>
std::vector<int> sends_of_calls(int ranks, int calls, Run run) {
    LocalFabric fabric(ranks);
    std::atomic<int> sends = 0;
    std::mutex lock;
    std::vector<std::string> errors;
    std::vector<std::unique_ptr<Context>> contexts(static_cast<std::size_t>(ranks));
    const auto on_ranks = [&](auto body) {
        std::vector<std::thread> all;
        for (int r = 0; r < ranks; ++r)
            all.emplace_back([&, r] {
                try {
                    body(r);
                } catch (const std::exception& e) {
                    std::scoped_lock guard(lock);
                    errors.push_back("rank " + std::to_string(r) + ": " + e.what());
                }
            });
        for (auto& t : all) t.join();
        EXPECT_TRUE(errors.empty()) << errors.front();
    };
    on_ranks([&](int r) {
        contexts[static_cast<std::size_t>(r)] =
            std::make_unique<Context>(std::make_unique<Counting>(fabric.endpoint(r), sends), 1);
    });
    std::vector<int> each;
    for (int call = 0; call < calls && errors.empty(); ++call) {
        const int before = sends;
        on_ranks([&](int r) { run(*contexts[static_cast<std::size_t>(r)]); });
        each.push_back(sends - before);
    }
    on_ranks([&](int r) { contexts[static_cast<std::size_t>(r)].reset(); });
    return each;
}

MatrixView row(std::vector<double>& numbers) {
    const auto n = static_cast<std::int64_t>(numbers.size());
    return {reinterpret_cast<std::byte*>(numbers.data()), 1, n, 8 * n, Dtype::f8};
}

constexpr std::size_t columns = 3000;  // too many to go with the comparison

void broadcast(Context& context) {
    std::vector<double> numbers(columns, context.rank() == 0 ? 1.0 : 0.0);
    PatternCall call;
    call.in = row(numbers);
    start_pattern(context, std::move(call)).wait();
    EXPECT_EQ(numbers, std::vector<double>(columns, 1.0));
}

void spread_to_new(Context& context) {
    std::vector<double> mine(columns, 1.0 + context.rank()), all, wanted;
    for (int r = 0; r < context.size(); ++r) wanted.insert(wanted.end(), columns, 1.0 + r);
    PatternCall call;
    call.kind = PatternKind::spread;
    call.in = row(mine);
    call.allocate = [&](std::int64_t n) {
        all.assign(static_cast<std::size_t>(n), 0.0);
        return row(all);
    };
    start_pattern(context, std::move(call)).wait();
    EXPECT_EQ(all, wanted);
}

}  // namespace

TEST(PatternMemory, OnlyTheFirstCallOfItsKindAgreesOnIt) {
    for (const int ranks : {2, 3, 5})
        for (const auto run : {broadcast, spread_to_new}) {
            const std::vector<int> sends = sends_of_calls(ranks, 4, run);
            ASSERT_EQ(sends.size(), 4u);
            const int agreement = ranks * std::bit_width(static_cast<unsigned>(ranks - 1));
            EXPECT_EQ(sends[0] - sends[1], agreement) << ranks << " ranks";
            EXPECT_EQ(sends[1], sends[2]);
            EXPECT_EQ(sends[2], sends[3]);
        }
}
