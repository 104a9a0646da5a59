// The one idea of Tilewave: a distributed computation as plain data. Generators make a Schedule, the checker proves it,
// the executor runs it, the predictor plays it.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "tilewave/index.hpp"

namespace tilewave {

/// What one step of a lane does. `item` and `count` of the Step mean:
enum class Op : std::uint8_t {
    compute,    ///< tile `item`
    post_recv,  ///< message `item`: from now to its wait the target belongs to the transport
    post_send,  ///< message `item`: from now to its wait the source must not change
    wait,       ///< until message `item` is complete
    pack,       ///< message `item`: array region -> its buffer
    unpack,     ///< message `item`: its buffer -> array region
    signal,     ///< this lane's counter becomes `count`
    await,      ///< until the counter of lane `item` of this rank is at least `count`
    combine,    ///< the buffer of received message `item` becomes left op right; `count`: which they are
};
/// `count` of a combine step: the buffer is the left operand, the message's array region the right.
inline constexpr std::int32_t combine_array_right = -1;
/// The array region is the left operand, the buffer the right. A count >= 0 names another message,
/// whose buffer is the left operand.
inline constexpr std::int32_t combine_array_left = -2;
const char* to_string(Op op);

struct Step {
    Op op;
    std::int32_t item = 0;
    std::int32_t count = 0;
    friend bool operator==(const Step&, const Step&) = default;
};

/// What one compute step does: a box of points of a nest, or a whole task.
struct Tile {
    Index coord = {};        ///< in the global tile space
    std::int64_t wave = 0;   ///< step of the linear schedule
    std::int32_t slice = 0;  ///< number of the slice within the tile
    Box box = {};            ///< global points of the nest; empty for a task
    std::int32_t work = 0;   ///< which of Schedule::works it belongs to
};

/// One message as one rank sees it. It goes through staging buffer `buffer`, or straight from or to the array (-1).
///
/// An aggregated message has `pieces`: the messages that follow it in the list. Each piece is packed into the
/// aggregate's buffer, or unpacked, by itself. The aggregate is posted and waited for.
struct Message {
    std::int32_t peer = 0, tag = 0;
    bool send = false;
    bool synchronous = false;  ///< complete only when the receiver has matched it
    std::int32_t array = 0, buffer = -1;
    Box region;  ///< global points of `array`
    std::int64_t bytes = 0;
    std::int32_t tile = -1;       ///< the tile that makes it (send) or first needs it (receive)
    std::int32_t pieces = 0;      ///< of an aggregate: pieces, one behind the other in its buffer; its region is empty
    std::int32_t aggregate = -1;  ///< of a piece: the number of its aggregate
    std::int64_t at = 0;          ///< of a piece: its first byte in the aggregate's buffer
};

/// How an array lies in memory that several arrays of a schedule share, each in its coordinates: for example of two
/// nests that run through one field in opposite directions.
///
/// Element z of the array is element rows[d]·z + shift[d] of the memory, along each of the memory's dimensions d.
struct View {
    std::int32_t memory = -1;      ///< arrays with equal numbers share memory; -1: the array does not share
    std::vector<Index> rows = {};  ///< by dimension of the memory; empty: element z of the memory
    Index shift = {};
    std::int64_t buffers = 0;  ///< above 0: dimension 0 of the memory counts time buffers, modulo this
    friend bool operator==(const View&, const View&) = default;
};

/// One array as one rank holds it. The rank stores `storage` and owns `owned`; the rest is halo. `stride`: items
/// between neighbours along each dimension; empty: row-major without gaps.
struct Array {
    std::int64_t item_bytes = 0;
    Box storage, owned;
    Index stride = {};
    bool separate = false;  ///< each rank has an independent array, not a block of one array
    bool whole = false;     ///< read only and complete on every rank; its boxes do not matter
    int time_buffers = 0;   ///< above 0: dimension 0 is time, and time t lies in buffer t modulo time_buffers
    /// Above 0: a rolling window. Memory holds this many planes (NestWork::window), and what later tiles read besides
    /// them. Boxes are those of the whole array. Each rank makes its values from before the run. `stride` describes
    /// what messages carry.
    int planes = 0;
    Index reach = {};         ///< of a rolling window: how far back points read, along each dimension
    std::uint32_t lacks = 0;  ///< bit k: the array has no dimension k, and its boxes are [0, 1) along it
    View view = {};
    /// Along a periodic dimension elements at a distance of a period are one element, of which a rank may hold several
    /// copies, some in its halo. 0: the dimension is not periodic; empty: none is.
    Index period = {};

