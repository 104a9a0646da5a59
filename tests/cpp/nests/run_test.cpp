// Sweeps through the C++ interface on ranks as threads, against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <thread>

#include "context/progress_engine.hpp"
#include "execute/executor.hpp"
#include "nests/prepared_sweep.hpp"
#include "support/ranks.hpp"
#include "tilewave/tilewave.hpp"

using namespace tilewave;

namespace {

// Only the thread that made it may call it, as MPI at level FUNNELED or SINGLE.
class Funneled final : public Transport {
public:
    explicit Funneled(std::unique_ptr<Transport> inner)
        : inner_(std::move(inner)), owner_(std::this_thread::get_id()) {}
    int rank() const override { return inner_->rank(); }
    int size() const override { return inner_->size(); }
    bool any_thread() const override { return false; }
    void post_send(int id, const std::byte* d, std::int64_t n, int peer, int tag, bool s) override {
        check();
        inner_->post_send(id, d, n, peer, tag, s);
    }
    void post_recv(int id, std::byte* d, std::int64_t n, int peer, int tag) override {
        check();
        inner_->post_recv(id, d, n, peer, tag);
    }
    bool has_message(int peer, int tag) override {
        check();
        return inner_->has_message(peer, tag);
    }
    void poll(std::vector<int>& done) override {
        check();
        inner_->poll(done);
    }
    bool alarms() const override { return inner_->alarms(); }
    void post_alarm(int peer, const Alarm& alarm) override {
        check();
        inner_->post_alarm(peer, alarm);
    }
    void take_alarms(std::vector<Alarm>& alarms) override {
        check();
        inner_->take_alarms(alarms);
    }

private:
    void check() const {
        ensure(std::this_thread::get_id() == owner_, "a lane other than 0 called a funneled transport");
    }
    std::unique_ptr<Transport> inner_;
    std::thread::id owner_;
};

template <class Body>
void on_ranks(int ranks, int threads, bool funneled, Body body) {
    tilewave::on_ranks(ranks, body, threads, [&](std::unique_ptr<Transport> t) -> std::unique_ptr<Transport> {
        return funneled ? std::make_unique<Funneled>(std::move(t)) : std::move(t);
    });
}

constexpr auto three = reads({-1, 0, 0}, {0, -1, 0}, {0, 0, -1});
const Index shape{9, 11, 13};

std::vector<float> plain() {
    std::vector<float> a(9 * 11 * 13);
    auto at = [&](int i, int j, int k) -> float& { return a[static_cast<std::size_t>((i * 11 + j) * 13 + k)]; };
    for (int i = 0; i < 9; ++i)
        for (int j = 0; j < 11; ++j)
            for (int k = 0; k < 13; ++k)
                at(i, j, k) = i && j && k
                                  ? std::sqrt(at(i - 1, j, k)) + std::sqrt(at(i, j - 1, k)) + std::sqrt(at(i, j, k - 1))
                                  : static_cast<float>(1 + i + 2 * j + 3 * k);
    return a;
}

struct Case {
    int ranks, threads;
    bool funneled;
};
void PrintTo(const Case& c, std::ostream* out) {
    *out << c.ranks << "x" << c.threads << (c.funneled ? " funneled" : "");
}
class Sweeps : public ::testing::TestWithParam<Case> {};

}  // namespace

TEST_P(Sweeps, EqualPlainLoopsInEveryScheme) {
    const Case c = GetParam();
    const std::vector<float> expected = plain();
    on_ranks(c.ranks, c.threads, c.funneled, [&](Context& context) {
        for (auto grouping : {GroupingKind::hyperplane, GroupingKind::vertical})
            for (auto schedule : {ScheduleKind::blocking, ScheduleKind::overlapping}) {
                Field<float> a(context, shape, [](const Index& p) { return 1 + p[0] + 2 * p[1] + 3 * p[2]; });
                PlanRequest request;
                request.grouping = grouping;
                request.schedule = schedule;
                request.slices = 2;
                request.chunk_bytes = 48;
                run(
                    context, request,
                    [](auto x) { return std::sqrt(x(-1, 0, 0)) + std::sqrt(x(0, -1, 0)) + std::sqrt(x(0, 0, -1)); },
                    writes<three>(a));
                const auto whole = a.gather();
                EXPECT_TRUE(context.rank() != 0 || whole == expected);
            }
    });
}

