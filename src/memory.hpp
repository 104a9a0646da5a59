// Memory of arrays.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tilewave {

/// Uninitialised memory of at least one byte, so that it is never null. It begins on a cache line: rows of
/// vectors then never straddle lines. Where it is large the system is asked for large pages: rows of a
/// tile lie a page and more apart, and there are more of them than a processor remembers pages.
std::shared_ptr<std::byte[]> aligned_memory(std::int64_t bytes);

}  // namespace tilewave
