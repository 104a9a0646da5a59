#include "data/memory.hpp"
#include "data/tuning.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tilewave {

using namespace tuning;

namespace {

#if defined(__linux__) && defined(MADV_HUGEPAGE)
// Asks for large pages, unless the first few show that the system has to make room for them: of 336 MB
// that took 1.35 s, where small pages took 0.22.
void ask_for_large_pages(std::byte* memory, std::size_t size) {
    size = size / large_page * large_page;
    if (madvise(memory, size, MADV_HUGEPAGE) != 0) return;
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t k = 0; k < std::min(size / large_page, tried_large_pages); ++k)
        static_cast<volatile std::byte*>(memory)[k * large_page] = std::byte{0};
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (passed > tried_large_pages * slow_large_page_s) (void)madvise(memory, size, MADV_NOHUGEPAGE);
}
#endif

}  // namespace

std::shared_ptr<std::byte[]> aligned_memory(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    const auto align =
        static_cast<std::align_val_t>(size < 2 * large_page ? std::size_t{cache_line_bytes} : large_page);
    auto* const memory = new (align) std::byte[size];
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size >= 2 * large_page) ask_for_large_pages(memory, size);
#endif
    return {memory, [align](std::byte* p) { ::operator delete[](p, align); }};
}

std::shared_ptr<std::byte[]> staging_memory(std::int64_t bytes) {
    constexpr std::int64_t half = page_bytes / 2;
    if (bytes < half) return aligned_memory(bytes);
    constexpr auto align = static_cast<std::align_val_t>(page_bytes);
    auto* const memory = new (align) std::byte[bytes + half];
    return {memory + half, [](std::byte* p) { ::operator delete[](p - half, align); }};
}

std::shared_ptr<std::byte[]> SpareMemory::lend(std::int64_t bytes) {
    Block block = find(bytes);
    std::byte* const memory = block.memory.get();
    return {memory, [pool = shared_from_this(), block = std::move(block)](std::byte*) mutable {
                pool->take_back(std::move(block));
            }};
}

// A former one of at most twice the size, or new.
SpareMemory::Block SpareMemory::find(std::int64_t bytes) {
    std::scoped_lock guard(lock_);
    if (auto it = blocks_.lower_bound(bytes); it != blocks_.end() && it->first <= 2 * bytes) {
        Block block{it->first, std::move(it->second)};
        kept_ -= block.bytes;
        blocks_.erase(it);
        return block;
    }
    if (bytes < least_cut || bytes > large_block / 2) return {bytes, aligned_memory(bytes)};
    // Cut from one on large pages: another process that copies out of it takes half as long.
    bytes = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
    const auto large = aligned_memory(large_block);
    for (std::int64_t at = bytes; at < large_block; at += bytes, kept_ += bytes)
        blocks_.emplace(bytes, std::shared_ptr<std::byte[]>(large, large.get() + at));
    return {bytes, large};
}

void SpareMemory::take_back(Block block) {
    std::scoped_lock guard(lock_);
    if (block.bytes > most_) return;
    while (kept_ + block.bytes > most_) {
        kept_ -= blocks_.begin()->first;
        blocks_.erase(blocks_.begin());
    }
    kept_ += block.bytes;
    blocks_.emplace(block.bytes, std::move(block.memory));
}

}  // namespace tilewave
