// Systems of integer inequalities: elimination of a variable and removal of what is redundant.
#pragma once
#include <optional>
#include <vector>

#include "polyhedral/space.hpp"

namespace tilewave::fm {

using System = std::vector<Constraint>;

/// The same integer points with fewer constraints: coefficients divided by their common
/// factor and the constant rounded down (which loses no integer point), only the tightest of
/// parallel ones, and none that the others imply.
/// @returns nothing if two parallel constraints contradict each other
std::optional<System> simplify(System system);

/// The rational shadow of `system` without variable k, simplified.
/// @returns nothing if it is found to be empty
std::optional<System> eliminate(const System& system, int k);

/// Whether every rational point of `others` satisfies `c`; may say false when the exact
/// arithmetic would need more than 64 bits.
bool implied(const System& others, const Constraint& c);

}  // namespace tilewave::fm
