// Messages between ranks that share a host's memory, beside others that do not: ranks as threads.
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
void on_hosts(int ranks, int ranks_per_host, Body body) {
    LocalFabric fabric(ranks, ranks_per_host);
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] {
            const auto transport = share_memory(fabric.endpoint(r));
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

// As a matrix with gaps between its rows, of which some bytes at both ends are not sent; what was sent may change at
// once.
bool try_strided(Transport& t, Dice& dice, const Sent& m) {
    const auto bytes = static_cast<std::int64_t>(m.bytes.size()), before = dice(0, 20), cols = dice(1, 5000),
               stride = cols + dice(0, 100);
    const std::int64_t rows = (before + bytes + cols - 1) / cols + 1;
    std::vector<std::byte> memory(static_cast<std::size_t>(rows * stride));
    for (std::int64_t k = 0; k < bytes; ++k)
        memory[static_cast<std::size_t>((before + k) / cols * stride + (before + k) % cols)] =
            m.bytes[static_cast<std::size_t>(k)];
    const bool sent = t.try_send(MatrixView{memory.data(), rows, cols, stride, Dtype::u1}, before, bytes, m.to, m.tag);
    std::fill(memory.begin(), memory.end(), std::byte{99});
    return sent;
}

// All ranks make the same messages from the seed, and each posts its own in an order of its own in which those of
// one sender, receiver and tag keep theirs.
void random_messages(std::uint64_t seed, int ranks, int ranks_per_host) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks, " +
                 std::to_string(ranks_per_host) + " a host");
    Dice dice(seed);
    std::vector<Sent> all;
    for (std::int64_t i = dice(1, 150); i > 0; --i) {
        const int from = static_cast<int>(dice(0, ranks - 1)), to = static_cast<int>(dice(0, ranks - 1)),
                  tag = static_cast<int>(dice(10, 13));
        all.push_back({from, to, tag, dice(0, 5) == 0, dice.bytes(random_size(dice))});
    }
    on_hosts(ranks, ranks_per_host, [&](Transport& t) {
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
        std::vector<bool> anywhere(posts.size());
        std::vector<int> early;
        for (std::size_t i = 0; i < posts.size(); ++i) {
            const Sent& m = *posts[i].message;
            const auto bytes = static_cast<std::int64_t>(m.bytes.size());
            if (posts[i].send && !m.synchronous && own(0, 1) && try_strided(t, own, m)) {
                early.push_back(static_cast<int>(i));
            } else if (std::byte* const there =
                           posts[i].send && !m.synchronous && own(0, 1) ? t.memory_for(bytes, m.to) : nullptr) {
                std::copy(m.bytes.begin(), m.bytes.end(), there);
                t.post_written(static_cast<int>(i), there, bytes, m.to, m.tag);
            } else if (posts[i].send) {
                t.post_send(static_cast<int>(i), m.bytes.data(), bytes, m.to, m.tag, m.synchronous);
            } else {
                got[i].resize(m.bytes.size() + 8, std::byte{77});
                anywhere[i] = own(0, 1) == 1;
                if (anywhere[i])
                    t.post_recv_anywhere(static_cast<int>(i), got[i].data(), bytes, m.from, m.tag);
                else
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
            if (anywhere[i]) {
                const std::byte* const there = t.where_received(got[i].data());
                if (there != got[i].data()) std::copy(there, there + sent.size(), got[i].begin());
                t.release_received(got[i].data());
                ASSERT_EQ(t.where_received(got[i].data()), got[i].data());
            }
            ASSERT_TRUE(std::equal(sent.begin(), sent.end(), got[i].begin()))
                << "rank " << t.rank() << ", message of " << sent.size();
            ASSERT_TRUE(std::all_of(got[i].end() - 8, got[i].end(), [](std::byte b) { return b == std::byte{77}; }));
        }
    });
}

}  // namespace

TEST(SharedMemory, RandomMessages) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        Dice dice(seed);
        const int ranks = static_cast<int>(dice(2, 6));
        random_messages(seed, ranks, static_cast<int>(dice(1, ranks)));
        if (HasFatalFailure()) return;
    }
}

