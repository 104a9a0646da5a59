// The BLAS of tests.
#pragma once
#include <cstdlib>

#include "tilewave/linalg.hpp"

namespace tilewave {

/// The library that TILEWAVE_BLAS names, or the system's OpenBLAS. tools/test.sh sets the variable.
inline const char* blas_of_tests() {
    const char* const name = std::getenv("TILEWAVE_BLAS");
    return name ? name : "libopenblas.so.0";
}

/// Whether there is that library.
inline bool have_blas() {
    try {
        use_blas(blas_of_tests());
        return true;
    } catch (const ConfigError&) {
        return false;
    }
}

}  // namespace tilewave
