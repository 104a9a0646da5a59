// Memory that ends on one rank, at each of its larger allocations in a call: all ranks throw the same, none waits, and
// the next call works. One way for all families of calls.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <mutex>

#include "execute/executor.hpp"
#include "support/blas.hpp"
#include "support/memory_limit.hpp"
#include "support/ranks.hpp"
#include "tilewave/linalg.hpp"
#include "tilewave/patterns.hpp"
#include "tilewave/tilewave.hpp"

namespace tilewave {
namespace {

using Call = std::function<void()>;
// Makes on each rank what a call needs, and the call.
using MakeCall = std::function<Call(Context&)>;

// Empty: all is well.
std::string outcome_of(const Call& call) {
    try {
        call();
        return "";
    } catch (const std::exception& e) {
        return e.what();
    }
}

bool any(Context& context, bool yes) {
    std::vector<std::int64_t> all{!yes};
    allreduce_min(context.transport(), all);
    return all[0] == 0;
}

// The call with all memory, then with fewer and fewer allocations granted to the victim.
void end_memory(int ranks, const MakeCall& make, const std::string& name) {
    if (!memory_can_end()) GTEST_SKIP() << "a sanitizer's operator new ends the program in place of throwing";
    std::mutex lock;
    int limits = 0;
    for (int victim = 0; victim < ranks; ++victim) {
        std::map<std::int64_t, std::vector<std::string>> outcomes;  // by allocations granted, of all ranks
        const auto errors = errors_on_ranks(ranks, [&](Context& context) {
            const Call call = make(context);
            call();
            bool reached = true;
            for (std::int64_t granted = 0; reached; ++granted) {
                std::string outcome;
                bool here = false;
                if (context.rank() == victim) {
                    const MemoryLimit limit(granted);
                    outcome = outcome_of(call);
                    here = limit.reached();
                } else {
                    outcome = outcome_of(call);
                }
                reached = any(context, here);
                if (reached && victim == context.rank()) ++limits;
                {
                    std::scoped_lock guard(lock);
                    outcomes[granted].push_back(outcome);
                }
                call();
            }
        });
        for (const std::string& error : errors) EXPECT_EQ(error, "") << name << ", rank " << victim << " lacks memory";
        for (const auto& [granted, all] : outcomes)
            for (const std::string& outcome : all) {
                EXPECT_EQ(outcome, all[0]) << name << ", " << granted << " allocations on rank " << victim;
                if (!outcome.empty()) EXPECT_NE(outcome.find("memory"), std::string::npos) << outcome;
            }
    }
    EXPECT_GT(limits, 0) << name;
}

double element(std::int64_t i, std::int64_t j) {
    return std::cos(static_cast<double>(3 * i + j)) + (i == j ? 80 : 0);
}

constexpr auto north_west = reads({-1, 0}, {0, -1});
const auto add = [](auto a) { return 0.5 * a(-1, 0) + 0.5 * a(0, -1); };

std::shared_ptr<Field<double>> field_of(Context& context) {
    return std::make_shared<Field<double>>(context, Index{120, 90}, [](const Index& at) { return 1.0 + at[1]; });
}

}  // namespace

TEST(MemoryLimits, OfMatrices) {
    if (!have_blas()) GTEST_SKIP() << "no BLAS library";
    using M = Matrix<double>;
    const auto matrix = [](Context& context) {
        return std::make_shared<M>(context, by_block_columns(160, 160, context.size(), 32), element);
    };
    for (const int ranks : {2, 3}) {
        end_memory(
            ranks,
            [&](Context& context) { return [a = matrix(context)] { (void)lu(*a, {.block = 32, .lookahead = 1}); }; },
            "lu");
        end_memory(
            ranks,
            [&](Context& context) {
                const auto a = matrix(context);
                const auto factor = std::make_shared<decltype(lu(*a))>(lu(*a, {.block = 32, .lookahead = 1}));
                return [a, factor] { (void)factor->solve(*a); };
            },
            "solve");
        end_memory(
            ranks,
            [&](Context& context) {
                const auto a = matrix(context);
                const auto c = std::make_shared<M>(context, by_block_rows(160, 160, context.size()), element);
                return [a, c] { (void)multiply(*a, *a, *c, {.algorithm = ProductAlgorithm::broadcast, .panel = 32}); };
            },
            "multiply");
        end_memory(
            ranks,
            [&](Context& context) {
                const BlockCyclic rows = by_block_rows(160, 160, context.size());
                return [a = matrix(context), rows] { (void)a->redistributed(rows); };
            },
            "redistributed");
        end_memory(ranks, [&](Context& context) { return [a = matrix(context)] { (void)a->gather(); }; }, "gather");
    }
}

TEST(MemoryLimits, OfFields) {
    for (const int ranks : {2, 3}) {
        end_memory(ranks, [](Context& context) { return [a = field_of(context)] { (void)a->gather(); }; }, "gather");
        end_memory(
            ranks,
            [](Context& context) {
                const auto a = field_of(context), b = field_of(context);
                const Index grid = a->storage().layout().grid;
                b->storage().relayout(Layout({120, 90}, {grid[1], grid[0]}));
                return [a, b] { (void)a->dot(*b); };
            },
            "dot");
        end_memory(
            ranks,
            [](Context& context) {
                auto a = std::make_shared<Field<double>>(context, Index{120, 90}, Halo{{1, 1}, {1, 1}, {}, {}},
                                                         [](const Index&) { return 1.0; });
                return [a, &context] { run_exchange(context, {{&a->storage()}, 2}); };
            },
            "exchange");
    }
}

TEST(MemoryLimits, OfNests) {
    for (const int ranks : {2, 3}) {
        end_memory(
            ranks,
            [](Context& context) {
                return [a = field_of(context), &context] { run(context, {}, add, writes<north_west>(*a)); };
            },
            "run");
        end_memory(
            ranks,
            [](Context& context) {
                const auto a = field_of(context);
                return [a, &context] {
                    BoundNest bound = bind(context, {}, {}, add, writes<north_west>(*a));
                    bound.run();
                };
            },
            "bind");
    }
}

TEST(MemoryLimits, OfPatterns) {
    struct Memory {
        std::vector<double> in, out;
    };
    for (const int ranks : {2, 3})
        for (const PatternKind kind :
             {PatternKind::broadcast, PatternKind::reduce, PatternKind::spread, PatternKind::multi_reduce})
            end_memory(
                ranks,
                [kind](Context& context) {
                    const std::int64_t rows = 500, columns = 12 * context.size();
                    const std::int64_t in = kind == PatternKind::spread ? 12 : columns,
                                       out = kind == PatternKind::multi_reduce ? 12 : columns;
                    const auto m = std::make_shared<Memory>();
                    m->in.assign(static_cast<std::size_t>(rows * (in + 2)), 1);
                    m->out.assign(static_cast<std::size_t>(rows * (out + 2)), 1);
                    return [=, &context, pass = std::make_shared<int>(0)] {
                        const auto view = [&](std::vector<double>& of, std::int64_t n) {
                            return MatrixView{reinterpret_cast<std::byte*>(of.data()), rows, n, 8 * (n + 2), Dtype::f8};
                        };
                        PatternCall call;
                        call.kind = kind;
                        call.in = view(m->in, in);
                        if (kind != PatternKind::broadcast) call.out = view(m->out, out);
                        call.request.chunk_bytes = 30000 + 8 * ++*pass;  // none is as the one before
                        start_pattern(context, std::move(call)).wait();
                    };
                },
                to_string(kind));
}

TEST(MemoryLimits, OfSchedules) {
    // Rank 0 gives all others its array by a buffer.
    const auto schedule_of = [](int rank, int ranks) {
        constexpr std::int64_t n = 5000;
        Schedule s;
        s.rank = rank;
        s.ranks = ranks;
        const Box all{{0}, {n}};
        s.arrays.push_back({8, all, all});
        s.lanes.emplace_back();
        for (int other = 0; other < ranks; ++other) {
            if (other == rank || (rank > 0 && other > 0)) continue;
            Message m;
            m.peer = other;
            m.send = rank == 0;
            m.region = all;
            m.bytes = 8 * n;
            m.buffer = static_cast<int>(s.buffers.size());
            s.buffers.push_back(m.bytes);
            const auto id = static_cast<std::int32_t>(s.messages.size());
            s.messages.push_back(m);
            if (m.send) s.lanes[0].push_back({Op::pack, id});
            s.lanes[0].push_back({m.send ? Op::post_send : Op::post_recv, id});
            s.lanes[0].push_back({Op::wait, id});
            if (!m.send) s.lanes[0].push_back({Op::unpack, id});
        }
        return s;
    };
    for (const int ranks : {2, 3})
        end_memory(
            ranks,
            [&](Context& context) {
                const auto s = std::make_shared<Schedule>(schedule_of(context.rank(), context.size()));
                const auto memory = std::make_shared<std::vector<double>>(5000);
                return [=, &context] {
                    const Binding binding{reinterpret_cast<std::byte*>(memory->data()), {8}};
                    (void)run_schedule(context, *s, {&binding, 1}, {});
                };
            },
            "run_schedule");
}

// A rank that stands aside while its neighbours' messages, of different lengths, are under way: it receives them one
// after another in one buffer.
TEST(MemoryLimits, OfARankThatStandsAside) {
    constexpr int ranks = 3, messages = 40;
    LocalFabric fabric(ranks);
    std::vector<std::thread> all;
    for (int rank = 0; rank < ranks; ++rank)
        all.emplace_back([&, rank] {
            const auto transport = fabric.endpoint(rank);
            Schedule s;
            s.rank = rank;
            s.ranks = ranks;
            s.lanes.emplace_back();
            const Box box{{0}, {messages}};
            s.arrays.push_back({8, box, box});
            for (int k = 0; k < messages; ++k)
                for (const int peer : {(rank + 1) % ranks, (rank + 2) % ranks})
                    for (const bool send : {false, true}) {
                        Message m;
                        m.peer = peer;
                        m.tag = k % 7;
                        m.send = send;
                        m.region = {{k}, {k + 1}};
                        m.bytes = 8;
                        const auto id = static_cast<std::int32_t>(s.messages.size());
                        s.messages.push_back(m);
                        s.lanes[0].push_back({send ? Op::post_send : Op::post_recv, id});
                    }
            for (std::size_t id = 0; id < s.messages.size(); ++id)
                s.lanes[0].push_back({Op::wait, static_cast<std::int32_t>(id)});
            std::vector<double> memory(messages, rank);
            const Binding binding{reinterpret_cast<std::byte*>(memory.data()), {8}};
            Lanes lanes(std::vector<int>{});
            if (rank == 1)
                (void)pass_empty_messages(s, *transport, std::make_exception_ptr(std::bad_alloc()), {});
            else
                (void)execute(s, {&binding, 1}, Programs{}, *transport, lanes, {});
        });
    for (auto& t : all) t.join();
}

}  // namespace tilewave
