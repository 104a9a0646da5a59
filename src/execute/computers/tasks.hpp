// Tasks: one call of a numbered operation on regions of arrays.
#pragma once
#include <span>

#include "execute/computer.hpp"
#include "tilewave/engine/task.hpp"

namespace tilewave {

class TaskComputer final : public Computer {
public:
    /// @pre an operation for every task that has a tile (ConfigError)
    TaskComputer(const Schedule& schedule, std::span<const TaskFunction> operations);
    void compute(Run& run, int lane, const Tile& tile) override;

private:
    const Schedule& s_;
    std::span<const TaskFunction> operations_;
};

}  // namespace tilewave
