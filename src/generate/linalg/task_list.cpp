#include "generate/linalg/task_list.hpp"

#include <algorithm>
#include <numeric>

namespace tilewave {

Schedule TaskList::finish() {
    if (s_.works.empty())  // without works arrays lie by rows, and none of these is touched
        for (Array& array : s_.arrays) array.stride = {};
    std::vector<std::size_t> order(s_.works.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return s_.works[a].number < s_.works[b].number; });
    std::vector<std::int32_t> place(order.size());
    std::vector<Work> sorted;
    sorted.reserve(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        place[order[i]] = static_cast<std::int32_t>(i);
        sorted.push_back(std::move(s_.works[order[i]]));
    }
    s_.works = std::move(sorted);
    for (Tile& tile : s_.tiles) tile.work = place[tile.work];
    std::sort(s_.results.begin(), s_.results.end(),
              [](const Result& a, const Result& b) { return a.number < b.number; });
    return std::move(s_);
}

}  // namespace tilewave
