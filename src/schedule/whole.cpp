#include "schedule/whole.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/concat.hpp"

namespace tilewave {
namespace {

// The largest coordinate of a box, and the largest number that sums and products of them may reach: what is computed of
// several of these stays below 2^63.
constexpr std::int64_t most_coordinate = std::int64_t{1} << 48, most = std::int64_t{1} << 60;
constexpr std::int64_t most_item_bytes = 1 << 30, most_times = 1 << 30, most_reach = 1 << 30;
constexpr int most_ranks = 1 << 24;

__extension__ using Wide = __int128;

// Each throws the first `Damage`.
class Look {
public:
    explicit Look(const Schedule& s) : s_(s) {}

    void all() {
        if (s_.ranks < 1 || s_.ranks > most_ranks) wrong("ranks", "it is for", s_.ranks, 1, most_ranks);
        if (s_.rank < 0 || s_.rank >= s_.ranks) wrong("rank", "it is of rank", s_.rank, 0, s_.ranks - 1);
        if (s_.lanes.size() > max_lanes)
            wrong("lanes", "it has", static_cast<std::int64_t>(s_.lanes.size()), 0, max_lanes);
        each(s_.arrays, "arrays", &Look::array);
        memories();
        each(s_.works, "works", &Look::work);
        each(s_.tiles, "tiles", &Look::tile);
        windows();
        buffers();
        each(s_.messages, "messages", &Look::message);
        steps();
        each(s_.results, "results", &Look::result);
        repeated();
        advance();
    }

private:
    template <class... Parts>
    [[noreturn]] static void say(const std::string& entry, const Parts&... why) {
        throw Damage{entry, concat(why...)};
    }
    [[noreturn]] static void wrong(const std::string& entry, const std::string& what, std::int64_t given,
                                   std::int64_t least, std::int64_t largest) {
        say(entry, what, " ", given, "; allowed: ", least, " to ", largest);
    }
    // "result 0 names array 2 of 2".
    static void names(const std::string& entry, const std::string& name, const char* what, std::int64_t i,
                      std::size_t n) {
        if (i < 0 || static_cast<std::uint64_t>(i) >= n) say(entry, name, " names ", what, " ", i, " of ", n);
    }
    template <class List, class F>
    void each(const List& list, const char* name, F look) {
        for (std::size_t i = 0; i < list.size(); ++i) (this->*look)(list[i], i, concat(name, "[", i, "]"));
    }

    // Both corners have so many components (below 0: any), and all numbers of its points are numbers.
    static void box(const Box& b, const std::string& entry, int dims = -1) {
        if (b.lo.n != b.hi.n || (dims >= 0 && b.lo.n != dims))
            say(entry, "its corners have ", b.lo.n, " and ", b.hi.n,
                " components; allowed: ", (dims < 0 ? "as many" : std::to_string(dims)));
        index(b.lo, entry, most_coordinate);
        index(b.hi, entry, most_coordinate);
        Wide points = 1;
        for (int k = 0; k < b.dims(); ++k) {
            if (b.extent(k) == 0) return;
            points = std::min(points, Wide{most} + 1) * b.extent(k);
        }
        if (points > most) say(entry, b, " has more than 2^60 points");
    }
    static void index(const Index& x, const std::string& entry, std::int64_t largest) {
        for (const std::int64_t v : x)
            if (v < -largest || v > largest) wrong(entry, "it has a component", v, -largest, largest);
    }
    static void length(const Index& x, const std::string& entry, int dims) {
        if (x.n != 0 && x.n != dims) say(entry, x, " has ", x.n, " components; allowed: none or ", dims);
    }
    // The largest sum of coefficients times coordinates of a box.
    static Wide sum(const Index& coefficients, const Box& b) {
        Wide all = 0;
        for (int k = 0; k < coefficients.n; ++k)
            all += Wide{std::abs(coefficients[k])} * std::max(std::abs(b.lo[k]), std::abs(b.hi[k]));
        return all;
    }
    static void linear(const Index& coefficients, std::int64_t constant, const Box& b, const std::string& entry) {
        index(coefficients, entry, most);
        if (constant < -most || constant > most) wrong(entry, "its constant is", constant, -most, most);
        if (sum(coefficients, b) > most) say(entry, coefficients, " times points of ", b, " is more than 2^60");
    }

