// Functions that are compiled for AVX2, too, of which the processor at hand gets the right one.
#pragma once

#ifdef __x86_64__
#include <cpuid.h>
#define TILEWAVE_AVX2 __attribute__((target("avx2")))
#endif

namespace tilewave {

#ifdef TILEWAVE_AVX2
/// Whether processor and system have AVX2. `__builtin_cpu_supports` of the wheels' compiler, zig 0.17, says no always.
inline const bool has_avx2 = [] {
    unsigned a, b, c, d, states, rest;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    __asm__("xgetbv" : "=a"(states), "=d"(rest) : "c"(0));
    constexpr unsigned vectors = 6;  // the system saves registers of 16 and of 32 bytes
    return (states & vectors) == vectors && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}();

template <auto f, class... Args>
TILEWAVE_AVX2 auto with_avx2(Args... args) {
    return f(args...);
}
#endif

/// The result of f, which is compiled for AVX2 where the processor has it.
/// @pre f is `[[gnu::always_inline]]`. (`target_clones` would need no such thing; clang has none of templates.)
template <auto f, class... Args>
auto fastest(Args... args) {
#ifdef TILEWAVE_AVX2
    if (has_avx2) return with_avx2<f>(args...);
#endif
    return f(args...);
}

}  // namespace tilewave
