// Memory that ends on one thread of the test program, as it ends on one rank.
#pragma once
#include <cstdint>

namespace tilewave {

/// Whether this program can do that: a sanitizer has an operator new of its own.
bool memory_can_end();

/// Bytes that this thread has allocated and not freed, and the most since the last reset_most_bytes(). Those that
/// another thread frees stay.
std::int64_t bytes_in_use();
std::int64_t most_bytes_in_use();
void reset_most_bytes();

/// What operator new grants. Each thread has one; ranks that take turns on a thread exchange theirs for it.
struct MemoryGrant {
    std::int64_t left = -1;   // allocations that count; below 0: any number
    std::uint64_t least = 0;  // bytes of those that count
    bool failed = false;
};
MemoryGrant& memory_grant();

/// On this thread the allocation number `granted` of `large` bytes or more fails, from 0 on, and all of them after it,
/// until the object is gone. Smaller ones are always granted, as of a heap with some room in it.
class MemoryLimit {
public:
    explicit MemoryLimit(std::int64_t granted, std::uint64_t large = 24 << 10);
    ~MemoryLimit();
    MemoryLimit(const MemoryLimit&) = delete;
    MemoryLimit& operator=(const MemoryLimit&) = delete;
    /// Whether one has failed.
    bool reached() const;
};

}  // namespace tilewave
