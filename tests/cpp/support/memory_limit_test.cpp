// The test program's operator new, which support/memory_limit.hpp can make fail.
#include "support/memory_limit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace tilewave {
namespace {

constexpr std::int64_t unlimited = -1;
thread_local std::int64_t left = unlimited;  // allocations that are granted
thread_local std::uint64_t least = 0;        // bytes of those that count
thread_local bool failed = false;

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
bool memory_can_end() {
    return false;
}
#else
bool memory_can_end() {
    return true;
}

namespace {

void* allocate(std::size_t bytes, std::size_t align) noexcept {
    if (left != unlimited && bytes >= least) {
        failed = failed || left == 0;
        if (left == 0) return nullptr;
        --left;
    }
    bytes = std::max<std::size_t>(bytes, 1);
    return align <= alignof(std::max_align_t) ? std::malloc(bytes)
                                              : std::aligned_alloc(align, (bytes + align - 1) / align * align);
}

}  // namespace
#endif

MemoryLimit::MemoryLimit(std::int64_t granted, std::uint64_t large) {
    left = granted;
    least = large;
    failed = false;
}

MemoryLimit::~MemoryLimit() {
    left = unlimited;
}

bool MemoryLimit::reached() const {
    return failed;
}

TEST(MemoryLimit, FailsFromSomeAllocationOn) {
    if (!memory_can_end()) GTEST_SKIP() << "a sanitizer's operator new ends the program in place of throwing";
    const MemoryLimit limit(1);
    EXPECT_NO_THROW(std::make_unique<char[]>(100));
    EXPECT_NO_THROW(std::make_unique<char[]>(100000));
    EXPECT_FALSE(limit.reached());
    EXPECT_THROW(std::make_unique<char[]>(100000), std::bad_alloc);
    EXPECT_TRUE(limit.reached());
}

}  // namespace tilewave

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t bytes) {
    if (void* const memory = tilewave::allocate(bytes, 0)) return memory;
    throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t align) {
    if (void* const memory = tilewave::allocate(bytes, static_cast<std::size_t>(align))) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
#endif
