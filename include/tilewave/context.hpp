// Where a run happens: a transport, pinned lanes, and how ranks agree on errors.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <typeindex>
#include <vector>

#include "tilewave/machine.hpp"
#include "tilewave/transport.hpp"

namespace tilewave {

class Exchange;
class Lanes;
struct ExecuteOptions;

/// Which function a rank calls, and where its program stands.
struct Caller {
    std::string call;  ///< "tw.run"; must be the same on every rank
    std::string
        where;  ///< "script.py:7"; only shown. Empty: what Context::on_where() was given is asked, if it is needed
};

/// One rank's place in a group of ranks, with `threads` lanes each. No global state: any number
/// may live side by side.
class Context {
public:
    /// Collective over the transport's ranks; costs a gather of their machines' names and the
    /// measuring of machine(): about 9 MB sent between two ranks.
    /// 0 threads: as many as the rank with the smallest share of its host's CPUs has there.
    /// @pre 0 <= threads <= max_lanes (ConfigError)
    Context(std::unique_ptr<Transport> transport, int threads, const Caller& caller = {"Context", ""});
    ~Context();
    Context(Context&&) noexcept;

    int rank() const { return rank_; }
    int size() const { return size_; }
    int threads() const { return threads_; }
    /// CPUs of each rank, as those of a host are shared by the ranks there: the threads where nobody says how many.
    int share() const { return share_; }
    /// Its polls also move what is in flight on this context.
    Transport& transport();
    const std::shared_ptr<Exchange>& exchange() { return exchange_; }
    Lanes& lanes() { return *lanes_; }
    /// This rank's lanes are more than its share of the host's CPUs, or of a quota: nothing is pinned, and waits yield
    /// at once.
    bool oversubscribed() const { return oversubscribed_; }
    /// CPUs that this rank's lanes are pinned to; empty when nothing is pinned. The environment variable TILEWAVE_PIN
    /// decides: on, off, or auto, which pins where these are all the ranks of a launch and several lanes of theirs are
    /// on this host. With more lanes than CPUs nothing is pinned. The caller's own thread is pinned only inside a run.
    const std::vector<int>& cpus() const;

    /// Latency and bandwidth to the farthest rank and the hand-over between two lanes, equal on
    /// all ranks; measured when the context is made, on one rank alone at first use.
    const Machine& machine();
    /// From now on these numbers in place of what the context measured, but for what says where ranks are:
    /// ranks_per_core, set_of, set_cpus. Local; the same on every rank, or plans differ.
    void use_machine(const Machine& machine);
    /// Add to this rank's clock to get rank 0's.
    double clock_offset_s();

    ExecuteOptions& options() { return *options_; }

    /// What says where the caller's program stands, "script.py:7": asked for texts only, by the thread that made the
    /// call.
    void on_where(std::function<std::string()> where);
    /// What a part of the library keeps with this context, which does not know it: made at first use, gone with the
    /// context. Local.
    template <class T>
    T& own() {
        std::shared_ptr<void>& there = own_[typeid(T)];
        if (!there) there = std::make_shared<T>();
        return *static_cast<T*>(there.get());
    }

    /// This rank makes no more calls: the others, in their next call, fail with that in place of waiting for it. Does
    /// not wait.
    void end();
    /// The rank that has ended, as this one has learned in a call; -1: none. All calls on the context fail from then
    /// on.
    int ended() const;

private:
    void measure();

    bool launched_;  // these two before `exchange_`, which takes the transport
    int announced_on_host_;
    std::shared_ptr<Exchange> exchange_;
    int threads_, share_ = 1, rank_ = 0, size_ = 1;
    bool oversubscribed_ = false;
    double ranks_per_core_ = 1;         // here
    std::vector<std::int32_t> set_of_;  // as Machine has them
    std::vector<double> set_cpus_;
    std::unique_ptr<Lanes> lanes_;
    std::unique_ptr<ExecuteOptions> options_;
    std::optional<Machine> machine_;
    double clock_offset_s_ = 0;
    std::map<std::type_index, std::shared_ptr<void>> own_;
};

/// What one rank has to say before a collective operation goes on.
struct Statement {
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
[[noreturn]] void throw_as(Statement::Kind kind, const std::string& text);

/// All ranks pass, or all throw one error: a ConfigError that names the first two calls or descriptions that differ, or
/// the error of the lowest rank that has one. Either way the context is as it was, and the next call meets the others'
/// next. Returns whether all have prepared the same. Every call on a context begins with this, or as a pattern does, so
/// that ranks that call different functions meet. Collective; ceil(log2 ranks) small messages a rank when all is well.
/// @throws ConfigError, KernelError, InternalError; Interrupted where any rank says so; MpiError where a rank has ended
bool agree(Context& context, const Statement& mine);

}  // namespace tilewave