INSTANTIATE_TEST_SUITE_P(RanksAndThreads, Sweeps,
                         ::testing::Values(Case{1, 1, false}, Case{1, 3, false}, Case{2, 1, false}, Case{2, 2, false},
                                           Case{3, 2, false}, Case{4, 1, false}, Case{6, 2, false}, Case{2, 2, true},
                                           Case{3, 3, true}));

TEST(Nest, TwoArraysOfDifferentTypes) {
    static constexpr auto west = reads({0, -1});
    static constexpr auto around = reads({1, 0}, {0, 0});
    on_ranks(2, 1, false, [&](Context& context) {
        Field<double> a(context, {6, 8}, [](const Index&) { return 1.0; });
        Field<int> b(context, {6, 8}, [](const Index& p) { return static_cast<int>(10 * p[0] + p[1]); });
        run(
            context, {}, [](auto x, auto y) { return x(0, -1) + y(1, 0) - y(0, 0); }, writes<west>(a),
            only_reads<around>(b));
        const auto whole = a.gather();
        if (context.rank()) return;
        for (int i = 0; i < 6; ++i)
            for (int j = 0; j < 8; ++j)
                EXPECT_EQ(whole[static_cast<std::size_t>(i * 8 + j)], i < 5 ? 1.0 + 10 * j : 1.0);
    });
}

namespace {

// Every read of A that a body may make: from before it (flow), from points that come later (anti),
// and back along the inner loop while forward along the outer one.
constexpr auto around_a = reads({-1, 1}, {0, -1}, {-1, -1}, {0, 1}, {1, -1}, {1, 0});
constexpr auto around_b = reads({1, -2}, {0, 0});

template <class T>
T mixed(T flow, T ahead, T other) {
    return flow / 2 + ahead / 4 + other;
}

// The loops as they stand: both components of every offset keep inside both arrays.
template <class T>
std::vector<T> plain_mixed(int m, int n, std::vector<T> a, const std::vector<T>& b) {
    auto at = [&](int i, int j) { return static_cast<std::size_t>(i * n + j); };
    for (int i = 1; i < m - 1; ++i)
        for (int j = 2; j < n - 1; ++j)
            a[at(i, j)] = mixed<T>(a[at(i - 1, j + 1)] + a[at(i, j - 1)] - a[at(i - 1, j - 1)],
                                   a[at(i, j + 1)] + a[at(i + 1, j - 1)] + a[at(i + 1, j)],
                                   b[at(i + 1, j - 2)] - b[at(i, j)] + a[at(i, j)]);
    return a;
}

int some_value(const Index& p) {
    return static_cast<int>((p[0] * 37 + p[1] * 11) % 29) - 9;
}

template <class T>
void expect_mixed(Context& context, int m, int n, const PlanRequest& request) {
    std::vector<T> before, other;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            before.push_back(static_cast<T>(some_value({i, j})));
            other.push_back(static_cast<T>(some_value({j, i})));
        }
    Field<T> a(context, {m, n}, some_value);
    Field<T> b(context, {m, n}, [](const Index& p) { return some_value({p[1], p[0]}); });
    const Report report = run(
        context, request,
        [](auto x, auto y) {
            return mixed<T>(x(-1, 1) + x(0, -1) - x(-1, -1), x(0, 1) + x(1, -1) + x(1, 0),
                            y(1, -2) - y(0, 0) + x(0, 0));
        },
        writes<around_a>(a), only_reads<around_b>(b));
    const std::vector<T> whole = a.gather();
    EXPECT_TRUE(context.rank() != 0 || whole == plain_mixed(m, n, before, other)) << report.to_string();
    EXPECT_EQ(report.points, std::max(m - 2, 0) * std::max(n - 3, 0));
}

}  // namespace

