// Communication patterns and buffered sends on ranks as threads: small enough for the sanitizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "support/pattern_trial.hpp"
#include "support/ranks.hpp"
#include "tilewave/patterns.hpp"

using namespace tilewave;

namespace {

// A wait that fails asserts here only, so that the rank goes on to the next.
void run_in_flight(Context& context, int first_seed, int count) {
    std::vector<std::unique_ptr<PatternTrial>> trials;
    std::vector<std::pair<int, PatternHandle>> handles;
    for (int k = 0; k < count; ++k) {
        trials.push_back(std::make_unique<PatternTrial>(first_seed + k, context));
        handles.emplace_back(k, start_pattern(context, trials.back()->call()));
    }
    Random own(static_cast<unsigned>(first_seed + 97 * context.rank()));
    std::shuffle(handles.begin(), handles.end(), own);
    for (auto& [k, handle] : handles) {
        for (int i = below(own, 5); i > 0; --i) handle.test();
        handle.wait();
        trials[static_cast<std::size_t>(k)]->check();
    }
}

class PatternsOn : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, PatternsOn, ::testing::Values(1, 2, 3, 5));

}  // namespace

TEST_P(PatternsOn, RandomOnesSeveralInFlight) {
    on_ranks(GetParam(), [](Context& context) {
        for (int seed = 0; seed < 120; seed += 8) run_in_flight(context, seed, 1 + seed % 8 + 4);
    });
}

// Small ones go with the comparison, larger and kept ones by messages of their own: to the same bits.
TEST_P(PatternsOn, WhateverTheWayTheBitsAreTheSame) {
    on_ranks(GetParam(), [](Context& context) {
        const int p = context.size();
        for (int seed = 0; seed < 60; ++seed) {
            Random random(static_cast<unsigned>(seed)), own(static_cast<unsigned>(100 * seed + context.rank() + 1));
            PatternCall call;
            call.kind = std::array{PatternKind::reduce, PatternKind::multi_reduce, PatternKind::spread,
                                   PatternKind::broadcast}[static_cast<std::size_t>(seed % 4)];
            const bool whole = call.kind == PatternKind::reduce || call.kind == PatternKind::broadcast;
            // Around the most that goes along: 4 KB, or that over p.
            const int rows = 1 + below(random, 12), columns = 1 + below(random, 512 / p / rows + 6), most = p * columns;
            call.op = below(random, 2) ? Reduction::sum : Reduction::prod;
            call.root = whole ? below(random, p) : 0;
            std::vector<double> in(static_cast<std::size_t>(rows * (most + 3))), out[2];
            for (double& x : in) x = 0.1 + below(own, 1000) / 700.0;
            const auto view = [&](std::vector<double>& v, int cols) {
                return MatrixView{reinterpret_cast<std::byte*>(v.data()), rows, cols, (most + 3) * 8, Dtype::f8};
            };
            for (int way = 0; way < 2; ++way) {
                out[way].assign(in.size(), -1);
                std::vector<double> given = in;
                PatternCall c = call;
                c.in = view(given, call.kind == PatternKind::multi_reduce ? most : columns);
                c.out = view(out[way], call.kind == PatternKind::spread ? most : columns);
                if (call.kind == PatternKind::broadcast) c.out = {};
                c.keep = way == 1;
                if (c.keep)
                    start_pattern(context, c).run();
                else if (seed % 3)
                    run_pattern(context, c, [] { return nullptr; });
                else
                    start_pattern(context, c).wait();
                if (call.kind == PatternKind::broadcast) out[way] = given;
            }
            ASSERT_EQ(0, std::memcmp(out[0].data(), out[1].data(), 8 * in.size()))
                << "seed " << seed << ", rank " << context.rank() << " of " << p;
        }
    });
}

