// How boxes lie in memory.
#include <gtest/gtest.h>

#include "tilewave/engine/layout.hpp"

namespace tilewave {
namespace {

Box box_of(Index extents) {
    return {Index::filled(extents.n, 0), extents};
}

TEST(MemoryOrder, large_boxes_in_powers_of_two_lie_further_apart) {
    const MemoryOrder order = MemoryOrder::row_major(box_of({512, 512, 512}));
    EXPECT_GT(order.items, 512 * 512 * 512);
    EXPECT_NE(order.items % (1 << 20), 0);
    EXPECT_EQ(order.stride, (Index{512 * 512, 512, 1}));
    EXPECT_EQ(order.first, 0);
}

TEST(MemoryOrder, other_boxes_have_their_points_alone) {
    for (const Index extents : {Index{64, 64, 64}, Index{300, 301, 77}, Index{0, 512, 512}, Index{3, 1000, 1000}})
        EXPECT_EQ(MemoryOrder::row_major(box_of(extents)).items, box_of(extents).points());
}

}  // namespace
}  // namespace tilewave
