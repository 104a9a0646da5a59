// What plans and requests of them may hold, one choice at a time.
#pragma once
#include "tilewave/plan.hpp"

namespace tilewave {

// Each throws a ConfigError that names what was given and what is allowed.
void check_dims(const Index& given, int n, const char* what);
void check_mapping_dim(int mapping_dim, int n);
void check_grid(const Index& grid, int n, int ranks);
void check_cuts(const SweepProblem& problem, const Index& grid);
void check_factors(const Index& factors, int n, int mapping_dim, bool helper);

}  // namespace tilewave
