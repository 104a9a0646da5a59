// Memory that all ranks of a call have, or none of them goes on.
#pragma once
#include <array>
#include <limits>
#include <new>
#include <string>

#include "tilewave/context.hpp"

namespace tilewave {

/// What a call needs on this rank, made by make(); all ranks have it after this. Collective; a small allreduce.
/// @throws OutOfResources on every rank where one has not the memory
template <class Make>
void get_ready(Context& context, const char* what, Make make) {
    Transport& t = context.transport();
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::array<std::int64_t, 1> first{none};
    std::array<std::int64_t, 2> room;
    try {
        make();
    } catch (const std::bad_alloc&) {
        first[0] = t.rank();
    }
    allreduce_min(t, first, room);
    if (first[0] != none)
        throw OutOfResources(std::string(what) + ": rank " + std::to_string(first[0]) +
                             " has not the memory; nothing was moved");
}

}  // namespace tilewave
