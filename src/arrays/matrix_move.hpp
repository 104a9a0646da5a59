// Moving a matrix from one layout to another.
#pragma once
#include <array>
#include <vector>

#include "generate/linalg/redistribute.hpp"
#include "run/run_schedule.hpp"
#include "tilewave/context.hpp"
#include "tilewave/engine/kernel.hpp"

namespace tilewave {

/// A move with all that it takes beyond the two matrices. Ranks agree between making it and run().
class ReadyMove {
public:
    /// Local.
    /// @throws std::bad_alloc, std::system_error
    ReadyMove(Context& context, MatrixMove move);

    /// `from` and `to`: where this rank's first element of either lies. Collective.
    /// @throws OutOfResources on every rank; Interrupted where a rank was interrupted
    void run(const Binding& from, const Binding& to);

private:
    TaskFunction pack(), unpack(), copy();

    MatrixMove move_;
    Binding from_, to_;  // while it runs
    Schedule schedule_;
    std::vector<std::vector<std::byte>> slots_;
    std::vector<Binding> bindings_;
    std::array<TaskFunction, 3> tasks_;
    ReadySchedule ready_;
};

}  // namespace tilewave
