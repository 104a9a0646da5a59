#include "generate/linalg/column_rounds.hpp"

#include <algorithm>

namespace tilewave {

namespace {
constexpr int columns_at_once = 2;
}

ColumnRounds::ColumnRounds(TaskList& list, const RankGroup& group, std::int64_t item_bytes, std::int64_t columns,
                           std::int64_t rows, std::int64_t items, int tag_kind, int tag_kinds)
    : list_(list),
      group_(group),
      rows_(rows),
      items_(items),
      tag_kind_(tag_kind),
      tag_kinds_(tag_kinds),
      array_(static_cast<std::int32_t>(list.schedule().arrays.size())) {
    int rest = group.size;
    for (int f = 2; rest > 1; ++f)
        for (; rest % f == 0; rest /= f) factors_.push_back(f);
    const std::int64_t all = group.me < 0 ? 0 : columns;
    Array array{item_bytes, {{0, 0, 0, 0}, {all, works(), rows, items}}, {{0, 0, 0, 0}, {0, 0, 0, 0}}};
    if (all == 0) array.storage = array.owned;
    array.time_buffers = static_cast<int>(std::clamp<std::int64_t>(columns, 1, columns_at_once));
    list.schedule().arrays.push_back(array);
}

// Ranks that differ in one digit, counted in the factors of the rounds.
std::vector<int> ColumnRounds::members(int round) const {
    int step = 1;
    for (int r = 0; r < round; ++r) step *= factors_[r];
    const int first = group_.me - group_.me / step % factors_[round] * step;
    std::vector<int> all;
    for (int i = 0; i < factors_[round]; ++i) all.push_back(first + i * step);
    return all;
}

std::vector<Region> ColumnRounds::values(std::int64_t column, int round) const {
    std::vector<Region> all;
    for (const int rank : members(round)) all.push_back(at(column, round, rank));
    return all;
}

void ColumnRounds::exchange(std::int64_t column, int round) {
    const int tag = static_cast<int>((column % columns_at_once) * rounds() + round) * tag_kinds_ + tag_kind_;
    std::vector<int> receives, sends;
    for (const int other : members(round))
        if (other != group_.me)
            receives.push_back(list_.post(false, group_.rank(other), tag, array_, at(column, round, other).box));
    for (const int other : members(round))
        if (other != group_.me)
            sends.push_back(list_.post(true, group_.rank(other), tag, array_, at(column, round, group_.me).box));
    list_.wait(0, receives);
    list_.wait(0, sends);
}

}  // namespace tilewave
