// Small communication patterns written by hand, step by step.
#pragma once
#include <string>
#include <vector>

#include "generate/copy/copy.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave::testing {

using Schedules = std::vector<Schedule>;
constexpr std::int64_t item = 8;
/// Two rows of a matrix whose rows lie four items apart.
inline const Box whole{{0, 0}, {2, 3}};
inline Box column(int c) {
    return {{0, c}, {2, c + 1}};
}

/// Writes one rank. Array 0 is given, array 1 receives; both are each rank's own.
struct Hand {
    Schedule s;
    int lane = 0;

    Hand(int rank, int ranks, int lanes = 1) {
        s.rank = rank;
        s.ranks = ranks;
        const Box none{{0, 0}, {0, 0}};
        s.arrays = {{item, whole, whole, {4, 1}, true}, {item, whole, none, {}, true}};
        s.lanes.resize(static_cast<std::size_t>(lanes));
    }
    int buffer(const Box& region = whole) {
        s.buffers.push_back(region.points() * item);
        return static_cast<int>(s.buffers.size()) - 1;
    }
    int message(bool send, int peer, int buffer, const Box& region = whole, int array = 0, int tag = 0) {
        Message m;
        m.send = send;
        m.peer = peer;
        m.tag = tag;
        m.array = array;
        m.buffer = buffer;
        m.region = region;
        m.bytes = region.points() * item;
        s.messages.push_back(m);
        return static_cast<int>(s.messages.size()) - 1;
    }
    int send(int peer, int buffer, const Box& region = whole, int tag = 0) {
        return message(true, peer, buffer, region, 0, tag);
    }
    int receive(int peer, int buffer, const Box& region = whole, int tag = 0) {
        return message(false, peer, buffer, region, 0, tag);
    }
    /// Takes what the buffer holds to array 1.
    int local(int buffer, const Box& region = whole) { return message(false, s.rank, buffer, region, 1); }
    Hand& on(int l) {
        lane = l;
        return *this;
    }
    Hand& operator()(Op op, int i, int count = 0) {
        s.lanes[lane].push_back({op, i, count});
        return *this;
    }
    Hand& result(std::vector<int> ranks, const Box& region = whole, int array = 1) {
        s.results.push_back({array, region, 0, std::move(ranks)});
        return *this;
    }
};

/// 0 -> 1 -> 2, column by column: each forwards from the buffer it received into.
inline Schedules ring_broadcast() {
    Schedules all;
    for (int r = 0; r < 3; ++r) {
        Hand h(r, 3);
        if (r > 0) h.s.arrays[0].owned = {{0, 0}, {0, 0}};
        std::vector<int> in, out;
        for (int c = 0; c < 2; ++c) {
            const int b = h.buffer(column(c));
            in.push_back(r > 0 ? h.receive(r - 1, b, column(c), c) : -1);
            out.push_back(r < 2 ? h.send(r + 1, b, column(c), c) : -1);
            if (r > 0) h(Op::post_recv, in[c]);
        }
        for (int c = 0; c < 2; ++c) {
            if (r > 0) h(Op::wait, in[c]);
            if (r == 0) h(Op::pack, out[c]);
            if (r < 2) h(Op::post_send, out[c]);
            if (r > 0) h(Op::unpack, in[c]);
        }
        for (int c = 0; r < 2 && c < 2; ++c) h(Op::wait, out[c]);
        for (int c = 0; c < 2; ++c) h.result({0}, column(c), 0);
        all.push_back(h.s);
    }
    return all;
}

