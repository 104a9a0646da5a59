// Where a run happens: a transport, pinned lanes, and how ranks agree on errors.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <typeindex>
#include <vector>

#include "tilewave/engine/fast_paths.hpp"
#include "tilewave/engine/transport.hpp"
#include "tilewave/machine.hpp"

namespace tilewave {

class ProgressEngine;
class Lanes;
struct ExecuteOptions;

/// Which function a rank calls, and from which place of its program.
struct Caller {
    std::string call;   ///< "tw.run"; must be the same on every rank
    std::string where;  ///< "script.py:7"; only shown. Empty: asked from Context::on_where() if needed
};

/// One rank's place in a group of ranks, with `threads` lanes each. No global state: any number
/// may live side by side. It stays where it is: what is made on it refers to it.
class Context {
public:
    /// Collective over the transport's ranks; costs a gather of their machines' names and the
    /// measuring of machine(): about 9 MB sent between two ranks.
    /// 0 threads: as many as the rank with the smallest share of its host's CPUs has there.
    /// `without`: names of the fast paths to switch off, with commas; nothing: as the environment variable
    /// TILEWAVE_WITHOUT says.
    /// @pre 0 <= threads <= max_lanes (ConfigError)
    /// @pre the same fast paths are off on every rank (ConfigError)
    Context(std::unique_ptr<Transport> transport, int threads, const Caller& caller = {"Context", ""},
            const std::optional<std::string>& without = {});
    ~Context();
    Context(const Context&) = delete;  // fields, matrices and bound nests have its address
    Context& operator=(const Context&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    int threads() const { return threads_; }
    /// Cores of each rank: those of its host, divided among the ranks there. The default number of threads.
    int share() const { return share_; }
    /// The fast paths that are switched off here.
    PathsOff paths_off() const { return paths_off_; }
    /// Options of every run on this context. Its polls also move the patterns in flight.
    Transport& transport();
    const std::shared_ptr<ProgressEngine>& engine() { return engine_; }
    Lanes& lanes() { return *lanes_; }
    /// This rank's lanes are more than its share of the host's CPUs, or of a quota: nothing is pinned, and waits yield
    /// at once.
    bool oversubscribed() const { return oversubscribed_; }
    /// CPUs that this rank's lanes are pinned to; empty when nothing is pinned. The environment variable TILEWAVE_PIN
    /// decides: on, off, or auto, which pins where the context has all ranks of a launch and they have several lanes
    /// on this host: a lane a core before SMT siblings, on one NUMA node if there is room. With more lanes than CPUs
    /// nothing is pinned. The caller's thread is pinned only inside a run.
    const std::vector<int>& cpus() const;
    /// NUMA nodes of the CPUs that this process may use.
    int nodes() const { return nodes_; }

    /// Latency and bandwidth to the farthest rank and the hand-over between two lanes, equal on
    /// all ranks; measured when the context is made; where there is one rank, at first use.
    const Machine& machine();
    /// Replaces the measured numbers, except the places of ranks: ranks_per_core, set_of, set_cpus. Local;
    /// the same on every rank, or plans differ.
    void use_machine(const Machine& machine);
    /// Differs for each machine that the context has used.
    std::int64_t machine_number() const { return machine_number_; }
    /// Add to this rank's clock to get rank 0's.
    double clock_offset_s();

    ExecuteOptions& options() { return *options_; }

    /// Sets the function that gives the caller's place in its program, "script.py:7". It is called for the text of
    /// messages only, by the thread that made the call.
    void on_where(std::function<std::string()> where);
    /// State that a component of the library keeps with this context, by type: made at first use, destroyed with the
    /// context. Local.
    template <class T>
    T& component() {
        std::shared_ptr<void>& there = components_[typeid(T)];
        if (!there) there = std::make_shared<T>();
        return *static_cast<T*>(there.get());
    }

    /// Announces that this rank makes no more calls: the next call of every other rank fails and does not wait for it.
    /// Returns at once.
    void end();
    /// The rank that has ended, as far as this rank knows from its calls; -1: none. All later calls on the context
    /// fail.
    int ended() const;

private:
    void measure();

    bool launched_;  // these three before `engine_`, which takes the transport
    int announced_on_host_;
    PathsOff paths_off_ = 0;
    std::shared_ptr<ProgressEngine> engine_;
    int threads_, share_ = 1, rank_ = 0, size_ = 1, nodes_ = 1;
    bool oversubscribed_ = false;
    double ranks_per_core_ = 1;            // here
    Runs<std::int32_t> host_of_, set_of_;  // as Machine has them
    Runs<double> set_cpus_;
    std::unique_ptr<Lanes> lanes_;
    std::unique_ptr<ExecuteOptions> options_;
    std::optional<Machine> machine_;
    std::int64_t machine_number_ = 0;
    double clock_offset_s_ = 0;
    std::map<std::type_index, std::shared_ptr<void>> components_;
};

/// The status of one rank, which the ranks compare before a collective operation.
struct RankStatus {
    enum class Kind : char {
        fine = ' ',
        config = 'c',
        mpi = 'm',
        kernel = 'k',
        resources = 'r',
        internal = 'i',
        interrupt = 'x'
    };
    Kind kind = Kind::fine;
    std::string error;          ///< with a kind other than fine
    std::string description;    ///< of the arguments; must be equal on all ranks
    std::int64_t prepared = 0;  ///< a number above 0 that stands for what this rank has prepared for them; 0: nothing
    Caller caller = {};
};

/// The exception of a kind.
[[noreturn]] void throw_as(RankStatus::Kind kind, const std::string& text);

/// All ranks return, or all throw the same error: a ConfigError that names the first two calls or descriptions that
/// differ, or the error of the lowest rank that has one. The context is unchanged either way, and the next calls match
/// again. Returns whether all ranks have prepared the same. Every call on a context begins with this or with a
/// pattern's agreement, so that ranks that call different functions find out. Collective; ceil(log2 ranks) small
/// messages a rank when all is well.
/// @throws ConfigError, KernelError, InternalError; Interrupted where any rank was; MpiError where a rank has ended
bool agree(Context& context, const RankStatus& status);

class InFlight;

/// What is in flight on a context. It makes progress in every call on its context, and in test() and wait() of any
/// handle of this thread. Between calls only the message library itself makes progress. Destroying the handle does not
/// stop it.
class Handle {
public:
    explicit Handle(std::shared_ptr<InFlight> call) : call_(std::move(call)) {}
    /// Makes progress; returns whether it is over.
    /// @throws what wait() throws
    bool test();
    /// @throws ConfigError, KernelError, MpiError: of a collective call on every rank the same, once it is over
    void wait();
    /// Bytes of its staging buffers.
    std::int64_t buffer_bytes() const;

protected:
    std::shared_ptr<InFlight> call_;
};

/// The same of a call that may have been made to be repeated: it goes again with the same memory, without comparing the
/// arguments.
class RepeatedHandle : public Handle {
public:
    using Handle::Handle;
    /// Collective in effect. @pre the call was made to be repeated, and is not in flight (ConfigError)
    void start();
    /// start() and wait() in one.
    void run();
};

}  // namespace tilewave
