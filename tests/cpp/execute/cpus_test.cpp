// How the ranks of a host share its CPUs.
#include <gtest/gtest.h>

#include <vector>

#include "execute/lanes/cpu_set.hpp"
#include "execute/lanes/cpus.hpp"
#include "execute/lanes/lanes.hpp"

namespace tilewave {
namespace {

std::vector<int> lanes(const std::vector<Place>& places) {
    std::vector<int> all;
    for (const double share : shares_of(places)) all.push_back(lanes_of(share));
    return all;
}

using Lanes = std::vector<int>;

TEST(CpuSet, holds_cpus_of_hosts_with_more_than_1024) {
    CpuSet set(5000);
    set.add(4999);
    EXPECT_TRUE(set.has(4999));
    EXPECT_FALSE(set.has(1023));
    EXPECT_GE(set.size(), 5000);
    EXPECT_TRUE(CpuSet::of_thread());
}

TEST(CpuShares, a_set_that_ranks_have_together_is_divided) {
    const Place four{"a", {}, 0, {0, 1, 2, 3}};
    EXPECT_EQ(lanes({four}), Lanes{4});
    EXPECT_EQ(lanes({four, four}), (Lanes{2, 2}));
    EXPECT_EQ(lanes({four, four, four}), (Lanes{1, 1, 1}));
    EXPECT_EQ(lanes(std::vector(5, four)), Lanes(5, 1));
    const Place other{"b", {}, 0, {0, 1, 2, 3}};
    EXPECT_EQ(lanes({four, other, four}), (Lanes{2, 4, 2}));
}

TEST(CpuShares, sets_of_their_own_and_sets_that_overlap) {
    EXPECT_EQ(lanes({{"a", {}, 0, {0, 1}}, {"a", {}, 0, {2, 3, 4}}}), (Lanes{2, 3}));
    EXPECT_EQ(lanes({{"a", {}, 0, {0, 1, 2, 3}}, {"a", {}, 0, {3}}}), (Lanes{3, 1}));
    EXPECT_EQ(lanes({{"a", {}, 0, {}}}), Lanes{1});
}

TEST(CpuShares, a_quota_is_divided_among_its_group) {
    const Place limited{"a", {3.5, "g"}, 0, {0, 1, 2, 3, 4, 5, 6, 7}}, free{"a", {}, 0, {0, 1, 2, 3, 4, 5, 6, 7}};
    EXPECT_EQ(lanes({limited}), Lanes{3});
    EXPECT_EQ(lanes({limited, limited}), (Lanes{1, 1}));
    EXPECT_EQ(lanes({limited, free}), (Lanes{3, 4}));
    EXPECT_EQ(lanes({{"a", {0.5, "g"}, 0, {0, 1}}}), Lanes{1});
    EXPECT_LT(shares_of({{"a", {0.5, "g"}, 0, {0, 1}}})[0], 1);
}

TEST(CpuShares, ranks_that_are_not_here_count_where_the_launcher_tells_of_them) {
    EXPECT_EQ(lanes({{"a", {}, 4, {0, 1, 2, 3, 4, 5, 6, 7}}}), Lanes{2});
    EXPECT_EQ(lanes(std::vector(3, Place{"a", {}, 2, {0, 1, 2, 3, 4, 5}})), (Lanes{2, 2, 2}));
}

TEST(CpuShares, siblings_share_a_core) {
    const Place eight{"a", {}, 0, {0, 1, 2, 3, 4, 5, 6, 7}, "", 4}, limited{"a", {3, "g"}, 0, eight.cpus, "", 4};
    const auto cores = [](const std::vector<Place>& places) { return shares_of(places, ShareOf::cores); };
    EXPECT_EQ(cores({eight}), std::vector<double>{4});
    EXPECT_EQ(cores({eight, eight}), (std::vector<double>{2, 2}));
    EXPECT_EQ(shares_of({eight, eight}), (std::vector<double>{4, 4}));
    EXPECT_EQ(cores({limited}), std::vector<double>{3});
    EXPECT_EQ(cores({{"a", {}, 0, {3}, "", 1}}), std::vector<double>{1});
}

TEST(CpuShares, a_place_is_the_same_as_text) {
    for (const Place& place :
         {Place{"a", {}, 0, {}}, Place{"b-c", {1.25, "0:7"}, 3, {1, 5}, "node 7"}, Place::here(2)}) {
        const Place other = Place::of(place.text());
        EXPECT_TRUE(other.same_cpus(place));
        EXPECT_EQ(other.quota.cpus, place.quota.cpus);
        EXPECT_EQ(other.quota.group, place.quota.group);
        EXPECT_EQ(other.announced, place.announced);
        EXPECT_EQ(other.name, place.name);
        EXPECT_EQ(other.cores, place.cores);
    }
}

}  // namespace
}  // namespace tilewave
