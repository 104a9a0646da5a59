// Everything that a C++ program needs.
#pragma once
#include "tilewave/check.hpp"
#include "tilewave/halo.hpp"
#include "tilewave/linalg.hpp"
#include "tilewave/nest.hpp"
#include "tilewave/patterns.hpp"
#include "tilewave/predict.hpp"
#include "tilewave/run_schedule.hpp"
