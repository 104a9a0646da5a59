// The only file that names MPI.
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tilewave/transport.hpp"

namespace tilewave {

namespace {

std::atomic<bool> abandoned{false};
pid_t started_by = 0;  // a forked child inherits exit handlers, but is no rank

void must(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw MpiError(std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

struct Level {
    const char* name;
    int value;
};
constexpr int level_count = 4;
const Level levels[level_count] = {{"single", MPI_THREAD_SINGLE},
                                   {"funneled", MPI_THREAD_FUNNELED},
                                   {"serialized", MPI_THREAD_SERIALIZED},
                                   {"multiple", MPI_THREAD_MULTIPLE}};

int wanted_level() {
    const char* name = std::getenv("TILEWAVE_THREAD_LEVEL");
    if (!name) return MPI_THREAD_SERIALIZED;
    for (const Level& l : levels)
        if (std::strcmp(l.name, name) == 0) return l.value;
    throw ConfigError(std::string("TILEWAVE_THREAD_LEVEL is '") + name +
                      "'; allowed: single, funneled, serialized, multiple");
}

void finish() {
    int done = 0;
    MPI_Finalized(&done);
    // A rank that failed alone must not wait for the others in Finalize: they wait for it.
    if (!done && !abandoned && started_by == getpid()) MPI_Finalize();
}

void start() {
    if (mpi_started()) return;
    int provided = 0;
    must(MPI_Init_thread(nullptr, nullptr, wanted_level(), &provided), "MPI_Init_thread");
    started_by = getpid();
    std::atexit(finish);
}

// MPI-5's integer handles where the library has them, Fortran's elsewhere: the same integers.
MPI_Comm comm_of(int handle) {
#if MPI_VERSION >= 5
    return MPI_Comm_fromint(handle);
#else
    return MPI_Comm_f2c(handle);
#endif
}

class MpiTransport final : public Transport {
public:
    explicit MpiTransport(MPI_Comm from) : owner_(std::this_thread::get_id()) {
        must(MPI_Comm_dup(from, &comm_), "MPI_Comm_dup");
        must(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        must(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
        must(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
        int* bound = nullptr;
        int known = 0;
        must(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &bound, &known), "MPI_Comm_get_attr");
        if (known) max_tag_ = *bound;
        int level = MPI_THREAD_SINGLE;
        must(MPI_Query_thread(&level), "MPI_Query_thread");
        any_thread_ = level == MPI_THREAD_SERIALIZED || level == MPI_THREAD_MULTIPLE;
    }
    ~MpiTransport() override {
        int done = 0;
        MPI_Finalized(&done);
        if (!done && !abandoned && requests_.empty()) MPI_Comm_free(&comm_);
    }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    bool any_thread() const override { return any_thread_; }
    int max_tag() const override { return max_tag_; }

    void post_send(int id, const std::byte* data, std::int64_t bytes, int peer, int tag, bool synchronous) override {
        MPI_Request request;
        const int n = static_cast<int>(bytes);
        must(synchronous ? MPI_Issend(data, n, MPI_BYTE, peer, tag, comm_, &request)
                         : MPI_Isend(data, n, MPI_BYTE, peer, tag, comm_, &request),
             synchronous ? "MPI_Issend" : "MPI_Isend");
        add(id, request);
    }

    void post_recv(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        MPI_Request request;
        must(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, comm_, &request), "MPI_Irecv");
        add(id, request);
    }

    void poll(std::vector<int>& done) override {
        if (requests_.empty()) {
            // Any call lets the library work: a peer's synchronous send may wait for its answer.
            int flag = 0;
            must(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
            return;
        }
        const int n = static_cast<int>(requests_.size());
        which_.resize(requests_.size());
        int count = 0;
        must(MPI_Testsome(n, requests_.data(), &count, which_.data(), MPI_STATUSES_IGNORE), "MPI_Testsome");
        if (count <= 0) return;
        // From the back, so that moving the last into the gap touches no index still to come.
        std::sort(which_.begin(), which_.begin() + count, std::greater<>());
        for (int c = 0; c < count; ++c) {
            const auto i = static_cast<std::size_t>(which_[c]);
            done.push_back(ids_[i]);
            requests_[i] = requests_.back();
            ids_[i] = ids_.back();
            requests_.pop_back();
            ids_.pop_back();
        }
    }

private:
    void add(int id, MPI_Request request) {
        requests_.push_back(request);
        ids_.push_back(id);
    }

    MPI_Comm comm_ = MPI_COMM_NULL;
    std::thread::id owner_;
    int rank_ = 0, size_ = 1;
    bool any_thread_ = false;
    int max_tag_ = 32767;  // what the standard guarantees
    std::vector<MPI_Request> requests_;
    std::vector<int> ids_, which_;
};

}  // namespace

bool mpi_started() {
    int yes = 0;
    MPI_Initialized(&yes);
    return yes != 0;
}

void abandon_mpi() { abandoned = true; }

std::unique_ptr<Transport> make_mpi_transport(std::optional<int> comm) {
    start();
    int finished = 0;
    MPI_Finalized(&finished);
    if (finished) throw MpiError("MPI has been finalized in this process: no context can be made any more");
    return std::make_unique<MpiTransport>(comm ? comm_of(*comm) : MPI_COMM_WORLD);
}

MpiInfo mpi_info() {
    start();
    MpiInfo info;
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0, version = 0, subversion = 0, level = 0;
    must(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
    info.library = std::string(text, static_cast<std::size_t>(length));
    must(MPI_Get_version(&version, &subversion), "MPI_Get_version");
    info.standard = std::to_string(version) + "." + std::to_string(subversion);
    must(MPI_Query_thread(&level), "MPI_Query_thread");
    for (const Level& l : levels)
        if (l.value == level) info.thread_level = l.name;
    must(MPI_Comm_rank(MPI_COMM_WORLD, &info.rank), "MPI_Comm_rank");
    must(MPI_Comm_size(MPI_COMM_WORLD, &info.size), "MPI_Comm_size");
    Dl_info where;
    if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &where) && where.dli_fname) info.path = where.dli_fname;
    return info;
}

}  // namespace tilewave
