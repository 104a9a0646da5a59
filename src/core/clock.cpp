#include "core/clock.hpp"

#include <chrono>
#include <ctime>

namespace tilewave {

std::atomic<double (*)()> simulated_clock{nullptr};

double now_s() {
    if (const auto simulated = simulated_clock.load(std::memory_order_relaxed)) return simulated();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_s() {
    if (const auto simulated = simulated_clock.load(std::memory_order_relaxed)) return simulated();
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace tilewave