// Where nothing arrives, as when a script is planned for ranks that are not here, nothing is expected either.
TEST(Patterns, ARankThatHearsNobody) {
    for (int rank : {0, 2}) {
        Context context(make_dry_transport(rank, 4), 1);
        std::vector<double> in(16, 1.0), out(64, 0.0);
        for (PatternKind kind : {PatternKind::broadcast, PatternKind::reduce}) {
            PatternCall call;
            call.kind = kind;
            call.root = rank == 2 ? 2 : 1;
            call.in = {reinterpret_cast<std::byte*>(in.data()), 4, 4, 32, Dtype::f8};
            call.out = {reinterpret_cast<std::byte*>(out.data()), 4, 4, 32, Dtype::f8};
            run_pattern(context, call, [] { return nullptr; });
        }
    }
}

// What one rank gives along by mistake comes with what another does.
TEST_P(PatternsOn, SmallOnesThatDifferAreRefusedByAll) {
    if (GetParam() == 1) return;
    on_ranks(GetParam(), [](Context& context) {
        for (int seed = 0; seed < 40; ++seed) {
            Random random(static_cast<unsigned>(seed));
            const int odd = below(random, context.size());
            std::vector<double> in(512, 1.0), out(512 * 8, 0.0);
            PatternCall call;
            call.kind = static_cast<PatternKind>(below(random, 4));
            call.in = {reinterpret_cast<std::byte*>(in.data()), 1, 512 / context.size(), 4096, Dtype::f8};
            if (call.kind == PatternKind::broadcast) call.in.cols = 512;
            call.out = {reinterpret_cast<std::byte*>(out.data()), 1, 512, 4096, Dtype::f8};
            if (call.kind == PatternKind::reduce) call.out.cols = call.in.cols;
            if (context.rank() == odd) {
                switch (below(random, 4)) {
                    case 0:
                        call.kind = call.kind == PatternKind::broadcast ? PatternKind::reduce : PatternKind::broadcast;
                        break;
                    case 1: call.in.type = call.out.type = Dtype::i8; break;
                    case 2: call.error = "this rank alone"; break;
                    case 3:
                        call.kind = PatternKind::broadcast;
                        call.root = odd;
                        call.in.cols = 512;
                        call.request.chunk_bytes = 4096;
                        break;
                }
            }
            std::string said;
            try {
                run_pattern(context, call, [] { return nullptr; });
            } catch (const ConfigError& e) {
                said = e.what();
            }
            ASSERT_NE(said, "") << "seed " << seed << ", rank " << context.rank();
            std::string first = said;
            broadcast(context.transport(), first, 0);
            ASSERT_EQ(said, first) << "seed " << seed;
        }
    });
}

TEST_P(PatternsOn, KeptOnesStartAgainBesideOthers) {
    on_ranks(GetParam(), [](Context& context) {
        for (int seed = 500; seed < 516; ++seed) {
            PatternTrial trial(seed, context);
            PatternCall call = trial.call();
            call.keep = true;
            if (call.kind == PatternKind::multi_reduce && call.part_inside >= 0)
                continue;  // it overwrites what it reads
            PatternHandle kept = start_pattern(context, call);
            for (int turn = 0; turn < 3; ++turn) {
                kept.start();
                run_in_flight(context, 600 + seed, 2);
                kept.wait();
                trial.check();
                kept.run();
                trial.check();
            }
        }
    });
}

TEST_P(PatternsOn, GoOnWhileLanesComputeAndGather) {
    static constexpr auto west = reads({0, -1}, {-1, 0});
    on_ranks(
        GetParam(),
        [](Context& context) {
            for (int round = 0; round < 3; ++round) {
                Field<double> a(context, {12, 12}, [](const Index& p) { return 1.0 + static_cast<double>(p[0]); });
                std::vector<std::unique_ptr<PatternTrial>> trials;
                std::vector<PatternHandle> handles;
                for (int k = 0; k < 5; ++k) {
                    trials.push_back(std::make_unique<PatternTrial>(900 + 10 * round + k, context));
                    handles.push_back(start_pattern(context, trials.back()->call()));
                }
                run(context, {}, [](auto x) { return x(0, -1) + x(-1, 0); }, writes<west>(a));
                const auto whole = a.gather();
                EXPECT_TRUE(context.rank() || whole[13] == 3.0);  // 2 from the west, 1 from the north
                for (auto& handle : handles) handle.wait();
                for (auto& trial : trials) trial->check();
            }
        },
        2);
}

