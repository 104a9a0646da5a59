// Signs of the components of an index.
#pragma once
#include "tilewave/index.hpp"

namespace tilewave {

inline Index operator-(const Index& a) {
    return Index::filled(a.n, 0) - a;
}

/// The first component that is not zero; index.n where all are.
inline int first_nonzero(const Index& index) {
    int k = 0;
    while (k < index.n && index[k] == 0) ++k;
    return k;
}

}  // namespace tilewave
