// Functions that are compiled for several processors, of which the one at hand is picked when the program starts.
#pragma once

// What picks a clone runs before the thread sanitizer is ready for it.
#ifdef __SANITIZE_THREAD__
#define TILEWAVE_CLONES
#else
#define TILEWAVE_CLONES __attribute__((target_clones("avx2", "default")))
#endif
