#include "generate/chain/chain.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "core/concat.hpp"
#include "generate/nest/nest.hpp"
#include "schedule/compose.hpp"

namespace tilewave {

namespace {

// Maps element z of array `a` to indices of its memory. Of a timed memory dimension 0 counts time buffers; `written`:
// the steps that parts before this one have written of it.
View view_of(const ChainPart& part, int a, std::int32_t memory, const TimedMemory* timed, std::int64_t written) {
    const SweepProblem& problem = part.problem;
    const NestArray& array = problem.arrays[a];
    const IndexMatrix back = inverse(problem.loops);
    const Index shift = problem.shift(a);
    const int first = timed ? 1 : 0;
    View view{memory, {}, Index::filled(first + array.axes.n, 0), 0};
    if (timed) {
        view.rows.push_back(Index::filled(problem.dims(), 0));
        view.buffers = timed->buffers;
        // The last step of all is in the first buffer, and the current one in that of the steps that follow.
        view.shift[0] = timed->steps - written;
        if (array.time_buffers > 1) {
            view.rows[0][0] = -1;
            view.shift[0] += problem.space.lo[0] - 1;
        }
        view.shift[0] = floor_mod(view.shift[0], view.buffers);
    }
    for (int d = 0; d < array.axes.n; ++d) {
        const int k = static_cast<int>(array.axes[d]);
        const std::int64_t scale = array.scale.n ? array.scale[d] : 1;
        view.rows.push_back(back.row[k]);
        for (auto& entry : view.rows.back().v) entry *= scale;
        view.shift[first + d] = scale * shift[k] + (array.scale.n ? array.residue[d] : 0);
    }
    return view;
}

// All buffers of an array, as they lie in memory.
Array all_buffers(Array array, int buffers) {
    for (Box* box : {&array.storage, &array.owned}) {
        box->lo[0] = 0;
        box->hi[0] = buffers;
    }
    array.view.rows[0][0] = 1;
    array.view.shift[0] = 0;
    array.time_buffers = 0;
    return array;
}

bool takes_a_step(const ChainPart& part, int a) {
    return part.problem.arrays[a].time_buffers > 1;
}

// Points that no run of the nest writes lie among those that it writes.
bool has_gaps(const SweepProblem& p, int a) {
    return !p.bounds.empty() &&
           std::ranges::any_of(p.accesses, [a](const Access& w) { return w.writes && w.array == a && !w.keeps; });
}

// The elements that points of the space write, in the array's dimensions.
Box written_elements(const SweepProblem& problem, int a) {
    const Index &axes = problem.arrays[a].axes, shift = problem.shift(a);
    Box box{axes, axes};
    for (int d = 0; d < axes.n; ++d) {
        const int k = static_cast<int>(axes[d]);
        box.lo[d] = problem.space.lo[k] + shift[k];
        box.hi[d] = problem.space.hi[k] + shift[k];
    }
    return box;
}

// Tasks of one rank as a schedule: a work for each lane and piece, with the arrays of the whole.
class Tasks {
public:
    Tasks(const Schedule& whole, int lanes, std::int64_t pieces) : lanes_(lanes), pieces_(pieces) {
        s_.arrays = whole.arrays;
        s_.rank = whole.rank;
        s_.ranks = whole.ranks;
        s_.lanes.resize(lanes);
        tasks_.resize(static_cast<std::size_t>(lanes * pieces));
    }
    void add(std::int64_t lane, std::int64_t piece, std::int32_t array, const Box& reads, const Box& writes) {
        if (writes.empty()) return;
        TaskWork& task = tasks_[static_cast<std::size_t>(lane * pieces_ + piece)];
        task.reads.push_back({array, reads});
        task.writes.push_back({array, writes});
        task.amount += static_cast<double>(writes.points());
    }
    std::int64_t pieces() const { return pieces_; }
    Schedule made(std::int32_t operation) {
        const std::int64_t first = static_cast<std::int64_t>(s_.rank) * lanes_ * pieces_;
        for (std::size_t i = 0; i < tasks_.size(); ++i) {
            if (tasks_[i].writes.empty()) continue;
            tasks_[i].operation = operation;
            Tile tile;
            tile.work = static_cast<std::int32_t>(s_.works.size());
            s_.works.push_back({first + static_cast<std::int64_t>(i), std::move(tasks_[i])});
            s_.lanes[i / static_cast<std::size_t>(pieces_)].push_back(
                {Op::compute, static_cast<std::int32_t>(s_.tiles.size())});
            s_.tiles.push_back(tile);
        }
        return std::move(s_);
    }

private:
    Schedule s_;
    std::int64_t lanes_, pieces_;
    std::vector<TaskWork> tasks_;
};

// What the rank owns of an array, without time.
Box owned_elements(const Array& array) {
    return intersect(array.owned, array.storage).with(0, 0, 1);
}

// Brings buffers to where those of `steps` steps before are, of what the rank owns: halos follow.
void turn(Tasks& tasks, std::int32_t array, const Array& all, int lanes) {
    const Box own = owned_elements(all);
    const std::int64_t buffers = all.storage.extent(0);
    int along = 1;
    for (int k = 2; k < own.dims(); ++k)
        if (own.extent(k) > own.extent(along)) along = k;
    for (int l = 0; l < lanes && own.dims() > 1; ++l) {
        const Box part = even_part(own, along, lanes, l);
        // Of two buffers the current one stays, as the next step but one is written there.
        if (buffers == 2)
            tasks.add(l, 0, array, part.with(0, 0, 1), part.with(0, 1, 2));
        else
            tasks.add(l, 0, array, part.with(0, 0, buffers), part.with(0, 0, buffers));
    }
}

// By lane the box of the elements that its tiles write of an array, beyond all bounds where no other lane goes on, so
// that each lane carries what lies beside its tiles.
std::vector<Box> shares(const Schedule& part) {
    constexpr std::int64_t far = std::int64_t{1} << 60;
    std::vector<Box> each(part.lanes.size());
    Box all;
    for (std::size_t l = 0; l < part.lanes.size(); ++l)
        for (const Step& step : part.lanes[l])
            if (step.op == Op::compute) each[l] = hull(each[l], part.tiles[step.item].box);
    for (const Box& box : each) all = hull(all, box);
    for (Box& box : each)
        for (int k = 0; k < box.dims(); ++k) {
            if (box.lo[k] == all.lo[k]) box.lo[k] = -far;
            if (box.hi[k] == all.hi[k]) box.hi[k] = far;
        }
    return each;
}

// Copies what the nest leaves as it is from the buffer of the step before to those of its own steps.
void carry(Tasks& tasks, const ChainPart& chained, int a, std::int32_t array, const Array& own, const Schedule& part,
           std::int64_t written, const TimedMemory& timed) {
    const SweepProblem& p = chained.problem;
    const std::int64_t pieces = tasks.pieces();
    const std::int64_t current = floor_mod(timed.steps - written, timed.buffers);
    const Box elements = owned_elements(own);
    std::vector<Box> left{elements};
    if (!has_gaps(p, a)) left = subtract(elements, own.elements(image(p.loops, p.space)).with(0, 0, 1));
    std::vector<Box> of_lane = shares(part);
    int along = 1;
    while (along + 1 < elements.dims() && elements.extent(along) == 1) ++along;
    const auto share = [&](const Box& box, const Box& lane) { return intersect(box, own.elements(lane)); };
    std::int64_t all = 0, shared = 0;
    for (const Box& box : left) {
        all += box.points();
        for (const Box& lane : of_lane)
            if (lane.dims() > 0) shared += share(box, lane.with(0, 0, 1)).points();
    }
    const std::int64_t count = std::min<std::int64_t>(p.space.extent(0), timed.buffers - 1);
    const auto copy = [&](std::int64_t lane, const Box& of) {
        const std::int64_t n = std::max<std::int64_t>(elements.extent(along), 1);
        for (std::int64_t i = 0; i < pieces; ++i) {
            Box piece = of;
            piece.lo[along] = std::max(of.lo[along], elements.lo[along] + block_start(n, pieces, i));
            piece.hi[along] = std::min(of.hi[along], elements.lo[along] + block_start(n, pieces, i + 1));
            for (std::int64_t t = 1; t <= count && !piece.empty(); ++t) {
                const std::int64_t to = floor_mod(current - t, timed.buffers);
                tasks.add(lane, i, array, piece.with(0, current, current + 1), piece.with(0, to, to + 1));
            }
        }
    };
    for (const Box& box : left) {
        if (shared != all) copy(0, box);
        for (std::size_t l = 0; l < of_lane.size() && shared == all; ++l)
            if (of_lane[l].dims() > 0) copy(static_cast<std::int64_t>(l), share(box, of_lane[l].with(0, 0, 1)));
    }
}

bool straight(const IndexMatrix& loops) {
    for (int k = 0; k < loops.n; ++k)
        if (!loops.keeps(k)) return false;
    return true;
}

std::string in_sweep(std::size_t i, const std::string& what) {
    return concat("nest ", i + 1, " ", what);
}

}  // namespace

std::string chain_refusal(std::span<const ChainPart> parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const SweepProblem& p = parts[i].problem;
        if (uses_window(p, parts[i].plan)) return in_sweep(i, "keeps a rolling window of an array");
        for (const NestArray& array : p.arrays) {
            if (array.time_buffers > 1 && !straight(p.loops)) return in_sweep(i, "steps in time, its loops skewed");
            if (array.time_buffers > 1 && array.scale.n) return in_sweep(i, "steps in time in a part of a field");
        }
    }
    return layout_refusal(parts);
}

