#include "predict/copy_cost.hpp"

namespace tilewave {

std::int64_t contiguous_bytes(const Array& array, const Box& region) {
    std::int64_t run = array.item_bytes, dense = 1;
    for (int k = region.dims() - 1; k >= 0; --k) {
        const std::int64_t stride = array.stride.n > 0 ? array.stride[k] : dense;
        if (region.extent(k) > 1 && stride * array.item_bytes != run) break;
        if (region.extent(k) > 1) run *= region.extent(k);
        dense *= array.storage.extent(k);
    }
    return run;
}

double copy_s(const Array& array, const Message& m, const Machine& machine) {
    const std::int64_t run = contiguous_bytes(array, m.region);
    return static_cast<double>(m.bytes) * machine.copy_byte_s.at(static_cast<double>(run));
}

}  // namespace tilewave
