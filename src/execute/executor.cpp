#include "execute/executor.hpp"

#include <algorithm>

#include "data/rows.hpp"
#include "execute/alarms.hpp"
#include "execute/computers/nests.hpp"
#include "execute/computers/tasks.hpp"
#include "execute/execution.hpp"
#include "schedule/repeat.hpp"

namespace tilewave {

Outcome execute(const Schedule& schedule, std::span<const Binding> bindings, const Programs& programs,
                Transport& transport, Lanes& lanes, const ExecuteOptions& options) {
    if (bindings.size() != schedule.arrays.size())
        throw ConfigError("execute: " + std::to_string(bindings.size()) + " bindings for " +
                          std::to_string(schedule.arrays.size()) + " arrays");
    if (transport.rank() != schedule.rank || transport.size() != schedule.ranks)
        throw ConfigError("execute: the schedule is for rank " + std::to_string(schedule.rank) + " of " +
                          std::to_string(schedule.ranks) + ", the transport is rank " +
                          std::to_string(transport.rank()) + " of " + std::to_string(transport.size()));
    NestComputer nests(schedule, programs.kernels);
    TaskComputer tasks(schedule, programs.operations);
    transport.must_work();
    Combine combine;
    for (const Combining& c : programs.combinings) combine.of_arrays.push_back(combine_row(c.op, c.type));
    const int count = Turns::threads_for(schedule.lanes.size(), options.threads);
    std::optional<Execution> run;
    try {
        lanes.reserve(count);
        run.emplace(schedule, bindings, Computers{&nests, &tasks}, combine, transport, options);
    } catch (const std::exception&) {
        return stand_aside(schedule, transport, std::current_exception(), options);
    }
    lanes.run(count, [&](int l) {
        if (l < static_cast<int>(schedule.lanes.size())) run->lane(l);
    });
    return run->outcome();
}

namespace {

// Messages of a repetition wait for none of a later one, so they are taken to their end before it.
void take_no_part(const Schedule& schedule, Transport& transport, std::int64_t times) {
    const auto for_posts = [&](Section section, Op op, auto f) {
        for (std::size_t l = 0; l < schedule.lanes.size(); ++l)
            for (std::size_t i = 0; i < schedule.lanes[l].size(); ++i) {
                const Step& step = schedule.lanes[l][i];
                if (step.op == op && section_of(schedule, l, i) == section)
                    f(step.item, schedule.messages[static_cast<std::size_t>(step.item)]);
            }
    };
    std::int64_t longest = 0;
    for (const Message& m : schedule.messages) longest = std::max(longest, m.send ? 0 : m.bytes);
    // All at one place, one over the other: nobody reads them, and a sender may wait for any of them before it goes on.
    const auto bytes = staging_memory(longest);
    std::vector<int> done;
    const auto take = [&](Section section) {
        std::int64_t pending = 0;
        for_posts(section, Op::post_recv, [&](int id, const Message& m) {
            transport.post_recv(id, bytes.get(), m.bytes, m.peer, m.tag);
            ++pending;
        });
        for_posts(section, Op::post_send, [&](int id, const Message& m) {
            transport.post_send(id, bytes.get(), 0, m.peer, m.tag, m.synchronous);
            ++pending;
        });
        for (Backoff backoff; pending > 0;) {
            done.clear();
            transport.poll(done);
            pending -= static_cast<std::int64_t>(done.size());
            done.empty() ? backoff.pause() : backoff.restart();
        }
    };
    take(Section::before);
    if (schedule.repeated.empty()) return;
    for (std::int64_t k = 0; k < times; ++k) take(Section::block);
    take(Section::after);
}

}  // namespace

Outcome stand_aside(const Schedule& schedule, Transport& transport, std::exception_ptr error,
                    const ExecuteOptions& options) {
    Outcome outcome;
    outcome.error = std::move(error);
    try {
        if (options.alarms) options.alarms->raise();
        take_no_part(schedule, transport, options.times);
    } catch (...) {
        transport.mark_failed();
        if (options.alarms) options.alarms->raise(true);
        throw;
    }
    return outcome;
}

}  // namespace tilewave
