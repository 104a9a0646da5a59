// The numbers of a machine that a new context measures, on a transport and lanes alone.
#pragma once
#include "execute/lanes/lanes.hpp"
#include "tilewave/engine/transport.hpp"
#include "tilewave/machine.hpp"

namespace tilewave {

struct ShortMeasurement {
    Machine machine;
    double clock_offset_s = 0;  ///< this rank's clock minus rank 0's
};

/// Latency, bandwidth and messages in a row between the first rank and the last; caches; hand-overs between `lanes`,
/// where there are several. `known`: what is not measured, where ranks are. Collective; about 9 MB are sent.
ShortMeasurement measure_shortly(Transport& transport, Lanes* lanes, Machine known);

}  // namespace tilewave
