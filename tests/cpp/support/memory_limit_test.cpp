// The test program's operator new, which support/memory_limit.hpp can make fail.
#include "support/memory_limit.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace tilewave {
namespace {

thread_local MemoryGrant grant;
thread_local std::int64_t in_use = 0, most_in_use = 0;  // bytes

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
    if (grant.left >= 0 && bytes >= grant.least) {
        grant.failed = grant.failed || grant.left == 0;
        if (grant.left == 0) return nullptr;
        --grant.left;
    }
    bytes = std::max<std::size_t>(bytes, 1);
    void* const memory = align <= alignof(std::max_align_t)
                             ? std::malloc(bytes)
                             : std::aligned_alloc(align, (bytes + align - 1) / align * align);
    in_use += static_cast<std::int64_t>(malloc_usable_size(memory));
    most_in_use = std::max(most_in_use, in_use);
    return memory;
}

void release(void* memory) noexcept {
    in_use -= static_cast<std::int64_t>(malloc_usable_size(memory));
    std::free(memory);
}

}  // namespace
#endif

std::int64_t bytes_in_use() {
    return in_use;
}
std::int64_t most_bytes_in_use() {
    return most_in_use;
}
void reset_most_bytes() {
    most_in_use = in_use;
}

MemoryGrant& memory_grant() {
    return grant;
}

MemoryLimit::MemoryLimit(std::int64_t granted, std::uint64_t large) {
    grant = {granted, large, false};
}

MemoryLimit::~MemoryLimit() {
    grant.left = -1;
}

bool MemoryLimit::reached() const {
    return grant.failed;
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
    tilewave::release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    tilewave::release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    tilewave::release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    tilewave::release(memory);
}
#endif
