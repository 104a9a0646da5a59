// Messages and alarms between ranks that are threads.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <thread>

#include "execute/alarms.hpp"
#include "support/dice.hpp"
#include "tilewave/engine/transport.hpp"

using namespace tilewave;

namespace {

template <class Body>
void on_endpoints(int ranks, Body body) {
    LocalFabric fabric(ranks);
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] {
            const auto transport = fabric.endpoint(r);
            body(*transport);
            barrier(*transport);  // what others wait for goes on
        });
}

void wait(Transport& t, std::size_t n) {
    std::vector<int> done;
    Backoff backoff;
    while (done.size() < n) {
        const std::size_t before = done.size();
        t.poll(done);
        done.size() == before ? backoff.pause() : backoff.restart();
    }
    std::sort(done.begin(), done.end());
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(done[i], static_cast<int>(i)) << "each is done once";
}

std::int64_t random_size(Dice& dice) {
    const std::int64_t most[] = {0, 8, 92, 93, 8192, 8193, 64 << 10, 65537, 300000, 3 << 20};
    const std::int64_t limit = most[dice(0, 9)];
    return dice(0, 1) ? limit : dice(0, limit);
}

struct Sent {
    int from, to, tag;
    bool synchronous;
    std::vector<std::byte> bytes;
};

// All ranks make the same messages from the seed, and each posts its own in an order of its own in which those of
// one sender, receiver and tag keep theirs.
void random_messages(std::uint64_t seed, int ranks) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
    Dice dice(seed);
    std::vector<Sent> all;
    for (std::int64_t i = dice(1, 150); i > 0; --i) {
        const int from = static_cast<int>(dice(0, ranks - 1)), to = static_cast<int>(dice(0, ranks - 1)),
                  tag = static_cast<int>(dice(10, 13));
        all.push_back({from, to, tag, dice(0, 5) == 0, dice.bytes(random_size(dice))});
    }
    on_endpoints(ranks, [&](Transport& t) {
        Dice own(seed * 64 + static_cast<std::uint64_t>(t.rank()));
        struct Post {
            std::int64_t place;  // random, but rising for one sender, receiver and tag
            const Sent* message;
            bool send;
        };
        std::vector<Post> posts;
        std::map<std::array<int, 4>, std::int64_t> last;
        for (const Sent& m : all)
            for (bool send : {true, false}) {
                if (t.rank() != (send ? m.from : m.to)) continue;
                std::int64_t& place = last[{m.from, m.to, m.tag, send}];
                posts.push_back({place = std::max(place + 1, own(0, 1000)), &m, send});
            }
        std::stable_sort(posts.begin(), posts.end(), [](const Post& a, const Post& b) { return a.place < b.place; });
        std::vector<std::vector<std::byte>> got(posts.size());
        std::vector<int> early;
        for (std::size_t i = 0; i < posts.size(); ++i) {
            const Sent& m = *posts[i].message;
            const auto bytes = static_cast<std::int64_t>(m.bytes.size());
            if (posts[i].send) {
                t.post_send(static_cast<int>(i), m.bytes.data(), bytes, m.to, m.tag, m.synchronous);
            } else {
                got[i].resize(m.bytes.size() + 8, std::byte{77});
                t.post_recv(static_cast<int>(i), got[i].data(), bytes, m.from, m.tag);
            }
            if (own(0, 3) == 0) t.poll(early);
        }
        std::vector<int> done = early;
        Backoff backoff;
        while (done.size() < posts.size()) {
            t.poll(done);
            backoff.pause();
        }
        std::sort(done.begin(), done.end());
        for (std::size_t i = 0; i < posts.size(); ++i) {
            ASSERT_EQ(done[i], static_cast<int>(i)) << "each is done once";
            if (posts[i].send) continue;
            const auto& sent = posts[i].message->bytes;
            ASSERT_TRUE(std::equal(sent.begin(), sent.end(), got[i].begin()))
                << "rank " << t.rank() << ", message of " << sent.size();
            ASSERT_TRUE(std::all_of(got[i].end() - 8, got[i].end(), [](std::byte b) { return b == std::byte{77}; }));
        }
    });
}

}  // namespace