    void array(const Array& a, std::size_t, const std::string& entry) {
        const int n = a.storage.dims();
        if (a.item_bytes < 1 || a.item_bytes > most_item_bytes)
            wrong(entry + ".item_bytes", "it is", a.item_bytes, 1, most_item_bytes);
        box(a.storage, entry + ".storage");
        box(a.owned, entry + ".owned", n);
        if (a.storage.points() > most / a.item_bytes) say(entry + ".storage", "it has more than 2^60 bytes");
        length(a.stride, entry + ".stride", n);
        linear(a.stride, 0, a.storage, entry + ".stride");
        length(a.period, entry + ".period", n);
        index(a.period, entry + ".period", most_coordinate);
        for (const std::int64_t p : a.period)
            if (p < 0) wrong(entry + ".period", "it has", p, 0, most_coordinate);
        length(a.reach, entry + ".reach", n);
        index(a.reach, entry + ".reach", most_reach);
        if (a.time_buffers < 0 || a.time_buffers > most_times)
            wrong(entry + ".time_buffers", "it is", a.time_buffers, 0, most_times);
        if (a.planes < 0 || a.planes > most_times) wrong(entry + ".planes", "it is", a.planes, 0, most_times);
        if (n == 0 && (a.time_buffers > 0 || a.planes > 0) && !a.whole)
            say(entry + ".storage", "it has no dimensions, of time buffers or planes");
        if (a.planes > 0 && a.reach.n != n) say(entry + ".reach", "an array in planes has none");
        if (a.lacks >> max_dims) wrong(entry + ".lacks", "it is", a.lacks, 0, (1 << max_dims) - 1);
        view(a, entry + ".view");
    }

    void view(const Array& a, const std::string& entry) {
        const View& v = a.view;
        if (v.memory < -1) say(entry + ".memory", "it is ", v.memory, "; allowed: -1 and above");
        if (v.buffers < 0 || v.buffers > most_times) wrong(entry + ".buffers", "it is", v.buffers, 0, most_times);
        if (v.rows.empty()) return;
        const std::string name = "an array has a view ";
        if (v.memory < 0) say(entry, name + "without a memory");
        if (v.rows.size() > max_dims || v.shift.n != static_cast<int>(v.rows.size()))
            say(entry, name, "of ", v.rows.size(), " rows and a shift of ", v.shift.n);
        for (std::size_t d = 0; d < v.rows.size(); ++d) {
            if (!a.storage.empty() && v.rows[d].n != a.storage.dims())
                say(entry, name, "with row ", v.rows[d], " for storage ", a.storage);
            linear(v.rows[d], v.shift[static_cast<int>(d)], a.storage, entry + ".rows");
        }
    }

    // Arrays in one memory see as many dimensions of it.
    void memories() {
        std::vector<std::pair<std::int32_t, int>> seen;
        for (std::size_t i = 0; i < s_.arrays.size(); ++i) {
            const Array& a = s_.arrays[i];
            if (a.view.memory < 0 || a.whole || a.storage.empty()) continue;
            const int dims = a.view.rows.empty() ? a.storage.dims() : a.view.shift.n;
            for (const auto& [memory, other] : seen)
                if (memory == a.view.memory && other != dims)
                    say(concat("arrays[", i, "].view"), "memory ", memory, " has ", dims, " dimensions here, and ",
                        other, " for another array");
            seen.emplace_back(a.view.memory, dims);
        }
    }

    void regions(const std::vector<Region>& list, const std::string& entry, const std::string& name) {
        for (std::size_t i = 0; i < list.size(); ++i) {
            const Region& r = list[i];
            const std::string where = concat(entry, "[", i, "]");
            names(where, name, "array", r.array, s_.arrays.size());
            const Box& storage = s_.arrays[r.array].storage;
            if (r.box.dims() != storage.dims())
                say(where, name, " declares region ", r.box, ", the storage of array ", r.array, " is ", storage);
            box(r.box, where, storage.dims());
        }
    }

    void work(const Work& w, std::size_t i, const std::string& entry) {
        const std::string name = concat("work ", w.number);
        if (i > 0 && w.number <= s_.works[i - 1].number)
            say(entry + ".number", name, " follows work ", s_.works[i - 1].number, " in the list; numbers only grow");
        if (w.number < -most || w.number > most) wrong(entry + ".number", "it is", w.number, -most, most);
        if (const TaskWork* task = w.task()) {
            if (task->operation < 0) say(entry + ".operation", "it is ", task->operation, "; allowed: 0 and above");
            if (!std::isfinite(task->amount) || task->amount < 0 || task->amount > 1e30)
                say(entry + ".amount", "it is ", task->amount, "; allowed: 0 to 1e30");
            regions(task->reads, entry + ".reads", name);
            regions(task->writes, entry + ".writes", name);
        } else {
            nest(*w.nest(), entry, name);
        }
    }

