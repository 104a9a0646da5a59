// Which of its machines a context has now: plans of an earlier one are not used.
#pragma once
#include <cstdint>

namespace tilewave {

/// State of a context, counted by Context::use_machine().
struct MachineNumber {
    std::int64_t now = 0;
};

}  // namespace tilewave
