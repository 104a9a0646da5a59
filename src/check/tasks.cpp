// Tasks: each once, with the values that the works before it in the list leave.
#include "check/checker.hpp"
#include "core/concat.hpp"

namespace tilewave {

Checker::Why Checker::compute_task(RankState& p, int lane, const Tile& tile, Entry& entry) {
    const Schedule& s = *p.s;
    const TaskWork& task = *s.works[tile.work].task();
    const std::string name = concat("task ", entry.number);
    std::vector<char>& here = p.computed[tile.work];
    if (!here.empty()) return concat(name, " is computed twice on rank ", s.rank);
    here.assign(1, 1);
    entry.computed.assign(1, 1);
    for (const Region& r : task.reads) {
        if (s.arrays[r.array].whole) continue;
        Versions versions;
        if (auto why = read_cells(p, lane, r.array, r.box, &versions)) return name + ": " + *why;
        std::size_t i = 0;
        Why wrong;
        cells(r.box).for_each(r.box, [&](const Index& cell) {
            const Version found = versions[i++];
            const Expected want = program_.before(entry, s.rank, r.array, cell);
            if (wrong || program_.right(found, want)) return;
            wrong = concat(
                name, " reads ", r.box, " of array ", r.array, " before ",
                (found == missing ? "anything is there"
                 : want.list < 0  ? "it holds the right values"
                                  : "it holds " + program_.text(want) + "; it holds " + program_.combined_text(found)));
        });
        if (wrong) return wrong;
    }
    for (const Region& r : task.writes) {
        Versions versions;
        cells(r.box).for_each(
            r.box, [&](const Index& cell) { versions.push_back(program_.value(entry, s.rank, r.array, cell)); });
        if (auto why = write_cells(p, lane, r.array, r.box, versions)) return name + ": " + *why;
    }
    return std::nullopt;
}

}  // namespace tilewave
