// One schedule with all that a run of it takes on this rank: made once, run again and again.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "execute/computers/nests.hpp"
#include "execute/computers/tasks.hpp"
#include "execute/execution.hpp"

namespace tilewave {

/// What execute() does, with threads, buffers, counters and lists of messages that stay for the next run. Where ranks
/// agree before a run, make() comes before that: what this rank lacks is then an error before anything moves.
class CachedExecution {
public:
    /// The schedule must live on.
    explicit CachedExecution(const Schedule& schedule) : schedule_(schedule) {}
    const Schedule& schedule() const { return schedule_; }
    /// Gets all that a run takes beyond the arrays. What `programs` names must live on. Local.
    /// @throws std::bad_alloc, std::system_error; ConfigError as execute()
    void make(std::span<const Binding> bindings, const Programs& programs, Transport& transport, Lanes& lanes,
              const ExecuteOptions& options);
    /// As execute(), always of these programs. Where make() has not been called before, it is here.
    /// `options.record` is that of the first call.
    /// @throws as execute()
    Outcome run(std::span<const Binding> bindings, const Programs& programs, Transport& transport, Lanes& lanes,
                const ExecuteOptions& options);

private:
    const Schedule& schedule_;
    std::vector<Binding> bindings_;
    ExecuteOptions options_;
    Combine combine_;
    std::optional<NestComputer> nests_;
    std::optional<TaskComputer> tasks_;
    std::optional<Execution> execution_;
    double last_s_ = 0;  // that the last run took
};

}  // namespace tilewave