TEST(LocalFabric, RandomMessages) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        Dice dice(seed);
        const int ranks = static_cast<int>(dice(2, 6));
        random_messages(seed, ranks);
        if (HasFatalFailure()) return;
    }
}

TEST(LocalFabric, ALongerMessageThanItsReceiveIsAnError) {
    LocalFabric fabric(2);
    const auto sender = fabric.endpoint(0), receiver = fabric.endpoint(1);
    std::vector<std::byte> memory(5000);
    sender->post_send(0, memory.data(), 5000, 1, 20, false);
    try {
        receiver->post_recv(0, memory.data(), 4999, 0, 20);
        FAIL() << "nothing was thrown";
    } catch (const MpiError& e) {
        EXPECT_STREQ(e.what(), "a message of 5000 bytes, tag 20, meets a receive of 4999");
    }
}

// An alarm comes beside all messages, however many wait, and before those that follow it.
TEST(Alarms, ComeBeforeTheMessagesThatFollowThem) {
    constexpr int many = 300;
    on_endpoints(3, [&](Transport& t) {
        std::vector<std::byte> memory(many * 200);
        if (t.rank() == 0) {
            for (int i = 0; i < many; ++i) t.post_send(i, memory.data() + 200 * i, 200, 1, 20, false);
            for (int r : {1, 2}) t.post_alarm(r, {0, 7, 1 << 30});
            t.post_send(many, memory.data(), 0, 1, 21, false);
            wait(t, many + 1);
            return;
        }
        std::vector<Alarm> alarms;
        std::vector<int> done;
        if (t.rank() == 1) {
            std::byte last[8];  // longer than what comes
            t.post_recv(many, last, 8, 0, 21);
            Backoff backoff;
            while (t.poll(done), done.empty()) backoff.pause();
            t.take_alarms(alarms);
            ASSERT_EQ(alarms.size(), 1u);
            for (int i = 0; i < many; ++i) t.post_recv(i, memory.data() + 200 * i, 200, 0, 20);
            wait(t, many);
        }
        for (Backoff backoff; alarms.empty(); backoff.pause()) {
            t.poll(done);
            t.take_alarms(alarms);
        }
        EXPECT_EQ(alarms[0].from, 0);
        EXPECT_EQ(alarms[0].number, 7);
        EXPECT_EQ(alarms[0].block, 1 << 30);
    });
}

// Ranks that are stopped at different blocks of their work agree on the last one in which messages are sent.
TEST(Alarms, TheLastBlockIsTheOneThatARankIsFurthestAt) {
    for (int failing : {0, 1, 2})
        on_endpoints(3, [&](Transport& t) {
            Alarms alarms(t);
            for (int work = 1; work < 5; ++work) {
                alarms.begin(100);
                const std::int64_t blocks[] = {7 * work, 0, 90 - work};
                alarms.begin_block(blocks[t.rank()]);
                if (t.rank() == failing) alarms.raise();
                EXPECT_EQ(alarms.last_block(), std::max(blocks[0], blocks[2]));
                alarms.take_outstanding();
            }
        });
}

TEST(Alarms, OfEarlierWorkStopNothing) {
    on_endpoints(3, [](Transport& t) {
        Alarms alarms(t);
        for (int work = 0; work < 20; ++work) {
            alarms.begin();
            const int bad = work % 4;
            if (t.rank() == bad) alarms.raise();
            if (work % 2)
                for (Backoff backoff; bad < 3 && bad != t.rank() && !alarms.heard(); backoff.pause()) {
                }
            barrier(t);
            if (bad < 3 && work % 3) alarms.take_outstanding();
        }
        alarms.begin();
        barrier(t);
        EXPECT_FALSE(alarms.heard());
    });
}
