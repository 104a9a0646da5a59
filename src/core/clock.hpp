// The clocks that everything is timed by.
#pragma once

namespace tilewave {

/// Seconds on this process's steady clock.
double now_s();
/// Seconds that the calling thread has had a CPU.
double cpu_s();

}  // namespace tilewave