/// The same through one buffer on each rank: lane 0 fills it, lane 1 empties it, turn by turn.
inline Schedules ring_broadcast_on_two_lanes() {
    Schedules all;
    for (int r = 0; r < 3; ++r) {
        Hand h(r, 3, 2);
        if (r > 0) h.s.arrays[0].owned = {{0, 0}, {0, 0}};
        const int b = h.buffer(column(0));
        for (int c = 0; c < 3; ++c) {
            const int in = r > 0 ? h.receive(r - 1, b, column(c), c) : -1,
                      out = r < 2 ? h.send(r + 1, b, column(c), c) : -1;
            h.on(0);
            if (c > 0) h(Op::await, 1, c);
            if (r > 0) h(Op::post_recv, in)(Op::wait, in);
            if (r == 0) h(Op::pack, out);
            h(Op::signal, 0, c + 1).on(1)(Op::await, 0, c + 1);
            if (r < 2) h(Op::post_send, out);
            if (r > 0) h(Op::unpack, in);
            if (r < 2) h(Op::wait, out);
            h(Op::signal, 0, c + 1).result({0}, column(c), 0);
        }
        all.push_back(h.s);
    }
    return all;
}

/// 0 -> 1, 0 -> 2 from one buffer; 1 -> 3. Rank 0 then packs and sends array 0 again, from the same buffer.
inline Schedules tree_broadcast() {
    Schedules all;
    for (int r = 0; r < 4; ++r) {
        Hand h(r, 4);
        const int b = h.buffer();
        if (r == 0) {
            const int a = h.send(1, b), c = h.send(2, b), again = h.send(3, b, whole, 1);
            h(Op::pack, a)(Op::post_send, a)(Op::post_send, c)(Op::wait, a)(Op::wait, c);
            h(Op::pack, again)(Op::post_send, again)(Op::wait, again);
        } else {
            const int in = h.receive(r == 3 ? 1 : 0, b);
            h(Op::post_recv, in)(Op::wait, in);
            const int out = r == 1 ? h.send(3, b) : -1;
            if (r == 1) h(Op::post_send, out);
            h(Op::unpack, in);
            if (r == 1) h(Op::wait, out);
            if (r == 3) {
                const int again = h.receive(0, b, whole, 1), copy = h.local(b);
                h(Op::post_recv, again)(Op::wait, again)(Op::unpack, copy).result({0});
            }
        }
        h.result({0}, whole, 0);
        all.push_back(h.s);
    }
    return all;
}

/// 0 -> 1 -> 2 with combine_array_right, or 2 -> 1 -> 0 with combine_array_left: both give 0, 1, 2.
/// In the middle one lane combines and, if there are two, the other sends.
inline Schedules chain_reduce(int operand, int lanes = 1) {
    Schedules all;
    const int up = operand == combine_array_right ? 1 : -1, first = up > 0 ? 0 : 2;
    for (int r = 0; r < 3; ++r) {
        Hand h(r, 3, lanes);
        const int b = h.buffer();
        if (r == first) {
            const int out = h.send(r + up, b);
            h(Op::pack, out)(Op::post_send, out)(Op::wait, out);
        } else {
            const int in = h.receive(r - up, b);
            h(Op::post_recv, in)(Op::wait, in)(Op::combine, in, operand);
            const int out = r == 1 ? h.send(r + up, b) : h.local(b);
            if (lanes == 2) h(Op::signal, 0, 1).on(1)(Op::await, 0, 1);
            if (r == 1)
                h(Op::post_send, out)(Op::wait, out);
            else
                h(Op::unpack, out).result({0, 1, 2});
        }
        all.push_back(h.s);
    }
    return all;
}