std::string layout_refusal(std::span<const ChainPart> parts) {
    struct Seen {
        std::size_t sweep;
        int array;
        Layout layout;
    };
    std::map<std::int32_t, Seen> seen;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const SweepProblem& p = parts[i].problem;
        for (int a = 0; a < static_cast<int>(p.arrays.size()); ++a) {
            const std::int32_t memory = parts[i].memories[a];
            const Layout layout = field_layout(p, parts[i].plan, a);
            const auto [known, fresh] = seen.try_emplace(memory, Seen{i, a, layout});
            if (fresh) continue;
            const Layout& other = known->second.layout;
            if (layout.same_storage(other)) continue;
            if (layout.grid == other.grid && !layout.same_blocks(other))
                return in_sweep(i, concat("has array ", a, " in blocks that follow those of a coarser grid, ",
                                          in_sweep(known->second.sweep, "in other blocks")));
            const auto has = [](const Layout& of) { return of.beside_nothing ? "has" : "lacks"; };
            if (layout.beside_nothing != other.beside_nothing)
                return in_sweep(i, concat(has(layout), " halos of array ", a, " on ranks without elements of it, ",
                                          in_sweep(known->second.sweep, has(other)), " them"));
            return in_sweep(i, concat("has array ", a, " on grid ", layout.grid, " with halos ", layout.halo_lo,
                                      " and ", layout.halo_hi, ", nest ", known->second.sweep + 1, " on grid ",
                                      other.grid, " with halos ", other.halo_lo, " and ", other.halo_hi,
                                      layout.wraps == other.wraps ? "" : ", which wrap around along other dimensions"));
        }
    }
    return "";
}

