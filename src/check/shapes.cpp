#include "check/shapes.hpp"

#include <algorithm>
#include <cstdlib>

#include "schedule/tile_rows.hpp"

namespace tilewave {
namespace {

using Why = std::optional<std::string>;

bool below(int i, std::size_t n) {
    return i >= 0 && static_cast<std::size_t>(i) < n;
}

std::string outside(const std::string& name, const char* what, int i, std::size_t n) {
    return name + " names " + what + " " + std::to_string(i) + " of " + std::to_string(n);
}

// Rows go along the last dimension, item next to item; each dimension steps over all within it.
Why check_rows(const Array& a, const std::string& name) {
    std::int64_t span = 1;  // items from the first to the last of the dimensions within
    for (int k = a.stride.n - 1; k >= 0; --k) {
        if (a.stride[k] < 0) return name + ": it may not be negative";
        if (a.storage.extent(k) <= 1) continue;
        if (a.stride[k] < span) return name + ": its rows overlap";
        if (k == a.stride.n - 1 && a.stride[k] != 1) return name + ": along the last dimension it must be 1";
        span += (a.storage.extent(k) - 1) * a.stride[k];
    }
    return std::nullopt;
}

// Whether two elements of an array share memory: a difference of places that the strides do not see.
bool overlaps(const Array& a) {
    const int n = a.stride.n;
    Index most = a.stride;
    int longest = 0;
    for (int k = 0; k < n; ++k) {
        most[k] = (k == 0 && a.time_buffers > 0 ? std::min<std::int64_t>(a.time_buffers, a.storage.extent(k))
                                                : a.storage.extent(k)) -
                  1;
        if (most[k] > most[longest]) longest = k;
    }
    Box differences{Index::filled(n, 0), Index::filled(n, 1)};
    for (int k = 0; k < n; ++k)
        if (k != longest) differences.lo[k] = -most[k], differences.hi[k] = most[k] + 1;
    Index d = differences.lo;
    do {
        std::int64_t apart = 0;
        for (int k = 0; k < n; ++k) apart += d[k] * a.stride[k];
        const std::int64_t s = a.stride[longest];
        const bool same = std::all_of(d.begin(), d.end(), [](auto x) { return x == 0; });
        if (s == 0 ? most[longest] > 0 || (!same && apart == 0)
                   : !same && apart % s == 0 && std::abs(apart / s) <= most[longest])
            return true;
    } while (next_point(d, differences));
    return false;
}

// The same of the elements that points reach, where boxes of skewed coordinates hold more than the array's.
bool reached_overlap(const Schedule& s, int id) {
    const Array& a = s.arrays[id];
    std::vector<std::pair<std::int64_t, Index>> reached;  // address and element
    for (const Tile& t : s.tiles) {
        TileRows rows(s, t.box);
        for (bool more = rows.first(); more; more = rows.next())
            for (std::int64_t q = rows.begin(); q < rows.end(); ++q)
                for (const Access& p : s.places) {
                    if (p.array != id) continue;
                    Index at = rows.point();
                    std::int64_t address = 0;
                    for (int k = 0; k < at.n; ++k) {
                        at[k] = (a.lacks >> k & 1) ? 0 : at[k] + q * rows.along()[k] + p.offset[k];
                        if (k == 0 && a.time_buffers > 0) at[0] = floor_mod(at[0], a.time_buffers);
                        address += at[k] * a.stride[k];
                    }
                    reached.emplace_back(address, at);
                }
    }
    std::sort(reached.begin(), reached.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    return std::adjacent_find(reached.begin(), reached.end(), [](const auto& x, const auto& y) {
               return x.first == y.first && x.second != y.second;
           }) != reached.end();
}

// What the stride of an array kept in planes is of: the elements beside a column of tiles, which messages carry.
Array beside_tiles(const Schedule& s, Array a) {
    a.storage = intersect(a.storage, s.space);
    a.storage.hi[s.along] = std::min(a.storage.hi[s.along], a.storage.lo[s.along] + a.reach[s.along]);
    return a;
}

Why check_array(const Schedule& s, int id) {
    const Array& a = s.arrays[id];
    const std::string name =
        "array " + std::to_string(id) + " of storage " + to_string(a.storage) + " has stride " + to_string(a.stride);
    if (a.stride.n == 0 || a.whole || a.storage.empty()) return std::nullopt;
    if (a.stride.n != a.storage.dims()) return name + ": one entry for each dimension is allowed";
    if (s.places.empty()) return check_rows(a, name);  // nothing is computed: combine steps go by rows
    const Array addressed = a.planes > 0 ? beside_tiles(s, a) : a;
    // No box is copied, by messages or to the next level of time.
    const bool row_by_row =
        s.messages.empty() && s.loops.n > 0 && std::none_of(s.places.begin(), s.places.end(), [&](const Access& p) {
            return p.array == id && p.writes && p.keeps && a.time_buffers > 1;
        });
    if (!addressed.storage.empty() && overlaps(addressed) && !(row_by_row && !reached_overlap(s, id)))
        return name + ": its elements overlap";
    return std::nullopt;
}

// A message with parts: they lie one behind the other in its buffer, and are all of it.
Why check_aggregate(const Schedule& s, int id) {
    const Message& m = s.messages[id];
    const std::string name = "message " + std::to_string(id) + " of " + std::to_string(m.pieces) + " parts";
    if (m.pieces < 0 || static_cast<std::size_t>(id) + static_cast<std::size_t>(m.pieces) >= s.messages.size())
        return name + " has not so many after it";
    if (m.aggregate >= 0 || m.buffer < 0 || m.region.dims() > 0)
        return name + " is a part itself, has no buffer or has a region of its own";
    std::int64_t bytes = 0;
    for (int i = id + 1; i <= id + m.pieces; ++i) {
        const Message& part = s.messages[i];
        if (part.aggregate != id || part.pieces != 0 || part.peer != m.peer || part.send != m.send ||
            part.buffer != m.buffer || part.at != bytes || part.bytes < 0)
            return name + " is followed by message " + std::to_string(i) + ", which is none of them";
        bytes += part.bytes;
    }
    if (bytes != m.bytes || s.buffers[m.buffer] < bytes)
        return name + " has " + std::to_string(m.bytes) + " bytes, its parts " + std::to_string(bytes) +
               ", its buffer " + std::to_string(s.buffers[m.buffer]);
    return std::nullopt;
}

Why check_message(const Schedule& s, int id) {
    const Message& m = s.messages[id];
    const std::string name = "message " + std::to_string(id);
    if (!below(m.array, s.arrays.size())) return outside(name, "array", m.array, s.arrays.size());
    if (m.buffer >= 0 && !below(m.buffer, s.buffers.size())) return outside(name, "buffer", m.buffer, s.buffers.size());
    if (m.tile >= 0 && !below(m.tile, s.tiles.size())) return outside(name, "tile", m.tile, s.tiles.size());
    if (m.pieces != 0) return check_aggregate(s, id);
    if (m.aggregate >= 0) {
        if (!below(m.aggregate, s.messages.size())) return outside(name, "aggregate", m.aggregate, s.messages.size());
        if (id <= m.aggregate || id > m.aggregate + s.messages[m.aggregate].pieces)
            return name + " is no part of message " + std::to_string(m.aggregate);
        if (auto why = check_aggregate(s, m.aggregate)) return why;
    }
    const Array& array = s.arrays[m.array];
    if (m.region.dims() != array.storage.dims())
        return name + " has region " + to_string(m.region) + ", the storage of its array is " +
               to_string(array.storage);
    const std::int64_t bytes = m.region.points() * array.item_bytes;
    if (m.bytes != bytes)
        return name + " has " + std::to_string(m.bytes) + " bytes, its region " + to_string(m.region) + " " +
               std::to_string(bytes);
    if (array.planes > 0 && m.region.extent(s.along) > array.reach[s.along])
        return name + " has region " + to_string(m.region) + " of an array kept in planes, of which points read back " +
               to_string(array.reach);
    if (m.buffer >= 0 && s.buffers[m.buffer] < m.at + bytes)
        return "buffer " + std::to_string(m.buffer) + " of " + std::to_string(s.buffers[m.buffer]) +
               " bytes is smaller than " + name + " of " + std::to_string(bytes);
    if (m.buffer < 0 && !one_run(m.region, array))
        return name + " goes straight from or to " + to_string(m.region) + ", no single run of memory in " +
               to_string(array.storage) + (array.stride.n ? " of stride " + to_string(array.stride) : "");
    return std::nullopt;
}

Why check_combine(const Schedule& s, const Step& step) {
    const Message& m = s.messages[step.item];
    const std::string name = "message " + std::to_string(step.item);
    if (m.send) return name + " is combined, but it is a send";
    if (m.buffer < 0) return "combine of " + name + ", which has no buffer";
    if (step.count == combine_array_right || step.count == combine_array_left) return std::nullopt;
    if (!below(step.count, s.messages.size()))
        return "combine of " + name + " has count " + std::to_string(step.count) + "; -1, -2 and numbers of the " +
               std::to_string(s.messages.size()) + " messages are allowed";
    if (step.count == step.item) return name + " is combined with itself";
    if (auto why = check_message(s, step.count)) return why;
    const Message& left = s.messages[step.count];
    const std::string both = name + " is combined with message " + std::to_string(step.count);
    if (left.buffer < 0) return both + ", which has no buffer";
    if (!(left.region == m.region))
        return both + ", their regions are " + to_string(m.region) + " and " + to_string(left.region);
    if (s.arrays[left.array].item_bytes != s.arrays[m.array].item_bytes) return both + " of another item size";
    return std::nullopt;
}

Why check_result(const Schedule& s, std::size_t id) {
    const Result& r = s.results[id];
    const std::string name = "result " + std::to_string(id);
    if (!below(r.array, s.arrays.size())) return outside(name, "array", r.array, s.arrays.size());
    if (!below(r.source, s.arrays.size())) return outside(name, "array", r.source, s.arrays.size());
    for (int rank : r.ranks)
        if (!below(rank, static_cast<std::size_t>(s.ranks)))
            return outside(name, "rank", rank, static_cast<std::size_t>(s.ranks));
    const Box& storage = s.arrays[r.array].storage;
    if (r.region.dims() != storage.dims() || !storage.contains(r.region))
        return name + " has region " + to_string(r.region) + ", outside the storage " + to_string(storage) +
               " of array " + std::to_string(r.array);
    if (r.region.empty()) return std::nullopt;
    if (r.ranks.empty()) return name + " names no rank";
    if (r.ranks.size() > 1 && !s.arrays[r.source].separate)
        return name + " combines ranks' values of array " + std::to_string(r.source) + ", which is not separate";
    return std::nullopt;
}

Why check_step(const Schedule& s, const Step& step, std::vector<char>& told) {
    std::size_t limit = s.messages.size();
    if (step.op == Op::compute) limit = s.tiles.size();
    if (step.op == Op::await) limit = s.lanes.size();
    if (step.op == Op::signal) return std::nullopt;
    if (!below(step.item, limit)) return outside(to_string(step.op), "item", step.item, limit);
    if (step.op == Op::compute || step.op == Op::await) return std::nullopt;
    if (!told[step.item])
        if (auto why = check_message(s, step.item)) return why;
    told[step.item] = 1;
    const Message& m = s.messages[step.item];
    const bool moves = step.op == Op::post_send || step.op == Op::post_recv || step.op == Op::wait;
    if (moves ? m.aggregate >= 0 : m.pieces > 0 || (m.aggregate >= 0 && step.op == Op::combine))
        return std::string(to_string(step.op)) + " of message " + std::to_string(step.item) +
               (m.pieces > 0 ? ", of which only parts are in memory" : ", which goes with another");
    return step.op == Op::combine ? check_combine(s, step) : std::nullopt;
}

bool same_kind(const Schedule& a, const Schedule& b) {
    auto same_array = [](const Array& x, const Array& y) {
        return x.item_bytes == y.item_bytes && x.separate == y.separate;
    };
    auto same_read = [](const Access& x, const Access& y) {
        return x.array == y.array && x.offset == y.offset && x.writes == y.writes;
    };
    return std::equal(a.arrays.begin(), a.arrays.end(), b.arrays.begin(), b.arrays.end(), same_array) &&
           a.space == b.space &&
           std::equal(a.places.begin(), a.places.end(), b.places.begin(), b.places.end(), same_read);
}

}  // namespace

std::optional<Violation> check_shapes(std::span<const Schedule> schedules) {
    for (std::size_t r = 0; r < schedules.size(); ++r) {
        const Schedule& s = schedules[r];
        if (s.rank != static_cast<int>(r) || s.ranks != static_cast<int>(schedules.size()))
            return Violation{static_cast<int>(r), 0, 0,
                             "the schedule says rank " + std::to_string(s.rank) + " of " + std::to_string(s.ranks) +
                                 ", it is " + std::to_string(r) + " of " + std::to_string(schedules.size())};
        if (!same_kind(s, schedules[0]))
            return Violation{s.rank, 0, 0, "its arrays, its places or its space differ from rank 0's"};
        for (std::size_t a = 0; a < s.arrays.size(); ++a)
            if (auto why = check_array(s, static_cast<int>(a))) return Violation{s.rank, 0, 0, *why};
        for (const Access& place : s.places)
            if (!below(place.array, s.arrays.size()))
                return Violation{s.rank, 0, 0, outside("a place", "array", place.array, s.arrays.size())};
        std::vector<char> told(s.messages.size(), 0);  // messages looked at
        for (std::size_t l = 0; l < s.lanes.size(); ++l)
            for (std::size_t i = 0; i < s.lanes[l].size(); ++i)
                if (auto why = check_step(s, s.lanes[l][i], told))
                    return Violation{s.rank, static_cast<int>(l), i, *why};
        for (std::size_t i = 0; i < s.results.size(); ++i)
            if (auto why = check_result(s, i))
                return Violation{s.rank, 0, s.lanes.empty() ? 0 : s.lanes[0].size(), *why};
    }
    return std::nullopt;
}

}  // namespace tilewave
