// TILEWAVE_WITHOUT: names, agreement, and that each path of the engine is not taken where it is off. Those of kernels
// and plans: tests/python/context/test_fast_paths.py.
#include "tilewave/engine/fast_paths.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <typeinfo>

#include "context/progress_engine.hpp"
#include "patterns/transfer.hpp"
#include "tilewave/patterns.hpp"
#include "tilewave/tilewave.hpp"

using namespace tilewave;

namespace {

struct Counts {
    std::atomic<int> sends = 0, asked = 0;  // messages; for memory of the transport
};

class Counting final : public Transport {
public:
    Counting(std::unique_ptr<Transport> inner, Counts& counts) : inner_(std::move(inner)), counts_(counts) {}
    int rank() const override { return inner_->rank(); }
    int size() const override { return inner_->size(); }
    void post_send(int id, const std::byte* d, std::int64_t n, int peer, int tag, bool s) override {
        ++counts_.sends;
        inner_->post_send(id, d, n, peer, tag, s);
    }
    void post_recv(int id, std::byte* d, std::int64_t n, int peer, int tag) override {
        inner_->post_recv(id, d, n, peer, tag);
    }
    std::byte* memory_for(std::int64_t, int) override {
        ++counts_.asked;
        return nullptr;
    }
    bool has_message(int peer, int tag) override { return inner_->has_message(peer, tag); }
    void poll(std::vector<int>& done) override { inner_->poll(done); }

private:
    std::unique_ptr<Transport> inner_;
    Counts& counts_;
};

// The text of each rank's exception, or "".
template <class Body>
std::vector<std::string> on_ranks(const std::vector<std::string>& without, Body body, Counts* counts = nullptr,
                                  int ranks_per_host = 1) {
    const int ranks = static_cast<int>(without.size());
    LocalFabric fabric(ranks, ranks_per_host);
    std::vector<std::string> errors(without.size());
    std::vector<std::thread> all;
    for (int r = 0; r < ranks; ++r)
        all.emplace_back([&, r] {
            const auto me = static_cast<std::size_t>(r);
            try {
                std::unique_ptr<Transport> t = fabric.endpoint(r);
                if (counts) t = std::make_unique<Counting>(std::move(t), *counts);
                Context context(std::move(t), 1, {"Context", ""}, without[me]);
                body(context);
            } catch (const std::exception& e) {
                errors[me] = e.what();
            }
        });
    for (auto& t : all) t.join();
    return errors;
}

MatrixView row(std::vector<double>& numbers) {
    const auto n = static_cast<std::int64_t>(numbers.size());
    return {reinterpret_cast<std::byte*>(numbers.data()), 1, n, 8 * n, Dtype::f8};
}

// What a kernel is called with.
std::atomic<int> most_rows, most_jump;
std::int64_t note_rows(char* const*, const std::int64_t*, std::int64_t count, const Span* spans, const std::int64_t*,
                       const std::int64_t*, const std::int64_t*, const std::int64_t*, const void*) {
    most_rows = std::max(most_rows.load(), static_cast<int>(count));
    for (std::int64_t i = 1; i < count; ++i)
        most_jump = std::max(most_jump.load(), static_cast<int>(spans[i].number - spans[i - 1].number));
    return 0;
}
std::int64_t no_row(char* const*, const std::int64_t*, std::int64_t, const std::int64_t*, const std::int64_t*,
                    const void*) {
    return 0;
}

// How many rows a call has at most, and by how many numbers one is after the row before.
std::pair<int, int> rows_of_calls(const std::string& without) {
    LocalFabric fabric(1);
    Context context(fabric.endpoint(0), 1, {"Context", ""}, without);
    Field<float> a(context, {20, 20, 20}, [](const Index&) { return 1.0f; });
    const ArrayReads reads{&a.storage(), 4, {20, 20, 20}, true, {{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}}};
    Kernel kernel;
    kernel.row = &no_row;
    kernel.rows = &note_rows;
    kernel.uses_index = false;
    PlanRequest request;
    request.storage = StorageKind::skewed;
    request.row = Index{0, 1, -1};
    most_rows = most_jump = 0;
    (void)run_nest(context, {}, request, std::span(&reads, 1), kernel, "noted", [](const Failure&) { return ""; });
    return {most_rows, most_jump};
}

}  // namespace

TEST(FastPaths, NamesAreReadAndWritten) {
    EXPECT_EQ(paths_off(""), 0u);
    EXPECT_EQ(names_of(0), "");
    const PathsOff off = paths_off("shared,windows, shared");
    EXPECT_EQ(names_of(off), "windows, shared");
    EXPECT_EQ(paths_off(names_of(~PathsOff{0})), paths_off(names_of(paths_off(names_of(~PathsOff{0})))));
    EXPECT_TRUE(without(off, FastPath::windows) && without(off, FastPath::shared));
    EXPECT_FALSE(without(off, FastPath::chain_layouts));
    try {
        (void)paths_off("windows,Shared");
        FAIL();
    } catch (const ConfigError& e) {
        EXPECT_EQ(std::string(e.what()),
                  "TILEWAVE_WITHOUT is 'windows,Shared', and no fast path is called 'Shared'; "
                  "allowed, with commas between them: " +
                      names_of(~PathsOff{0}));
    }
}

