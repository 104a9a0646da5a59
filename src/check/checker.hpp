// The checker at work: lanes take one step at a time; what each knows of messages and memory.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "check/cell_store.hpp"
#include "check/memory.hpp"
#include "check/program.hpp"
#include "tilewave/engine/check.hpp"

namespace tilewave {

using Clock = std::vector<std::int32_t>;

inline void join(Clock& a, const Clock& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
}

enum class Stage : std::uint8_t { fresh, posted, finished };

struct MessageState {
    Stage stage = Stage::fresh;
    Clock posted;     // clock of the post, until both ends are waited for
    int poster = -1;  // the lane that posted, among all lanes, and its time then
    std::int32_t at = 0;
    int partner = -1;  // message id on the peer, once matched
    Versions content;  // of a send, till it is received: versions of the region's cells when posted
};

/// Whether two boxes of an array are the same elements: equal, or whole periods from each other.
inline bool same_elements(const Array& array, const Box& a, const Box& b) {
    if (a == b) return true;
    if (array.period.n == 0 || a.dims() != b.dims() || a.dims() != array.period.n) return false;
    for (int k = 0; k < a.dims(); ++k) {
        const std::int64_t distance = a.lo[k] - b.lo[k], period = array.period[k];
        if (a.extent(k) != b.extent(k) || (period > 0 ? distance % period : distance) != 0) return false;
    }
    return true;
}

/// How far a rank has come, and what it holds.
struct RankState {
    RankState(const Schedule& schedule, int first_lane) : s(&schedule), first_lane(first_lane) {}
    CellStore& store(int array) { return cells[memory_of[array]]; }
    const Schedule* s;
    int first_lane;  // number of its lane 0 among all lanes
    std::vector<std::size_t> next;
    std::vector<Clock> clock;
    std::vector<std::vector<std::pair<int, Clock>>> signals;  // by lane: (count, clock)
    std::vector<MessageState> messages;
    std::vector<BufferState> buffers;
    std::vector<CellStore> cells;             // by memory
    std::vector<int> memory_of;               // by array
    std::vector<std::vector<char>> computed;  // by work and cell of a nest's space: a tile here has computed it
    std::map<std::vector<std::int64_t>, std::int64_t> columns;  // of tiles that keep planes: how far each is
};

class Checker {
public:
    explicit Checker(std::span<const Schedule> schedules)
        : schedules_(schedules),
          table_(static_cast<int>(schedules[0].arrays.size()), static_cast<int>(schedules.size())),
          program_(schedules, table_) {}
    std::optional<Violation> run();

private:
    void set_up();
    void leave_out_padding(int array);
    bool ready(const RankState& p, const Step& step) const;
    void perform(RankState& p, int lane, const Step& step);
    void compute(RankState& p, int lane, const Tile& tile);
    void compute_nest(RankState& p, int lane, const Tile& tile, Entry& entry);
    void read_nest(RankState& p, int lane, const Tile& tile, const Entry& entry);
    void count_points(RankState& p, const Tile& tile, Entry& entry);
    void compute_task(RankState& p, int lane, const Tile& tile, Entry& entry);
    void post(RankState& p, int lane, int id);
    void wait(RankState& p, int lane, int id);
    void pack(RankState& p, int lane, int id);
    void unpack(RankState& p, int lane, int id);
    void combine(RankState& p, int lane, int id, int operand);
    void read_cells(RankState& p, int lane, int array, const Box& box, Versions* versions);
    void write_cells(RankState& p, int lane, int array, const Box& box, const Versions& versions);
    std::optional<Violation> stuck() const;
    std::optional<Violation> leftovers() const;
    std::optional<Violation> results();
    bool certain_at_the_end(int array) const;
    std::optional<Violation> holes(const Entry& entry) const;
    bool reads(const NestWork& nest, const Tile& tile, const Access& place, const Index& cell) const;
    bool all_write(const NestWork& nest, const Tile& tile, const Access& place, const Index& cell) const;
    const Cells& cells(const Box& box) const { return program_.cells(box); }
    // Where the values of a part lie in those of its aggregate.
    std::size_t place_of(const Schedule& s, int part) const {
        std::size_t cells = 0;
        for (int i = s.messages[part].aggregate + 1; i < part; ++i)
            cells += program_.cells(s.messages[i].region).count(s.messages[i].region);
        return cells;
    }
    // Whether two messages carry the same bytes.
    bool same_bytes(const RankState& p, int a, int b) const {
        const Message &x = p.s->messages[a], &y = p.s->messages[b];
        return same_elements(p.s->arrays[x.array], x.region, y.region) &&
               p.s->arrays[x.array].item_bytes == p.s->arrays[y.array].item_bytes;
    }
    Who who(const RankState& p, int lane) const { return {p.first_lane + lane, p.clock[lane][p.first_lane + lane]}; }

    std::span<const Schedule> schedules_;
    VersionTable table_;
    Program program_;
    int lanes_ = 0;
    std::vector<RankState> ranks_;
    struct Posted {
        std::deque<int> waiting;  // not yet matched, in order
        int last = -1;            // latest, matched or not
    };
    std::map<std::tuple<int, int, int>, Posted> sends_, receives_;  // by (sender, receiver, tag)
};

}  // namespace tilewave
