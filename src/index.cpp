#include "tilewave/index.hpp"

#include <algorithm>

namespace tilewave {

std::string to_string(const Index& index) {
    std::string s = "(";
    for (int k = 0; k < index.n; ++k) s += (k ? ", " : "") + std::to_string(index[k]);
    return s + ")";
}

std::int64_t Box::points() const {
    std::int64_t product = 1;
    for (int k = 0; k < lo.n; ++k) product *= extent(k);
    return product;
}

bool Box::contains(const Index& j) const {
    for (int k = 0; k < lo.n; ++k)
        if (j[k] < lo[k] || j[k] >= hi[k]) return false;
    return true;
}

bool Box::contains(const Box& other) const {
    if (other.empty()) return true;
    for (int k = 0; k < lo.n; ++k)
        if (other.lo[k] < lo[k] || other.hi[k] > hi[k]) return false;
    return true;
}

Box intersect(const Box& a, const Box& b) {
    Box r = a;
    for (int k = 0; k < a.dims(); ++k) {
        r.lo[k] = std::max(a.lo[k], b.lo[k]);
        r.hi[k] = std::min(a.hi[k], b.hi[k]);
    }
    return r;
}

Box hull(const Box& a, const Box& b) {
    if (a.dims() == 0 || a.empty()) return b;
    if (b.dims() == 0 || b.empty()) return a;
    Box r = a;
    for (int k = 0; k < a.dims(); ++k) {
        r.lo[k] = std::min(a.lo[k], b.lo[k]);
        r.hi[k] = std::max(a.hi[k], b.hi[k]);
    }
    return r;
}

std::vector<Box> subtract(const Box& a, const Box& b) {
    if (a.empty()) return {};
    const Box common = intersect(a, b);
    if (common.empty()) return {a};
    std::vector<Box> parts;
    Box rest = a;  // shrinks to `common`, one dimension at a time
    for (int k = 0; k < a.dims(); ++k) {
        if (rest.lo[k] < common.lo[k]) {
            parts.push_back(rest);
            parts.back().hi[k] = common.lo[k];
        }
        if (common.hi[k] < rest.hi[k]) {
            parts.push_back(rest);
            parts.back().lo[k] = common.hi[k];
        }
        rest.lo[k] = common.lo[k];
        rest.hi[k] = common.hi[k];
    }
    return parts;
}

std::string to_string(const Box& box) {
    std::string s = "[";
    for (int k = 0; k < box.dims(); ++k)
        s += (k ? ", " : "") + std::to_string(box.lo[k]) + ":" + std::to_string(box.hi[k]);
    return s + "]";
}

}  // namespace tilewave
