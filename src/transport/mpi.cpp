// Messages by MPI. This file and mpi_leaving are the only ones that name MPI.
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/tags.hpp"
#include "tilewave/engine/transport.hpp"
#include "transport/mpi_leaving.hpp"

namespace tilewave {

namespace {

constexpr int no_id = -1;  // of messages nobody asks for

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
    fail<ConfigError>(std::string("TILEWAVE_THREAD_LEVEL is '") + name +
                      "'; allowed: single, funneled, serialized, multiple");
}

void start() {
    const MpiCall call;
    if (mpi_started()) return;
    int provided = 0;
    must(MPI_Init_thread(nullptr, nullptr, wanted_level(), &provided), "MPI_Init_thread");
    leave_at_exit();
}

// The standard ABI's integer handles, Fortran's elsewhere: the same integers. All that is called otherwise is in
// MPI 3.1, which Open MPI 4 and 5 and older MPICHs have: no functions of MPI 4 for large counts, no sessions.
MPI_Comm comm_of(int handle) {
#ifdef MPI_ABI
    return MPI_Comm_fromint(handle);
#else
    return MPI_Comm_f2c(handle);
#endif
}

MPI_Datatype mpi_type(Dtype type) {
    switch (type) {
        case Dtype::f4: return MPI_FLOAT;
        case Dtype::f8: return MPI_DOUBLE;
        case Dtype::c8: return MPI_C_FLOAT_COMPLEX;
        case Dtype::c16: return MPI_C_DOUBLE_COMPLEX;
        case Dtype::i4: return MPI_INT32_T;
        case Dtype::i8: return MPI_INT64_T;
        case Dtype::u1:
        case Dtype::b1: return MPI_UINT8_T;
        case Dtype::i1: return MPI_INT8_T;
        case Dtype::i2: return MPI_INT16_T;
        case Dtype::u2: return MPI_UINT16_T;
        case Dtype::u4: return MPI_UINT32_T;
        case Dtype::u8: return MPI_UINT64_T;
    }
    fail<MpiError>("unknown dtype");
}

MPI_Op mpi_op(Reduction op) {
    switch (op) {
        case Reduction::sum: return MPI_SUM;
        case Reduction::prod: return MPI_PROD;
        case Reduction::min: return MPI_MIN;
        case Reduction::max: return MPI_MAX;
        case Reduction::user: break;
    }
    fail<MpiError>("a user's function is no MPI_Op here");
}

int as_int(std::int64_t n) {
    if (n > std::numeric_limits<int>::max())
        fail<ConfigError>("MPI's collective takes counts below 2^31, " + std::to_string(n) +
                          " was needed; choose another algorithm");
    return static_cast<int>(n);
}

// So many bytes as what a call can count. Calls count in int: those of MPI 4 that count further are not in every
// library of the ABIs that this may meet. Longer messages are one of a type: pieces of `piece` bytes and the rest.
class Bytes {
public:
    Bytes(std::int64_t bytes, std::int64_t piece) {
        if (bytes <= piece) {
            count_ = as_int(bytes);
            return;
        }
        const int lengths[] = {as_int(bytes / piece), as_int(bytes % piece)};
        const MPI_Aint places[] = {0, static_cast<MPI_Aint>(bytes - bytes % piece)};
        MPI_Datatype types[] = {MPI_BYTE, MPI_BYTE};
        must(MPI_Type_contiguous(as_int(piece), MPI_BYTE, &types[0]), "MPI_Type_contiguous");
        must(MPI_Type_create_struct(2, lengths, places, types, &type_), "MPI_Type_create_struct");
        must(MPI_Type_commit(&type_), "MPI_Type_commit");
        MPI_Type_free(&types[0]);
        count_ = 1;
        made_ = true;
    }
    ~Bytes() {  // what is pending keeps it
        if (made_) MPI_Type_free(&type_);
    }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    int count() const { return count_; }
    MPI_Datatype type() const { return type_; }

private:
    MPI_Datatype type_ = MPI_BYTE;
    int count_ = 0;
    bool made_ = false;
};

// Counts and displacements of the ranks' parts stay with the transport until the call is over.
struct Counts {
    std::vector<int> counts, offsets;
};

std::shared_ptr<Counts> part_counts(const NativeCall& c) {
    auto all = std::make_shared<Counts>();
    std::int64_t offset = 0;
    for (std::int64_t columns : c.columns) {
        all->counts.push_back(as_int(c.in.rows * columns));
        all->offsets.push_back(as_int(offset));
        offset += c.in.rows * columns;
    }
    return all;
}

MPI_Request start_native(const NativeCall& c, const Counts& parts, int rank, MPI_Comm comm) {
    const MPI_Datatype type = mpi_type(c.in.type);
    const int n = c.kind == PatternKind::multi_reduce ? 0 : as_int(c.in.rows * c.in.cols);
    MPI_Request request = MPI_REQUEST_NULL;
    switch (c.kind) {
        case PatternKind::broadcast: must(MPI_Ibcast(c.in.data, n, type, c.root, comm, &request), "MPI_Ibcast"); break;
        case PatternKind::reduce: {
            const void* from = rank == c.root && c.in.data == c.out.data ? MPI_IN_PLACE : c.in.data;
            must(MPI_Ireduce(from, c.out.data, n, type, mpi_op(c.op), c.root, comm, &request), "MPI_Ireduce");
            break;
        }
        case PatternKind::spread:
            must(MPI_Iallgatherv(c.in.data, n, type, c.out.data, parts.counts.data(), parts.offsets.data(), type, comm,
                                 &request),
                 "MPI_Iallgatherv");
            break;
        case PatternKind::multi_reduce:
            must(MPI_Ireduce_scatter(c.in.data, c.out.data, parts.counts.data(), type, mpi_op(c.op), comm, &request),
                 "MPI_Ireduce_scatter");
            break;
    }
    return request;
}

class MpiTransport final : public Transport {
public:
    MpiTransport(MPI_Comm from, std::int64_t piece) : piece_(piece) {
        meet(from);  // what follows waits for other ranks
        const MpiCall call;
        group_ = &group_of(from);
        place_ = static_cast<int>(group_->native_calls.size());
        group_->native_calls.push_back(0);
        must(MPI_Comm_dup(from, &comm_), "MPI_Comm_dup");
        must(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        must(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
        must(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
        must(MPI_Comm_size(MPI_COMM_WORLD, &world_size_), "MPI_Comm_size");
        int* bound = nullptr;
        int known = 0;
        must(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &bound, &known), "MPI_Comm_get_attr");
        if (known) max_tag_ = *bound;
        int level = MPI_THREAD_SINGLE;
        must(MPI_Query_thread(&level), "MPI_Query_thread");
        any_thread_ = level == MPI_THREAD_SERIALIZED || level == MPI_THREAD_MULTIPLE;
    }
    ~MpiTransport() override {
        if (process_ != getpid()) return;  // a forked child: the library, and who was in it, are its parent's
        const MpiCall call;
        int done = 0;
        MPI_Finalized(&done);
        if (done || mpi_abandoned() || failed()) return;
        // MPICH aborts where it frees a communicator with a message that nobody has received.
        int there = 0;
        if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
        if (requests_.empty() && !there) MPI_Comm_free(&comm_);
    }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    bool any_thread() const override { return any_thread_; }
    bool launched() const override { return size_ == world_size_; }
    int announced_on_host() const override {
        for (const char* const name : {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"})  // Hydra's, Open MPI's
            if (const char* const announced = std::getenv(name))
                return std::clamp(std::atoi(announced), 0, world_size_);
        return 0;
    }
    int max_tag() const override { return max_tag_; }

    std::vector<int> host_ranks() override {
        meet(comm_);
        const MpiCall call;
        MPI_Comm host;
        must(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
        int n = 0;
        MPI_Group here, all;
        must(MPI_Comm_size(host, &n), "MPI_Comm_size");
        must(MPI_Comm_group(host, &here), "MPI_Comm_group");
        must(MPI_Comm_group(comm_, &all), "MPI_Comm_group");
        std::vector<int> places(static_cast<std::size_t>(n)), ranks(places);
        std::iota(places.begin(), places.end(), 0);
        must(MPI_Group_translate_ranks(here, n, places.data(), all, ranks.data()), "MPI_Group_translate_ranks");
        MPI_Group_free(&here);
        MPI_Group_free(&all);
        MPI_Comm_free(&host);
        return ranks;
    }

    void post_send(int id, const std::byte* data, std::int64_t bytes, int peer, int tag, bool synchronous) override {
        const MpiCall call;
        MPI_Request request;
        const Bytes all(bytes, piece_);
        must(synchronous ? MPI_Issend(data, all.count(), all.type(), peer, tag, comm_, &request)
                         : MPI_Isend(data, all.count(), all.type(), peer, tag, comm_, &request),
             synchronous ? "MPI_Issend" : "MPI_Isend");
        add(id, request);
    }

    void post_recv(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
        const MpiCall call;
        MPI_Request request;
        const Bytes all(bytes, piece_);
        must(MPI_Irecv(data, all.count(), all.type(), peer, tag, comm_, &request), "MPI_Irecv");
        add(id, request);
    }

    void reserve(std::size_t messages) override {
        requests_.reserve(messages);
        for (auto* const numbers : {&ids_, &which_}) numbers->reserve(messages);
    }
    bool has_message(int peer, int tag) override {
        const MpiCall call;
        int yes = 0;
        must(MPI_Iprobe(peer, tag, comm_, &yes, MPI_STATUS_IGNORE), "MPI_Iprobe");
        return yes != 0;
    }

    bool native() const override { return true; }
    bool has_ended(int peer, bool before_native) override {
        const MpiCall call;
        return rank_has_ended(*group_, place_, peer, before_native ? group_->native_calls[place()] : 0);
    }
    void post_native(int id, const NativeCall& call) override {
        const MpiCall alone;
        ++group_->native_calls[place()];
        const std::shared_ptr<Counts> parts = part_counts(call);
        add(id, start_native(call, *parts, rank_, comm_));
        counts_.emplace(id, parts);
    }

    bool alarms() const override { return true; }
    void post_alarm(int peer, const Alarm& alarm) override {
        const MpiCall call;
        MPI_Request request;
        must(MPI_Isend(&posted_alarms_.emplace_back(alarm), sizeof alarm, MPI_BYTE, peer, tags::alarm, comm_, &request),
             "MPI_Isend");
        add(no_id, request);
    }
    void take_alarms(std::vector<Alarm>& alarms) override {
        const MpiCall call;
        while (true) {
            int there = 0;
            MPI_Status status;
            must(MPI_Iprobe(MPI_ANY_SOURCE, tags::alarm, comm_, &there, &status), "MPI_Iprobe");
            if (!there) return;
            Alarm& alarm = alarms.emplace_back();
            must(MPI_Recv(&alarm, sizeof alarm, MPI_BYTE, status.MPI_SOURCE, tags::alarm, comm_, MPI_STATUS_IGNORE),
                 "MPI_Recv");
        }
    }

    void poll(std::vector<int>& done) override {
        const MpiCall call;
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
            if (ids_[i] != no_id) done.push_back(ids_[i]);
            if (!counts_.empty()) counts_.erase(ids_[i]);
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

    std::size_t place() const { return static_cast<std::size_t>(place_); }

    MPI_Comm comm_ = MPI_COMM_NULL;
    MpiGroup* group_ = nullptr;
    int place_ = 0;  // among the transports of the group
    pid_t process_ = getpid();
    std::int64_t piece_;  // bytes that one call counts
    int rank_ = 0, size_ = 1, world_size_ = 1;
    bool any_thread_ = false;
    int max_tag_ = 32767;  // what the standard guarantees
    std::vector<MPI_Request> requests_;
    std::vector<int> ids_, which_;
    std::deque<Alarm> posted_alarms_;                // posted: few, as each follows a failure
    std::map<int, std::shared_ptr<Counts>> counts_;  // of native calls in flight
};

}  // namespace

bool mpi_started() {
    int yes = 0;
    MPI_Initialized(&yes);
    return yes != 0;
}

std::unique_ptr<Transport> make_mpi_transport(std::optional<int> comm, std::int64_t piece) {
    start();
    int finished = 0;
    MPI_Finalized(&finished);
    if (finished) fail<MpiError>("MPI has been finalized in this process: no context can be made any more");
    return std::make_unique<MpiTransport>(comm ? comm_of(*comm) : MPI_COMM_WORLD, piece);
}

MpiInfo mpi_info() {
    start();
    const MpiCall call;
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
