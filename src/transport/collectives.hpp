// Collectives up and down a binomial tree, beside those of tilewave/engine/transport.hpp. Collective; O(log ranks)
// latencies.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tilewave/engine/transport.hpp"

namespace tilewave {

/// Every rank gets what all have given, joined: `join(mine, other)` takes what higher ranks have given into `mine`.
/// All give equally many bytes, and join keeps their number.
void allreduce(Transport& transport, std::string& bytes,
               const std::function<void(std::string& mine, const std::string& other)>& join);

/// What each rank gives, in rank order, on every rank. O(ranks) memory on each.
/// @throws std::bad_alloc
std::vector<std::string> allgather(Transport& transport, const std::string& mine);

/// The first of `ranks` gives the others its `bytes`, which may be of any length. `ranks` alone take part, all with the
/// same list.
/// @pre the calling rank is in `ranks`
void broadcast_among(Transport& transport, const std::vector<int>& ranks, std::string& bytes);

}  // namespace tilewave
