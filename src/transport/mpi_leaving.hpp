// How threads share MPI, and how ranks leave it: together, and what a rank that has come to its end still answers.
#pragma once
#include <mpi.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tilewave {

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
