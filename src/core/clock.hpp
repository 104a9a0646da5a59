// The clocks that everything is timed by.
#pragma once
#include <atomic>

namespace tilewave {

/// Seconds on this process's steady clock.
double now_s();
/// Seconds that the calling thread has had a CPU.
double cpu_s();
/// What both read in place of the system's clocks; null: nothing. For tests whose ranks are all on one thread.
extern std::atomic<double (*)()> simulated_clock;

}  // namespace tilewave
