// Fields that are laid out anew, on ranks as threads.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/ranks.hpp"
#include "tilewave/tilewave.hpp"

using namespace tilewave;

TEST(Field, StaysAsItWasWhereOneRankHasNotTheMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's operator new ends the program in place of throwing";
#endif
    const Index shape{6, 10};
    for (int p : {1, 2, 3})
        on_ranks(p, [&](Context& context) {
            Field<int> a(context, shape, [](const Index& x) { return static_cast<int>(10 * x[0] + x[1]); });
            const std::vector<int> before = a.gather();
            const Layout old = a.storage().layout(), other(shape, p == 1                    ? Index{1, 1}
                                                                  : old.grid == Index{p, 1} ? Index{1, p}
                                                                                            : Index{p, 1});
            const int version = a.storage().version();
            for (const Layout& layout : {old, other})
                for (int bad = 0; bad < p; ++bad) {
                    MemoryOrder order = MemoryOrder::row_major(layout.storage(context.rank()));
                    order.items += context.rank() == bad ? std::int64_t{1} << 50 : 1;
                    try {
                        a.storage().relayout(layout, order, 1, 7);
                        ADD_FAILURE() << "nothing was thrown";
                    } catch (const OutOfResources& e) {
                        EXPECT_NE(std::string(e.what()).find("memory ran out on rank " + std::to_string(bad)),
                                  std::string::npos)
                            << e.what();
                    }
                    EXPECT_EQ(a.storage().version(), version);
                    EXPECT_TRUE(a.gather() == before);
                }
            a.storage().relayout(other);
            EXPECT_TRUE(a.gather() == before);
        });
}

// Rank 0's own order of memory stays where rank 1's changes; both come to the same at the next call.
TEST(Field, HasAsManyTimeBuffersOnEveryRankWhereOneRanksOrderStays) {
    on_ranks(2, [&](Context& context) {
        Field<int> a(context, Index{6, 10}, [](const Index& x) { return static_cast<int>(10 * x[0] + x[1]); });
        const std::vector<int> before = a.gather();
        FieldStorage& field = a.storage();
        const Layout layout = field.layout();
        const MemoryOrder first = MemoryOrder::row_major(layout.storage(context.rank()));
        MemoryOrder other = first;
        other.items += context.rank();
        field.relayout(layout, first, 2, 1);
        const bool moved = field.relayout(layout, other, 1, 7);
        EXPECT_EQ(moved, context.rank() == 1);
        EXPECT_TRUE(field.stays(layout, 1, 7));
        EXPECT_FALSE(field.stays(layout, 2, 7)) << "rank " << context.rank();
        field.relayout(layout, other, 2, 7);  // with one barrier that both ranks take part in
        EXPECT_TRUE(field.stays(layout, 2, 7));
        EXPECT_TRUE(a.gather() == before);
    });
}
