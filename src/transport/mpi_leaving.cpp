#include "transport/mpi_leaving.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string_view>
#include <thread>

#include "tilewave/engine/transport.hpp"

namespace tilewave {

namespace {

// Tags of messages on a group's communicator.
constexpr int question = 1, answer = 2, farewell = 3;

// Needed after static objects are gone.
std::mutex& library() {
    static auto& mutex = *new std::mutex;
    return mutex;
}

std::atomic<bool> abandoned{false};
std::atomic<bool> broken{false};  // a call of the library has failed
bool left = false;                // together with all others
pid_t started_by = 0;             // a forked child inherits exit handlers, but is no rank

// In MPI_Finalize MPICH 5.0 answers no more messages, though others may still wait for answers to what was received
// long ago. So a rank waits for the others before.
std::deque<MpiGroup>& groups() {
    static auto& all = *new std::deque<MpiGroup>;  // needed after static objects are gone
    return all;
}

// Ranks of a host share a file of MPICH's, which stays in /dev/shm where a job is killed before MPI_Finalize. All have
// it open when they have made a communicator, and a file without a name goes with the last who has it.
void take_names_from_shared_files() {
    constexpr std::string_view deleted = " (deleted)";
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (const auto at = line.find("/dev/shm/mpich_shm_"); at != line.npos && !line.ends_with(deleted))
            (void)unlink(line.c_str() + at);  // another rank may have been quicker
}

// Takes the messages with this tag that have come; `use` is given the sender and `numbers`.
template <std::size_t n, class Use>
int take(MPI_Comm comm, int tag, std::array<std::int64_t, n>& numbers, Use use) {
    while (true) {
        int there = 0;
        MPI_Status status;
        if (const int code = MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &there, &status); code != MPI_SUCCESS || !there)
            return code;
        const int from = status.MPI_SOURCE;
        if (const int code = MPI_Recv(numbers.data(), sizeof numbers, MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE);
            code != MPI_SUCCESS)
            return code;
        use(from);
    }
}

// To all who have asked whether this rank has ended.
void answer_questions(MpiGroup& group) {
    static auto& answers = *new std::deque<std::array<std::int64_t, 2>>;  // MPI may still read them
    std::array<std::int64_t, 1> transport{};
    (void)take(group.comm, question, transport, [&](int from) {
        const auto place = static_cast<std::size_t>(transport[0]);
        const auto& sent = answers.emplace_back(std::array{transport[0], group.native_calls.at(place)});
        MPI_Request request;
        if (MPI_Isend(sent.data(), sizeof sent, MPI_BYTE, from, answer, group.comm, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    });
}

// Between polls of a long wait, by their number: other ranks may compute for long.
void pause(int round) {
    if (round < 1000)
        std::this_thread::yield();
    else
        std::this_thread::sleep_for(std::chrono::microseconds(200));
}

// Whether a rank has announced that it leaves without the others. Over TCP, MPICH ends by SIGSEGV where it sends to
// one.
bool somebody_has_gone() {
    for (const MpiGroup& group : groups()) {
        int there = 0;
        if (MPI_Iprobe(MPI_ANY_SOURCE, farewell, group.comm, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && there)
            return true;
    }
    return false;
}

// To all others, as far as possible in 50 ms: libfabric delays for some ms what it reports as sent.
void send_farewell() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    const auto in_time = [end] { return std::chrono::steady_clock::now() < end; };
    for (const MpiGroup& group : groups()) {
        int rank = 0, size = 0;
        if (MPI_Comm_rank(group.comm, &rank) != MPI_SUCCESS || MPI_Comm_size(group.comm, &size) != MPI_SUCCESS) return;
        for (int r = 0; r < size && in_time(); ++r)
            if (MPI_Request sent;
                r != rank && MPI_Isend(nullptr, 0, MPI_BYTE, r, farewell, group.comm, &sent) == MPI_SUCCESS)
                MPI_Request_free(&sent);
    }
    for (int round = 0; in_time(); pause(round++)) (void)somebody_has_gone();  // the library works meanwhile
}

bool all_on_this_host() {
    int ranks = 0;
    if (MPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS) return false;
    for (const char* const name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"})  // Hydra's, Open MPI's
        if (const char* const here = std::getenv(name)) return std::atoi(here) == ranks;
    return false;
}

// False: not all ranks will come.
bool leave() {
    if (left) return true;
    if (abandoned) return false;
    // The library needs several polls for messages that came over a network long ago.
    for (int round = 0; round < (all_on_this_host() ? 1 : 20); ++round) {
        if (somebody_has_gone()) return false;
        if (round) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    // Twice: answers to what was asked before the first meeting are taken before the second one. UCX warns of messages
    // that nobody takes.
    std::vector<MPI_Request> leaving(groups().size(), MPI_REQUEST_NULL);
    for (int meeting = 0; meeting < 2; ++meeting) {
        for (std::size_t g = 0; g < leaving.size(); ++g)
            if (MPI_Ibarrier(groups()[g].comm, &leaving[g]) != MPI_SUCCESS) return true;
        for (int all = 0, round = 0; !all; ++round) {
            if (MPI_Testall(static_cast<int>(leaving.size()), leaving.data(), &all, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
                return true;
            for (MpiGroup& group : groups()) {
                answer_questions(group);
                std::array<std::int64_t, 2> reply{};
                (void)take(group.comm, answer, reply, [](int) {});
            }
            if (!all && somebody_has_gone()) return false;
            pause(round);
        }
    }
    return left = true;
}

// MPI_Finalize first frees the attributes of MPI_COMM_SELF, which calls this.
int leave_together(MPI_Comm, int, void*, void*) {
    (void)leave();
    return MPI_SUCCESS;
}

void finish() {
    if (started_by != getpid()) return;
    const MpiCall call;  // threads that still run come in no more
    int done = 0;
    MPI_Finalized(&done);
    // A rank that failed alone must not wait for the others in Finalize: they wait for it.
    if (!done && leave()) MPI_Finalize();
}

}  // namespace

Throw* throw_in_core = nullptr;

void must(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    broken = true;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    fail<MpiError>(std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

MpiCall::MpiCall() {
    library().lock();
}

MpiCall::~MpiCall() {
    library().unlock();
}

void meet(MPI_Comm comm) {
    MPI_Request all_here;
    {
        const MpiCall call;
        int between_groups = 0;
        must(MPI_Comm_test_inter(comm, &between_groups), "MPI_Comm_test_inter");
        if (between_groups)
            fail<ConfigError>(
                "comm: given an intercommunicator; allowed: a communicator of one group, such as its Merge() gives");
        must(MPI_Ibarrier(comm, &all_here), "MPI_Ibarrier");
    }
    for (int round = 0;; ++round) {
        {
            const MpiCall call;
            int here = 0;
            must(MPI_Test(&all_here, &here, MPI_STATUS_IGNORE), "MPI_Test");
            if (here) return;
        }
        pause(round);
    }
}

// Ranks of `from` have all the same groups of just these ranks.
MpiGroup& group_of(MPI_Comm from) {
    for (MpiGroup& group : groups()) {
        int same = MPI_UNEQUAL;
        must(MPI_Comm_compare(from, group.comm, &same), "MPI_Comm_compare");
        if (same == MPI_IDENT || same == MPI_CONGRUENT) return group;
    }
    MPI_Comm comm;
    must(MPI_Comm_dup(from, &comm), "MPI_Comm_dup");
    take_names_from_shared_files();
    must(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    if (groups().empty()) {
        int key = MPI_KEYVAL_INVALID;
        must(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_together, &key, nullptr), "MPI_Comm_create_keyval");
        must(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
    }
    MpiGroup& group = groups().emplace_back();
    group.comm = comm;
    return group;
}

bool rank_has_ended(MpiGroup& group, int transport, int peer, std::int64_t native_call) {
    const auto of = [&](int rank, std::int64_t place) { return std::pair(rank, static_cast<int>(place)); };
    std::array<std::int64_t, 2> reply{};
    must(take(group.comm, answer, reply, [&](int from) { group.ended[of(from, reply[0])] = reply[1]; }), "MPI_Recv");
    if (group.asked.insert(of(peer, transport)).second) {
        static auto& questions = *new std::deque<std::int64_t>;  // MPI may still read them
        MPI_Request request;
        must(MPI_Isend(&questions.emplace_back(transport), sizeof(std::int64_t), MPI_BYTE, peer, question, group.comm,
                       &request),
             "MPI_Isend");
        must(MPI_Request_free(&request), "MPI_Request_free");
    }
    const auto found = group.ended.find(of(peer, transport));
    return found != group.ended.end() && (native_call == 0 || found->second < native_call);
}

void leave_at_exit() {
    started_by = getpid();
    std::atexit(finish);
}

bool mpi_abandoned() {
    return abandoned;
}

void abandon_mpi() {
    const MpiCall call;
    int done = 0;
    MPI_Finalized(&done);
    if (abandoned.exchange(true) || broken || done || somebody_has_gone()) return;
    send_farewell();
}

}  // namespace tilewave
