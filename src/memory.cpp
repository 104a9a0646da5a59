#include "memory.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tilewave {

namespace {

constexpr std::size_t large_page = std::size_t{2} << 20;

#if defined(__linux__) && defined(MADV_HUGEPAGE)
// Asks for large pages, unless the first few show that the system has to make room for them: of 336 MB
// that took 1.35 s, where small pages took 0.22.
void ask_for_large_pages(std::byte* memory, std::size_t size) {
    constexpr std::size_t tried = 4;
    constexpr double most_s = 2e-3;  // about what the small pages in place of one large cost
    size = size / large_page * large_page;
    if (madvise(memory, size, MADV_HUGEPAGE) != 0) return;
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t k = 0; k < std::min(size / large_page, tried); ++k) static_cast<volatile std::byte*>(memory)[k * large_page] = std::byte{0};
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (passed > tried * most_s) (void)madvise(memory, size, MADV_NOHUGEPAGE);
}
#endif

}  // namespace

std::shared_ptr<std::byte[]> aligned_memory(std::int64_t bytes) {
    constexpr std::size_t line = 64;
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    const auto align = static_cast<std::align_val_t>(size < 2 * large_page ? line : large_page);
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
    auto* const memory = new (align) std::byte[static_cast<std::size_t>(bytes + half)];
    return {memory + half, [](std::byte* p) { ::operator delete[](p - half, align); }};
}

}  // namespace tilewave
