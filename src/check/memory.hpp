// What the checker knows of memory: compressed coordinates, and who touched what last.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "check/versions.hpp"
#include "check/wrong.hpp"
#include "core/concat.hpp"
#include "tilewave/index.hpp"

namespace tilewave {

/// One moment of one lane.
struct Who {
    int lane = -1;
    std::int32_t tick = 0;
};
inline bool before(const Who& a, const std::vector<std::int32_t>& clock) {
    return a.lane < 0 || clock[a.lane] >= a.tick;
}

/// The last read of each lane: a lane's earlier ones are before it.
class Readers {
public:
    void note(const Who& who) {
        for (Who& r : last_)
            if (r.lane == who.lane) {
                r.tick = who.tick;
                return;
            }
        last_.push_back(who);
    }
    bool all_before(const std::vector<std::int32_t>& clock) const {
        return std::ranges::all_of(last_, [&](const Who& r) { return before(r, clock); });
    }
    void clear() { last_.clear(); }

private:
    std::vector<Who> last_;
};

/// So many cells, of 64 bytes and more each, can a process look at.
inline constexpr std::int64_t most_cells = std::int64_t{1} << 26;

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
    /// Coordinate x along dimension k and x + period are one: each has the cuts of the other. Before finish().
    void repeat(int k, std::int64_t period) {
        if (cuts_.size() <= static_cast<std::size_t>(k)) return;
        auto& c = cuts_[k];
        if (c.empty()) return;
        const auto [lo, hi] = std::minmax_element(c.begin(), c.end());
        const std::int64_t first = *lo, last = *hi;
        std::vector<std::int64_t> within;
        for (const std::int64_t x : c) within.push_back(floor_mod(x, period));
        std::ranges::sort(within);
        within.erase(std::unique(within.begin(), within.end()), within.end());
        refuse_many(((last - first) / period + 1) * static_cast<std::int64_t>(within.size()));
        for (std::int64_t w = floor_div(first, period) * period; w <= last; w += period)
            for (const std::int64_t x : within)
                if (w + x > first && w + x < last) c.push_back(w + x);
    }
    /// `points`: every point between the outermost cuts becomes a cell.
    void finish(bool points = false) {
        for (auto& c : cuts_) {
            if (points) {
                const auto [lo, hi] = std::minmax_element(c.begin(), c.end());
                const std::int64_t first = *lo, last = *hi;
                refuse_many(last - first);
                c.clear();
                for (std::int64_t x = first; x <= last; ++x) c.push_back(x);
                continue;
            }
            std::ranges::sort(c);
            c.erase(std::unique(c.begin(), c.end()), c.end());
        }
        all_.lo = all_.hi = Index::filled(static_cast<int>(cuts_.size()), 0);
        for (std::size_t k = 0; k < cuts_.size(); ++k) {
            all_.lo[static_cast<int>(k)] = cuts_[k].front();
            all_.hi[static_cast<int>(k)] = cuts_[k].back();
        }
        std::int64_t cells = 1;
        for (const auto& c : cuts_) refuse_many(cells *= static_cast<std::int64_t>(c.size()));
    }
    /// Refuse what no memory has room for. @pre count < 2^53
    static void refuse_many(std::int64_t count) {
        if (count > most_cells)
            throw ConfigError(concat("check: the arrays fall into ", count, " parts; allowed: ", most_cells,
                                     ", of a smaller problem of the same kind"));
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
        do f(at);
        while (next_point(at, c));
    }
    bool inside(const Index& cell, const Box& box) const { return !box.empty() && cells(box).contains(cell); }
    std::size_t linear(const Box& in, const Index& cell) const {
        const Box c = cells(in);
        if (c.dims() != cell.n || !c.contains(cell)) throw ConfigError(concat("check: a cell lies outside ", in));
        std::int64_t q = 0;
        for (int k = 0; k < cell.n; ++k) q = q * c.extent(k) + cell[k] - c.lo[k];
        return static_cast<std::size_t>(q);
    }
    Box box_of(const Index& cell) const {
        Box b{low_corner(cell), cell};
        for (int k = 0; k < cell.n; ++k) b.hi[k] = cuts_[k][static_cast<std::size_t>(cell[k]) + 1];
        return b;
    }
    Index low_corner(const Index& cell) const {
        Index p = cell;
        for (int k = 0; k < cell.n; ++k) p[k] = cuts_[k][cell[k]];
        return p;
    }

private:
    std::int64_t find(int k, std::int64_t x) const { return std::ranges::lower_bound(cuts_[k], x) - cuts_[k].begin(); }
    std::vector<std::vector<std::int64_t>> cuts_;
    Box all_;
};

/// One staging buffer: the values of one message's region at a time. Any number of sends and reads
/// may share them; to change them all must be over.
struct BufferState {
    int holds = -1;            ///< message whose values are in it, there for reading
    int receiving = -1;        ///< receive in flight into it
    std::vector<int> sending;  ///< sends in flight from it
    Who writer;
    Readers readers;
    Versions content;

    void read(const Who& who, const std::vector<std::int32_t>& clock) {
        if (receiving >= 0) wrong("its buffer is still in use by message ", receiving);
        if (!before(writer, clock)) wrong("its buffer was filled with no order before this step");
        readers.note(who);
    }
    void write(const Who& who, const std::vector<std::int32_t>& clock, int id, Versions versions) {
        if (receiving >= 0 || !sending.empty())
            wrong("its buffer is reused while message ", receiving >= 0 ? receiving : sending[0], " is in flight");
        if (!before(writer, clock)) wrong("its buffer was filled with no order before this step");
        if (!readers.all_before(clock)) wrong("its buffer may still be read by another lane");
        readers.clear();
        writer = who;
        holds = id;
        content = std::move(versions);
    }
    void begin_receive(const Who& who, const std::vector<std::int32_t>& clock, int id) {
        write(who, clock, -1, {});
        receiving = id;
    }
    void arrive(const Who& who, Versions versions) {
        holds = std::exchange(receiving, -1);
        writer = who;
        content = std::move(versions);
    }
    void begin_send(const Who& who, const std::vector<std::int32_t>& clock, int id) {
        read(who, clock);
        sending.push_back(id);
    }
    void end_send(const Who& who, const std::vector<std::int32_t>& clock, int id) {
        sending.erase(std::ranges::find(sending, id));
        return read(who, clock);
    }
};

}  // namespace tilewave
