// The C++ blocks of the documentation, as they stand there, on ranks as threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "cpp/multigrid.hpp"
#include "support/blas.hpp"
#include "support/ranks.hpp"
#include "tilewave/linalg.hpp"
#include "tilewave/tilewave.hpp"

namespace tilewave {

// Of the rank that this thread is.
thread_local std::unique_ptr<Transport> transport_of_rank;

std::unique_ptr<Transport> make_transport_of_rank() {
    return std::move(transport_of_rank);
}

}  // namespace tilewave

// Programs have ranks that are threads, and the library that tests have.
#define make_mpi_transport make_transport_of_rank
#define use_blas(library) use_blas(tilewave::blas_of_tests())
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
namespace {
#include "documentation/blocks.inc"
}  // namespace
#undef use_blas

namespace tilewave {

TEST(Docs, ProgramsRun) {
    EXPECT_FALSE(programs.empty());
    for (const auto& [name, program] : programs) {
        LocalFabric fabric(2);
        std::vector<std::thread> all;
        for (int r = 0; r < 2; ++r)
            all.emplace_back([&, r, name = name, program = program] {
                transport_of_rank = fabric.endpoint(r);
                EXPECT_NO_THROW(program()) << name;
            });
        for (auto& each : all) each.join();
    }
}

TEST(Docs, StatementsRun) {
    if (!have_blas()) GTEST_SKIP() << "no BLAS; TILEWAVE_BLAS names one";
    EXPECT_FALSE(statements.empty());
    for (const auto& [name, block] : statements)
        for (const int ranks : {1, 3}) on_ranks(ranks, [&, block = block](Context& context) { block(context, 40); });
}

}  // namespace tilewave
