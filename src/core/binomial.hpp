// The binomial tree over ranks counted from its root: the parent of v clears v's lowest set bit.
#pragma once

namespace tilewave::binomial {

inline int parent(int v) {
    return v & (v - 1);
}

/// f(child) in increasing order; the subtree of child v + b is [v + b, v + 2b).
template <class F>
void for_children(int v, int size, F f) {
    for (int bit = 1; bit < size; bit <<= 1) {
        if (v & bit) break;
        if (v + bit < size) f(v + bit);
    }
}

}  // namespace tilewave::binomial
