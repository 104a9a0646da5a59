// Memory that ends on one thread of the test program, as it ends on one rank.
#pragma once
#include <cstdint>

namespace tilewave {

/// Whether this program can do that: a sanitizer has an operator new of its own.
bool memory_can_end();

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