TEST_P(PatternsOn, TwoContextsInDifferentOrders) {
    LocalFabric second(GetParam());
    on_ranks(GetParam(), [&](Context& one) {
        Context two(second.endpoint(one.rank()), 1);
        PatternTrial a(70, one), b(71, two);
        const bool swapped = one.rank() % 2;
        auto first = swapped ? start_pattern(two, b.call()) : start_pattern(one, a.call());
        auto then = swapped ? start_pattern(one, a.call()) : start_pattern(two, b.call());
        first.wait();
        then.wait();
        a.check();
        b.check();
    });
}

TEST_P(PatternsOn, AFunctionThatFailsOnOneRankFailsOnAll) {
    const int ranks = GetParam();
    for (int bad = 0; bad < ranks && ranks > 1; ++bad) {
        std::atomic<int> caught{0};
        on_ranks(ranks, [&](Context& context) {
            Guarded m(3, 4, 1), out(3, 4, 0);
            m.fill([](auto, auto) { return 1; });
            PatternCall call;
            call.kind = PatternKind::reduce;
            call.root = bad;
            call.in = m.view();
            call.out = out.view();
            call.op = Reduction::user;
            call.user = leftmost();
            if (context.rank() == bad)
                call.user = {[](auto, auto, auto, auto) { return false; }, [] { return std::string("it failed"); }};
            try {
                start_pattern(context, call).wait();
            } catch (const KernelError& e) {
                EXPECT_STREQ(e.what(), "it failed");
                ++caught;
            }
            run_in_flight(context, 40, 2);
        });
        EXPECT_EQ(caught, ranks);
    }
}

TEST_P(PatternsOn, BufferedSends) {
    on_ranks(GetParam(), [](Context& context) {
        const int p = context.size(), r = context.rank();
        Random random(5), own(static_cast<unsigned>(r));
        std::vector<std::tuple<std::unique_ptr<Guarded>, int, Handle>> receives;
        for (int k = 0; k < 40; ++k) {
            const int from = below(random, p), to = below(random, p), tag = below(random, 2),
                      big = below(random, 8) == 0;
            const std::int64_t rows = below(random, 12), cols = below(random, big ? 9000 : 60);
            if (from == r) {
                Guarded m(rows, cols, below(own, 3));
                m.fill([&](auto i, auto j) { return value(k, from, i, j); });
                send_buffered(context, m.view(), to, tag);
                m.fill([](auto, auto) { return -1; });
            }
            if (to == r) {
                auto m = std::make_unique<Guarded>(rows, cols, below(own, 3));
                auto handle = start_receive(context, m->view(), from, tag);
                receives.emplace_back(std::move(m), 100 * k + from, handle);
            }
        }
        std::shuffle(receives.begin(), receives.end(), own);
        for (auto& [m, what, handle] : receives) {
            handle.wait();
            m->expect([&, what = what](auto i, auto j) { return value(what / 100, what % 100, i, j); },
                      "message " + std::to_string(what / 100));
        }
        complete(context);
    });
}

