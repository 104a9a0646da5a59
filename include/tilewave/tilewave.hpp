// Everything that a C++ program needs.
#pragma once
#include "tilewave/engine/check.hpp"
#include "tilewave/engine/predict.hpp"
#include "tilewave/engine/run_schedule.hpp"
#include "tilewave/halo.hpp"
#include "tilewave/linalg.hpp"
#include "tilewave/nest.hpp"
#include "tilewave/patterns.hpp"
