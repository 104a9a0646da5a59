#include "check/versions.hpp"

#include <algorithm>

#include "core/concat.hpp"

namespace tilewave {
namespace {

std::uint64_t key(std::int32_t high, std::int32_t low) {
    return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low);
}

}  // namespace

Version VersionTable::combine(Version left, Version right) {
    const auto [known, fresh] = known_.try_emplace(key(left, right), first_pair_ + static_cast<Version>(pairs_.size()));
    if (fresh) pairs_.push_back({left, right, std::min(count(left) + count(right), most_leaves)});
    return known->second;
}

Versions VersionTable::leaves(Version version, std::size_t most) const {
    Versions found, open{version};  // not recursive: chains are as deep as there are ranks
    while (!open.empty() && found.size() < most) {
        const Version v = open.back();
        open.pop_back();
        if (v < first_pair_) {
            found.push_back(v);
        } else {
            open.push_back(pairs_[v - first_pair_].right);
            open.push_back(pairs_[v - first_pair_].left);
        }
    }
    return found;
}

bool VersionTable::joins(Version version, const Versions& wanted) {
    if (count(version) != static_cast<std::int64_t>(wanted.size())) return false;
    const auto list = lists_.try_emplace(wanted, static_cast<std::uint32_t>(lists_.size())).first->second;
    const auto [known, fresh] = joins_.try_emplace(key(version, static_cast<std::int32_t>(list)), false);
    if (fresh) known->second = leaves(version, wanted.size()) == wanted;
    return known->second;
}

std::string VersionTable::text(Version version) const {
    constexpr std::size_t shown = 32;
    return text(leaves(version, shown), count(version));
}

std::string VersionTable::text(const Versions& leaves, std::int64_t count) const {
    auto array_of = [&](Version v) { return v < arrays_ ? -1 : v % arrays_; };  // -1: no version of an array
    auto rank_of = [&](Version v) { return v / arrays_ - 1; };
    auto one = [&](Version v) -> std::string {
        if (v == missing) return "nothing";
        if (v < missing) return "computed values";
        if (array_of(v) < 0) return concat("the values given in array ", v);
        return concat("the values of array ", array_of(v), " of rank ", rank_of(v));
    };
    if (count == 1) return one(leaves[0]);
    const int array = leaves[0] < 0 ? -1 : array_of(leaves[0]);
    const bool same_array = array >= 0 && std::ranges::all_of(leaves, [&](Version v) { return array_of(v) == array; });
    std::string text = same_array ? concat("the values of array ", array, " of ranks ") : "";
    for (std::size_t i = 0; i < leaves.size(); ++i)
        text += (i ? ", " : "") + (same_array ? std::to_string(rank_of(leaves[i])) : one(leaves[i]));
    if (count > static_cast<std::int64_t>(leaves.size())) text += concat(", ... (", count, " in all)");
    return text + " combined";
}

}  // namespace tilewave