/// (0 op 1) op (2 op 3) on rank 0: the last combine joins two buffers. With two lanes the second
/// has what comes from rank 2.
inline Schedules tree_reduce(int lanes = 1) {
    Schedules all;
    for (int r = 0; r < 4; ++r) {
        Hand h(r, 4, lanes);
        const int b = h.buffer();
        if (r % 2 == 1) {
            const int out = h.send(r - 1, b);
            h(Op::pack, out)(Op::post_send, out)(Op::wait, out);
        } else {
            const int near = h.receive(r + 1, b);
            h(Op::post_recv, near);
            const int far = r == 0 ? h.receive(2, h.buffer()) : h.send(0, b);
            if (r == 0) h.on(lanes - 1)(Op::post_recv, far);
            h.on(0)(Op::wait, near)(Op::combine, near, combine_array_left);
            if (r == 0) {
                const int copy = h.local(h.s.messages[far].buffer);
                if (lanes == 2) h(Op::signal, 0, 1).on(1)(Op::await, 0, 1);
                h(Op::wait, far)(Op::combine, far, near)(Op::unpack, copy).result({0, 1, 2, 3});
            } else {
                h(Op::post_send, far)(Op::wait, far);
            }
        }
        all.push_back(h.s);
    }
    return all;
}

/// Column c goes c + 1 -> c + 2 -> c, growing on the way; rank c ends with it.
inline Schedules ring_reduce_scatter() {
    Schedules all;
    for (int r = 0; r < 3; ++r) {
        Hand h(r, 3);
        const int next = (r + 1) % 3, last = (r + 2) % 3;
        const int a = h.buffer(column(0)), b = h.buffer(column(0)), c = h.buffer(column(0));
        const int start = h.send(next, a, column(last), 0), middle = h.receive(last, b, column(next), 0);
        const int forward = h.send(next, b, column(next), 1), end = h.receive(last, c, column(r), 1),
                  copy = h.local(c, column(r));
        h(Op::post_recv, middle)(Op::post_recv, end)(Op::pack, start)(Op::post_send, start);
        h(Op::wait, middle)(Op::combine, middle, combine_array_right)(Op::post_send, forward);
        h(Op::wait, end)(Op::combine, end, combine_array_right)(Op::unpack, copy);
        h(Op::wait, start)(Op::wait, forward).result({next, last, r}, column(r));
        all.push_back(h.s);
    }
    return all;
}

/// Rank 0 sends whole rows straight from its array 1 (without gaps between rows), the others
/// receive them straight into theirs.
inline Schedules direct_broadcast() {
    Schedules all;
    for (int r = 0; r < 3; ++r) {
        Hand h(r, 3);
        if (r == 0) {
            h.s.arrays[1].owned = whole;
            const int a = h.message(true, 1, -1, whole, 1), b = h.message(true, 2, -1, whole, 1);
            h(Op::post_send, a)(Op::post_send, b)(Op::wait, b)(Op::wait, a);
        } else {
            const int in = h.message(false, 0, -1, whole, 1);
            h(Op::post_recv, in)(Op::wait, in);
        }
        h.s.results.push_back({1, whole, 1, {0}});
        all.push_back(h.s);
    }
    return all;
}

/// From blocks of rows to blocks of columns: parts of one array, with local copies.
inline Schedules transposed_blocks() {
    Schedules all;
    const Layout rows({4, 6}, {3, 1}), columns({4, 6}, {1, 3});
    for (int r = 0; r < 3; ++r) {
        all.push_back(redistribute(rows, columns, item, r, 3));
        all.back().results.push_back({1, columns.owned(r), 0, {r}});
    }
    return all;
}

struct Named {
    const char* name;
    Schedules made;
};
inline std::vector<Named> right_patterns() {
    return {{"ring broadcast", ring_broadcast()},
            {"ring broadcast, two lanes", ring_broadcast_on_two_lanes()},
            {"tree broadcast", tree_broadcast()},
            {"chain reduce, array right", chain_reduce(combine_array_right)},
            {"chain reduce, array left", chain_reduce(combine_array_left)},
            {"chain reduce, two lanes", chain_reduce(combine_array_right, 2)},
            {"tree reduce", tree_reduce()},
            {"tree reduce, two lanes", tree_reduce(2)},
            {"ring reduce-scatter", ring_reduce_scatter()},
            {"direct broadcast", direct_broadcast()},
            {"blocks moved", transposed_blocks()}};
}

}  // namespace tilewave::testing
