#include "mpi_library.hpp"

#include <dlfcn.h>

#include "transport/mpi_entry.hpp"

namespace tilewave {

namespace {

std::string path_loaded;
const MpiEntry* entry = nullptr;

const MpiEntry& need() {
    if (!entry) throw MpiError("no MPI has been loaded in this process");
    return *entry;
}

[[noreturn]] void throw_here(bool config, const char* text) {
    if (config) throw ConfigError(text);
    throw MpiError(text);
}

}  // namespace

namespace python {

void load_mpi(const std::string& path) {
    if (path == path_loaded) return;
    if (entry)
        throw MpiError("the MPI of " + path_loaded + " is in use in this process; " + path +
                       " cannot be loaded in the same process");
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw MpiError(std::string("the MPI library cannot be loaded: ") + dlerror());
    const auto get = reinterpret_cast<GetMpiEntry*>(dlsym(library, "tilewave_mpi_entry"));
    if (!get) throw MpiError(path + " is no MPI transport of Tilewave");
    entry = get(&throw_here);
    path_loaded = path;
}

}  // namespace python

std::unique_ptr<Transport> make_mpi_transport(std::optional<int> comm, std::int64_t piece) {
    return need().make(comm, piece);
}
MpiInfo mpi_info() {
    return need().info();
}
bool mpi_started() {
    return entry && entry->started();
}
void abandon_mpi() {
    if (entry) entry->abandon();
}

}  // namespace tilewave
