// What lanes note during a run: a moment a step. Events and pictures are made of it when they are
// asked for.
#pragma once
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "execute/executor.hpp"
#include "schedule/parts_count.hpp"
#include "tilewave/engine/transport.hpp"

namespace tilewave {

/// What the lanes of one rank noted of a run, block by block of time steps; a run of one schedule is one block. Times
/// are summed over all blocks; steps and messages are recorded for the first and the last blocks only, so that memory
/// does not grow with steps.
class Notes {
public:
    /// After `schedule` has run; `kind`: which of the run's schedules it is. Each repetition is a block.
    void add(const Schedule& schedule, int kind, Recording recording);
    /// All of it, for gather().
    std::string bytes() const;

    /// What stands before the moments of a block's lanes.
    struct BlockHead {
        std::int64_t number, kind;
        std::size_t lanes;
    };
    struct LaneSums {
        PartsCount parts;
        LaneSplit split{}, recorded{};  ///< of all blocks, and of those that are recorded
        double end_s = 0;
    };

private:
    struct Block {
        const Schedule* schedule;
        std::int64_t number;
        int kind;
        Recording recording;
    };
    void add_one(const Schedule& schedule, int kind, Recording recording);
    void keep(Block block);

    std::int64_t blocks_ = 0;
    double first_ = std::numeric_limits<double>::infinity();  // begin of the first lane that has steps
    std::vector<LaneSums> lanes_;
    std::vector<Block> kept_;
};

/// The notes of all ranks.
struct Recorded {
    Parts parts;                     ///< rank 0 only, as what follows; averages over all lanes
    double overlap_ratio = 0;        ///< NaN without messages; of the recorded blocks
    std::vector<LaneSplit> lanes;    ///< by rank, lane
    std::vector<std::string> bytes;  ///< by rank
};

/// Rank 0 gets the notes of all ranks, eight bytes a recorded step, and what follows from them. Collective.
Recorded gather(Transport& transport, const Notes& notes, const TransferTime& transfer_s);

/// What each block before a block of time steps adds to the numbers of its tiles.
struct BlockTimes {
    std::int64_t tiles = 0, waves = 0;  ///< tiles along time
};

/// The events of all ranks, of the recorded blocks; their schedules, by rank and kind, are made one at a time. Times
/// count from the first event.
/// @pre the schedules are those that ran (InternalError where they have not as many steps)
Timeline timeline_of(const Recorded& recorded, const BlockTimes& block,
                     const std::function<Schedule(int, int)>& schedule_of);

/// Lets times count from the first event.
void from_zero(Timeline& timeline);

}  // namespace tilewave
