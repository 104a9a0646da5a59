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

#include "support/guarded.hpp"
#include "support/ranks.hpp"
#include "tilewave/patterns.hpp"

using namespace tilewave;

namespace {

using Random = std::mt19937;

int below(Random& random, int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
}

// One random pattern: the same on all ranks but for the gaps between rows.
class Trial {
public:
    Trial(int seed, Context& context, int threads_seed = 0) : seed_(seed), p_(context.size()), rank_(context.rank()) {
        Random random(static_cast<unsigned>(seed)), own(static_cast<unsigned>(1000 * seed + rank_ + threads_seed));
        call_.kind = static_cast<PatternKind>(below(random, 4));
        const std::int64_t rows = below(random, 3) ? below(random, 9) : 1,
                           cols = below(random, 3) ? below(random, 12) : 1;
        root_ = call_.root = parted() ? 0 : below(random, p_);
        call_.block = parted() ? below(random, 3) : 0;
        user_ = below(random, 2);
        if (reduces() && user_) call_.op = Reduction::user, call_.user = leftmost();
        call_.request.algorithm = parted() ? (below(random, 2) ? Algorithm::ring : Algorithm::direct)
                                           : (below(random, 2) ? Algorithm::ring : Algorithm::tree);
        if (call_.kind == PatternKind::broadcast && below(random, 2))
            call_.request.algorithm = below(random, 2) ? Algorithm::rounds : Algorithm::direct;
        call_.request.chunk_bytes = below(random, 3) ? 1 + below(random, 90) : 1 << 16;
        call_.request.buffers = 2 + below(random, 4);
        if (below(random, 3) == 0) {  // all left open: these are small enough to go with the comparison
            call_.request = {};
            call_.op = Reduction::sum;
            call_.user = {};
            user_ = false;
        }
        const bool inside = below(random, 2) && parted() && call_.block == 0;
        const std::int64_t total = parted() ? cols * p_ / 2 : cols;
        for (int r = 0, first = 0; r < p_ && parted();
             first += static_cast<int>(dealt_columns(total, call_.block, p_, r++)))
            if (r == rank_) first_ = first;
        const std::int64_t mine = dealt_columns(total, call_.block, p_, rank_);
        whole_.emplace(rows, total, below(own, 3));
        part_.emplace(rows, parted() ? mine : total, below(own, 3));
        if (call_.kind == PatternKind::spread) {
            part_->fill([&](auto i, auto j) { return value(seed_, 0, i, column(j)); });
            whole_->fill(
                [&](auto i, auto j) { return inside && j >= first_ && j < first_ + mine ? value(seed_, 0, i, j) : 0; });
            call_.in = inside ? whole_->view(first_, mine) : part_->view();
            call_.out = whole_->view();
        } else {
            const bool holds = call_.kind != PatternKind::broadcast || rank_ == root_;
            whole_->fill([&](auto i, auto j) { return holds ? value(seed_, rank_, i, j) : 0; });
            part_->fill([](auto, auto) { return 0; });
            call_.in = whole_->view();
            call_.out = inside ? whole_->view(first_, mine) : part_->view();
        }
        inside_ = inside && whole_->rows > 0 && mine > 0;
        if (inside_) call_.part_inside = first_;
    }

    const PatternCall& call() const { return call_; }

    void check() {
        const std::string what = "seed " + std::to_string(seed_) + ", " + to_string(call_.kind) + " " +
                                 to_string(call_.request.algorithm) + " on rank " + std::to_string(rank_) + " of " +
                                 std::to_string(p_);
        auto given = [&](auto i, auto j) { return value(seed_, rank_, i, j); };
        switch (call_.kind) {
            case PatternKind::broadcast:
                return whole_->expect([&](auto i, auto j) { return value(seed_, root_, i, j); }, what);
            case PatternKind::spread:
                return whole_->expect([&](auto i, auto j) { return value(seed_, 0, i, j); }, what);
            case PatternKind::reduce:
                whole_->expect(given, what);
                if (rank_ == root_)
                    part_->expect(
                        [&](auto i, auto j) {
                            return joined(i, j, call_.request.algorithm == Algorithm::tree ? root_ : root_ + 1);
                        },
                        what);
                return;
            case PatternKind::multi_reduce:
                if (!inside_) part_->expect([&](auto i, auto j) { return joined(i, column(j), rank_ + 1); }, what);
                whole_->expect(
                    [&](auto i, auto j) {
                        return inside_ && j >= first_ && j < first_ + call_.out.cols ? joined(i, j, rank_ + 1)
                                                                                     : given(i, j);
                    },
                    what);
        }
    }

private:
    bool parted() const { return call_.kind == PatternKind::spread || call_.kind == PatternKind::multi_reduce; }
    bool reduces() const { return call_.kind == PatternKind::reduce || call_.kind == PatternKind::multi_reduce; }
    // Of the whole matrix, the j-th that is this rank's.
    std::int64_t column(std::int64_t j) const {
        return call_.block ? (j / call_.block * p_ + rank_) * call_.block + j % call_.block : first_ + j;
    }
    std::int64_t joined(std::int64_t i, std::int64_t j, int first) const {
        std::int64_t total = 0;
        for (int k = 0; k < p_; ++k) {
            const std::int64_t next = value(seed_, (first + k) % p_, i, j);
            total = user_ ? (total ? total : next) : total + next;
        }
        return total;
    }

    int seed_, p_, rank_, root_ = 0;
    bool user_ = false, inside_ = false;
    std::int64_t first_ = 0;
    std::optional<Guarded> whole_, part_;
    PatternCall call_;
};

// A wait that fails asserts here only, so that the rank goes on to the next.
void run_in_flight(Context& context, int first_seed, int count) {
    std::vector<std::unique_ptr<Trial>> trials;
    std::vector<std::pair<int, PatternHandle>> handles;
    for (int k = 0; k < count; ++k) {
        trials.push_back(std::make_unique<Trial>(first_seed + k, context));
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
            Trial trial(seed, context);
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
                std::vector<std::unique_ptr<Trial>> trials;
                std::vector<PatternHandle> handles;
                for (int k = 0; k < 5; ++k) {
                    trials.push_back(std::make_unique<Trial>(900 + 10 * round + k, context));
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
        Trial a(70, one), b(71, two);
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
                std::vector<std::unique_ptr<Trial>> trials;
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
                        trials.push_back(std::make_unique<Trial>(k, context));
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
