// What the checker knows of memory: compressed coordinates, versions, and who touched what last.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tilewave/index.hpp"

namespace tilewave {

/// What a cell holds: nothing, a computed value, or the value given in array a before the run.
using Version = std::int16_t;
constexpr Version missing = -2, computed = -1;
constexpr Version given(int array) { return static_cast<Version>(array); }
using Versions = std::vector<Version>;

/// One moment of one lane.
struct Who {
    int lane = -1;
    std::int32_t tick = 0;
};
inline bool before(const Who& a, const std::vector<std::int32_t>& clock) {
    return a.lane < 0 || clock[a.lane] >= a.tick;
}

/// Index space cut at every coordinate where some box begins or ends; a cell is never split.
class Cells {
public:
    void add(const Box& box) {
        if (box.empty()) return;
        cuts_.resize(std::max<std::size_t>(cuts_.size(), static_cast<std::size_t>(box.dims())));
        for (int k = 0; k < box.dims(); ++k) {
            cuts_[k].push_back(box.lo[k]);
            cuts_[k].push_back(box.hi[k]);
        }
    }
    void finish() {
        for (auto& c : cuts_) {
            std::sort(c.begin(), c.end());
            c.erase(std::unique(c.begin(), c.end()), c.end());
        }
        all_.lo = all_.hi = Index::filled(static_cast<int>(cuts_.size()), 0);
        for (std::size_t k = 0; k < cuts_.size(); ++k) {
            all_.lo[static_cast<int>(k)] = cuts_[k].front();
            all_.hi[static_cast<int>(k)] = cuts_[k].back();
        }
    }
    const Box& all() const { return all_; }
    /// The cells of a box whose faces are all cuts.
    Box cells(const Box& box) const {
        Box c = box;
        for (int k = 0; k < box.dims(); ++k) {
            c.lo[k] = find(k, box.lo[k]);
            c.hi[k] = box.extent(k) ? find(k, box.hi[k]) : c.lo[k];
        }
        return c;
    }
    std::size_t count(const Box& box) const { return box.empty() ? 0 : static_cast<std::size_t>(cells(box).points()); }
    template <class F>
    void for_each(const Box& box, F f) const {
        if (box.empty()) return;
        const Box c = cells(box);
        Index at = c.lo;
        while (true) {
            f(at);
            int k = at.n - 1;
            while (k >= 0 && ++at[k] == c.hi[k]) {
                at[k] = c.lo[k];
                --k;
            }
            if (k < 0) return;
        }
    }
    bool inside(const Index& cell, const Box& box) const { return !box.empty() && cells(box).contains(cell); }
    std::size_t linear(const Box& in, const Index& cell) const {
        const Box c = cells(in);
        std::int64_t q = 0;
        for (int k = 0; k < cell.n; ++k) q = q * c.extent(k) + cell[k] - c.lo[k];
        return static_cast<std::size_t>(q);
    }
    Index low_corner(const Index& cell) const {
        Index p = cell;
        for (int k = 0; k < cell.n; ++k) p[k] = cuts_[k][static_cast<std::size_t>(cell[k])];
        return p;
    }

private:
    std::int64_t find(int k, std::int64_t x) const {
        return std::lower_bound(cuts_[k].begin(), cuts_[k].end(), x) - cuts_[k].begin();
    }
    std::vector<std::vector<std::int64_t>> cuts_;
    Box all_;
};

/// One staging buffer: one message at a time.
struct BufferState {
    int holds = -1;      ///< message whose bytes are in it
    int in_flight = -1;  ///< message the transport works on
    Who writer;
    std::vector<Who> readers;
    Versions content;

    using Why = std::optional<std::string>;
    Why read(const Who& who, const std::vector<std::int32_t>& clock, int id) {
        if (in_flight >= 0 && in_flight != id) return "its buffer is still in use by message " + std::to_string(in_flight);
        if (!before(writer, clock)) return "its buffer was filled with no order before this step";
        readers.push_back(who);
        return std::nullopt;
    }
    Why write(const Who& who, const std::vector<std::int32_t>& clock, int id, const Versions* versions = nullptr) {
        if (in_flight >= 0) return "its buffer is reused while message " + std::to_string(in_flight) + " is in flight";
        if (!before(writer, clock)) return "its buffer was filled with no order before this step";
        for (const Who& r : readers)
            if (!before(r, clock)) return "its buffer may still be read by another lane";
        readers.clear();
        writer = who;
        holds = id;
        if (versions) content = *versions;
        return std::nullopt;
    }
    Why arrive(const Who& who, int id) {
        holds = id;
        writer = who;
        return std::nullopt;
    }
};

/// One array of one rank, cell by cell.
class CellStore {
public:
    using Why = std::optional<std::string>;
    CellStore(const Cells& space, const Box& storage, const Box& owned, Version start) : storage_(storage) {
        cells_.resize(space.count(storage));
        space.for_each(intersect(owned, storage), [&](const Index& c) { at(space, c).version = start; });
    }
    Why read(const Cells& space, const Box& box, const Who& who, const std::vector<std::int32_t>& clock,
             Versions* versions) {
        if (versions) versions->clear();
        Why why;
        space.for_each(box, [&](const Index& c) {
            Cell& cell = at(space, c);
            if (versions) versions->push_back(cell.version);
            if (why) return;
            if (cell.promised >= 0)
                why = "it reads " + to_string(box) + " while message " + std::to_string(cell.promised) + " is being received there";
            else if (!before(cell.writer, clock))
                why = "it reads " + to_string(box) + " with no order after the step that writes it";
            note_reader(cell, who);
        });
        return why;
    }
    Why write(const Cells& space, const Box& box, const Who& who, const std::vector<std::int32_t>& clock,
              const Versions& versions) {
        Why why;
        std::size_t i = 0;
        space.for_each(box, [&](const Index& c) {
            Cell& cell = at(space, c);
            if (!why) {
                if (cell.promised >= 0)
                    why = "it writes " + to_string(box) + " while message " + std::to_string(cell.promised) + " is being received there";
                else if (cell.lent > 0)
                    why = "it writes " + to_string(box) + " while it is being sent";
                else if (!before(cell.writer, clock))
                    why = "it writes " + to_string(box) + " with no order after another write";
                for (const Who& r : cell.readers)
                    if (!why && !before(r, clock)) why = "it writes " + to_string(box) + " with no order after a step that reads it";
            }
            cell.readers.clear();
            cell.writer = who;
            cell.version = i < versions.size() ? versions[i] : missing;
            ++i;
        });
        return why;
    }
    /// A send straight from the cells begins (+1) or ends (-1).
    void lend(const Cells& space, const Box& box, int change) {
        space.for_each(box, [&](const Index& c) { at(space, c).lent += change; });
    }
    /// A receive straight into the cells is pending (its message) or over (-1).
    void promise(const Cells& space, const Box& box, int message) {
        space.for_each(box, [&](const Index& c) { at(space, c).promised = message; });
    }

private:
    struct Cell {
        Version version = missing;
        int lent = 0, promised = -1;
        Who writer;
        std::vector<Who> readers;  // the last read of each lane
    };
    Cell& at(const Cells& space, const Index& cell) { return cells_[space.linear(storage_, cell)]; }
    static void note_reader(Cell& cell, const Who& who) {
        for (Who& r : cell.readers)
            if (r.lane == who.lane) {
                r.tick = who.tick;
                return;
            }
        cell.readers.push_back(who);
    }
    Box storage_;
    std::vector<Cell> cells_;
};

}  // namespace tilewave
