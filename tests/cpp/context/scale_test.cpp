// What calls need of a rank's memory does not grow with the number of ranks.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "context/agreement.hpp"
#include "support/blas.hpp"
#include "support/fibers.hpp"
#include "support/memory_limit.hpp"
#include "tilewave/tilewave.hpp"

using namespace tilewave;

namespace {

constexpr auto upwards = reads({-1, 0}, {0, -1});

// Bytes a rank that stay after a call, and that it took at most, by its name.
using Bytes = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

Bytes bytes_of(int ranks) {
    LocalFabric fabric(ranks);
    Bytes bytes;
    const bool blas = have_blas();
    std::int64_t before = bytes_in_use();
    reset_most_bytes();
    const auto errors = Fibers::run(ranks, [&](int rank) {
        Context context(fabric.endpoint(rank), 1);
        const auto after = [&](const std::string& what) {
            barrier(context.transport());
            if (rank == 0) {
                if (!what.empty()) bytes[what] = {bytes_in_use() - before, most_bytes_in_use() - before};
                before = bytes_in_use();
                reset_most_bytes();
            }
            barrier(context.transport());
        };
        after("context");
        after("");
        agree(context, RankStatus{});
        after("agreement");
        std::vector<double> all(1000), part(10);
        const auto matrix = [](std::vector<double>& values) {
            const auto columns = static_cast<std::int64_t>(values.size());
            return MatrixView{reinterpret_cast<std::byte*>(values.data()), 1, columns, 8 * columns, Dtype::f8};
        };
        after("");
        PatternCall call;
        call.in = matrix(all);
        run_pattern(context, call, {});
        after("broadcast");
        call.kind = PatternKind::reduce;
        call.in = call.out = matrix(part);
        run_pattern(context, call, {});
        after("reduce");
        Halo halo = Halo::of(2, 1);
        halo.grid = Index{ranks, 1};
        FieldStorage field(context, Index{ranks * std::int64_t{10}, 10}, 8, halo);
        after("");
        for (int again = 0; again < 2; ++again) run_exchange(context, {.fields = {&field}});
        after("halos");
        Field<double> u(context, Index{ranks * std::int64_t{10}, 10}, [](const Index&) { return 1.0; });
        after("");
        PlanRequest plan;
        plan.grid = Index{ranks, 1};
        plan.mapping_dim = 1;
        plan.tile = Index{10, 5};
        run(
            context, {.over = Box{{1, 1}, {ranks * std::int64_t{10}, 10}}}, plan,
            [](auto x) { return 0.5 * x(-1, 0) + x(0, -1); }, writes<upwards>(u));
        after("nest");
        if (!blas) return;
        const Matrix<double> a(context, by_block_rows(10 * ranks, 16, ranks)),
            b(context, by_block_columns(16, 16, ranks, 1));
        Matrix<double> c(context, by_block_rows(10 * ranks, 16, ranks));
        after("");
        multiply(a, b, c, {.tree = BroadcastTree::least_rounds});
        after("product");
    });
    for (std::size_t r = 0; r < errors.size(); ++r) EXPECT_EQ(errors[r], "") << "rank " << r;
    for (auto& [what, both] : bytes) both = {both.first / ranks, both.second / ranks};
    return bytes;
}

}  // namespace

TEST(Scale, MemoryOfCallsDoesNotGrowWithTheRanks) {
    if (!memory_can_end()) GTEST_SKIP() << "a sanitizer has an operator new of its own";
    const char* const given = std::getenv("TILEWAVE_TEST_MANY_RANKS");
    const Bytes few = bytes_of(64), many = bytes_of(given ? std::atoi(given) : 256);
    EXPECT_GE(few.size(), 6u);
    for (const auto& [what, bytes] : many) {
        const auto [stay, most] = few.at(what);
        EXPECT_LE(static_cast<double>(bytes.first), 1.2 * static_cast<double>(stay) + 512) << what;
        EXPECT_LE(static_cast<double>(bytes.second), 1.2 * static_cast<double>(most) + 512) << what;
    }
}
