// Where a run happens: a transport, pinned lanes, and how ranks agree on errors.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "tilewave/executor.hpp"
#include "tilewave/lanes.hpp"
#include "tilewave/plan.hpp"
#include "tilewave/transport.hpp"

namespace tilewave {

class Exchange;

/// One rank's place in a group of ranks, with `threads` lanes each. No global state: any number
/// may live side by side.
class Context {
public:
    /// Collective over the transport's ranks; costs a gather of their machines' names and the
    /// measuring of machine(): about 9 MB sent between two ranks.
    /// @pre 1 <= threads <= max_lanes (ConfigError)
    Context(std::unique_ptr<Transport> transport, int threads);

    int rank() const { return rank_; }
    int size() const { return size_; }
    int threads() const { return threads_; }
    /// Its polls also move what is in flight on this context.
    Transport& transport();
    const std::shared_ptr<Exchange>& exchange() { return exchange_; }
    Lanes& lanes() { return *lanes_; }
    /// Lanes on this host exceed its CPUs: nothing is pinned and waits yield at once.
    bool oversubscribed() const { return oversubscribed_; }
    /// CPUs that this rank's lanes are pinned to; empty when nothing is pinned.
    const std::vector<int>& cpus() const { return lanes_->cpus(); }

    /// Latency and bandwidth to the farthest rank and the hand-over between two lanes, equal on
    /// all ranks; measured when the context is made, on one rank alone at first use.
    const Machine& machine();
    /// From now on these numbers in place of what the context measured, but for what says where ranks are:
    /// ranks_per_core, set_of, set_cpus. Local; the same on every rank, or plans differ.
    void use_machine(const Machine& machine);
    /// Add to this rank's clock to get rank 0's.
    double clock_offset_s();

    ExecuteOptions& options() { return options_; }

private:
    void measure();

    std::shared_ptr<Exchange> exchange_;
    int threads_, rank_ = 0, size_ = 1;
    bool oversubscribed_ = false;
    double ranks_per_core_ = 1;  // here
    std::vector<std::int32_t> set_of_;  // as Machine has them
    std::vector<double> set_cpus_;
    std::unique_ptr<Lanes> lanes_;
    ExecuteOptions options_;
    std::optional<Machine> machine_;
    double clock_offset_s_ = 0;
};

/// What one rank has to say before a collective operation goes on.
struct Statement {
    enum class Kind : char { fine = ' ', config = 'c', mpi = 'm', kernel = 'k', internal = 'i' };
    Kind kind = Kind::fine;
    std::string error;        ///< with a kind other than fine
    std::string description;  ///< of the arguments; must be equal on all ranks
    std::int64_t prepared = 0;  ///< a number above 0 that stands for what this rank has prepared for them; 0: nothing
};

/// The exception of a kind.
[[noreturn]] void throw_as(Statement::Kind kind, const std::string& text);

/// All ranks pass, or all throw one error: that of the lowest rank that has one, or a ConfigError
/// naming the first two descriptions that differ. Returns whether all have prepared the same.
/// Collective; one small allreduce when all is well.
/// @throws ConfigError, MpiError, KernelError, InternalError
bool agree(Transport& transport, const Statement& mine);

}  // namespace tilewave
