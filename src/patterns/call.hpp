// The arguments of one rank's call of a pattern.
#pragma once
#include <string>

#include "tilewave/patterns.hpp"

namespace tilewave {

inline bool has_parts(PatternKind kind) {
    return kind == PatternKind::spread || kind == PatternKind::multi_reduce;
}

/// What is wrong with it that this rank alone can see; empty: nothing.
std::string check_call(const PatternCall& call, int rank, int ranks);
/// As text: what must be the same on all ranks.
std::string describe(const PatternCall& call);

}  // namespace tilewave
