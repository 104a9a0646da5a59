// The memory of one rank, cell by cell: what each holds, and who touched it last.
#pragma once
#include <vector>

#include "check/program.hpp"
#include "check/wrong.hpp"

namespace tilewave {

/// One memory of one rank, with all arrays of the rank that lie there.
class CellStore {
public:
    explicit CellStore(const Program& program) : program_(program) {}

    /// An array lies here: before any add().
    void cover(const Array& array) {
        if (array.whole || array.storage.empty()) return;
        storage_ = hull(storage_, array.storage);
        if (array.time_buffers > 0) {
            time_buffers_ = array.time_buffers;
            storage_.hi[0] = std::min(storage_.hi[0], storage_.lo[0] + time_buffers_);
        }
    }
    /// Array number `id` lies here. Its owned elements hold `start`.
    void add(int id, const Array& array, Version start) {
        if (array.whole || array.storage.empty()) return;
        const Cells& space = program_.cells(array.storage);
        if (program_.spaces().points()) {
            cells_.resize(program_.elements().count(program_.elements().memory_of(id)));
        } else if (cells_.empty()) {
            cells_.resize(space.count(storage_));
        }
        Box from = intersect(array.owned, array.storage);
        if (array.planes > 0) from = array.storage;
        if (!program_.spaces().points()) from = intersect(from, storage_);
        space.for_each(from, [&](const Index& c) { at(id, space, c).version = start; });
    }

    void read(int array, const Box& box, const Who& who, const std::vector<std::int32_t>& clock, Versions* versions) {
        const Cells& space = program_.cells(box);
        if (versions) versions->clear();
        space.for_each(box, [&](const Index& c) {
            Cell& cell = at(array, space, c);
            if (versions) versions->push_back(cell.version);
            if (cell.promised >= 0)
                wrong("it reads ", box, " while message ", cell.promised, " is being received there");
            if (!before(cell.writer, clock)) wrong("it reads ", box, " with no order after the step that writes it");
            cell.readers.note(who);
        });
    }
    void write(int array, const Box& box, const Who& who, const std::vector<std::int32_t>& clock,
               const Versions& versions) {
        const Cells& space = program_.cells(box);
        std::size_t i = 0;
        space.for_each(box, [&](const Index& c) {
            Cell& cell = at(array, space, c);
            if (cell.promised >= 0)
                wrong("it writes ", box, " while message ", cell.promised, " is being received there");
            if (cell.lent > 0) wrong("it writes ", box, " while it is being sent");
            if (!before(cell.writer, clock)) wrong("it writes ", box, " with no order after another write");
            if (!cell.readers.all_before(clock)) wrong("it writes ", box, " with no order after a step that reads it");
            cell.readers.clear();
            cell.writer = who;
            cell.version = i < versions.size() ? versions[i] : missing;
            ++i;
        });
    }
    void set(int array, const Cells& space, const Index& cell, Version version) {
        at(array, space, cell).version = version;
    }
    Version version(int array, const Cells& space, const Index& cell) const {
        return cells_[place(array, space, cell)].version;
    }
    /// A send straight from the cells begins (+1) or ends (-1).
    void lend(int array, const Box& box, int change) {
        const Cells& space = program_.cells(box);
        space.for_each(box, [&](const Index& c) { at(array, space, c).lent += change; });
    }
    /// A receive straight into the cells is pending (its message) or over (-1).
    void promise(int array, const Box& box, int message) {
        const Cells& space = program_.cells(box);
        space.for_each(box, [&](const Index& c) { at(array, space, c).promised = message; });
    }

private:
    struct Cell {
        Version version = missing;
        int lent = 0, promised = -1;
        Who writer;
        Readers readers;
    };
    Cell& at(int array, const Cells& space, const Index& cell) { return cells_[place(array, space, cell)]; }
    std::size_t place(int array, const Cells& space, const Index& cell) const {
        const std::size_t at = program_.spaces().points() ? program_.elements().number(array, cell) : part(space, cell);
        if (at >= cells_.size())
            throw ConfigError(concat("check: an element of array ", array, " lies outside its memory"));
        return at;
    }
    // Times that share memory share a cell; cells along time are single times.
    std::size_t part(const Cells& space, Index cell) const {
        if (time_buffers_ > 0) {
            const std::int64_t first = space.cells(storage_).lo[0];
            cell[0] = first + (cell[0] - first) % time_buffers_;
        }
        return space.linear(storage_, cell);
    }
    const Program& program_;
    Box storage_;  // where cells are boxes: what the cells are of
    int time_buffers_ = 0;
    std::vector<Cell> cells_;
};

}  // namespace tilewave
