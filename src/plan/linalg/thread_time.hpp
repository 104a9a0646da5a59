// Time that a thread has computed.
#pragma once
#include <time.h>

namespace tilewave {

/// Seconds of CPU time that the calling thread has had: other programs take none of it.
inline double cpu_now_s() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace tilewave
