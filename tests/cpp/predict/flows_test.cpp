// Rates of messages on shared links, against filling all flows evenly until a link is full, again and again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "predict/flows.hpp"
#include "support/dice.hpp"

using namespace tilewave;

namespace {

constexpr double stream_byte_s = 1e-9;

struct Sent {
    std::int64_t from, to;
};

std::vector<Network> networks(Dice& dice) {
    const auto byte_s = [&] { return 1e-9 * static_cast<double>(dice(1, 4)); };
    Network one, tree, torus, fly;
    one.topology = NetworkShape::single_switch;
    one.extents = {dice(2, 12)};
    if (dice(0, 1)) one.link_byte_s = {2e-10};
    tree.topology = NetworkShape::fat_tree;
    tree.extents = {dice(1, 4), dice(1, 4), dice(1, 3)};
    tree.up = {dice(1, 3), dice(1, 3)};
    tree.link_byte_s = {byte_s(), byte_s()};
    torus.topology = NetworkShape::torus;
    for (std::int64_t k = dice(1, 3); k > 0; --k) {
        torus.extents.push_back(dice(1, 5));
        torus.link_byte_s.push_back(byte_s());
    }
    torus.one_way = dice(0, 1);
    torus.cards = dice(1, 2);
    fly.topology = NetworkShape::dragonfly;
    fly.extents = {dice(1, 6), dice(1, 4), dice(1, 3)};
    fly.link_byte_s = {byte_s(), byte_s()};
    fly.card_byte_s = byte_s();
    return {one, tree, torus, fly};
}

// Rates by progressive filling.
std::vector<double> filled(const Network& network, const std::vector<Sent>& flows) {
    std::map<std::int64_t, double> left;
    std::map<std::int64_t, std::set<std::size_t>> on;
    for (std::size_t f = 0; f < flows.size(); ++f) {
        std::vector<Network::Link> links;
        network.route(flows[f].from, flows[f].to, stream_byte_s, links);
        links.push_back({-1 - static_cast<std::int64_t>(f), stream_byte_s});  // nobody is faster than a stream
        for (const auto& l : links) left[l.key] = 1 / l.byte_s, on[l.key].insert(f);
    }
    std::vector<double> rates(flows.size(), 0);
    std::set<std::size_t> growing;
    for (std::size_t f = 0; f < flows.size(); ++f) growing.insert(f);
    const auto among = [&](const std::set<std::size_t>& all) {
        return std::count_if(all.begin(), all.end(), [&](std::size_t f) { return growing.contains(f); });
    };
    while (!growing.empty()) {
        double more = 1e300;
        for (const auto& [key, all] : on)
            if (const auto n = among(all)) more = std::min(more, left[key] / static_cast<double>(n));
        for (auto& [key, all] : on) left[key] -= more * static_cast<double>(among(all));
        for (const std::size_t f : growing) rates[f] += more;
        for (const auto& [key, all] : on)
            if (left[key] < 1e-6 / stream_byte_s)
                for (const std::size_t f : all) growing.erase(f);
    }
    return rates;
}

}  // namespace

TEST(Flows, HaveMaxMinFairRatesWheneverOneBeginsOrEnds) {
    const std::uint64_t seed = std::random_device()();
    Dice dice(seed);
    for (int round = 0; round < 40; ++round)
        for (const Network& network : networks(dice)) {
            ASSERT_EQ(network.wrong(), std::nullopt);
            const std::int64_t nodes = network.nodes();
            if (nodes < 2) continue;
            Flows flows(network, stream_byte_s);
            std::map<std::int32_t, Sent> going;
            for (int step = 0; step < 40; ++step) {
                if (going.empty() || dice(0, 2) > 0) {
                    const std::int64_t from = dice(0, nodes - 1), to = (from + dice(1, nodes - 1)) % nodes;
                    going[flows.begin(from, to, 1e6, 0)] = {from, to};
                } else {
                    const auto one = std::next(going.begin(), dice(0, static_cast<std::int64_t>(going.size()) - 1));
                    flows.end(one->first, 0);
                    going.erase(one);
                }
                std::vector<Sent> sent;
                for (const auto& [id, s] : going) sent.push_back(s);
                const std::vector<double> rates = filled(network, sent);
                std::size_t i = 0;
                for (const auto& [id, s] : going) {
                    ASSERT_NEAR(flows.rate(id), rates[i], 1e-3 * rates[i])
                        << name_of(network.topology) << " of " << nodes << " nodes, flow " << i << " of " << sent.size()
                        << ", seed " << seed;
                    ++i;
                }
            }
        }
}

TEST(Flows, EndWhenTheirBytesAreThroughAtTheRatesThatTheyHad) {
    Network n;
    n.topology = NetworkShape::single_switch;
    n.extents = {3};
    Flows flows(n, stream_byte_s);
    const std::int32_t a = flows.begin(0, 2, 3e6, 0);
    EXPECT_DOUBLE_EQ(flows.end_of(a), 3e-3);
    const std::int32_t b = flows.begin(1, 2, 1e6, 1e-3);  // both have half of node 2's card from here on
    EXPECT_DOUBLE_EQ(flows.end_of(b), 3e-3);
    EXPECT_DOUBLE_EQ(flows.end_of(a), 5e-3);
    flows.end(b, 3e-3);
    EXPECT_DOUBLE_EQ(flows.end_of(a), 4e-3);
    EXPECT_EQ(flows.changed(), std::vector{a});
}