TEST(FastPaths, RanksThatDifferGetOneError) {
    const auto nothing = [](Context&) {};
    const auto differ = on_ranks({"windows", "windows,chain_layouts", "windows"}, nothing);
    EXPECT_NE(differ[0].find("different arguments"), std::string::npos) << differ[0];
    EXPECT_NE(differ[0].find("TILEWAVE_WITHOUT 'windows, chain_layouts'"), std::string::npos) << differ[0];
    EXPECT_EQ(differ, std::vector<std::string>(3, differ[0]));
    const auto wrong = on_ranks({"", "windws", ""}, nothing);
    EXPECT_NE(wrong[0].find("no fast path is called 'windws'"), std::string::npos) << wrong[0];
    EXPECT_EQ(wrong, std::vector<std::string>(3, wrong[0]));
    EXPECT_EQ(on_ranks({"chain_layouts,windows", "windows,chain_layouts"}, nothing), std::vector<std::string>(2));
}

TEST(FastPaths, Shared) {
    for (const bool off : {false, true}) {
        std::atomic<int> shared = 0;
        const std::string name = off ? "shared" : "";
        const auto errors = on_ranks(
            {name, name},
            [&](Context& context) {
                shared += std::string(typeid(context.engine()->inner()).name()).find("Shared") != std::string::npos;
            },
            nullptr, 2);
        EXPECT_EQ(errors, std::vector<std::string>(2));
        EXPECT_EQ(shared, off ? 0 : 2);
    }
}

TEST(FastPaths, Piggyback) {
    int sends[2];
    for (const bool off : {false, true}) {
        const std::string name = off ? "piggyback" : "";
        Counts counts;
        const auto errors = on_ranks(
            {name, name},
            [&](Context& context) {
                for (int call = 0; call < 3; ++call) {
                    std::vector<double> numbers(5, context.rank() == 0 ? 3.0 : 0.0);
                    PatternCall one;
                    one.in = row(numbers);
                    start_pattern(context, std::move(one)).wait();
                    EXPECT_EQ(numbers, std::vector<double>(5, 3.0));
                }
            },
            &counts);
        EXPECT_EQ(errors, std::vector<std::string>(2));
        sends[off] = counts.sends;
    }
    EXPECT_GT(sends[1], sends[0]);
}

TEST(FastPaths, StraightCombines) {
    for (const bool off : {false, true}) {
        const std::string name = off ? "straight_combines" : "";
        std::atomic<int> straight = 0, transfers = 0;
        const auto errors = on_ranks({name, name, name}, [&](Context& context) {
            std::vector<double> mine(6000, 1.0 + context.rank()), sum(2000);
            PatternCall call;
            call.kind = PatternKind::multi_reduce;
            call.in = row(mine);
            call.out = row(sum);
            start_pattern(context, std::move(call)).wait();
            EXPECT_EQ(sum, std::vector<double>(2000, 6.0));
            for (const auto& transfer : context.engine()->transfers.idle) {
                const auto& steps = transfer->combine().straight;
                ++transfers;
                straight += std::any_of(steps.begin(), steps.end(), [](std::int32_t step) { return step != 0; });
            }
        });
        EXPECT_EQ(errors, std::vector<std::string>(3));
        EXPECT_EQ(transfers, 3);
        EXPECT_EQ(straight, off ? 0 : 3);
    }
}

TEST(FastPaths, InTransport) {
    for (const bool off : {false, true}) {
        const std::string name = off ? "in_transport" : "";
        Counts counts;
        const auto errors = on_ranks(
            {name, name},
            [](Context& context) {
                Halo halo = Halo::of(2, 1);
                halo.grid = {1, 2};  // columns, which are packed
                Field<double> a(context, {50, 40}, halo, [](const Index& at) { return static_cast<double>(at[1]); });
                exchange(a);
            },
            &counts);
        EXPECT_EQ(errors, std::vector<std::string>(2));
        EXPECT_EQ(counts.asked > 0, !off);
    }
}

TEST(FastPaths, RowsTogetherAndLayers) {
    const auto [rows, jump] = rows_of_calls("");
    EXPECT_GT(rows, 1);
    EXPECT_GT(jump, 1);  // from a layer to the next
    const auto [rows_in_order, one] = rows_of_calls("layers");
    EXPECT_GT(rows_in_order, 1);
    EXPECT_EQ(one, 1);
    EXPECT_EQ(rows_of_calls("rows_together"), (std::pair{1, 0}));
}
