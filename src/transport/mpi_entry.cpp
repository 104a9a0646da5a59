#include "transport/mpi_entry.hpp"

#include "transport/mpi_leaving.hpp"

extern "C" __attribute__((visibility("default"))) const tilewave::MpiEntry* tilewave_mpi_entry(
    tilewave::Throw* throws) {
    tilewave::throw_in_core = throws;
    static const tilewave::MpiEntry entry{&tilewave::make_mpi_transport, &tilewave::mpi_info, &tilewave::mpi_started,
                                          &tilewave::abandon_mpi};
    return &entry;
}
