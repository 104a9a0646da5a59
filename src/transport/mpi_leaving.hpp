// How threads share MPI, and how ranks leave it: together, and what a rank that has come to its end still answers.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewave/error.hpp"

namespace tilewave {

/// Throws in the module that loads these files as a library: two libraries may have a C++ runtime each, which does not
/// catch the other's exceptions by type. None where all is one program.
using Throw = void(bool config, const char* text);
extern Throw* throw_in_core;

/// @throws E, a ConfigError or an MpiError, with this text
template <class E>
[[noreturn]] void fail(const std::string& text) {
    if (throw_in_core) throw_in_core(std::is_same_v<E, ConfigError>, text.c_str());
    throw E(text);
}

/// @throws MpiError where `code`, of `call`, is not MPI_SUCCESS
void must(int code, const char* call);

/// A thread's stay in the library, which below MULTIPLE takes one thread of a process at a time, whichever
/// communicators they use; and in what this file and mpi.cpp keep for the process. Whoever is in waits for no message
/// of another rank, takes no other lock and calls no Python, so that all others come in soon, also with the
/// interpreter's lock in hand.
class MpiCall {
public:
    MpiCall();
    ~MpiCall();
    MpiCall(const MpiCall&) = delete;
    MpiCall& operator=(const MpiCall&) = delete;
};

/// Returns when all ranks of `comm` are here; other threads may be in the library meanwhile. A blocking collective call
/// that follows waits only until each rank has the library for it. Collective over `comm`.
/// @throws MpiError
void meet(MPI_Comm comm);

/// Ranks that have had a transport together: they leave MPI when all of them do.
struct MpiGroup {
    MPI_Comm comm = MPI_COMM_NULL;
    std::vector<std::int64_t>
        native_calls;                     ///< posted by each transport of the group, in the order that they were made
    std::set<std::pair<int, int>> asked;  ///< (rank, transport) of the questions that were sent
    std::map<std::pair<int, int>, std::int64_t> ended;  ///< their answers: native calls of a rank that has ended
};

/// The group of just the ranks of `from`; lives to the end of the process. Collective over `from`.
/// @pre an MpiCall is held, here and in rank_has_ended()
/// @throws MpiError
MpiGroup& group_of(MPI_Comm from);

/// Whether `peer` is known to have come to its end, before this transport's native call of that number where one is
/// given. Sends it a question the first time; only a rank that leaves MPI answers, so a later call knows more.
/// @throws MpiError
bool rank_has_ended(MpiGroup& group, int transport, int peer, std::int64_t native_call);

/// At the exit of this process MPI is left, unless it has been or `abandon_mpi` was called.
void leave_at_exit();
bool mpi_abandoned();

}  // namespace tilewave
