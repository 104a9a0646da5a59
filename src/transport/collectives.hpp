// Collectives on a binomial tree that tilewave/engine/transport.hpp does not have; O(log ranks) latencies.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tilewave/engine/transport.hpp"

namespace tilewave {

/// `bytes` of all ranks, combined, on every rank: `combine()` adds `other`, the bytes of higher ranks, to `bytes`. All
/// give equally many; `other` has room for as many.
void allreduce(Transport& transport, std::span<std::byte> bytes, std::span<std::byte> other,
               const std::function<void()>& combine);

/// The same for values: combine(local, other) for each two spans of as many.
template <class T, class Combine>
void allreduce(Transport& transport, std::vector<T>& values, Combine combine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> other(values.size());
    allreduce(transport, std::as_writable_bytes(std::span(values)), std::as_writable_bytes(std::span(other)),
              [&] { combine(values, other); });
}

/// What each rank gives, in rank order, on every rank. O(ranks) memory on each.
/// @throws std::bad_alloc
std::vector<std::string> allgather(Transport& transport, const std::string& local);

/// The first of `ranks` gives the others its `bytes`, which may be of any length. `ranks` alone take part, all with the
/// same list.
/// @pre the calling rank is in `ranks`
void broadcast_among(Transport& transport, const std::vector<int>& ranks, std::string& bytes);

}  // namespace tilewave
