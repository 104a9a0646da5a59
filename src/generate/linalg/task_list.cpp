#include "generate/linalg/task_list.hpp"

#include <algorithm>

#include "schedule/compose.hpp"

namespace tilewave {

Schedule TaskList::finish() {
    if (s_.works.empty())  // without works arrays lie by rows, and none of these is touched
        for (Array& array : s_.arrays) array.stride = {};
    sort_works(s_);
    std::ranges::sort(s_.results, [](const Result& a, const Result& b) { return a.number < b.number; });
    return std::move(s_);
}

}  // namespace tilewave