// Reads of what a later point replaces, and a dependence that goes back along the inner loop: tiles
// are boxes of skewed coordinates, and messages arrive where former values are still read.
TEST(Nest, AntiDependencesAndABackwardsOneEqualPlainLoops) {
    for (int ranks : {1, 2, 3})
        for (int threads : {1, 3})
            on_ranks(ranks, threads, false, [&](Context& context) {
                for (auto grouping : {GroupingKind::hyperplane, GroupingKind::vertical})
                    for (auto schedule : {ScheduleKind::blocking, ScheduleKind::overlapping})
                        for (const Index& tile : {Index{}, Index{1, 3}, Index{2, 5}}) {
                            PlanRequest request;
                            request.grouping = grouping;
                            request.schedule = schedule;
                            request.slices = 2;
                            request.chunk_bytes = 24;
                            if (tile.n) request.tile = tile;
                            expect_mixed<float>(context, 11, 14, request);
                        }
                expect_mixed<double>(context, 13, 9, {});
                expect_mixed<int>(context, 4, 30, {});
                expect_mixed<int>(context, 5, 4, {});
                expect_mixed<int>(context, 2, 9, {});
            });
}

// The row's places are found by their own steps, whatever the row and the storage.
TEST(Nest, RowsOfEveryDirectionEqualPlainLoops) {
    for (int ranks : {1, 2})
        on_ranks(ranks, 2, false, [&](Context& context) {
            for (const Index& row : {Index{0, 1}, Index{1, 0}, Index{1, -1}, Index{-1, 1}})
                for (auto storage : {StorageKind::plain, StorageKind::skewed}) {
                    PlanRequest request;
                    request.row = row;
                    request.storage = storage;
                    expect_mixed<float>(context, 12, 17, request);
                }
        });
}

TEST(Nest, AnOffsetThatIsNotDeclaredIsAnErrorOnEveryRank) {
    static constexpr auto west = reads({0, -1});
    std::atomic<int> caught{0};
    on_ranks(3, 1, false, [&](Context& context) {
        Field<double> a(context, {7, 8}, [](const Index&) { return 1.0; });
        try {
            run(context, {}, [](auto x) { return x(0, -1) + x(-1, 0); }, writes<west>(a));
        } catch (const KernelError& e) {
            EXPECT_NE(std::string(e.what()).find("does not declare"), std::string::npos);
            ++caught;
        }
    });
    EXPECT_EQ(caught, 3);
}

TEST(Nest, ABodyThatThrowsOnOneRankEndsOnAll) {
    static constexpr auto north = reads({-1, 0});
    for (int row : {1, 4, 8}) {
        std::atomic<int> caught{0};
        on_ranks(3, 2, false, [&](Context& context) {
            Field<double> a(context, {9, 4}, [](const Index& p) { return p[0]; });
            PlanRequest grid;
            grid.grid = Index{3, 1};
            try {
                run(
                    context, grid,
                    [row](auto x) { return x(-1, 0) + 1 == row ? throw std::runtime_error("the row") : x(-1, 0) + 1; },
                    writes<north>(a));
                ADD_FAILURE() << "no error on rank " << context.rank();
            } catch (const KernelError& e) {
                EXPECT_NE(std::string(e.what()).find("(" + std::to_string(row) + ", "), std::string::npos) << e.what();
                ++caught;
            }
        });
        EXPECT_EQ(caught, 3);
    }
}

TEST(Nest, ShapesThatDifferInPeriodicLoopsAreRefused) {
    static constexpr auto west = reads({0, -1});
    std::atomic<int> caught{0};
    on_ranks(2, 1, false, [&](Context& context) {
        Field<double> a(context, {6, 8}, [](const Index&) { return 1.0; });
        Field<double> b(context, {6, 9}, [](const Index&) { return 1.0; });
        try {
            run(
                context, {.periodic = {0}}, {}, [](auto x, auto y) { return x(0, -1) + y(0, -1); }, writes<west>(a),
                only_reads<west>(b));
        } catch (const ConfigError&) {
            ++caught;
        }
    });
    EXPECT_EQ(caught, 2);
}

