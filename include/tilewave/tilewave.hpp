// Everything a user of the C++ interface needs.
#pragma once
#include "tilewave/check.hpp"
#include "tilewave/nest.hpp"
#include "tilewave/space.hpp"
#include "tilewave/tiling.hpp"
