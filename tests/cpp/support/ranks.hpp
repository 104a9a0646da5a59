// Ranks as threads of one process.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tilewave/tilewave.hpp"

namespace tilewave {

using Wrap = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;

/// Calls body(context) on each of some ranks; an exception of any fails the test.
template <class Body>
void on_ranks(int ranks, Body body, int threads = 1, const Wrap& wrap = {}) {
    LocalFabric fabric(ranks);
    std::vector<std::thread> all;
    std::mutex lock;
    std::vector<std::string> errors;
    for (int r = 0; r < ranks; ++r)
        all.emplace_back([&, r] {
            try {
                auto endpoint = fabric.endpoint(r);
                Context context(wrap ? wrap(std::move(endpoint)) : std::move(endpoint), threads);
                body(context);
            } catch (const std::exception& e) {
                std::scoped_lock guard(lock);
                errors.push_back("rank " + std::to_string(r) + ": " + e.what());
            }
        });
    for (auto& t : all) t.join();
    EXPECT_TRUE(errors.empty()) << errors.front();
}

}  // namespace tilewave
