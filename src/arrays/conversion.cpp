#include "arrays/conversion.hpp"

#include "execute/executor.hpp"

#include <algorithm>

#include "arrays/tuning.hpp"
#include "data/rows.hpp"
#include "execute/lanes/lanes.hpp"

namespace tilewave {

void copy_on_lanes(Context& context, std::byte* to, const Index& to_stride, const std::byte* from,
                   const Index& from_stride, const Index& extents, std::int64_t item_bytes) {
    std::int64_t bytes = item_bytes;
    for (auto n : extents) bytes *= n;
    const int parts = bytes < tuning::large_copy_bytes || context.options().crowded
                          ? 1
                          : static_cast<int>(std::min<std::int64_t>(context.threads(), extents[0]));
    const auto part = [&](int lane) {
        const std::int64_t lo = extents[0] * lane / parts, hi = extents[0] * (lane + 1) / parts;
        Index some = extents;
        some[0] = hi - lo;
        copy_box(to + lo * to_stride[0], to_stride, from + lo * from_stride[0], from_stride, some, item_bytes);
    };
    if (parts == 1) return part(0);
    context.lanes().run(parts, [&](int lane) {
        if (lane < parts) part(lane);
    });
}

}  // namespace tilewave
