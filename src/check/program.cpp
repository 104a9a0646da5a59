#include "check/program.hpp"

#include <algorithm>
#include <set>

#include "core/concat.hpp"
#include "schedule/tile_rows.hpp"

namespace tilewave {

namespace {

// The lowest and the highest point of a memory that an array's storage covers.
Box image(const View& view, const Box& storage) {
    Box box{view.shift, view.shift};
    for (int d = 0; d < box.dims(); ++d) {
        for (int k = 0; k < storage.dims(); ++k) {
            const std::int64_t by = view.rows[d][k], ends[] = {by * storage.lo[k], by * (storage.hi[k] - 1)};
            box.lo[d] += std::min(ends[0], ends[1]);
            box.hi[d] += std::max(ends[0], ends[1]);
        }
        ++box.hi[d];
    }
    if (view.buffers > 0) box = box.with(0, 0, view.buffers);
    return box;
}

// The periods of an array, along the dimensions of its memory.
void add_periods(const Array& array, Index& periods) {
    if (array.period.n == 0 || array.whole) return;
    const View& view = array.view;
    const int dims = view.rows.empty() ? array.period.n : static_cast<int>(view.rows.size());
    if (periods.n == 0) periods = Index::filled(dims, 0);
    for (int d = 0; d < dims; ++d)
        for (int k = 0; k < array.period.n; ++k)
            if (array.period[k] > 0 && (view.rows.empty() ? k == d : view.rows[d][k] != 0))
                periods[d] = array.period[k];
}

}  // namespace

CellSpaces::CellSpaces(std::span<const Schedule> schedules) {
    const std::vector<Array>& arrays = schedules[0].arrays;
    for (std::size_t a = 0; a < arrays.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
            points_ = points_ || (arrays[a].view.memory >= 0 && arrays[a].view.memory == arrays[b].view.memory &&
                                  !(arrays[a].view == arrays[b].view));
    const bool wraps = std::ranges::any_of(arrays, [](const Array& a) { return a.period.n > 0; });
    points_ = points_ || (wraps && schedules[0].works.size() > 1);
    for (const Schedule& s : schedules) {
        for (const Work& work : s.works) {
            if (const NestWork* nest = work.nest())
                for (const Box* box : {&nest->space, &nest->own})
                    if (box->dims() > 0) add(*box);
            if (const TaskWork* task = work.task())
                for (const auto* regions : {&task->reads, &task->writes})
                    for (const Region& r : *regions) add(r.box);
        }
        for (const Array& a : s.arrays) {
            if (a.whole) continue;
            if (a.time_buffers > 0) add_times(a);
            add(a.storage);
            add(a.owned);
        }
        for (const Message& m : s.messages) add(m.region);
        for (const Result& r : s.results) add(r.region);
        for (const Tile& t : s.tiles) add_tile(s, t);
    }
    for (const Schedule& s : schedules)
        for (const Work& work : s.works)
            if (const NestWork* nest = work.nest())
                for (int k = 0; k < nest->period.n; ++k)
                    if (nest->period[k] > 0) cells_[nest->space.dims()].repeat(k, nest->period[k]);
    for (Cells& c : cells_) c.finish(points_);
}

// Each time is one cell.
void CellSpaces::add_times(const Array& array) {
    Cells::refuse_many(array.storage.extent(0));
    for (std::int64_t t = array.storage.lo[0]; t < array.storage.hi[0]; ++t) add(array.storage.with(0, t, t + 1));
}

void CellSpaces::add_tile(const Schedule& s, const Tile& t) {
    const NestWork* nest = s.works[t.work].nest();
    if (!nest) return;
    add(t.box);
    for (const Access& p : nest->places) add(s.arrays[p.array].elements(t.box.shifted(p.offset)));
}

Elements::Elements(std::span<const Schedule> schedules, const CellSpaces& spaces) : spaces_(spaces) {
    std::map<std::int32_t, int> shared;
    for (std::size_t a = 0; a < schedules[0].arrays.size(); ++a) {
        arrays_.push_back(schedules[0].arrays[a]);
        Array& array = arrays_.back();
        for (const Schedule& s : schedules) array.storage = hull(array.storage, s.arrays[a].storage);
        const View& view = array.view;
        int memory = static_cast<int>(counts_.size());
        if (view.memory >= 0) memory = shared.try_emplace(view.memory, memory).first->second;
        memory_of_.push_back(memory);
        if (memory == static_cast<int>(counts_.size())) {
            counts_.push_back(0);
            boxes_.emplace_back();
            periods_.emplace_back();
        }
        add_periods(array, periods_[memory]);
        Box& box = boxes_[memory];
        if (!array.storage.empty() && !array.whole)
            box = hull(box, view.rows.empty() ? array.storage : image(view, array.storage));
    }
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
        std::size_t& count = counts_[memory_of_[a]];
        if (arrays_[a].whole || arrays_[a].storage.empty()) continue;
        const Box& box = boxes_[memory_of_[a]];
        std::int64_t points = 1;
        for (int k = 0; spaces_.points() && k < box.dims(); ++k)
            if (box.extent(k) > most_cells)
                Cells::refuse_many(box.extent(k));
            else
                Cells::refuse_many(points *= box.extent(k));
        count = spaces_.points() ? static_cast<std::size_t>(box.points())
                                 : std::max(count, spaces_.of(arrays_[a].storage).count(arrays_[a].storage));
    }
}

Index Elements::coordinates(int array, const Index& z) const {
    const Array& a = arrays_[array];
    if (a.view.rows.empty()) {
        Index at = z;
        if (a.time_buffers > 0) at[0] = a.storage.lo[0] + floor_mod(z[0] - a.storage.lo[0], a.time_buffers);
        return at;
    }
    Index at = a.view.shift;
    for (int d = 0; d < at.n; ++d)
        for (int k = 0; k < z.n; ++k) at[d] += a.view.rows[d][k] * z[k];
    if (a.view.buffers > 0) at[0] = floor_mod(at[0], a.view.buffers);
    return at;
}

std::size_t Elements::number(int array, const Index& cell) const {
    const Array& a = arrays_[array];
    const Cells& cells = spaces_.of(cell.n);
    if (spaces_.points()) {
        return linear(memory_of(array), coordinates(array, cells.low_corner(cell)));
    }
    Index at = cell;
    if (a.time_buffers > 0) {
        const std::int64_t first = cells.cells(a.storage).lo[0];
        at[0] = first + (at[0] - first) % a.time_buffers;
    }
    return cells.linear(a.storage, at);
}

std::size_t Elements::linear(int memory, const Index& at) const {
    const Box& box = boxes_[memory];
    std::int64_t q = 0;
    for (int k = 0; k < at.n; ++k) q = q * box.extent(k) + at[k] - box.lo[k];
    return static_cast<std::size_t>(q);
}

std::size_t Elements::element(int array, const Index& cell) const {
    const Index& period = periods_[memory_of(array)];
    if (!spaces_.points() || period.n == 0) return number(array, cell);
    Index at = coordinates(array, spaces_.of(cell.n).low_corner(cell));
    for (int k = 0; k < at.n; ++k)
        if (period[k] > 0) at[k] = floor_mod(at[k], period[k]);
    return linear(memory_of(array), at);
}

Program::Program(std::span<const Schedule> schedules, VersionTable& table)
    : schedules_(schedules), table_(table), spaces_(schedules), elements_(schedules, spaces_) {
    list_entries();
    bool between = false;
    for (const Schedule& s : schedules_)
        for (const Result& r : s.results) between = between || r.number != Result::at_the_end;
    several_ = entries_.size() > 1 || between;
    if (several_) write_history();
}

void Program::list_entries() {
    std::map<std::int64_t, const Work*> works;
    for (const Schedule& s : schedules_)
        for (const Work& w : s.works) works.try_emplace(w.number, &w);
    std::map<std::int64_t, int> position;
    std::int64_t value = 0;
    for (const auto& [number, work] : works) {
        position[number] = static_cast<int>(entries_.size());
        Entry e{number, work, value};
        if (const NestWork* nest = work->nest()) {
            e.written.assign(schedules_[0].arrays.size(), Entry::Written::never);
            for (const Access& p : nest->places) {
                if (!p.writes) break;
                Entry::Written& w = e.written[p.array];
                const bool once =
                    w == Entry::Written::never && p.offset == Index::filled(p.offset.n, 0) && array(p.array).lacks == 0;
                w = once ? Entry::Written::once : Entry::Written::often;
            }
            const Cells& cells = spaces_.of(nest->space);
            e.planned.assign(cells.count(cells.all()), 0);
            e.computed = e.reduced = e.planned;
        }
        for (std::size_t a = 0; a < schedules_[0].arrays.size(); ++a) {
            if (writes_index(e, static_cast<int>(a)) < 0) continue;
            std::int64_t times = 1;
            for (const Schedule& s : schedules_)
                if (s.arrays[a].time_buffers > 0) times = std::max(times, s.arrays[a].storage.extent(0));
            e.values = std::max(e.values, times * (array(static_cast<int>(a)).separate ? schedules_[0].ranks : 1));
        }
        value += e.values * static_cast<std::int64_t>(std::max<std::size_t>(schedules_[0].arrays.size(), 1));
        entries_.push_back(std::move(e));
    }
    for (const Schedule& s : schedules_) {
        entry_of_.emplace_back();
        for (const Work& w : s.works) entry_of_.back().push_back(position[w.number]);
    }
    for (Entry& e : entries_)
        if (e.work->nest()) plan_nest(e);
}

void Program::plan_nest(Entry& e) {
    const NestWork& nest = *e.work->nest();
    const Cells& cells = spaces_.of(nest.space);
    for (const Schedule& s : schedules_)
        for (const Tile& t : s.tiles) {
            if (&entry(s.rank, t.work) != &e) continue;
            cells.for_each(t.box, [&](const Index& cell) {
                const bool within = nest.bounds.empty() || TileRows(nest, intersect(cells.box_of(cell), t.box)).first();
                char& planned = e.planned[cells.linear(cells.all(), in_the_space(nest, cell))];
                planned = std::max<char>(planned, within ? 2 : 1);
            });
        }
    if (!nest.bounds.empty()) leave_out_corners(e, cells);
}

// Cells of tiles that hold no point within the bounds at any time.
void Program::leave_out_corners(Entry& e, const Cells& cells) {
    const std::size_t times = static_cast<std::size_t>(cells.cells(cells.all()).extent(0));
    if (times == 0) return;
    const std::size_t one = e.planned.size() / times;
    for (std::size_t c = 0; c < one; ++c) {
        char most = 0;
        for (std::size_t t = 0; t < times; ++t) most = std::max(most, e.planned[t * one + c]);
        for (std::size_t t = 0; t < times && most == 1; ++t) e.planned[t * one + c] = 0;
    }
}

Index Program::in_the_space(const NestWork& nest, Index cell) const {
    if (nest.period.n == 0) return cell;
    const Cells& cells = spaces_.of(cell.n);
    const Index first = cells.low_corner(cell);
    Box canonical{first, first};
    for (int k = 0; k < first.n; ++k) {
        if (nest.period[k] > 0) canonical.lo[k] = floor_mod(first[k], nest.period[k]);
        canonical.hi[k] = canonical.lo[k];
    }
    return cells.cells(canonical).lo;
}

bool Program::planned(const Entry& e, const Array& array, const Index& cell) const {
    const Cells& cells = spaces_.of(cell.n);
    return e.planned[cells.linear(cells.all(), in_the_space(*e.work->nest(), cell))] > (array.time_buffers > 0 ? 0 : 1);
}

int Program::writes_index(const Entry& e, int array) const {
    if (e.work->nest()) return e.written[array] == Entry::Written::never ? -1 : array;
    for (const Region& r : e.work->task()->writes)
        if (r.array == array) return array;
    return -1;
}

Version Program::value(const Entry& e, int rank, int array, const Index& cell) const {
    const Array& a = this->array(array);
    std::int64_t i = a.separate ? rank : 0;
    if (a.time_buffers > 0 && e.work->nest()) {
        std::int64_t first = std::numeric_limits<std::int64_t>::max();
        for (const Schedule& s : schedules_)
            if (!s.arrays[array].storage.empty()) first = std::min(first, s.arrays[array].storage.lo[0]);
        i = spaces_.of(cell.n).low_corner(cell)[0] - first;
    }
    return computed(e.first_value + array * e.values + i);
}

Version Program::start(int rank, int array) const {
    const int memory = elements_.memory_of(array);
    return this->array(array).separate ? table_.leaf(rank, memory) : given(memory);
}

std::vector<Program::Event>& Program::history(int rank, int array, std::size_t element) {
    const int memory = elements_.memory_of(array);
    const std::size_t of = this->array(array).separate ? static_cast<std::size_t>(rank) * elements_.count(memory) : 0;
    return history_[memory][static_cast<std::int64_t>(of + element)];
}

const std::vector<Program::Event>* Program::find(int rank, int array, std::size_t element) const {
    const int memory = elements_.memory_of(array);
    const std::size_t of = this->array(array).separate ? static_cast<std::size_t>(rank) * elements_.count(memory) : 0;
    const auto& all = history_[memory];
    const auto at = all.find(static_cast<std::int64_t>(of + element));
    return at == all.end() ? nullptr : &at->second;
}

// After all entries before the one at `position`.
Expected Program::held(int rank, int array, const Index& cell, int position) const {
    if (several_)
        if (const std::vector<Event>* events = find(rank, array, elements_.element(array, cell)))
            for (auto e = events->rbegin(); e != events->rend(); ++e)
                if (e->position < position) return e->expected;
    return {start(rank, array)};
}

Expected Program::before(const Entry& entry, int rank, int array, const Index& cell) const {
    return held(rank, array, cell, static_cast<int>(&entry - entries_.data()));
}

Expected Program::at_the_end(int rank, int array, const Index& cell) const {
    if (several_ || entries_.empty()) return held(rank, array, cell, static_cast<int>(entries_.size()) + 1);
    const Entry& only = entries_[0];
    bool written = writes_index(only, array) >= 0;
    if (written && only.work->nest()) written = planned(only, this->array(array), cell);
    if (const TaskWork* task = only.work->task(); written && task)
        written = std::ranges::any_of(
            task->writes, [&](const Region& r) { return r.array == array && spaces_.of(r.box).inside(cell, r.box); });
    return {written ? value(only, rank, array, cell) : start(rank, array)};
}

bool Program::right(Version found, const Expected& e) const {
    return e.list < 0 ? found == e.version : table_.joins(found, lists_[e.list]);
}

std::string Program::text(const Expected& e) const {
    if (e.list < 0) return table_.text(e.version);
    const Versions& list = lists_[e.list];
    return combined_text(list, static_cast<std::int64_t>(list.size()));
}

std::string Program::combined_text(Version v) const {
    constexpr std::size_t shown = 32;
    return combined_text(table_.leaves(v, shown), table_.count(v));
}

// "array 0 on ranks 0, 2, 1 combined (works 3, 3, 3)", where all are computed values of one separate array.
std::string Program::combined_text(const Versions& leaves, std::int64_t count) const {
    std::string ranks, works;
    std::int64_t array = -1;
    for (const Version v : leaves) {
        if (v >= missing) return table_.text(leaves, count);
        const std::int64_t value = missing - 1 - std::int64_t{v};
        auto of = std::ranges::upper_bound(entries_, value, {}, &Entry::first_value);
        if (of == entries_.begin()) return table_.text(leaves, count);
        const Entry& e = *--of;
        const std::int64_t a = (value - e.first_value) / e.values;
        if ((array >= 0 && a != array) || !this->array(static_cast<int>(a)).separate) return table_.text(leaves, count);
        array = a;
        ranks += concat((ranks.empty() ? "" : ", "), (value - e.first_value) % e.values);
        works += concat((works.empty() ? "" : ", "), e.number);
    }
    const bool all = static_cast<std::int64_t>(leaves.size()) == count;
    return concat("the values of array ", array, " of rank", (count > 1 ? "s " : " "), ranks, (all ? "" : ", ..."),
                  (count > 1 ? " combined" : ""), " (of work", (count > 1 ? "s " : " "), works, (all ? ")" : ", ...)"));
}

void Program::write_history() {
    history_.resize(elements_.memories());
    std::map<std::int64_t, bool> done;
    for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
        const Entry& e = entries_[i];
        write_results(e.number, i - 1, done);
        if (e.work->nest())
            write_nest(e, i);
        else
            write_task(e, i);
    }
    write_results(Result::at_the_end, static_cast<int>(entries_.size()), done);
}