TEST(Nest, RanksWithOtherRequestsFindOut) {
    static constexpr auto west = reads({0, -1});
    std::atomic<int> caught{0};
    on_ranks(2, 1, false, [&](Context& context) {
        Field<double> a(context, {6, 8}, [](const Index&) { return 1.0; });
        PlanRequest request;
        if (context.rank() == 1) request.lookahead = 1;
        try {
            run(context, request, [](auto x) { return x(0, -1); }, writes<west>(a));
        } catch (const ConfigError& e) {
            EXPECT_NE(std::string(e.what()).find("lookahead 1"), std::string::npos) << e.what();
            ++caught;
        }
    });
    EXPECT_EQ(caught, 2);
}

TEST(Nest, AFieldGivenTwiceIsRefused) {
    static constexpr auto west = reads({0, -1});
    static constexpr auto east = reads({0, 1});
    std::atomic<int> caught{0};
    on_ranks(2, 1, false, [&](Context& context) {
        Field<double> a(context, {6, 8}, [](const Index&) { return 1.0; });
        try {
            run(context, {}, [](auto x, auto y) { return x(0, -1) + y(0, 1); }, writes<west>(a), only_reads<east>(a));
        } catch (const ConfigError& e) {
            EXPECT_NE(std::string(e.what()).find("given for two arrays"), std::string::npos) << e.what();
            ++caught;
        }
    });
    EXPECT_EQ(caught, 2);
}

namespace {

// Takes long for a row; at one point it fails. Rows that come late take longer: however late a thread has a CPU, ranks
// that are told stop early.
struct SlowRows {
    Index bad;
    bool out_of_memory = false;
    int late = 3000;            // of which call on
    std::atomic<int> calls{0};  // on all ranks
    static std::int64_t row(char* const*, const std::int64_t*, std::int64_t n, const std::int64_t* x,
                            const std::int64_t*, const void* env) {
        auto& self = *static_cast<SlowRows*>(const_cast<void*>(env));
        std::this_thread::sleep_for(std::chrono::microseconds(++self.calls > self.late ? 50000 : 100));
        if (x[0] != self.bad[0] || self.bad[1] < x[1] || self.bad[1] >= x[1] + n) return 0;
        if (self.out_of_memory) throw std::bad_alloc();
        return (self.bad[1] - x[1]) * 4096 + 1;
    }
};

// `rows` rows of 8 points, their columns divided over the ranks; with `linked` each rank needs what the one before it
// computes.
Report run_rows(Context& context, SlowRows& kernel_data, std::int64_t rows, bool linked) {
    SweepProblem problem;
    problem.shape = {rows, 8};
    problem.space = {Index{1, 1}, Index{rows, 8}};
    problem.arrays = {{8}};
    problem.accesses = {{0, Index{0, 0}, true}, {0, Index{-1, 0}}, {0, Index{0, linked ? -1 : 0}}};
    problem.complete();
    PlanRequest request;
    request.grid = Index{1, context.size()};
    request.tile = Index{std::min<std::int64_t>(40, rows - 1), 2};
    request.threads = context.threads();
    PreparedSweep sweep(context, problem, make_plan(problem, context.size(), request, Machine()));
    FieldStorage field(context, problem.shape, 8);
    std::fill_n(field.data(), field.bytes(), std::byte{0});
    Kernel kernel;
    kernel.row = SlowRows::row;
    kernel.env = &kernel_data;
    const RunArray arrays[] = {{&field, {}}};
    return sweep.run(arrays, kernel, [&](const Failure& f) {
        return "at " + to_string(f.point) + " on rank " + std::to_string(context.rank());
    });
}

}  // namespace