std::map<std::int32_t, TimedMemory> timed_memories(std::span<const ChainPart> parts) {
    std::map<std::int32_t, TimedMemory> all;
    for (const ChainPart& part : parts)
        for (int a = 0; a < static_cast<int>(part.memories.size()); ++a) {
            if (part.problem.arrays[a].time_buffers == 0) continue;
            TimedMemory& timed = all[part.memories[a]];
            timed.buffers = std::max(timed.buffers, part.problem.arrays[a].time_buffers);
            if (takes_a_step(part, a)) timed.steps += part.problem.space.extent(0);
        }
    std::map<std::int32_t, std::pair<const SweepProblem*, int>> writers;
    for (const ChainPart& part : parts)
        for (int a = 0; a < static_cast<int>(part.memories.size()); ++a) {
            const auto found = all.find(part.memories[a]);
            if (found == all.end() || !part.problem.written(a)) continue;
            const auto [known, fresh] = writers.try_emplace(found->first, &part.problem, a);
            const auto& [other, b] = known->second;
            const bool same = fresh || other == &part.problem ||
                              (!has_gaps(part.problem, a) && !has_gaps(*other, b) &&
                               written_elements(part.problem, a) == written_elements(*other, b));
            found->second.carried |= !same || part.problem.reads_history_of_neighbours();
        }
    return all;
}

std::vector<Box> unwritten(const SweepProblem& problem, int a, const Box& held) {
    if (has_gaps(problem, a)) return {held};
    return subtract(held, written_elements(problem, a));
}

std::vector<ChainArray> chain_arrays(std::span<const ChainPart> parts) {
    const std::map<std::int32_t, TimedMemory> timed = timed_memories(parts);
    std::vector<ChainArray> turned, all;
    std::set<std::int32_t> seen;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const int arrays = static_cast<int>(parts[i].memories.size());
        for (int a = 0; a < arrays; ++a) all.push_back({i, a});
        for (int a = 0; a < arrays; ++a) {
            if (!takes_a_step(parts[i], a)) continue;
            const std::int32_t memory = parts[i].memories[a];
            if (timed.at(memory).turn() > 0 && seen.insert(memory).second) turned.push_back({i, a, true});
            if (timed.at(memory).carried) all.push_back({i, a, true});
        }
    }
    turned.insert(turned.end(), all.begin(), all.end());
    return turned;
}

