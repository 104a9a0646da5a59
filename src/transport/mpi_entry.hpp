// The MPI transport as a loadable library: a process may only hold one MPI, and which one is known
// when it runs (the environment's, or the one that mpi4py has loaded), not when it is built.
#pragma once
#include "tilewave/engine/transport.hpp"

namespace tilewave {

/// The functions of src/transport/mpi.cpp, by pointer.
struct MpiEntry {
    std::unique_ptr<Transport> (*make)(std::optional<int> comm, std::int64_t piece);
    MpiInfo (*info)();
    bool (*started)();
    void (*abandon)();
};

/// The type of tilewave_mpi_entry, whose argument throws a ConfigError, or else an MpiError, with a text.
using GetMpiEntry = const MpiEntry*(void (*throws)(bool config, const char* text));

}  // namespace tilewave
