#include "execute/cached_execution.hpp"

#include <exception>

#include "execute/executor.hpp"

namespace tilewave {

void CachedExecution::make(std::span<const Binding> bindings, const Programs& programs, Transport& transport,
                           Lanes& lanes, const ExecuteOptions& options) {
    if (bindings.size() != schedule_.arrays.size())
        throw ConfigError("execute: " + std::to_string(bindings.size()) + " bindings for " +
                          std::to_string(schedule_.arrays.size()) + " arrays");
    if (transport.rank() != schedule_.rank || transport.size() != schedule_.ranks)
        throw ConfigError("execute: the schedule is for rank " + std::to_string(schedule_.rank) + " of " +
                          std::to_string(schedule_.ranks) + ", the transport is rank " +
                          std::to_string(transport.rank()) + " of " + std::to_string(transport.size()));
    bindings_.assign(bindings.begin(), bindings.end());  // in place: the execution looks there
    options_ = options;
    lanes.reserve(RoundRobin::threads_for(schedule_.lanes.size(), options.threads));
    if (execution_) return execution_->restart();
    combine_.of_arrays.clear();
    for (const Combining& c : programs.combinings) combine_.of_arrays.push_back(combine_row(c.op, c.type));
    nests_.emplace(schedule_, programs.kernels, options.paths_off);
    tasks_.emplace(schedule_, programs.operations);
    execution_.emplace(schedule_, bindings_, Computers{&*nests_, &*tasks_}, combine_, transport, options_);
}

Outcome CachedExecution::run(std::span<const Binding> bindings, const Programs& programs, Transport& transport,
                             Lanes& lanes, const ExecuteOptions& options) {
    transport.must_work();
    try {
        make(bindings, programs, transport, lanes, options);
    } catch (const ConfigError&) {  // on all ranks
        throw;
    } catch (const std::exception&) {
        return pass_empty_messages(schedule_, transport, std::current_exception(), options);
    }
    const bool brief = last_s_ > 0 && last_s_ < tuning::longest_brief_s;
    const int threads = RoundRobin::threads_for(schedule_.lanes.size(), options.threads);
    const auto body = [&](int l) { return l >= static_cast<int>(schedule_.lanes.size()) || execution_->lane(l); };
    if (execution_->lends())
        lanes.run_lent(threads, body, brief, options.crowded ? 0 : tuning::spin_s);
    else
        lanes.run(threads, body, brief);
    Outcome outcome = execution_->outcome();
    last_s_ = outcome.time_s;
    return outcome;
}

}  // namespace tilewave
