#include "tilewave/engine/schedule.hpp"

#include "core/concat.hpp"
#include "tilewave/engine/layout.hpp"

namespace tilewave {

const char* to_string(Op op) {
    static constexpr const char* names[] = {"compute", "post_recv", "post_send", "wait",   "pack",
                                            "unpack",  "signal",    "await",     "combine"};
    return names[static_cast<int>(op)];
}

bool one_run(const Box& region, const Array& array) {
    // Each later time lies in the buffer before, and the first buffer follows the last.
    if (array.time_buffers > 0 && region.extent(0) > 1) return false;
    if (array.stride.n == 0) return contiguous(region, array.storage);
    std::int64_t run = 1;  // items that lie next to each other so far
    for (int k = region.dims() - 1; k >= 0; --k) {
        if (region.extent(k) > 1 && array.stride[k] != run) return false;
        run *= region.extent(k);
    }
    return true;
}

std::int64_t Schedule::steps() const {
    std::int64_t n = 0;
    for (const auto& lane : lanes) n += static_cast<std::int64_t>(lane.size());
    return n;
}

std::int64_t Schedule::buffer_bytes() const {
    std::int64_t n = 0;
    for (auto b : buffers) n += b;
    return n;
}

const NestWork& only_nest(const Schedule& s) {
    if (s.works.size() != 1 || !s.works[0].nest())
        throw ConfigError(concat("a schedule of one nest is needed; this one has ", s.works.size(), " works",
                                 (s.works.size() == 1 ? ", a task" : "")));
    return *s.works[0].nest();
}

const NestWork& nest_of(const Schedule& s, const Tile& tile) {
    const auto w = static_cast<std::size_t>(tile.work);
    if (tile.work < 0 || w >= s.works.size() || !s.works[w].nest())
        throw ConfigError(
            concat("a tile of a nest is needed; this one is of work ", tile.work, " of ", s.works.size()));
    return *s.works[w].nest();
}

std::string describe(const Schedule& s, int lane, std::size_t index) {
    std::string text = concat("rank ", s.rank, ", lane ", lane, ", step ", index);
    if (index >= s.lanes[lane].size()) return text + " (end of the lane)";
    const Step& step = s.lanes[lane][index];
    text += concat(": ", step.op);
    switch (step.op) {
        case Op::compute:
            if (const TaskWork* task = s.works[s.tiles[step.item].work].task())
                return concat(text, " task ", s.works[s.tiles[step.item].work].number, " (operation ", task->operation,
                              ")");
            return concat(text, " tile ", s.tiles[step.item].coord, " ", s.tiles[step.item].box);
        case Op::signal: return concat(text, " ", step.count);
        case Op::await: return concat(text, " counter ", step.count, " of lane ", step.item);
        default: break;
    }
    const Message& m = s.messages[step.item];
    return concat(text, " message ", step.item, (m.send ? " (send of " : " (receive of "), m.bytes,
                  (m.send ? " bytes to rank " : " bytes from rank "), m.peer, ", tag ", m.tag, ")");
}

}  // namespace tilewave