void Program::write_nest(const Entry& e, int position) {
    const auto note = [&](int a, const Index& cell) {
        std::vector<Event>& events = history(0, a, elements_.element(a, cell));
        const Expected now{value(e, 0, a, cell)};
        if (!events.empty() && events.back().position == position)
            events.back().expected = now;
        else
            events.push_back({position, now});
    };
    const Cells& cells = spaces_.of(e.work->nest()->space);
    for (std::size_t a = 0; a < e.written.size(); ++a) {
        const Array& array = this->array(static_cast<int>(a));
        if (e.written[a] == Entry::Written::once)
            cells.for_each(cells.all(), [&](const Index& cell) {
                if (planned(e, array, cell)) note(static_cast<int>(a), cell);
            });
        if (e.written[a] != Entry::Written::often) continue;
        for (const Schedule& s : schedules_)
            for (const Tile& t : s.tiles) {
                if (&entry(s.rank, t.work) != &e) continue;
                for (const Access& p : e.work->nest()->places)
                    if (p.writes && p.array == static_cast<std::int32_t>(a))
                        cells.for_each(array.elements(t.box.shifted(p.offset)),
                                       [&](const Index& cell) { note(static_cast<int>(a), cell); });
            }
    }
}

void Program::write_task(const Entry& e, int position) {
    const std::set<std::int32_t> arrays = [&] {
        std::set<std::int32_t> all;
        for (const Region& r : e.work->task()->writes) all.insert(r.array);
        return all;
    }();
    for (const Schedule& s : schedules_)
        for (const Work& w : s.works) {
            if (w.number != e.number) continue;
            for (const Region& r : w.task()->writes)
                spaces_.of(r.box).for_each(r.box, [&](const Index& cell) {
                    std::vector<Event>& events = history(s.rank, r.array, elements_.element(r.array, cell));
                    if (events.empty() || events.back().position != position)
                        events.push_back({position, {value(e, s.rank, r.array, cell)}});
                });
        }
}

