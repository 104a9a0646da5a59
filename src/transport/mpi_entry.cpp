#include "transport/mpi_entry.hpp"

extern "C" __attribute__((visibility("default"))) const tilewave::MpiEntry* tilewave_mpi_entry() {
    static const tilewave::MpiEntry entry{&tilewave::make_mpi_transport, &tilewave::mpi_info, &tilewave::mpi_started,
                                          &tilewave::abandon_mpi};
    return &entry;
}
