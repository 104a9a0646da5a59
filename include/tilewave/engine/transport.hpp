// How bytes move between ranks: one narrow interface, three implementations (MPI, local, dry).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewave/engine/matrix.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

/// A call of one of MPI's collectives.
struct NativeCall {
    PatternKind kind = PatternKind::broadcast;
    /// Both contiguous. broadcast: only `in`. reduce: `out` used on the root. spread: `out` has the ranks' parts one
    /// after another; multi_reduce: so has `in`.
    MatrixView in, out;
    int root = 0;
    Reduction op = Reduction::sum;
    std::vector<std::int64_t> columns;  ///< of each rank: spread, multi_reduce
};

/// The message of post_alarm(): work that stops.
struct Alarm {
    int from = 0;
    std::int64_t number = 0;  ///< of the work that stops
    std::int64_t block = 0;   ///< of that work: the last one that the sender has begun
};

/// Point-to-point transfers by id. Calls must not overlap in time (the executor holds a lock);
/// any_thread() tells whether they may come from any thread.
class Transport {
public:
    virtual ~Transport() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// False: only the thread that made the transport may call it.
    virtual bool any_thread() const { return true; }
    /// False: nothing arrives anywhere, and collectives see only this rank.
    virtual bool connected() const { return true; }
    /// Whether these are all the ranks that a launcher started.
    virtual bool launched() const { return false; }
    /// Ranks of the launch on this host, by the launcher's variables; 0: unknown.
    virtual int announced_on_host() const { return 0; }
    /// The ranks that can share memory with this one, itself among them, in order. Collective.
    virtual std::vector<int> host_ranks() { return {rank()}; }
    /// The largest tag a message may have.
    virtual int max_tag() const { return std::numeric_limits<int>::max(); }
    /// The caller's present call, for reports of long waits: "in tw.run, script.py:7, "; empty where it is not known.
    virtual std::string doing() const { return ""; }
    /// A call has thrown: what is pending is lost, and nothing more may be started.
    void mark_failed() { failed_ = true; }
    bool failed() const { return failed_; }
    /// @throws MpiError after mark_failed()
    void must_work() const {
        if (failed_) throw MpiError("this context's transport has failed before; make a new context");
    }
    /// Gets the memory that so many transfers at a time take beyond their bytes, so that posting them needs none.
    /// @throws std::bad_alloc
    virtual void reserve(std::size_t) {}
    /// Start a transfer; `id` is reported by poll() when the memory may be used again.
    /// @throws MpiError
    virtual void post_send(int id, const std::byte* data, std::int64_t bytes, int peer, int tag, bool synchronous) = 0;
    /// Sends bytes [at, at + bytes) of the matrix, counted without gaps between rows, if that needs no waiting. The
    /// matrix may change on return. False: nothing has been done.
    /// @throws MpiError
    virtual bool try_send(const MatrixView& matrix, std::int64_t at, std::int64_t bytes, int peer, int tag);
    virtual void post_recv(int id, std::byte* data, std::int64_t bytes, int peer, int tag) = 0;
    /// Whether a receive from `peer` with this tag would begin to take its message at once.
    /// @throws MpiError
    virtual bool has_message(int peer, int tag) = 0;
    /// Memory of the transport in which to write a message to `peer`, so that it is not copied again; null: not
    /// now. What is written there leaves by post_written() before any other call to that peer.
    virtual std::byte* memory_for(std::int64_t, int) { return nullptr; }
    /// As post_send(), of what was written to `data` = memory_for(bytes, peer).
    virtual void post_written(int id, std::byte* data, std::int64_t bytes, int peer, int tag) {
        post_send(id, data, bytes, peer, tag, false);
    }
    /// As post_recv(), but what arrives may stay in memory of the transport: where_received(data) is its address
    /// once the receive is complete, until release_received(data).
    virtual void post_recv_anywhere(int id, std::byte* data, std::int64_t bytes, int peer, int tag) {
        post_recv(id, data, bytes, peer, tag);
    }
    virtual const std::byte* where_received(const std::byte* data) { return data; }
    virtual void release_received(const std::byte*) {}
    /// Make progress; append the ids that have completed since the last call.
    /// @throws MpiError
    virtual void poll(std::vector<int>& done) = 0;
    /// Called about every 50 ms while the collectives below wait; may throw.
    std::function<void()> meanwhile;
    /// Whether alarms reach other ranks.
    virtual bool alarms() const { return false; }
    /// Sends `peer` an alarm, out of band: it may overtake earlier messages, but no later message overtakes it. There
    /// is no answer.
    /// @throws MpiError
    virtual void post_alarm(int peer, const Alarm& alarm);
    /// Appends the alarms that have come since the last call. May cost as much as a poll.
    /// @throws MpiError
    virtual void take_alarms(std::vector<Alarm>&) {}
    /// Whether `peer` is known to have come to its end: all it has sent is in flight, and it posts nothing more.
    /// `before_native`: before the native call that this rank has posted last. The first call asks, later ones know
    /// the answer; collective with nobody.
    /// @throws MpiError
    virtual bool has_ended(int /*peer*/, bool /*before_native*/) { return false; }
    /// Whether post_native() works here.
    virtual bool native() const { return false; }
    /// Start a collective of the library itself; collective in the library's sense.
    /// @throws MpiError
    virtual void post_native(int id, const NativeCall& call);

private:
    std::atomic<bool> failed_{false};
};

