#include "core/plain_bytes.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace tilewave {
namespace {

struct Pair {
    std::int32_t a;
    double b;
};

TEST(PlainBytes, ComeBackAsTheyWere) {
    std::string bytes = "head";
    put(bytes, 7);
    put(bytes, std::vector<Pair>{{1, 0.5}, {2, -1e300}});
    put(bytes, std::vector<double>{});
    PlainBytes in(bytes, 4);
    EXPECT_EQ(in.take<int>(), 7);
    const auto pairs = in.take_all<Pair>();
    ASSERT_EQ(pairs.size(), 2u);
    EXPECT_EQ(pairs[1].a, 2);
    EXPECT_EQ(pairs[1].b, -1e300);
    EXPECT_TRUE(in.take_all<double>().empty());
    EXPECT_THROW(in.take<char>(), InternalError);
}

TEST(PlainBytes, InPartAreRefused) {
    std::string bytes;
    put(bytes, std::vector<double>(50, 1.5));
    for (const std::size_t n : {std::size_t{0}, std::size_t{5}, bytes.size() / 2, bytes.size() - 1}) {
        const std::string part = bytes.substr(0, n);
        EXPECT_THROW((void)PlainBytes(part).take_all<double>(), InternalError) << n;
    }
}

}  // namespace
}  // namespace tilewave
