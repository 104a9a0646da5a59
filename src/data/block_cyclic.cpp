#include "tilewave/engine/block_cyclic.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/concat.hpp"

namespace tilewave {

namespace {

// Blocks of a period at most, about: more would fit the weights better by less than a part in a thousand.
constexpr std::int64_t most_blocks = 1024;

// Without a common divisor, and none above most_weight.
Weights reduced(Weights weights) {
    std::int64_t divisor = 0, largest = 0;
    for (const std::int64_t w : weights) divisor = std::gcd(divisor, w);
    for (std::int64_t& w : weights) largest = std::max(largest, w /= divisor);
    for (std::int64_t& w : weights)
        if (largest > most_weight)
            w = std::max(1LL, std::llround(static_cast<double>(w) / static_cast<double>(largest) * most_weight));
    return weights;
}

// Blocks of a period by part: as the weights say, or as nearly as so many blocks can.
Weights counts_of(const Weights& weights) {
    Weights counts = reduced(weights);
    const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0}),
                       most = std::max<std::int64_t>(most_blocks, 4 * std::ssize(weights));
    for (std::int64_t& n : counts)
        if (all > most) n = std::max<std::int64_t>(1, (n * most + all / 2) / all);
    return counts;
}

}  // namespace

struct Dealt {
    Weights weights;
    std::vector<int> owner;                         // of each block of a period
    std::vector<std::int64_t> before;               // of its owner, in the period
    std::vector<std::vector<std::int64_t>> blocks;  // of each part, in the period
    std::vector<std::int64_t> first = {};           // element of each part

    explicit Dealt(const Weights& given) : weights(given), blocks(given.size()) {
        // Block i of n of a part is in the middle of its n-th of the period: nearly even, whatever part of it is taken.
        const Weights counts = counts_of(given);
        std::vector<std::pair<std::int64_t, std::size_t>> order;  // (2 i + 1, part)
        for (std::size_t p = 0; p < counts.size(); ++p)
            for (std::int64_t i = 0; i < counts[p]; ++i) order.emplace_back(2 * i + 1, p);
        std::ranges::sort(order, [&](const auto& a, const auto& b) {
            const std::int64_t left = a.first * counts[b.second], right = b.first * counts[a.second];
            return left != right ? left < right : a.second < b.second;
        });
        for (const auto& [middle, part] : order) {
            before.push_back(middle / 2);
            blocks[part].push_back(std::ssize(owner));
            owner.push_back(static_cast<int>(part));
        }
    }
    std::int64_t period() const { return std::ssize(owner); }
};

Axis::Axis(std::int64_t extent, int parts, std::int64_t block, const Weights& weights)
    : extent(extent), parts(parts), block(block) {
    const auto allowed = [](std::int64_t weight) { return weight >= 1 && weight <= most_weight; };
    if (!weights.empty() && (std::ssize(weights) != parts || block < 1 || !std::ranges::all_of(weights, allowed)))
        throw ConfigError(concat("an axis of ", parts, " parts in blocks of ", block, " was given with weights ",
                                 to_string(weights), "; allowed: blocks >= 1, and for each part an integer from 1 to ",
                                 most_weight));
    const bool turns = std::ranges::adjacent_find(weights, std::not_equal_to()) == weights.end();
    std::shared_ptr<Dealt> dealt;
    if (!turns) dealt = std::make_shared<Dealt>(weights);
    if (extent < 0 || parts < 1 || block < 0 ||
        block > std::numeric_limits<std::int64_t>::max() / (dealt ? dealt->period() : parts))
        throw ConfigError(concat("an axis of ", extent, " elements on ", parts, " parts in blocks of ", block,
                                 " was given; allowed: elements >= 0, parts >= 1, blocks >= 0, a round of blocks ",
                                 "below 2^63"));
    if (turns) return;
    dealt_ = dealt;
    for (int p = 0; p < parts; ++p) dealt->first.push_back(p == 0 ? 0 : dealt->first[p - 1] + count(p - 1));
}

Weights Axis::weights() const {
    return dealt_ ? dealt_->weights : Weights();
}

std::int64_t Axis::period() const {
    return dealt_ ? dealt_->period() : parts;
}

std::vector<std::int64_t> Axis::blocks_of(int part) const {
    return dealt_ ? dealt_->blocks[part] : std::vector<std::int64_t>{part};
}

int Axis::part_of(GlobalElement g) const {
    if (block == 0) return static_cast<int>(block_with(extent, parts, g.at));
    if (dealt_) return dealt_->owner[g.at / block % dealt_->period()];
    return static_cast<int>(g.at / block % parts);
}

