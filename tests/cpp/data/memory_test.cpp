// Memory that is lent: what comes back is lent again, and no more is kept than is allowed.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "data/memory.hpp"

namespace tilewave {
namespace {

TEST(SpareMemory, what_comes_back_is_lent_again) {
    const auto spare = std::make_shared<SpareMemory>(std::int64_t{64} << 20);
    for (const std::int64_t bytes : {100, 5000, 40000, 3 << 20, 10 << 20}) {
        std::byte* first;
        {
            const auto one = spare->lend(bytes), other = spare->lend(bytes);
            first = one.get();
            one[bytes - 1] = other[bytes - 1] = std::byte{1};
            EXPECT_TRUE(other.get() + bytes <= first || first + bytes <= other.get())
                << bytes << " bytes twice, not apart";
        }
        const auto a = spare->lend(bytes), b = spare->lend(bytes);
        if (bytes >= 1 << 20 || bytes < 32 << 10) EXPECT_TRUE(a.get() == first || b.get() == first) << bytes;
    }
}

TEST(SpareMemory, pieces_of_one_block_are_apart) {
    const auto spare = std::make_shared<SpareMemory>(std::int64_t{64} << 20);
    std::vector<std::shared_ptr<std::byte[]>> held;
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < 100; ++i) {
        sizes.push_back(33000 + 1777 * i);
        held.push_back(spare->lend(sizes.back()));
        std::fill_n(held.back().get(), sizes.back(), std::byte(i));
    }
    for (std::size_t i = 0; i < held.size(); ++i)
        for (const std::int64_t at : {std::int64_t{0}, sizes[i] / 2, sizes[i] - 1})
            ASSERT_EQ(held[i][at], std::byte(i)) << "block " << i;
}

TEST(SpareMemory, little_does_not_take_a_large_block) {
    const auto spare = std::make_shared<SpareMemory>(std::int64_t{64} << 20);
    for (const std::int64_t bytes : {8 << 20, 16 << 20}) (void)spare->lend(bytes);
    EXPECT_EQ(spare->kept_bytes(), 24 << 20);
    const auto little = spare->lend(1000), half = spare->lend(8 << 20);
    EXPECT_EQ(spare->kept_bytes(), 16 << 20);
    const auto other_half = spare->lend(8 << 20);
    EXPECT_EQ(spare->kept_bytes(), 0) << "at most twice as large";
}

TEST(SpareMemory, keeps_no_more_than_it_may) {
    auto spare = std::make_shared<SpareMemory>(10 << 20);
    {
        std::vector<std::shared_ptr<std::byte[]>> held;
        for (int i = 0; i < 4; ++i) held.push_back(spare->lend(5 << 20));
        held.push_back(spare->lend(11 << 20));
        EXPECT_EQ(spare->kept_bytes(), 0);
    }
    EXPECT_EQ(spare->kept_bytes(), 10 << 20);
    auto held = spare->lend(5 << 20);
    EXPECT_EQ(spare->kept_bytes(), 5 << 20);
    std::weak_ptr<SpareMemory> pool = spare;
    spare.reset();
    EXPECT_FALSE(pool.expired()) << "what is lent holds it";
    held.reset();
    EXPECT_TRUE(pool.expired());
}

TEST(SpareMemory, any_thread) {
    const auto spare = std::make_shared<SpareMemory>(1 << 20);
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 2000; ++i) {
                const std::int64_t bytes = 1000 + (i * 37 + t * 911) % 90000;
                const auto memory = spare->lend(bytes);
                memory[0] = memory[bytes - 1] = std::byte(t);
                std::this_thread::yield();
                if (memory[0] != std::byte(t) || memory[bytes - 1] != std::byte(t)) ++wrong;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tilewave
