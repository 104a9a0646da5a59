// Functions that are compiled for several processors, of which the one at hand is picked when the program starts.
#pragma once

// By g++ on x86 alone: clang has no clones of templates, other processors have no AVX2. What picks a clone runs before
// the thread sanitizer is ready for it.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define TILEWAVE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define TILEWAVE_CLONES
#endif
