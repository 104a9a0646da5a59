// Fields with halos in C++ programs: exchanges against the definition, on ranks as threads.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "support/dice.hpp"
#include "tilewave/tilewave.hpp"

namespace tilewave {
namespace {

template <class Body>
void on_ranks(int ranks, Body body, int ranks_per_host = 1, const std::string& without = "") {
    LocalFabric fabric(ranks, ranks_per_host);
    std::vector<std::thread> all;
    std::mutex lock;
    std::vector<std::string> errors;
    for (int r = 0; r < ranks; ++r)
        all.emplace_back([&, r] {
            try {
                Context context(fabric.endpoint(r), 1, {"Context", ""}, without);
                body(context);
            } catch (const std::exception& e) {
                std::scoped_lock guard(lock);
                errors.push_back(e.what());
            }
        });
    for (auto& t : all) t.join();
    EXPECT_TRUE(errors.empty()) << errors.front();
}

double value_at(const Index& shape, Index at, int turn) {
    double value = turn;
    for (int k = 0; k < at.n; ++k) value = 100 * value + static_cast<double>(floor_mod(at[k], shape[k]));
    return value;
}

// Of all elements that a rank holds.
template <class T>
void expect_values(Field<T>& field, int turn) {
    const Box storage = field.storage().storage();
    if (storage.empty()) return;
    const Index stride = field.local_strides();
    Index at = storage.lo;
    do {
        std::int64_t offset = 0;
        for (int k = 0; k < at.n; ++k) offset += (at[k] - storage.lo[k]) * stride[k];
        ASSERT_EQ(field.local()[offset], static_cast<T>(value_at(field.shape(), at, turn))) << to_string(at);
    } while (next_point(at, storage));
}

template <class T>
void set_values(Field<T>& field, int turn) {
    field.for_each_owned([&](const Index& at, T& value) { value = static_cast<T>(value_at(field.shape(), at, turn)); });
}

TEST(HaloFields, ExchangesBringTheValuesOfOwners) {
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
        // Some fast paths are off, all of them now and then.
        const std::string without = names_of(seed % 3 ? static_cast<PathsOff>(Dice(seed).engine()) : 0);
        SCOPED_TRACE("seed " + std::to_string(seed) + ", without " + without);
        const int ranks = static_cast<int>(seed % 6) + 1, ranks_per_host = seed % 4 < 2 ? 1 : seed % 4 == 2 ? 2 : ranks;
        const auto body = [seed](Context& context) {
            Dice dice(seed);  // the same on every rank
            const int n = static_cast<int>(dice(1, 3));
            Index shape = Index::filled(n, 0);
            Halo halo{shape, shape, shape, {}};
            for (int k = 0; k < n; ++k) {
                shape[k] = dice(1, 7);
                halo.wraps[k] = dice(0, 1);
                halo.below[k] = dice(0, std::min<std::int64_t>(shape[k], 3));
                halo.above[k] = dice(0, std::min<std::int64_t>(shape[k], 3));
            }
            const auto zero = [](const Index&) { return 0; };
            Field<double> a(context, shape, halo, zero);
            Field<float> b(context, shape, halo, zero);
            HaloHandle prepared = bind_exchange(context, {{&b.storage(), &a.storage()}});
            for (int turn = 0; turn < 4; ++turn) {
                set_values(a, turn);
                set_values(b, turn);
                if (turn == 0) exchange(a, b);
                if (turn == 1) start_exchange(a, b).wait();
                if (turn == 2) prepared.run();
                if (turn == 3) {
                    HaloHandle one = start_exchange(a), other = start_exchange(b);
                    other.wait();
                    while (!one.test()) {
                    }
                }
                expect_values(a, turn);
                expect_values(b, turn);
            }
        };
        on_ranks(ranks, body, ranks_per_host, without);
    }
}

// More messages in flight than a host's shared memory has room for, some of them larger than its pieces.
TEST(HaloFields, MuchAtOnceThroughSharedMemory) {
    const auto body = [](Context& context) {
        std::vector<std::unique_ptr<Field<double>>> fields;
        std::vector<HaloHandle> handles;
        for (int f = 0; f < 30; ++f) {
            Halo halo = Halo::of(2, 8);
            halo.wraps = {1, 1};
            if (f % 2) halo.grid = {1, 2};
            fields.push_back(std::make_unique<Field<double>>(context, Index{f % 3 ? 16 : 600, 700}, halo,
                                                             [](const Index&) { return 0.0; }));
            set_values(*fields.back(), f);
        }
        for (auto& field : fields) handles.push_back(start_exchange(*field));
        for (auto handle = handles.rbegin(); handle != handles.rend(); ++handle) handle->wait();
        for (int f = 0; f < 30; ++f) expect_values(*fields[static_cast<std::size_t>(f)], f);
    };
    on_ranks(2, body, 2);
}

template <class F>
std::string text_of_error(F call) {
    try {
        call();
    } catch (const ConfigError& e) {
        return e.what();
    }
    return "nothing was thrown";
}

TEST(HaloFields, WrongCallsAreErrorsOnEveryRank) {
    on_ranks(2, [](Context& context) {
        const auto zero = [](const Index&) { return 0.0; };
        Field<double> plain(context, {6, 6}, zero), u(context, {6, 6}, Halo::of(2, 1), zero),
            v(context, {6, 6}, {{1, 1}, {1, 1}, {}, {1, 2}}, zero), w(context, {6, 6}, Halo::of(2, 2), zero);
        const auto expect = [&](auto call, const char* words) {
            const std::string text = text_of_error(call);
            EXPECT_NE(text.find(words), std::string::npos) << text;
            exchange(u);  // the context goes on
        };
        expect([&] { exchange(plain); }, "no halo");
        expect([&] { exchange(u, u); }, "given twice");
        expect([&] { exchange(u, v); }, "process grid");
        expect([&] { run_exchange(context, {}); }, "no field");
        expect([&] { context.rank() ? exchange(u) : exchange(w); }, "different arguments");
        RankStatus other;
        other.caller.call = "another";
        expect([&] { context.rank() ? exchange(u) : (void)agree(context, other); }, "different functions");
        expect([&] { run_exchange(context, {{&u.storage()}, 0}); }, "0 axes");
        expect([&] { start_exchange(u).start(); }, "start=False");
        const auto make = [&](const Index& shape, const Halo& halo) {
            return [&, shape, halo] { Field<double> f(context, shape, halo, zero); };
        };
        expect(make({6, 6}, {{1}, {1, 1}, {}, {}}), "equal dimensions");
        expect(make({6, 0}, {{1, 7}, {1, 1}, {0, 1}, {}}), "periodic axis 1");
        expect(make({6, 6}, {{-1, 0}, {1, 1}, {}, {}}), "must be >= 0");
        expect(make({6, 6}, {{1, 0}, {1, 1}, {}, {2, 2}}), "process grid");
        expect(make({6, 6}, {{1, 0}, {1, std::int64_t{1} << 61}, {}, {}}), "2**60");
    });
}

}  // namespace
}  // namespace tilewave