// Far more than the shared memory holds lies there unreceived while a later message is wanted first.
TEST(SharedMemory, WhatNobodyReceivesYetBlocksNothing) {
    constexpr int many = 200;
    on_hosts(2, 2, [&](Transport& t) {
        std::vector<std::vector<std::byte>> memory(many + 1,
                                                   std::vector<std::byte>(100000, std::byte(t.rank() == 0 ? 5 : 0)));
        auto tag = [](int i) { return i == 0 ? 20 : 21; };
        if (t.rank() == 0) {
            for (int i = many; i >= 0; --i) t.post_send(i, memory[i].data(), 100000, 1, tag(i), false);
            wait(t, many + 1);
            return;
        }
        t.post_recv(0, memory[0].data(), 100000, 0, tag(0));
        wait(t, 1);
        EXPECT_EQ(memory[0].back(), std::byte{5});
        for (int i = 0; i < many; ++i) t.post_recv(i, memory[i + 1].data(), 100000, 0, tag(1));
        wait(t, many);
        for (const auto& m : memory) EXPECT_EQ(m.back(), std::byte{5});
    });
}

TEST(SharedMemory, ALongerMessageThanItsReceiveIsAnError) {
    on_hosts(2, 2, [&](Transport& t) {
        std::vector<std::byte> memory(5000);
        if (t.rank() == 0) {
            t.post_send(0, memory.data(), 5000, 1, 20, false);
            wait(t, 1);
            return;
        }
        t.post_recv(0, memory.data(), 4999, 0, 20);
        try {
            wait(t, 1);
            FAIL() << "nothing was thrown";
        } catch (const MpiError& e) {
            EXPECT_STREQ(e.what(), "a message of 5000 bytes from rank 0, tag 20, meets a receive of 4999");
        }
    });
}

// Whoever goes on after the error meets neither the message nor its later pieces again.
TEST(SharedMemory, AfterALongerMessageThanItsReceiveOthersCome) {
    constexpr std::int64_t bytes = 300000;  // in several pieces
    for (const bool early : {false, true})  // announced before its receive
        on_hosts(2, 2, [&](Transport& t) {
            std::vector<std::byte> memory(bytes, std::byte{3}), next(bytes, std::byte{4});
            if (t.rank() == 0) {
                t.post_send(0, memory.data(), bytes, 1, 20, false);
                for (int i = 1; i <= 3; ++i) t.post_send(i, next.data(), bytes, 1, 21, false);
                // What the transport underneath was to carry stays there.
                for (std::vector<int> sent; sent.size() - std::count(sent.begin(), sent.end(), 0) < 3;) t.poll(sent);
                return;
            }
            std::vector<int> done;
            if (early)
                while (!t.has_message(0, 20)) t.poll(done);
            int errors = 0;
            const auto tried = [&](auto f) {
                try {
                    f();
                } catch (const MpiError&) {
                    ++errors;
                }
            };
            tried([&] { t.post_recv(0, memory.data(), bytes - 1, 0, 20); });
            while (errors == 0) tried([&] { t.poll(done); });
            std::fill(next.begin(), next.end(), std::byte{});
            for (int i = 1; i <= 3; ++i) t.post_recv(i, next.data(), bytes, 0, 21);
            while (done.size() < 3) tried([&] { t.poll(done); });
            EXPECT_EQ(errors, 1);
            EXPECT_EQ(next.back(), std::byte{4});
        });
}

TEST(SharedMemory, RanksAloneOnTheirHostsShareNone) {
    LocalFabric fabric(1, 4);
    auto endpoint = fabric.endpoint(0);
    const Transport* const same = endpoint.get();
    EXPECT_EQ(share_memory(std::move(endpoint)).get(), same);
}

// An alarm comes beside all messages, however many wait, and before those that follow it.
TEST(Alarms, ComeBeforeTheMessagesThatFollowThem) {
    constexpr int many = 300;
    for (int per_host : {1, 2, 3})
        on_hosts(3, per_host, [&](Transport& t) {
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
    for (int per_host : {1, 3})
        for (int failing : {0, 1, 2})
            on_hosts(3, per_host, [&](Transport& t) {
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
    on_hosts(3, 1, [](Transport& t) {
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