// Each link leads on from where the one before has ended, and as few are taken as there must be.
TEST(Routes, OfATorusAreTheShortestAlongItsDimensionsInTheirOrder) {
    const std::uint64_t seed = std::random_device()();
    Dice dice(seed);
    for (int round = 0; round < 200; ++round) {
        Network n;
        n.topology = NetworkShape::torus;
        for (std::int64_t k = dice(1, 4); k > 0; --k) n.extents.push_back(dice(1, 5));
        n.link_byte_s = {1e-9};
        n.one_way = dice(0, 1);
        const std::int64_t nodes = n.nodes();
        if (nodes < 2) continue;
        const std::int64_t from = dice(0, nodes - 1), to = (from + dice(1, nodes - 1)) % nodes;
        std::size_t hops = 0;
        for (std::int64_t k = static_cast<std::int64_t>(n.extents.size()) - 1, a = from, b = to; k >= 0; --k) {
            const std::int64_t e = n.extents[k], forth = (b % e - a % e + e) % e;
            hops += static_cast<std::size_t>(n.one_way ? forth : std::min(forth, e - forth));
            a /= e, b /= e;
        }
        std::vector<Network::Link> links;
        n.route(from, to, 1e-9, links);
        EXPECT_EQ(links.size(), hops + 2) << "seed " << seed;
        std::set<std::int64_t> keys;
        for (const auto& l : links) keys.insert(l.key);
        EXPECT_EQ(keys.size(), links.size()) << "seed " << seed;
    }
}

// A fat tree whose switches have as many parents as children carries any shift of all nodes without two messages on one
// link: what "d mod k" is for.
TEST(Routes, OfAFullFatTreeKeepShiftsApart) {
    for (const std::vector<std::int64_t>& extents : {std::vector<std::int64_t>{4, 4, 4}, {2, 3, 5}, {8, 8}}) {
        Network n;
        n.topology = NetworkShape::fat_tree;
        n.extents = extents;
        n.up.assign(extents.begin(), extents.end() - 1);
        n.link_byte_s = {1e-9};
        for (std::int64_t shift = 1; shift < n.nodes(); ++shift) {
            std::set<std::int64_t> taken;
            std::vector<Network::Link> links;
            for (std::int64_t from = 0; from < n.nodes(); ++from) {
                n.route(from, (from + shift) % n.nodes(), 1e-9, links);
                for (const auto& l : links) EXPECT_TRUE(taken.insert(l.key).second) << shift;
            }
        }
    }
}

TEST(Routes, OfADragonflyHaveOneLinkBetweenGroupsAndAtMostOneInEach) {
    Network n;
    n.topology = NetworkShape::dragonfly;
    n.extents = {9, 4, 2};
    n.link_byte_s = {1e-9, 2e-9};
    std::map<std::int64_t, std::set<std::pair<std::int64_t, std::int64_t>>> between;
    for (std::int64_t from = 0; from < n.nodes(); ++from)
        for (std::int64_t to = 0; to < n.nodes(); ++to) {
            if (from == to) continue;
            std::vector<Network::Link> links;
            n.route(from, to, 5e-9, links);
            const auto global =
                std::count_if(links.begin(), links.end(), [](const auto& l) { return l.byte_s == 2e-9; });
            EXPECT_EQ(global, from / 8 != to / 8);
            EXPECT_LE(links.size(), 5u);
            EXPECT_EQ(links.size() == 2, from / 2 == to / 2);
            for (const auto& l : links)
                if (l.byte_s == 2e-9) between[l.key].insert({from / 8, to / 8});
        }
    EXPECT_EQ(between.size(), 9u * 8u);
    for (const auto& [key, pairs] : between) EXPECT_EQ(pairs.size(), 1u);
}

TEST(Networks, ThatMakeNoSenseAreNamed) {
    Network n;
    n.topology = NetworkShape::torus;
    n.extents = {4, 0};
    n.link_byte_s = {1e-9};
    EXPECT_EQ(n.wrong(), "extents[1] is 0; allowed: 1 and more, at most 16777216 nodes in all");
    n.extents = {4, 2};
    EXPECT_EQ(n.wrong(), std::nullopt);
    n.up = {1};
    EXPECT_EQ(n.wrong(), "up has 1 numbers; allowed: 0, but for a fat tree");
    n.up = {};
    n.link_byte_s = {};
    EXPECT_EQ(n.wrong(), "link_byte_s has 0 numbers; allowed: 1 or 2");
    n.link_byte_s = {1e-9};
    n.cards = 0;
    EXPECT_EQ(n.wrong(), "cards is 0; allowed: 1 to 64");
}