Schedule chain(std::span<const ChainPart> parts, int rank, int ranks, const ChainForm& form) {
    if (parts.empty()) throw ConfigError("chain: no sweeps were given; at least one is needed");
    std::int64_t lanes = 0;
    for (const ChainPart& part : parts) {
        lanes = std::max<std::int64_t>(lanes, part.plan.lanes());
        if (part.memories.size() != part.problem.arrays.size())
            throw ConfigError(
                concat("chain: ", part.memories.size(), " memories for ", part.problem.arrays.size(), " arrays"));
    }
    if (const std::string why = chain_refusal(parts); !why.empty()) throw ConfigError("chain: " + why);
    Schedule whole;
    whole.rank = rank;
    whole.ranks = ranks;
    const std::map<std::int32_t, TimedMemory> timed = timed_memories(parts);
    const std::vector<ChainArray> arrays = chain_arrays(parts);
    const auto of_memory = [&](const ChainPart& part, int a) {
        const auto found = timed.find(part.memories[a]);
        return found == timed.end() ? nullptr : &found->second;
    };
    std::vector<Schedule> made;  // of a repetition
    for (std::size_t i = 0; i < parts.size() && (form.nests == 0 || i < form.nests); ++i) {
        made.push_back(nest_schedule(parts[i].problem, parts[i].plan, rank, ranks));
        if (const std::int32_t tag = largest_tag(made[i]); tag >= form.tags)
            throw ConfigError("chain: " + in_sweep(i, concat("makes ", tag,
                                                             " and more messages between two ranks, in this chain a "
                                                             "nest has ",
                                                             form.tags, " tags; take larger tiles, or fewer nests")));
    }
    // Numbers of works: tasks that turn buffers, then for each part tasks that carry elements and the nest.
    std::size_t next = 0;                                      // of `arrays`
    std::map<std::int32_t, std::vector<std::int32_t>> turned;  // by steps
    for (; next < arrays.size() && arrays[next].all_buffers; ++next) {
        const auto& [i, a, all] = arrays[next];
        const TimedMemory& memory = *of_memory(parts[i], a);
        Array array = made[form.nests ? i % form.nests : i].arrays[a];
        array.view = view_of(parts[i], a, parts[i].memories[a], &memory, 0);
        whole.arrays.push_back(all_buffers(std::move(array), memory.buffers));
        turned[memory.turn()].push_back(static_cast<std::int32_t>(next));
    }
    std::int64_t number = 0;
    for (const auto& [steps, list] : turned) {
        Tasks tasks(whole, static_cast<int>(lanes), 1);
        for (const std::int32_t array : list) turn(tasks, array, whole.arrays[array], static_cast<int>(lanes));
        Mapping mapping;
        mapping.first_number = number;
        append(whole, tasks.made(steps), mapping);
        number += lanes * ranks;
    }
    std::map<std::int32_t, std::int64_t> written;  // steps so far, by memory
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const ChainPart& chained = parts[i];
        const std::size_t nest_number = form.nests ? i % form.nests : i;
        Schedule part = made[nest_number];
        for (Work& work : part.works)
            if (NestWork* const nest = work.nest()) {
                nest->step = static_cast<std::int64_t>(form.nests ? i / form.nests : 0);
                nest->last = form.nests == 0 || i + form.nests >= parts.size();
            }
        Mapping mapping, carrying;
        for (; mapping.arrays.size() < part.arrays.size(); ++next) {
            const int a = arrays[next].array;
            Array array = part.arrays[a];
            const TimedMemory* const memory = of_memory(chained, a);
            if (memory && array.time_buffers > 1) array.time_buffers = memory->buffers;
            if (!array.whole)
                array.view = view_of(chained, a, chained.memories[a], memory, written[chained.memories[a]]);
            mapping.arrays.push_back(static_cast<std::int32_t>(next));
            whole.arrays.push_back(std::move(array));
        }
        const std::size_t first = next;
        for (; next < arrays.size() && arrays[next].part == i && arrays[next].all_buffers; ++next)
            whole.arrays.push_back(all_buffers(whole.arrays[mapping.arrays[arrays[next].array]],
                                               of_memory(chained, arrays[next].array)->buffers));
        if (next > first) {
            Tasks tasks(whole, static_cast<int>(lanes), form.pieces);
            for (std::size_t j = first; j < next; ++j)
                carry(tasks, chained, arrays[j].array, static_cast<std::int32_t>(j), whole.arrays[j], part,
                      written[chained.memories[arrays[j].array]], *of_memory(chained, arrays[j].array));
            carrying.first_number = number;
            append(whole, tasks.made(carry_operation), carrying);
            number += lanes * ranks * form.pieces;
        }
        mapping.first_number = number++;
        mapping.first_kernel = static_cast<std::int32_t>(nest_number);
        mapping.first_tag = mapping.first_kernel * form.tags;
        append(whole, part, mapping);
        for (int a = 0; a < static_cast<int>(chained.memories.size()); ++a)
            if (takes_a_step(chained, a)) written[chained.memories[a]] += chained.problem.space.extent(0);
    }
    return whole;
}

}  // namespace tilewave