    /// The elements of a box of points: the same box, but [0, 1) along dimensions that the array lacks.
    Box elements(Box points) const {
        for (int k = 0; k < points.dims(); ++k)
            if (lacks >> k & 1) points = points.with(k, 0, 1);
        return points;
    }
};

/// Whether `region` is one run of memory in `array`: never where it has several times of an array with time buffers.
bool one_run(const Box& region, const Array& array);

/// One place of the kernel: it reads `array` at point + offset, or writes there (perhaps after a read).
struct Access {
    std::int32_t array = 0;
    Index offset;
    bool writes = false;
    bool keeps = false;  ///< some points do not write: the element keeps its value
};

/// coefficients · point + constant >= 0.
struct Bound {
    Index coefficients;
    std::int64_t constant = 0;
};

/// The shape of rolling windows: they advance along the hyperplanes z[across] + slant z[along] = constant. Rows of a
/// hyperplane vary z[along] and their points are independent. Memory holds the hyperplanes that points still read.
struct WindowShape {
    int along = -1, across = -1;  ///< dimensions of z; -1: no rolling windows, arrays are stored whole
    int slant = 0;                ///< 1: rows go along e_along - e_across, on a hyperplane
    /// From a point of a row to the next.
    Index row(int dims) const {
        return slant ? Index::unit(dims, along) - Index::unit(dims, across) : Index::unit(dims, along);
    }
};

/// Work of the kind nest: a kernel at every point of `space` within `bounds`, once, with the results of loop order.
struct NestWork {
    Box space = {};                   ///< holds all points to compute, over all ranks
    std::vector<Bound> bounds = {};   ///< which points of it to compute
    std::vector<Access> places = {};  ///< what the kernel accesses at every point; places that it writes come first
    std::int32_t kernel = 0;          ///< which of the kernels that the executor is given
    /// The points of a tile are computed in the lexicographic order of order·point. A row of the kernel varies the last
    /// component. Empty: the order of the coordinates.
    IndexMatrix order = {};
    IndexMatrix loops = {};    ///< the kernel's index is loops · point. Empty: the point itself
    bool rows_depend = false;  ///< a point of a row may depend on another point of the row
    /// The rows of neighbouring layers (along the third last coordinate of the order) may be computed
    /// interleaved: each layer a row behind the layer before it.
    bool layers_together = false;
    WindowShape window = {};  ///< of the arrays that have planes
    /// Along a periodic dimension points at a distance of a period are one point: `space` has it once. A tile beyond
    /// the space computes it in the halo. 0: not periodic; empty: no dimension is.
    Index period = {};
    /// The points that this rank computes for all ranks: others of its tiles are computed again, for itself alone, and
    /// not reduced. Empty, without dimensions: all are.
    Box own = {};
    /// Where a schedule has several works of one nest, time step after time step: the number of this one, and whether
    /// it is the last. Only of that one points are reduced.
    std::int64_t step = 0;
    bool last = true;

    /// The distance, in whole periods, of a tile from the points of `space` that it computes.
    Index period_shift(const Box& tile) const {
        Index by = Index::filled(tile.dims(), 0);
        for (int k = 0; k < period.n; ++k)
            if (period[k] > 0) by[k] = floor_div(tile.lo[k], period[k]) * period[k];
        return by;
    }
};

/// A box of an array, in the array's coordinates.
struct Region {
    std::int32_t array = 0;
    Box box = {};
    friend bool operator==(const Region&, const Region&) = default;
};

/// Work of the kind task: one call of a numbered operation, such as a matrix product of blocks or a user's function.
struct TaskWork {
    std::int32_t operation = 0;       ///< which of the operations that the executor is given
    std::vector<Region> reads = {};   ///< what it reads
    std::vector<Region> writes = {};  ///< what it writes, every element; a region in both lists is updated
    double amount = 0;                ///< of computing, in the unit of the operation's rate, such as flops
};

/// One entry of the sequential program that a set of schedules stands for.
///
/// Ranks list the works that they take part in. A work has the same number on all of them, and works follow each other
/// in the order of their numbers. A nest's points follow each other in loop order.
struct Work {
    std::int64_t number = 0;
    std::variant<NestWork, TaskWork> what = NestWork{};

    const NestWork* nest() const { return std::get_if<NestWork>(&what); }
    NestWork* nest() { return std::get_if<NestWork>(&what); }
    const TaskWork* task() const { return std::get_if<TaskWork>(&what); }
    TaskWork* task() { return std::get_if<TaskWork>(&what); }
};

/// A statement of the program between works: `region` of an array becomes the values of array `source` on these ranks,
/// combined from left to right; of one rank, copied.
struct Result {
    std::int32_t array = 0;
    Box region;
    std::int32_t source = 0;
    std::vector<std::int32_t> ranks;
    std::int64_t number = at_the_end;  ///< it stands before the works of this number and above
    static constexpr std::int64_t at_the_end = std::numeric_limits<std::int64_t>::max();
};

/// Steps of a lane from `begin` up to the one before `end`.
struct StepRange {
    std::int32_t begin = 0, end = 0;
    friend bool operator==(const StepRange&, const StepRange&) = default;
};

/// What one rank does in a distributed computation.
///
/// With `repeated` it has a block: each lane runs its part of it as often as a run asks for, then goes on behind it.
/// The lanes do not meet between two repetitions. Messages, tags and buffers are used again, in order. In repetition k,
/// from 0 on, the counts of signal and await grow by k times what one repetition adds to the counter of their lane; an
/// await of a count from before the block is one of the repetition before.
struct Schedule {
    int rank = 0, ranks = 1;
    std::vector<Work> works;  ///< in the order of their numbers
    std::vector<Array> arrays;
    std::vector<Tile> tiles;
    std::vector<Message> messages;
    std::vector<std::int64_t> buffers;  ///< bytes of each staging buffer
    std::vector<std::vector<Step>> lanes;
    std::vector<Result> results;  ///< what messages and combine steps bring about; in the order of their numbers
    std::vector<StepRange> repeated = {};  ///< by lane, its part of the block; empty: there is none
    /// By so much the points of its tiles lie further on in each repetition, and with them elements of arrays that have
    /// dimension 0: a block of time steps of one nest. Its entry 0 are these steps. Empty: they are the same.
    Index advance = {};

    std::int64_t steps() const;
    /// Bytes of all staging buffers.
    std::int64_t buffer_bytes() const;
};

/// The nest of a schedule that has one nest and nothing else.
/// @pre schedule has exactly one work, a nest (ConfigError)
const NestWork& only_nest(const Schedule& schedule);
/// The nest of a tile. @pre it is a tile of a nest (ConfigError)
const NestWork& nest_of(const Schedule& schedule, const Tile& tile);

/// "rank 1, lane 0, step 12: wait message 5 (receive of 2048 bytes from rank 0, tag 7)".
std::string describe(const Schedule& schedule, int lane, std::size_t step);

}  // namespace tilewave