TEST(Run, AFailureOnOneRankStopsAll) {
    constexpr std::int64_t rows = 8000, columns[] = {1, 7};
    for (bool funneled : {false, true})
        for (int threads : {1, 2})
            for (bool linked : {false, true})
                for (int rank = funneled; rank < 2; ++rank) {
                    SlowRows kernel{{2, columns[rank]}};
                    std::atomic<int> told{0};
                    on_ranks(2, threads, funneled, [&](Context& context) {
                        try {
                            run_rows(context, kernel, rows, linked);
                        } catch (const KernelError& e) {
                            told += e.what() == "at " + to_string(kernel.bad) + " on rank " + std::to_string(rank);
                        }
                    });
                    EXPECT_EQ(told, 2);
                    EXPECT_LT(kernel.calls, rows / 2) << threads << " threads, linked " << linked << ", rank " << rank;
                }
}

TEST(Run, MemoryThatRunsOutOnOneRankIsAnErrorOnAll) {
    for (bool linked : {false, true}) {
        SlowRows kernel{{2, 7}, true};
        std::atomic<int> told{0};
        on_ranks(2, 1, false, [&](Context& context) {
            try {
                run_rows(context, kernel, 8000, linked);
            } catch (const OutOfResources& e) {
                told += std::string(e.what()).find("memory ran out in a run on rank 1") == 0;
            }
            barrier(context.transport());
            SlowRows good{{-1, -1}};
            run_rows(context, good, 8, linked);
        });
        EXPECT_EQ(told, 2);
        EXPECT_LT(kernel.calls, 4000);
    }
}

TEST(Run, ASignalAtItsEndInterruptsAll) {
    std::atomic<int> interrupted{0};
    on_ranks(3, 1, false, [&](Context& context) {
        if (context.rank() == 1) context.options().heartbeat = [](double part) { return part < 0; };
        SlowRows good{{-1, -1}};
        interrupted += run_rows(context, good, 8, true).interrupted;
        context.options().heartbeat = nullptr;
        EXPECT_FALSE(run_rows(context, good, 8, true).interrupted);
    });
    EXPECT_EQ(interrupted, 3);
}

// Rank 0 is done long before the other one, and is interrupted where it waits for it.
TEST(Run, AnInterruptWhileARankWaitsAtItsEndStopsTheOthers) {
    std::atomic<int> interrupted{0};
    SlowRows kernel{{-1, -1}, false, 14000};
    on_ranks(2, 1, false, [&](Context& context) {
        SweepProblem problem;
        problem.shape = {20000, 2};
        problem.space = {Index{1, 0}, Index{20000, 2}};
        problem.arrays = {{8}};
        problem.accesses = {{0, Index{0, 0}, true}, {0, Index{-1, 0}}};
        problem.bounds = {{Index{-1, 19998}, 1}};  // of the first column: two rows
        problem.complete();
        PlanRequest request;
        request.grid = Index{1, 2};
        PreparedSweep sweep(context, problem, make_plan(problem, 2, request, Machine()));
        FieldStorage field(context, problem.shape, 8);
        std::fill_n(field.data(), field.bytes(), std::byte{0});
        Kernel rows;
        rows.row = SlowRows::row;
        rows.env = &kernel;
        const RunArray arrays[] = {{&field, {}}};
        if (context.rank() == 0) context.options().heartbeat = [beats = 0](double) mutable { return ++beats == 3; };
        interrupted += sweep.run(arrays, rows, [](const Failure&) { return ""; }).interrupted;
    });
    EXPECT_EQ(interrupted, 2);
    EXPECT_LT(kernel.calls, 15000);
}

TEST(Alarms, OfARankThatHasLeftEndEveryWait) {
    std::atomic<int> told{0};
    on_ranks(3, 1, false, [&](Context& context) {
        if (context.rank() == 1) {
            context.engine()->alarms->raise(true);
            return;
        }
        SlowRows kernel{{-1, -1}};
        try {
            run_rows(context, kernel, 20, true);
        } catch (const MpiError& e) {
            told += std::string(e.what()).find("rank 1 could not go on") == 0;
        }
    });
    EXPECT_EQ(told, 2);
}
