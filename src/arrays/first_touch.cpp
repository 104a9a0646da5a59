#include "arrays/first_touch.hpp"

#include <algorithm>
#include <limits>

#include "arrays/tuning.hpp"
#include "data/memory.hpp"
#include "data/tuning.hpp"
#include "execute/executor.hpp"
#include "execute/lanes/lanes.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// Bytes of each page by lanes.
class PageShares {
public:
    PageShares(std::int64_t bytes, std::int64_t page, std::size_t lanes)
        : bytes_(bytes), page_(page), lanes_(lanes), shares_(static_cast<std::size_t>(ceil_div(bytes, page)) * lanes) {}

    // Bytes [lo, hi), as far as they are within the memory.
    void add(std::int64_t lo, std::int64_t hi, std::size_t lane) {
        lo = std::max<std::int64_t>(lo, 0);
        hi = std::min(hi, bytes_);
        for (std::int64_t end; lo < hi; lo = end) {
            end = std::min(hi, (lo / page_ + 1) * page_);
            shares_[static_cast<std::size_t>(lo / page_) * lanes_ + lane] += end - lo;
        }
    }
    std::vector<int> most() const {
        std::vector<int> found;
        for (auto page = shares_.begin(); page != shares_.end(); page += static_cast<std::ptrdiff_t>(lanes_)) {
            const auto best = std::max_element(page, page + static_cast<std::ptrdiff_t>(lanes_));
            const int before = found.empty() ? 0 : found.back();
            found.push_back(*best > 0 ? static_cast<int>(best - page) : before);
        }
        return found;
    }

private:
    std::int64_t bytes_, page_;
    std::size_t lanes_;
    std::vector<std::int64_t> shares_;
};

// The runs of a box along the dimension with the least distance between neighbours.
template <class F>
void for_each_run(const Box& box, const Index& origin, const Index& stride, std::int64_t item_bytes, F f) {
    int along = -1;
    for (int k = 0; k < box.dims(); ++k)
        if (stride[k] != 0 && (along < 0 || std::abs(stride[k]) < std::abs(stride[along]))) along = k;
    Index at = box.lo;
    while (true) {
        std::int64_t lo = 0;
        for (int k = 0; k < box.dims(); ++k) lo += (at[k] - origin[k]) * stride[k];
        const std::int64_t last = lo + (along < 0 ? 0 : (box.extent(along) - 1) * stride[along]);
        f(std::min(lo, last), std::max(lo, last) + item_bytes);
        int k = box.dims() - 1;
        for (; k >= 0; --k) {
            if (k == along) continue;
            if (++at[k] < box.hi[k]) break;
            at[k] = box.lo[k];
        }
        if (k < 0) return;
    }
}

}  // namespace

FirstTouch FirstTouch::by_tiles(const Schedule& schedule, int array, const Binding& memory, const std::byte* begin,
                                std::int64_t bytes, std::int64_t page) {
    const Array& a = schedule.arrays[array];
    Index stride = memory.stride_bytes;
    if (a.time_buffers > 0) stride[0] = 0;
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const Tile& t : schedule.tiles)
        if (!t.box.empty()) first = std::min(first, t.box.lo[0]);
    PageShares shares(bytes, page, std::max<std::size_t>(schedule.lanes.size(), 1));
    for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane)
        for (const Step& step : schedule.lanes[lane]) {
            if (step.op != Op::compute) continue;
            Box box = schedule.tiles[step.item].box;
            if (box.empty() || box.dims() != a.storage.dims() || (a.time_buffers > 0 && box.lo[0] > first)) continue;
            box = a.elements(box);
            if (a.time_buffers > 0) box.hi[0] = box.lo[0] + 1;
            for_each_run(box, a.storage.lo, stride, a.item_bytes, [&](std::int64_t lo, std::int64_t hi) {
                const std::int64_t before = memory.data - begin;
                shares.add(before + lo, before + hi, lane);
            });
        }
    return {bytes, page, shares.most()};
}

FirstTouch FirstTouch::evenly(int lanes, std::int64_t bytes, std::int64_t page) {
    FirstTouch found{bytes, page, {}};
    const std::int64_t count = ceil_div(bytes, page);
    for (std::int64_t p = 0; p < count; ++p) found.lanes.push_back(static_cast<int>(p * lanes / count));
    return found;
}

void FirstTouch::make(Lanes& with, std::byte* begin, int buffers) const {
    if (lanes.empty()) return;
    with.run(*std::ranges::max_element(lanes) + 1, [&](int lane) {
        for (std::int64_t b = 0; b < buffers; ++b)
            for (std::size_t p = 0; p < lanes.size(); ++p) {
                const std::int64_t lo = static_cast<std::int64_t>(p) * page, hi = std::min(lo + page, bytes);
                for (std::int64_t at = lo; at < hi && lanes[p] == lane; at += page_bytes)  // large ones may not be had
                    static_cast<volatile std::byte*>(begin)[b * bytes + at] = std::byte{0};
            }
    });
}

std::int64_t page_of(std::int64_t bytes) {
    const auto large = static_cast<std::int64_t>(large_page);
    return bytes < 2 * large ? page_bytes : large;
}

bool touch_matters(Context& context, std::int64_t bytes) {
    return context.nodes() > 1 && context.threads() > 1 && !context.options().crowded && bytes >= large_copy_bytes;
}

}  // namespace tilewave