    void nest(const NestWork& nest, const std::string& entry, const std::string& name) {
        const int n = nest.space.dims();
        box(nest.space, entry + ".space");
        if (nest.kernel < 0) say(entry + ".kernel", "it is ", nest.kernel, "; allowed: 0 and above");
        for (std::size_t i = 0; i < nest.places.size(); ++i) {
            const Access& p = nest.places[i];
            const std::string where = concat(entry, ".places[", i, "]");
            names(where, "a place", "array", p.array, s_.arrays.size());
            const Array& a = s_.arrays[p.array];
            if (p.offset.n != n || (!a.whole && a.storage.dims() != n))
                say(where, "a place of ", name, " has offset ", p.offset, ", its nest the space ", nest.space,
                    " and its array the storage ", a.storage);
            index(p.offset, where, most_coordinate);
        }
        for (std::size_t i = 0; i < nest.bounds.size(); ++i) {
            const std::string where = concat(entry, ".bounds[", i, "]");
            if (nest.bounds[i].coefficients.n != n)
                say(where, nest.bounds[i].coefficients, " was given for ", n, " loops");
            linear(nest.bounds[i].coefficients, nest.bounds[i].constant, nest.space, where);
        }
        if (nest.order.n != 0 && !(nest.order.n == n && orders(nest.order)))
            say(entry + ".order",
                "it is no order of loops; allowed: unit vectors; the last but one may be the sum of its unit "
                "vector and "
                "the last one");
        if (nest.loops.n != 0 && nest.loops.n != n)
            say(entry + ".loops", "it has ", nest.loops.n, " rows for ", n, " loops");
        for (int k = 0; k < nest.loops.n; ++k) linear(nest.loops.row[k], 0, nest.space, entry + ".loops");
        length(nest.period, entry + ".period", n);
        for (const std::int64_t p : nest.period)
            if (p < 0 || p > most_coordinate) wrong(entry + ".period", "it has", p, 0, most_coordinate);
        if (nest.step < 0 || nest.step > most_times) wrong(entry + ".step", "it is", nest.step, 0, most_times);
        box(nest.own, entry + ".own", nest.own.dims() == 0 ? 0 : n);
        const WindowShape& w = nest.window;
        const bool none = w.along == -1 && w.across == -1,
                   right = w.along >= 0 && w.along < n && w.across >= 0 && w.across < n && w.along != w.across;
        if ((!none && !right) || w.slant < 0 || w.slant > 1)
            say(entry + ".window", "it has along ", w.along, ", across ", w.across, ", slant ", w.slant,
                "; allowed: -1, or two of the ", n, " loops; 0, 1");
        for (const Array& a : s_.arrays)
            if (a.planes > 0 && none) say(entry + ".window", "it has none, and an array is in planes");
    }

    // As Plan::order makes them.
    static bool orders(const IndexMatrix& m) {
        unsigned used = 0;
        for (int k = 0; k < m.n; ++k) {
            unsigned ones = 0;
            for (int l = 0; l < m.n; ++l) {
                if (m.row[k][l] != 0 && m.row[k][l] != 1) return false;
                if (m.row[k][l] == 1) ones |= 1u << l;
            }
            // The sum of two ends in a row along their difference.
            if (k == m.n - 2)
                for (int l = 0; l < m.n; ++l)
                    if (m.row[m.n - 1][l] == 1 && ones != 1u << l) ones &= ~(1u << l);
            if (ones == 0 || (ones & (ones - 1)) || (used & ones)) return false;
            used |= ones;
        }
        return true;
    }

    void tile(const Tile& t, std::size_t, const std::string& entry) {
        names(entry + ".work", "a tile", "work", t.work, s_.works.size());
        const NestWork* nest = s_.works[t.work].nest();
        box(t.box, entry + ".box", nest ? nest->space.dims() : -1);
        if (!nest) return;
        if (t.box.dims() == 0) say(entry + ".box", "it is a tile of a nest without loops");
        for (const Bound& b : nest->bounds) linear(b.coefficients, b.constant, t.box, entry + ".box");
        for (int k = 0; k < nest->loops.n; ++k) linear(nest->loops.row[k], 0, t.box, entry + ".box");
    }

    // Bytes of the planes next to all tiles.
    void windows() const {
        Box tiles;
        for (const Tile& t : s_.tiles) tiles = tiles.dims() == 0 ? t.box : hull(tiles, t.box);
        for (std::size_t a = 0; a < s_.arrays.size(); ++a) {
            const Array& array = s_.arrays[a];
            if (array.planes == 0) continue;
            const std::string entry = concat("arrays[", a, "].planes");
            if (s_.works.size() != 1 || !s_.works[0].nest())
                say(entry, "rolling windows are for schedules of one nest");
            Wide bytes = Wide{array.planes} * array.item_bytes;
            for (int k = 0; k < tiles.dims(); ++k)
                bytes = std::min(bytes, Wide{most} + 1) * (tiles.extent(k) + std::max<std::int64_t>(array.reach[k], 1));
            if (bytes > most) say(entry, "they have more than 2^60 bytes");
        }
    }