inline bool Transport::try_send(const MatrixView&, std::int64_t, std::int64_t, int, int) {
    return false;
}

inline void Transport::post_alarm(int, const Alarm&) {}

inline void Transport::post_native(int, const NativeCall&) {
    throw MpiError("this transport has no native collectives");
}

/// Completes every transfer at once and moves nothing: for timing the overhead of a schedule.
std::unique_ptr<Transport> make_dry_transport(int rank, int size);

/// A transport on top of `inner` that sends messages within a host through shared memory where that is faster.
/// `inner` itself where no two ranks share a host, the system refuses or `wanted` is false on any rank. Collective;
/// about 2 ms, in which two ranks of each host measure from which size shared memory is faster.
/// @throws MpiError
std::unique_ptr<Transport> share_memory(std::unique_ptr<Transport> inner, bool wanted = true);

/// Ranks as threads of one process. Sends complete when they are received.
class LocalFabric {
public:
    /// Every `ranks_per_host` neighbouring ranks share memory, as on one host. Tags are at most `max_tag`.
    /// @pre ranks >= 1 (ConfigError)
    explicit LocalFabric(int ranks, int ranks_per_host = 1, int max_tag = std::numeric_limits<int>::max());
    ~LocalFabric();
    std::unique_ptr<Transport> endpoint(int rank);

    struct Shared;

private:
    std::shared_ptr<Shared> shared_;
};

/// A duplicate of the communicator with the integer handle `comm` (none: the world), with errors
/// returned, not fatal. Starts MPI where nobody has (thread level SERIALIZED, or what the
/// environment variable TILEWAVE_THREAD_LEVEL names). Messages longer than `piece` bytes are posted to MPI in pieces,
/// as its calls count in int. Collective over the communicator.
/// @throws MpiError
std::unique_ptr<Transport> make_mpi_transport(std::optional<int> comm = std::nullopt,
                                              std::int64_t piece = std::int64_t{1} << 30);

/// Facts about the MPI library.
struct MpiInfo {
    std::string library, path, standard, thread_level;
    int rank = 0, size = 1;
};
/// @throws MpiError
MpiInfo mpi_info();
/// Whether MPI has been started in this process, by anyone.
bool mpi_started();
/// Leave MPI at exit without waiting for other ranks: only this rank has failed.
void abandon_mpi();

// Small collectives over any transport, built on its messages and waiting with backoff, so that
// oversubscribed ranks do not starve each other. Collective; cost O(log ranks) latencies.
void allreduce_min(Transport& transport, std::vector<std::int64_t>& values);
/// The same in memory of the caller's. @pre room.size() == 2 * values.size() (not checked)
void allreduce_min(Transport& transport, std::span<std::int64_t> values, std::span<std::int64_t> room);
// Messages have at most `piece` bytes, so that a rank passes one on while it receives the next.
inline constexpr std::int64_t collective_piece = 4 << 20;
/// So many bytes have room on the stack.
inline constexpr std::int64_t collective_small = 4 << 10;
/// Every rank gets root's `given` at the address that place(bytes) returns; null: it has no memory for them.
/// @throws OutOfResources on every rank where one has no memory for more than collective_small bytes, and nothing was
/// sent
void broadcast(Transport& transport, std::span<const std::byte> given, int root,
               const std::function<std::byte*(std::int64_t)>& place, std::int64_t piece = collective_piece);
/// The same as a string.
void broadcast(Transport& transport, std::string& bytes, int root, std::int64_t piece = collective_piece);
/// Rank 0 gets everyone's bytes, which make() gives, in rank order; the others get nothing. O(ranks) at rank 0.
/// @throws OutOfResources on every rank where one has no memory for its bytes, or rank 0 for all
std::vector<std::string> gather(Transport& transport, const std::function<std::string()>& make,
                                std::int64_t piece = collective_piece);
std::vector<std::string> gather(Transport& transport, const std::string& bytes, std::int64_t piece = collective_piece);
void barrier(Transport& transport);

/// Seconds after which a wait for another rank is reported once on stderr: 10, or TILEWAVE_WAIT_S.
double patience_s();

/// A pause in a polling loop: spins, then yields, then, where others may need the CPU, sleeps. A sleeping
/// rank moves no bytes, so lanes that share no CPU only yield.
class Backoff {
public:
    enum class Kind { dedicated, shared, idle };
    /// dedicated: a CPU for this thread. shared: more threads than CPUs, so spinning only delays
    /// the one waited for. idle: nothing large in flight, as between runs.
    explicit Backoff(Kind kind = Kind::idle)
        : kind_(kind), rounds_(kind == Kind::shared || crowded.load(std::memory_order_relaxed) ? spins : 0) {}
    void pause();
    /// Starts over: there has been progress.
    void restart() { *this = Backoff(kind_); }
    /// Rounds with a system call, which costs more than a look at the clock. With more threads than CPUs one may take
    /// milliseconds.
    bool yielding() const { return rounds_ > spins; }
    /// Rounds long enough to sleep until woken.
    bool slow() const { return rounds_ > spins + yields; }
    /// The threads of the last context are more than its CPUs: nothing spins.
    static inline std::atomic<bool> crowded{false};
    /// What pauses of this thread do, if anything: of ranks that take turns on one thread, the next one goes on.
    static thread_local void (*instead)();

private:
    static constexpr int spins = 400, yields = 2000;
    Kind kind_;
    int rounds_;
    int slept_us_ = 0;
};

}  // namespace tilewave
