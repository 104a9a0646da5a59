// Ranks as threads of one process.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tilewave/tilewave.hpp"

namespace tilewave {

using Wrap = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;

/// Calls body(context) on each of some ranks; gives the text of each rank's exception, or "".
template <class Body>
std::vector<std::string> errors_on_ranks(int ranks, Body body, int threads = 1, const Wrap& wrap = {}) {
    LocalFabric fabric(ranks);
    std::vector<std::thread> all;
    std::vector<std::string> errors(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r)
        all.emplace_back([&, r] {
            try {
                auto endpoint = fabric.endpoint(r);
                Context context(wrap ? wrap(std::move(endpoint)) : std::move(endpoint), threads);
                body(context);
            } catch (const std::exception& e) {
                errors[static_cast<std::size_t>(r)] = e.what();
            }
        });
    for (auto& t : all) t.join();
    return errors;
}

/// Calls body(context) on each of some ranks; an exception of any fails the test.
template <class Body>
void on_ranks(int ranks, Body body, int threads = 1, const Wrap& wrap = {}) {
    const auto errors = errors_on_ranks(ranks, body, threads, wrap);
    for (std::size_t r = 0; r < errors.size(); ++r) EXPECT_EQ(errors[r], "") << "rank " << r;
}

template <class Body>
void on_ranks(int ranks, int threads, Body body) {
    on_ranks(ranks, body, threads);
}

}  // namespace tilewave
