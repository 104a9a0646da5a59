// The BLAS of tests.
#pragma once
#include <cstdlib>

#include "tilewave/linalg.hpp"

namespace tilewave {

/// Whether there is the library that TILEWAVE_BLAS names, or the system's OpenBLAS. tools/test.sh sets the variable.
inline bool have_blas() {
    try {
        use_blas(std::getenv("TILEWAVE_BLAS") ? std::getenv("TILEWAVE_BLAS") : "libopenblas.so.0");
        return true;
    } catch (const ConfigError&) {
        return false;
    }
}

}  // namespace tilewave
