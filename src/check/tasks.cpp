// Tasks: each once, with the values that the works before it in the list leave.
#include "check/checker.hpp"
#include "core/concat.hpp"

namespace tilewave {

void Checker::compute_task(RankState& p, int lane, const Tile& tile, Entry& entry) {
    const Schedule& s = *p.s;
    const TaskWork& task = *s.works[tile.work].task();
    const std::string name = concat("task ", entry.number);
    std::vector<char>& here = p.computed[tile.work];
    if (!here.empty()) wrong(name, " is computed twice on rank ", s.rank);
    here.assign(1, 1);
    entry.computed.assign(1, 1);
    for (const Region& r : task.reads) {
        if (s.arrays[r.array].whole) continue;
        Versions versions;
        named(name, [&] { read_cells(p, lane, r.array, r.box, &versions); });
        std::size_t i = 0;
        cells(r.box).for_each(r.box, [&](const Index& cell) {
            const Version found = versions[i++];
            const Expected want = program_.before(entry, s.rank, r.array, cell);
            if (program_.right(found, want)) return;
            wrong(
                name, " reads ", r.box, " of array ", r.array, " before ",
                (found == missing ? "anything is there"
                 : want.list < 0  ? "it holds the right values"
                                  : "it holds " + program_.text(want) + "; it holds " + program_.combined_text(found)));
        });
    }
    for (const Region& r : task.writes) {
        Versions versions;
        cells(r.box).for_each(
            r.box, [&](const Index& cell) { versions.push_back(program_.value(entry, s.rank, r.array, cell)); });
        named(name, [&] { write_cells(p, lane, r.array, r.box, versions); });
    }
}

}  // namespace tilewave
