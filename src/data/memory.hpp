// Memory of arrays.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace tilewave {

/// Uninitialised memory of at least one byte, so that it is never null. It begins on a cache line: rows of
/// vectors then never straddle lines. Where it is large the system is asked for large pages: rows of a
/// tile are on different pages, more of them than the TLB holds.
std::shared_ptr<std::byte[]> aligned_memory(std::int64_t bytes);

/// Bytes of a page of memory, and of a line of the caches, of all processors that Tilewave knows.
inline constexpr std::int64_t page_bytes = 4096, cache_line_bytes = 64;

/// Uninitialised memory of at least one byte for what is copied from and to arrays, here and by other processes. From 2
/// KB on it begins in the middle of a page. A processor that copies in large steps takes loads for later than stores a
/// little before them in another page: where the target begins 1 to 31 bytes further in its page than the source, Zen 3
/// copies 1.3 GB/s instead of 25, and one process out of another 1.7 instead of 12. Arrays begin near the beginning of
/// a page.
std::shared_ptr<std::byte[]> staging_memory(std::int64_t bytes);

/// Lends memory and keeps what comes back for the next who asks: fresh memory costs more than to fill it. Any thread.
class SpareMemory : public std::enable_shared_from_this<SpareMemory> {
public:
    /// Keeps at most `most_bytes`, and one block cut into pieces.
    explicit SpareMemory(std::int64_t most_bytes) : most_(most_bytes) {}
    /// At least so many bytes, uninitialised; they come back when nobody holds them.
    std::shared_ptr<std::byte[]> lend(std::int64_t bytes);
    std::int64_t kept_bytes() const {
        std::scoped_lock guard(lock_);
        return kept_;
    }

private:
    struct Block {
        std::int64_t bytes;
        std::shared_ptr<std::byte[]> memory;
    };
    Block find(std::int64_t bytes);
    void take_back(Block block);

    std::int64_t most_, kept_ = 0;  // bytes
    mutable std::mutex lock_;
    std::multimap<std::int64_t, std::shared_ptr<std::byte[]>> blocks_;  // by bytes
};

}  // namespace tilewave