    void buffers() {
        std::int64_t all = 0;
        for (std::size_t i = 0; i < s_.buffers.size(); ++i) {
            const std::string entry = concat("buffers[", i, "]");
            if (s_.buffers[i] < 0 || s_.buffers[i] > most - all) wrong(entry, "it has", s_.buffers[i], 0, most - all);
            all += s_.buffers[i];
        }
    }

    void message(const Message& m, std::size_t i, const std::string& entry) {
        const std::string name = concat("message ", i);
        names(entry + ".array", name, "array", m.array, s_.arrays.size());
        if (m.buffer != -1) names(entry + ".buffer", name, "buffer", m.buffer, s_.buffers.size());
        if (m.tile != -1) names(entry + ".tile", name, "tile", m.tile, s_.tiles.size());
        if (m.peer < 0 || m.peer >= s_.ranks)
            say(entry + ".peer", name, " has peer ", m.peer, " of ", s_.ranks, " ranks");
        if (m.tag < 0) say(entry + ".tag", name, " has tag ", m.tag, "; allowed: 0 and above");
        if (m.bytes < 0 || m.bytes > most) wrong(entry + ".bytes", "it has", m.bytes, 0, most);
        if (m.at < 0 || m.at > most) wrong(entry + ".at", "it is", m.at, 0, most);
        if (m.aggregate != -1) names(entry + ".aggregate", name, "aggregate", m.aggregate, i);
        if (m.pieces < 0 || static_cast<std::size_t>(m.pieces) >= s_.messages.size() - i)
            say(entry + ".pieces", name, " of ", m.pieces, " parts has not so many after it");
        const Box& storage = s_.arrays[m.array].storage;
        const int dims = m.pieces > 0 ? 0 : storage.dims();
        if (m.region.dims() != dims)
            say(entry + ".region", name, " has region ", m.region, ", the storage of its array is ", storage);
        box(m.region, entry + ".region", dims);
    }

    void steps() {
        for (std::size_t l = 0; l < s_.lanes.size(); ++l)
            for (std::size_t i = 0; i < s_.lanes[l].size(); ++i) {
                try {
                    step(s_.lanes[l][i]);
                } catch (const Damage& found) {
                    throw Damage{concat("lanes[", l, "][", i, "]"), found.why, static_cast<int>(l), i};
                }
            }
    }
    void step(const Step& step) const {
        switch (step.op) {
            case Op::signal: return;
            case Op::compute: return names("", "compute", "item", step.item, s_.tiles.size());
            case Op::await: return names("", "await", "item", step.item, s_.lanes.size());
            default: break;
        }
        names("", to_string(step.op), "item", step.item, s_.messages.size());
        if (step.op != Op::combine || step.count == combine_array_right || step.count == combine_array_left) return;
        if (step.count < 0 || static_cast<std::size_t>(step.count) >= s_.messages.size())
            say("", "combine of message ", step.item, " has count ", step.count, "; -1, -2 and numbers of the ",
                s_.messages.size(), " messages are allowed");
    }

    void result(const Result& r, std::size_t i, const std::string& entry) {
        const std::string name = concat("result ", i);
        for (const std::int32_t array : {r.array, r.source}) names(entry, name, "array", array, s_.arrays.size());
        for (const std::int32_t rank : r.ranks)
            names(entry + ".ranks", name, "rank", rank, static_cast<std::size_t>(s_.ranks));
        const int dims = s_.arrays[r.array].storage.dims();
        if (s_.arrays[r.source].storage.dims() != dims && !r.region.empty())
            say(entry + ".source", "array ", r.source, " has other dimensions than array ", r.array);
        box(r.region, entry + ".region", dims);
    }

    void repeated() {
        if (s_.repeated.empty()) return;
        if (s_.repeated.size() != s_.lanes.size())
            say("repeated", "the block has ranges for ", s_.repeated.size(), " lanes; there are ", s_.lanes.size());
        for (std::size_t l = 0; l < s_.lanes.size(); ++l) {
            const auto [begin, end] = s_.repeated[l];
            if (begin >= 0 && begin <= end && static_cast<std::size_t>(end) <= s_.lanes[l].size()) continue;
            throw Damage{
                concat("repeated[", l, "]"),
                concat("the block has steps ", begin, " to ", end, " of a lane of ", s_.lanes[l].size(), " steps"),
                static_cast<int>(l)};
        }
    }

    void advance() {
        if (s_.advance.n == 0) return;
        index(s_.advance, "advance", most_coordinate);
        for (const Work& w : s_.works)
            if (!w.nest() || w.nest()->space.dims() != s_.advance.n)
                say("advance", "it has ", s_.advance.n,
                    " components; allowed: as many as the "
                    "loops of each work, which are nests");
    }

    const Schedule& s_;
};

}  // namespace

std::optional<Damage> damage(const Schedule& schedule) {
    try {
        Look(schedule).all();
        return std::nullopt;
    } catch (const Damage& found) {
        return found;
    }
}

}  // namespace tilewave
