// What computes the tiles of a schedule: one class a kind of work. The executor knows none of them.
#pragma once
#include <cstdint>
#include <vector>

#include "execute/array_memory.hpp"
#include "tilewave/engine/schedule.hpp"
#include "tilewave/reduction.hpp"

namespace tilewave {

class StepVisitor;

/// The run that a computer computes for. A lane calls these for itself.
class Run {
public:
    virtual ~Run() = default;
    virtual const ArrayMemory& memory(int lane) const = 0;
    /// Added to loop index 0 for the kernel and in errors: the first time step of a block.
    virtual std::int64_t first_time(int lane) const = 0;
    /// Changes and notes elements after each time step of a kernel's nest; null: none.
    virtual const StepVisitor* visitor(int kernel) const = 0;
    /// Whether reductions are of the repetition, too, that the lane is in.
    virtual bool reduces(int lane) const = 0;
    /// Time steps before this one are not reduced, counted as first_time() is.
    virtual std::int64_t reduced_time() const = 0;
    /// Points that the lane may compute before it polls again; a computer counts them down. At 0 it calls pace().
    virtual std::int64_t& points_to_poll(int lane) = 0;
    /// Whether the transport is polled at all while a lane computes.
    virtual bool polls() const = 0;
    /// Polls if it is time to. `begin_s`: since when the lane has computed; set anew by a poll. False where computing
    /// is to end.
    virtual bool pace(int lane, std::int64_t points, double& begin_s) = 0;
    /// A tile is done that the lane has computed since `begin_s`.
    virtual void spent(int lane, double begin_s) = 0;
    /// The kernel has raised at a point: computing ends on this rank.
    virtual void fail(const Failure& failure) = 0;
};

class Computer {
public:
    virtual ~Computer() = default;
    /// @throws std::bad_alloc, or what a user's function throws: computing then ends on this rank
    virtual void compute(Run& run, int lane, const Tile& tile) = 0;
    /// What the tiles so far have been reduced to, by nest and reduction of its kernel; of this rank.
    virtual std::vector<Reduced> reduced() const { return {}; }
    /// As new: nothing has been computed.
    virtual void restart() {}
};

/// By kind of work, as the alternatives of Work::what; null: there are no tiles of it.
struct Computers {
    Computer* nests = nullptr;
    Computer* tasks = nullptr;
    Computer* of(const Work& work) const { return work.task() ? tasks : nests; }
};

}  // namespace tilewave
