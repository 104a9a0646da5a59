// Fields of structs: elements of any size, against plain loops.
#include <gtest/gtest.h>

#include <concepts>
#include <memory>
#include <string>

#include "support/ranks.hpp"
#include "tilewave/tilewave.hpp"

namespace tilewave {
namespace {

// Fields keep their elements at one place.
static_assert(!std::movable<Context>);

template <std::size_t Size>
struct Item {
    unsigned char bytes[Size];
    bool operator==(const Item&) const = default;
};

template <std::size_t Size>
Item<Size> item_at(const Index& at) {
    Item<Size> item;
    for (std::size_t k = 0; k < Size; ++k) item.bytes[k] = static_cast<unsigned char>(7 * at[0] + 3 * at[1] + 5 * k);
    return item;
}

template <std::size_t Size>
Item<Size> sum(const Item<Size>& a, const Item<Size>& b) {
    Item<Size> item;
    for (std::size_t k = 0; k < Size; ++k) item.bytes[k] = static_cast<unsigned char>(a.bytes[k] + b.bytes[k]);
    return item;
}

template <std::size_t Size>
void sweep_and_gather() {
    constexpr std::int64_t n = 40;
    std::vector<Item<Size>> wanted(n * n);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
            auto& here = wanted[static_cast<std::size_t>(i * n + j)];
            here = i > 0 && j > 0 ? sum<Size>(wanted[static_cast<std::size_t>((i - 1) * n + j)],
                                              wanted[static_cast<std::size_t>(i * n + j - 1)])
                                  : item_at<Size>({i, j});
        }
    for (const int ranks : {1, 2, 3})
        on_ranks(ranks, [&](Context& context) {
            constexpr auto north_west = reads({-1, 0}, {0, -1});
            Field<Item<Size>> a(context, {n, n}, [](const Index& at) { return item_at<Size>(at); });
            run(context, {}, [](auto v) { return sum<Size>(v(-1, 0), v(0, -1)); }, writes<north_west>(a));
            const auto whole = a.gather();
            if (context.rank() == 0) EXPECT_TRUE(whole == wanted) << Size << " bytes on " << ranks << " ranks";
        });
}

}  // namespace

TEST(ItemSizes, AreAnyThatAStructHas) {
    sweep_and_gather<1>();
    sweep_and_gather<3>();
    sweep_and_gather<12>();
    sweep_and_gather<16>();
    sweep_and_gather<24>();
    sweep_and_gather<40>();
}

}  // namespace tilewave
