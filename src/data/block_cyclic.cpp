#include "tilewave/engine/block_cyclic.hpp"

#include <algorithm>
#include <limits>

#include "tilewave/engine/layout.hpp"

namespace tilewave {

Axis::Axis(std::int64_t extent, int parts, std::int64_t block) : extent(extent), parts(parts), block(block) {
    if (extent < 0 || parts < 1 || block < 0 || block > std::numeric_limits<std::int64_t>::max() / parts)
        throw ConfigError("an axis of " + std::to_string(extent) + " elements on " + std::to_string(parts) +
                          " parts in blocks of " + std::to_string(block) +
                          " was given; allowed: elements >= 0, parts >= 1, blocks >= 0, a round of blocks below 2^63");
}

int Axis::part_of(GlobalElement g) const {
    if (block == 0) return static_cast<int>(block_with(extent, parts, g.at));
    return static_cast<int>(g.at / block % parts);
}

LocalElement Axis::local_of(GlobalElement g) const {
    if (block == 0) return {g.at - block_start(extent, parts, part_of(g))};
    return {g.at / block / parts * block + g.at % block};
}

BlockNumber Axis::block_of(GlobalElement g) const {
    return {block == 0 ? block_with(extent, parts, g.at) : g.at / block};
}

GlobalElement Axis::block_end(GlobalElement g) const {
    if (block == 0) return {block_start(extent, parts, part_of(g) + 1)};
    return {std::min(extent, (g.at / block + 1) * block)};
}

GlobalElement Axis::global_of(int part, LocalElement l) const {
    if (block == 0) return {block_start(extent, parts, part) + l.at};
    return {(l.at / block * parts + part) * block + l.at % block};
}

std::int64_t Axis::before(int part, GlobalElement g) const {
    if (block == 0) {
        const std::int64_t lo = block_start(extent, parts, part);
        return std::clamp<std::int64_t>(g.at - lo, 0, block_start(extent, parts, part + 1) - lo);
    }
    const std::int64_t round = block * parts, rest = g.at % round;
    return g.at / round * block + std::clamp<std::int64_t>(rest - part * block, 0, block);
}

std::int64_t Axis::first(int part) const {
    if (block == 0) return block_start(extent, parts, part);
    const std::int64_t round = block * parts, rest = extent % round;
    return extent / round * block * part + std::min(rest, part * block);
}

bool Axis::same(const Axis& other) const {
    if (extent != other.extent || parts != other.parts) return false;
    if (parts == 1 || block == other.block) return true;
    for (int p = 0; p < parts; ++p)  // of different kinds, but one block each
        if (count(p) != other.count(p) || first(p) != other.first(p)) return false;
    const auto one_block = [&](const Axis& a) { return a.block == 0 || a.block * a.parts >= a.extent; };
    return one_block(*this) && one_block(other);
}

Box BlockCyclic::owned(int rank) const {
    const int i = row_of(rank), j = column_of(rank);
    if (i < 0) return {{0, 0}, {0, 0}};
    const Index lo{rows.first(i), columns.first(j)};
    return {lo, lo + Index{rows.count(i), columns.count(j)}};
}

bool BlockCyclic::same(const BlockCyclic& other) const {
    if (!rows.same(other.rows) || !columns.same(other.columns)) return false;
    return rows.parts == 1 || columns.parts == 1 || ranks_by_column == other.ranks_by_column;
}

}  // namespace tilewave
