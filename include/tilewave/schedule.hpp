// The one idea of Tilewave: a distributed computation as plain data. Generators make a Schedule, the checker proves it,
// the executor runs it, the predictor plays it.
#pragma once
#include <cstdint>
#include <string>
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
    combine,    ///< the buffer of received message `item` becomes left op right; `count` says what they are
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

/// A box of points that one compute step computes: a tile, or one slice of it.
struct Tile {
    Index coord;             ///< in the global tile space
    std::int64_t time = 0;   ///< time step of the linear schedule
    std::int32_t slice = 0;  ///< number of the slice within the tile
    Box box;                 ///< global points
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

/// One array as one rank holds it. The rank stores `storage` and owns `owned`; the rest is halo. `stride`: items
/// between neighbours along each dimension; empty: row-major without gaps.
struct Array {
    std::int64_t item_bytes = 0;
    Box storage, owned;
    Index stride = {};
    bool separate = false;  ///< each rank has an array of its own, not a block of one array
    bool whole = false;     ///< read only and complete on every rank; its boxes do not matter
    int time_buffers = 0;   ///< above 0: dimension 0 is time, and time t lies in buffer t modulo time_buffers
    /// Above 0: a rolling window. Memory holds this many planes (Schedule::along), and what later tiles read beside
    /// them. Boxes are those of the whole array. Each rank makes its own values from before the run. `stride` describes
    /// what messages carry.
    int planes = 0;
    Index reach = {};         ///< of a rolling window: how far back points read, along each dimension
    std::uint32_t lacks = 0;  ///< bit k: the array has no dimension k, and its boxes are [0, 1) along it

    /// The elements of a box of points: the same box, but [0, 1) along dimensions that the array lacks.
    Box elements(Box points) const {
        for (int k = 0; k < points.dims(); ++k)
            if (lacks >> k & 1) {
                points.lo[k] = 0;
                points.hi[k] = 1;
            }
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

/// What a region of an array must hold at the end: the values of array `source` on these ranks, combined from left to
/// right; of one rank, copied.
struct Result {
    std::int32_t array = 0;
    Box region;
    std::int32_t source = 0;
    std::vector<std::int32_t> ranks;
};

/// What one rank does in a distributed computation.
struct Schedule {
    int rank = 0, ranks = 1;
    Box space;                  ///< holds all points to compute, over all ranks
    std::vector<Bound> bounds;  ///< which points of it to compute
    /// The points of a tile are computed in the lexicographic order of order·point. A row of the kernel varies the last
    /// component. Empty: the order of the coordinates.
    IndexMatrix order = {};
    bool rows_depend = false;  ///< a point of a row may depend on another point of the row
    /// The rows of neighbouring layers (along the third last coordinate of the order) may be computed in turn: each
    /// layer a row behind the layer before it.
    bool layers_together = false;
    /// Of rolling windows: plane z[across] + slant z[along] holds z; rows vary z[along].
    int along = -1, across = -1, slant = 0;
    IndexMatrix loops = {};  ///< the kernel's index is loops · point. Empty: the point itself
    std::vector<Array> arrays;
    std::vector<Access> places;  ///< what the kernel accesses at every point; places that it writes come first
    std::vector<Tile> tiles;
    std::vector<Message> messages;
    std::vector<std::int64_t> buffers;  ///< bytes of each staging buffer
    std::vector<std::vector<Step>> lanes;
    std::vector<Result> results;  ///< what the checker demands besides the computed points

    std::int64_t steps() const;
    /// Bytes of all staging buffers.
    std::int64_t buffer_bytes() const;
};

/// "rank 1, lane 0, step 12: wait message 5 (receive of 2048 bytes from rank 0, tag 7)".
std::string describe(const Schedule& schedule, int lane, std::size_t step);

}  // namespace tilewave
