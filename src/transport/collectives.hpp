// Collectives on a binomial tree that tilewave/engine/transport.hpp does not have; O(log ranks) latencies.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tilewave/engine/transport.hpp"

namespace tilewave {

/// Waits until n transfers are over that have been posted to `peer`, or number 0 to `peer` and number 1 to `other`.
/// @throws MpiError, also where one of these has ended
void wait_all(Transport& transport, int n, int peer, int other = -1);

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

/// So many ranks that follow each other have given the same.
struct Given {
    std::string text;
    std::int64_t ranks = 1;
};

/// What each rank gives, in rank order, on every rank. Memory for what differs between neighbours.
/// @throws std::bad_alloc
std::vector<Given> allgather(Transport& transport, const std::string& local);

/// The first of `ranks` gives the others its `bytes`, which may be of any length. `ranks` alone take part, all with the
/// same list.
/// @pre the calling rank is in `ranks`
void broadcast_among(Transport& transport, const std::vector<int>& ranks, std::string& bytes);

}  // namespace tilewave