TEST(Sends, LimitsAndAReceiverWithAnotherShape) {
    on_ranks(2, [](Context& context) {
        Guarded m(30, 40, 0), wrong(40, 30, 2);
        m.fill([](auto i, auto j) { return 100 * i + j; });
        if (context.rank() == 0) {
            EXPECT_THROW(send_buffered(context, m.view(), 1, 0, {9600, true}), ConfigError);  // 32 more are needed
            for (int k = 0; k < 2; ++k) send_buffered(context, m.view(), 1, 0, {2 * 9632, false});
            EXPECT_THROW(send_buffered(context, m.view(), 1, 0, {2 * 9632, false}), ConfigError);

            barrier(context.transport());
            for (int k = 0; k < 6; ++k) send_buffered(context, m.view(), 1, 0, {9632, true});
        } else {
            barrier(context.transport());
            EXPECT_THROW(start_receive(context, wrong.view(), 0, 0).wait(), ConfigError);
            wrong.expect([](auto, auto) { return guard; }, "refused");
            for (int k = 0; k < 7; ++k) {
                Guarded got(30, 40, k % 2);
                start_receive(context, got.view(), 0, 0).wait();
                got.expect([](auto i, auto j) { return 100 * i + j; }, "received");
            }
        }
        complete(context);
    });
}

namespace {

// Works for a number of calls, then never again: as MPI after an error.
class Failing final : public Transport {
public:
    Failing(std::unique_ptr<Transport> inner, std::shared_ptr<std::atomic<int>> calls)
        : inner_(std::move(inner)), calls_(std::move(calls)) {}
    int rank() const override { return inner_->rank(); }
    int size() const override { return inner_->size(); }
    void post_send(int id, const std::byte* d, std::int64_t n, int peer, int tag, bool s) override {
        count();
        inner_->post_send(id, d, n, peer, tag, s);
    }
    void post_recv(int id, std::byte* d, std::int64_t n, int peer, int tag) override {
        count();
        inner_->post_recv(id, d, n, peer, tag);
    }
    bool has_message(int peer, int tag) override {
        count();
        return inner_->has_message(peer, tag);
    }
    void poll(std::vector<int>& done) override {
        count();
        inner_->poll(done);
    }

private:
    void count() {
        if (calls_->fetch_sub(1) <= 0) throw MpiError("the wire is cut");
    }
    std::unique_ptr<Transport> inner_;
    std::shared_ptr<std::atomic<int>> calls_;
};

}  // namespace

TEST(Patterns, ATransportThatFailsIsSaidByEveryWait) {
    for (int calls : {0, 1, 2, 5, 10, 20, 40, 80, 160, 320}) {
        std::array<std::shared_ptr<std::atomic<int>>, 3> left;
        for (auto& l : left) l = std::make_shared<std::atomic<int>>(1 << 30);
        on_ranks(
            3,
            [&](Context& context) {
#ifdef __SANITIZE_ADDRESS__
                const __lsan::ScopedDisabler here;  // what is pending after a failure is never freed
#endif
                barrier(context.transport());
                left[static_cast<std::size_t>(context.rank())]->store(calls + 3 * context.rank());
                std::vector<std::unique_ptr<PatternTrial>> trials;
                std::vector<PatternHandle> handles;
                Guarded sent(40, 50, 0), got(40, 50, 2);
                int failed = 0;
                auto tried = [&](auto f) {
                    try {
                        f();
                    } catch (const MpiError&) {
                        ++failed;
                    }
                };
                tried([&] { send_buffered(context, sent.view(), (context.rank() + 1) % 3, 0); });
                for (int k = 0; k < 6; ++k)
                    tried([&] {
                        trials.push_back(std::make_unique<PatternTrial>(k, context));
                        handles.push_back(start_pattern(context, trials.back()->call()));
                    });
                tried([&] { start_receive(context, got.view(), (context.rank() + 2) % 3, 0).wait(); });
                for (auto& handle : handles) tried([&] { handle.wait(); });
                const int unused = left[static_cast<std::size_t>(context.rank())]->load();
                EXPECT_TRUE(failed || unused >= 0) << calls << " calls, " << unused << " left";
                // What is this test's own must outlive the other ranks' messages into it.
                handles.clear();
                left[static_cast<std::size_t>(context.rank())]->store(-1);
                for (const auto& l : left)
                    while (l->load() > 0) std::this_thread::yield();
            },
            1,
            [&](std::unique_ptr<Transport> t) {
                auto mine = left[static_cast<std::size_t>(t->rank())];
                return std::make_unique<Failing>(std::move(t), mine);
            });
    }
}