LocalElement Axis::local_of(GlobalElement g) const {
    if (block == 0) return {g.at - block_start(extent, parts, part_of(g))};
    if (!dealt_) return {g.at / block / parts * block + g.at % block};
    const std::int64_t number = g.at / block, at = number % dealt_->period();
    const std::int64_t round = std::ssize(dealt_->blocks[dealt_->owner[at]]);
    return {(number / dealt_->period() * round + dealt_->before[at]) * block + g.at % block};
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
    const std::int64_t number = l.at / block;
    if (!dealt_) return {(number * parts + part) * block + l.at % block};
    const std::vector<std::int64_t>& blocks = dealt_->blocks[part];
    const std::int64_t n = std::ssize(blocks);
    return {(number / n * dealt_->period() + blocks[number % n]) * block + l.at % block};
}

std::int64_t Axis::before(int part, GlobalElement g) const {
    if (block == 0) {
        const std::int64_t lo = block_start(extent, parts, part);
        return std::clamp<std::int64_t>(g.at - lo, 0, block_start(extent, parts, part + 1) - lo);
    }
    const std::int64_t round = block * period(), rest = g.at % round;
    if (!dealt_) return g.at / round * block + std::clamp<std::int64_t>(rest - part * block, 0, block);
    const std::vector<std::int64_t>& blocks = dealt_->blocks[part];
    const std::int64_t whole = std::ranges::lower_bound(blocks, rest / block) - blocks.begin();
    const bool within = dealt_->owner[rest / block] == part;
    return (g.at / round * std::ssize(blocks) + whole) * block + (within ? rest % block : 0);
}

std::int64_t Axis::first(int part) const {
    if (block == 0) return block_start(extent, parts, part);
    if (dealt_) return dealt_->first[part];
    const std::int64_t round = block * parts, rest = extent % round;
    return extent / round * block * part + std::min(rest, part * block);
}

bool Axis::same(const Axis& other) const {
    if (extent != other.extent || parts != other.parts) return false;
    if (parts == 1) return true;
    if (block == other.block && (dealt_ ? other.dealt_ && dealt_->owner == other.dealt_->owner : !other.dealt_))
        return true;
    for (int p = 0; p < parts; ++p)  // of different kinds, but one block each
        if (count(p) != other.count(p) || first(p) != other.first(p)) return false;
    const auto one_block = [&](const Axis& a) { return a.block == 0 || (!a.dealt_ && a.block * a.parts >= a.extent); };
    return one_block(*this) && one_block(other);
}

Box BlockCyclic::owned(int rank) const {
    const int i = row_of(rank), j = column_of(rank);
    if (i < 0) return {{0, 0}, {0, 0}};
    const Index lo{rows.first(i), columns.first(j)};
    return {lo, lo + Index{rows.count(i), columns.count(j)}};
}

BlockCyclic BlockCyclic::in_proportion(const Weights& weights) const {
    if (!weights.empty() && std::ssize(weights) < ranks())
        throw ConfigError(concat("weights ", to_string(weights), " were given for a grid of ", ranks(), " ranks; ",
                                 "allowed: one for each"));
    const auto dealt = [&](const Axis& a, int (BlockCyclic::*part_of)(int) const) {
        Weights sums(weights.empty() || a.parts == 1 ? 0 : a.parts);
        for (int rank = 0; rank < (sums.empty() ? 0 : ranks()); ++rank) sums[(this->*part_of)(rank)] += weights[rank];
        return Axis(a.extent, a.parts, a.block, reduced(sums));
    };
    return {dealt(rows, &BlockCyclic::row_of), dealt(columns, &BlockCyclic::column_of), ranks_by_column};
}

Weights BlockCyclic::weights() const {
    const Weights of_rows = rows.weights(), of_columns = columns.weights();
    if (of_rows.empty() && of_columns.empty()) return {};
    Weights all;
    for (int rank = 0; rank < ranks(); ++rank)
        all.push_back((of_rows.empty() ? 1 : of_rows[row_of(rank)]) *
                      (of_columns.empty() ? 1 : of_columns[column_of(rank)]));
    return all;
}

bool BlockCyclic::same(const BlockCyclic& other) const {
    if (!rows.same(other.rows) || !columns.same(other.columns)) return false;
    return rows.parts == 1 || columns.parts == 1 || ranks_by_column == other.ranks_by_column;
}

}  // namespace tilewave
