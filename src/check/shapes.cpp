#include "check/shapes.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "check/wrong.hpp"
#include "core/concat.hpp"
#include "core/signs.hpp"
#include "schedule/tile_rows.hpp"
#include "schedule/whole.hpp"

namespace tilewave {
namespace {

// Rows go along the last dimension, item next to item; each dimension steps over all within it.
void check_rows(const Array& a, const std::string& name) {
    std::int64_t span = 1;  // items from the first to the last of the dimensions within
    for (int k = a.stride.n - 1; k >= 0; --k) {
        if (a.stride[k] < 0) wrong(name, ": it may not be negative");
        if (a.storage.extent(k) <= 1) continue;
        if (a.stride[k] < span) wrong(name, ": its rows overlap");
        if (k == a.stride.n - 1 && a.stride[k] != 1) wrong(name, ": along the last dimension it must be 1");
        span += (a.storage.extent(k) - 1) * a.stride[k];
    }
}

// So many pairs of elements, or places of tiles, are looked at: some seconds, some GB.
constexpr std::int64_t most_pairs = std::int64_t{1} << 28, most_reached = std::int64_t{1} << 27;

// Whether two elements of an array share memory: a difference of places that the strides do not see. Also where they
// are too many to look at.
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
    std::int64_t pairs = 1;
    for (int k = 0; k < n && pairs <= most_pairs; ++k) {
        if (differences.extent(k) > most_pairs) return true;
        pairs *= differences.extent(k);
    }
    if (pairs > most_pairs) return true;
    Index d = differences.lo;
    do {
        std::int64_t distance = 0;
        for (int k = 0; k < n; ++k) distance += d[k] * a.stride[k];
        const std::int64_t s = a.stride[longest];
        const bool same = first_nonzero(d) == d.n;
        if (s == 0 ? most[longest] > 0 || (!same && distance == 0)
                   : !same && distance % s == 0 && std::abs(distance / s) <= most[longest])
            return true;
    } while (next_point(d, differences));
    return false;
}

// The same of the elements that points reach, where boxes of skewed coordinates hold more than the array's.
bool reached_overlap(const Schedule& s, std::size_t work, int id) {
    const NestWork& nest = *s.works[work].nest();
    const Array& a = s.arrays[id];
    std::int64_t points = 0;
    for (const Tile& t : s.tiles) {
        points += static_cast<std::size_t>(t.work) == work ? std::min(t.box.points(), most_reached) : 0;
        if (points > most_reached) return true;  // too many to look at
    }
    std::vector<std::pair<std::int64_t, Index>> reached;  // address and element
    for (const Tile& t : s.tiles) {
        if (static_cast<std::size_t>(t.work) != work) continue;
        TileRows rows(nest, t.box);
        for (bool more = rows.first(); more; more = rows.next())
            for (std::int64_t q = rows.begin(); q < rows.end(); ++q)
                for (const Access& p : nest.places) {
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
    std::ranges::sort(reached, [](const auto& x, const auto& y) { return x.first < y.first; });
    return std::ranges::adjacent_find(reached, [](const auto& x, const auto& y) {
               return x.first == y.first && x.second != y.second;
           }) != reached.end();
}

// Whether the array is touched by rows of nests alone, so that boxes of it may hold more than its elements: no box is
// copied, by messages, tasks or to the next time, and what each nest reaches does not overlap.
bool row_by_row(const Schedule& s, int id) {
    if (std::ranges::any_of(s.messages, [&](const Message& m) { return m.array == id; })) return false;
    for (std::size_t w = 0; w < s.works.size(); ++w) {
        const auto of_array = [&](const auto& list) {
            return std::ranges::any_of(list, [&](const auto& x) { return x.array == id; });
        };
        if (const TaskWork* task = s.works[w].task()) {
            if (of_array(task->reads) || of_array(task->writes)) return false;
            continue;
        }
        const NestWork& nest = *s.works[w].nest();
        if (!of_array(nest.places)) continue;
        const bool carries = std::ranges::any_of(nest.places, [&](const Access& p) {
            return p.array == id && p.writes && p.keeps && s.arrays[id].time_buffers > 1;
        });
        if (nest.loops.n == 0 || carries || reached_overlap(s, w, id)) return false;
    }
    return true;
}

// The elements that the strides of an array in planes address: those next to a column of tiles, which messages carry.
Array next_to_tiles(const NestWork& nest, Array a) {
    const int along = nest.window.along;
    a.storage = intersect(a.storage, nest.space);
    a.storage.hi[along] = std::min(a.storage.hi[along], a.storage.lo[along] + a.reach[along]);
    return a;
}

void check_array(const Schedule& s, int id) {
    const Array& a = s.arrays[id];
    const std::string name = concat("array ", id, " of storage ", a.storage, " has stride ", a.stride);
    if (a.stride.n == 0 || a.whole || a.storage.empty()) return;
    if (s.works.empty()) return check_rows(a, name);  // nothing is computed: combine steps go by rows
    const NestWork* nest = s.works.size() == 1 ? s.works[0].nest() : nullptr;
    const Array addressed = a.planes > 0 ? next_to_tiles(*nest, a) : a;
    if (!addressed.storage.empty() && overlaps(addressed) && !row_by_row(s, id))
        wrong(name, ": its elements overlap, or are too many to look at");
}

// A message with parts: they lie one behind the other in its buffer, and are all of it.
void check_aggregate(const Schedule& s, int id) {
    const Message& m = s.messages[id];
    const std::string name = concat("message ", id, " of ", m.pieces, " parts");
    if (m.aggregate >= 0 || m.buffer < 0) wrong(name, " is a part itself or has no buffer");
    std::int64_t bytes = 0;
    for (int i = id + 1; i <= id + m.pieces; ++i) {
        const Message& part = s.messages[i];
        if (part.aggregate != id || part.pieces != 0 || part.peer != m.peer || part.send != m.send ||
            part.buffer != m.buffer || part.at != bytes)
            wrong(name, " is followed by message ", i, ", which is none of them");
        bytes += part.bytes;
    }
    if (bytes != m.bytes || s.buffers[m.buffer] < bytes)
        wrong(name, " has ", m.bytes, " bytes, its parts ", bytes, ", its buffer ", s.buffers[m.buffer]);
}

void check_message(const Schedule& s, int id) {
    const Message& m = s.messages[id];
    const std::string name = concat("message ", id);
    if (m.pieces != 0) return check_aggregate(s, id);
    if (m.aggregate >= 0) {
        if (id <= m.aggregate || id > m.aggregate + s.messages[m.aggregate].pieces)
            wrong(name, " is no part of message ", m.aggregate);
        check_aggregate(s, m.aggregate);
    }
    const Array& array = s.arrays[m.array];
    const std::int64_t bytes = m.region.points() * array.item_bytes;
    if (m.bytes != bytes) wrong(name, " has ", m.bytes, " bytes, its region ", m.region, " ", bytes);
    if (const int along = array.planes > 0 ? only_nest(s).window.along : -1;
        along >= 0 && m.region.extent(along) > array.reach[along])
        wrong(name, " has region ", m.region, " of an array stored in planes, of which points read back ", array.reach);
    if (m.buffer >= 0 && s.buffers[m.buffer] < m.at + bytes)
        wrong("buffer ", m.buffer, " of ", s.buffers[m.buffer], " bytes is smaller than ", name, " of ", bytes);
    if (m.buffer < 0 && !one_run(m.region, array))
        wrong(name, " goes straight from or to ", m.region, ", no single run of memory in ", array.storage,
              (array.stride.n ? concat(" of stride ", array.stride) : ""));
}

void check_combine(const Schedule& s, const Step& step) {
    const Message& m = s.messages[step.item];
    const std::string name = concat("message ", step.item);
    if (m.send) wrong(name, " is combined, but it is a send");
    if (m.buffer < 0) wrong("combine of ", name, ", which has no buffer");
    if (step.count == combine_array_right || step.count == combine_array_left) return;
    if (step.count == step.item) wrong(name, " is combined with itself");
    check_message(s, step.count);
    const Message& left = s.messages[step.count];
    const std::string both = concat(name, " is combined with message ", step.count);
    if (left.buffer < 0) wrong(both, ", which has no buffer");
    if (!(left.region == m.region)) wrong(both, ", their regions are ", m.region, " and ", left.region);
    if (s.arrays[left.array].item_bytes != s.arrays[m.array].item_bytes) wrong(both, " of another item size");
}

void check_result(const Schedule& s, std::size_t id) {
    const Result& r = s.results[id];
    const std::string name = concat("result ", id);
    const Box& storage = s.arrays[r.array].storage;
    if (!storage.contains(r.region))
        wrong(name, " has region ", r.region, ", outside the storage ", storage, " of array ", r.array);
    if (r.region.empty()) return;
    if (r.ranks.empty()) wrong(name, " names no rank");
    if (r.ranks.size() > 1 && !s.arrays[r.source].separate)
        wrong(name, " combines ranks' values of array ", r.source, ", which is not separate");
}

void must_be_inside(const Schedule& s, const std::string& does, int array, const Box& box) {
    if (auto why = inside_storage(s, does, array, box)) wrong(*why);
}

// Of a task that this rank computes: what it declares is there.
void check_task(const Schedule& s, const Tile& tile) {
    const Work& work = s.works[tile.work];
    const TaskWork* task = work.task();
    if (!task) return;
    const std::string name = concat("task ", work.number);
    for (const Region& r : task->reads) must_be_inside(s, name + ": it reads", r.array, r.box);
    for (const Region& r : task->writes) must_be_inside(s, name + ": it writes", r.array, r.box);
}

void check_step(const Schedule& s, const Step& step, std::vector<char>& checked) {
    if (step.op == Op::compute) return check_task(s, s.tiles[step.item]);
    if (step.op == Op::await || step.op == Op::signal) return;
    if (!checked[step.item]) check_message(s, step.item);
    checked[step.item] = 1;
    const Message& m = s.messages[step.item];
    if ((step.op == Op::post_send && !m.send) || (step.op == Op::post_recv && m.send))
        wrong(step.op, " of message ", step.item, ", which is a ", (m.send ? "send" : "receive"));
    const bool moves = step.op == Op::post_send || step.op == Op::post_recv || step.op == Op::wait;
    if (moves ? m.aggregate >= 0 : m.pieces > 0 || (m.aggregate >= 0 && step.op == Op::combine))
        wrong(step.op, " of message ", step.item,
              (m.pieces > 0 ? ", of which only parts are in memory" : ", which goes with another"));
    if (moves && (step.op == Op::wait || m.pieces > 0 || m.buffer >= 0)) return;
    if (!moves && m.buffer < 0) wrong(step.op, " of message ", step.item, ", which has no buffer");
    const std::string does =
        moves ? concat("message ", step.item, m.send ? ": it sends" : ": it receives") : concat("it ", step.op, "s");
    must_be_inside(s, does, m.array, m.region);
    if (step.op == Op::combine) check_combine(s, step);
}

bool same_arrays(const Schedule& a, const Schedule& b) {
    return std::equal(
        a.arrays.begin(), a.arrays.end(), b.arrays.begin(), b.arrays.end(), [](const Array& x, const Array& y) {
            const bool same = x.item_bytes == y.item_bytes && x.separate == y.separate && x.view == y.view;
            // A rank that takes no part has none of an array's elements, and need not say more of it.
            const auto none = [](const Array& z) { return z.storage.dims() == 0 || z.storage.empty(); };
            return same && (none(x) || none(y) ||
                            (x.whole == y.whole && x.time_buffers == y.time_buffers &&
                             (x.whole || x.storage.dims() == y.storage.dims())));
        });
}

bool same_work(const Schedule& s, const Work& a, const Work& b) {
    const NestWork *x = a.nest(), *y = b.nest();
    if (x && y) {
        const auto same_place = [](const Access& p, const Access& q) {
            return p.array == q.array && p.offset == q.offset && p.writes == q.writes;
        };
        return x->space == y->space &&
               std::equal(x->places.begin(), x->places.end(), y->places.begin(), y->places.end(), same_place);
    }
    const TaskWork *t = a.task(), *u = b.task();
    // Each rank names other elements of an array that is separate on each rank.
    const auto same_regions = [&](const std::vector<Region>& p, const std::vector<Region>& q) {
        return std::equal(p.begin(), p.end(), q.begin(), q.end(), [&](const Region& v, const Region& w) {
            return v == w || (v.array == w.array && s.arrays[v.array].separate);
        });
    };
    return t && u && t->operation == u->operation && same_regions(t->reads, u->reads) &&
           same_regions(t->writes, u->writes);
}

void check_work(const Schedule& s, std::size_t w) {
    const Work& work = s.works[w];
    const std::string name = concat("work ", work.number);
    if (const TaskWork* task = work.task()) {
        for (std::size_t i = 0; i < task->writes.size(); ++i) {
            if (s.arrays[task->writes[i].array].whole)
                wrong(name, " writes array ", task->writes[i].array, ", which is only read");
            for (std::size_t j = 0; j < i; ++j)
                if (task->writes[i].array == task->writes[j].array &&
                    !intersect(task->writes[i].box, task->writes[j].box).empty())
                    wrong(name, " writes an element twice: regions ", task->writes[j].box, " and ", task->writes[i].box,
                          " of array ", task->writes[i].array);
        }
        return;
    }
    for (const Access& place : work.nest()->places) {
        const Array& a = s.arrays[place.array];
        if (place.writes && (a.separate || a.whole))
            wrong(name, " writes array ", place.array,
                  (a.whole ? ", which is only read" : ", which each rank has for itself: only tasks may"));
    }
}

}  // namespace

std::optional<std::string> inside_storage(const Schedule& s, const std::string& does, int id, const Box& box) {
    const Array& a = s.arrays[id];
    if (a.whole || box.empty() || a.storage.contains(box)) return std::nullopt;
    return concat(does, " ", box, " of array ", id, ", outside its storage ", a.storage);
}

std::optional<Violation> check_rank_shapes(const Schedule& s) {
    if (const auto found = damage(s)) {
        const bool of_a_step = found->entry.starts_with("lanes[");
        return Violation{s.rank, found->lane, found->step, (of_a_step ? "" : found->entry + ": ") + found->why};
    }
    Violation found{s.rank, 0, 0, ""};
    try {
        for (std::size_t w = 0; w < s.works.size(); ++w) check_work(s, w);
        for (std::size_t a = 0; a < s.arrays.size(); ++a) check_array(s, static_cast<int>(a));
        std::vector<char> checked(s.messages.size(), 0);  // by message
        if (auto of_step =
                first_wrong_step(s, [&](std::size_t lane, std::size_t i) { check_step(s, s.lanes[lane][i], checked); }))
            return of_step;
        found.step = s.lanes.empty() ? 0 : s.lanes[0].size();
        for (std::size_t i = 0; i < s.results.size(); ++i) check_result(s, i);
    } catch (const Mistake& wrong) {
        found.why = wrong.why;
        return found;
    }
    return std::nullopt;
}

std::optional<Violation> check_shapes(std::span<const Schedule> schedules) {
    std::map<std::int64_t, const Work*> works;
    for (std::size_t r = 0; r < schedules.size(); ++r) {
        const Schedule& s = schedules[r];
        if (s.rank != static_cast<int>(r) || s.ranks != static_cast<int>(schedules.size()))
            return Violation{
                static_cast<int>(r), 0, 0,
                concat("the schedule says rank ", s.rank, " of ", s.ranks, ", it is ", r, " of ", schedules.size())};
        if (!same_arrays(s, schedules[0])) return Violation{s.rank, 0, 0, "its arrays differ from rank 0's"};
        if (auto found = check_rank_shapes(s)) return found;
        for (const Work& work : s.works) {
            const auto [known, fresh] = works.try_emplace(work.number, &work);
            if (!fresh && !same_work(s, work, *known->second))
                return Violation{s.rank, 0, 0,
                                 concat("its work ", work.number,
                                        " differs from that of another rank: its places, its space or its regions")};
        }
    }
    return std::nullopt;
}

}  // namespace tilewave
