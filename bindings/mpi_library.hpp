// Loads the MPI transport of one ABI; once in a process.
#pragma once
#include <string>

namespace tilewave::python {

/// Load `path` (a library with tilewave_mpi_entry); later calls with another path are refused.
/// @throws MpiError when it cannot be loaded
void load_mpi(const std::string& path);

}  // namespace tilewave::python