// The results that stand before the works of a number: they take the values of what was before all of them.
void Program::write_results(std::int64_t number, int position, std::map<std::int64_t, bool>& done) {
    std::set<std::int64_t> numbers;
    for (const Schedule& s : schedules_)
        for (const Result& r : s.results)
            if (r.number <= number && r.number != Result::at_the_end && !done[r.number]) numbers.insert(r.number);
    for (const std::int64_t now : numbers) {
        done[now] = true;
        struct Change {
            int rank, array;
            std::size_t element;
            Expected expected;
        };
        std::vector<Change> changes;
        for (const Schedule& s : schedules_)
            for (const Result& r : s.results) {
                if (r.number != now) continue;
                spaces_.of(r.region).for_each(r.region, [&](const Index& cell) {
                    Expected e;
                    Versions leaves;
                    for (const int rank : r.ranks) {
                        e = held(rank, r.source, cell, position + 1);
                        if (e.list >= 0)
                            leaves.insert(leaves.end(), lists_[e.list].begin(), lists_[e.list].end());
                        else
                            leaves.push_back(e.version);
                    }
                    if (r.ranks.size() > 1) {
                        const auto known = std::ranges::find(lists_, leaves);
                        e = {missing, static_cast<int>(known - lists_.begin())};
                        if (known == lists_.end()) lists_.push_back(leaves);
                    }
                    changes.push_back({s.rank, r.array, elements_.element(r.array, cell), e});
                });
            }
        for (const Change& c : changes) {
            std::vector<Event>& events = history(c.rank, c.array, c.element);
            if (!events.empty() && events.back().position == position)
                events.back().expected = c.expected;
            else
                events.push_back({position, c.expected});
        }
    }
}

}  // namespace tilewave
