#include "run/run_schedule.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "check/shapes.hpp"
#include "context/agreement.hpp"
#include "core/concat.hpp"
#include "core/plain_bytes.hpp"
#include "core/tags.hpp"
#include "data/rows.hpp"
#include "execute/recording.hpp"
#include "schedule/repeat.hpp"
#include "tilewave/engine/check.hpp"
#include "tilewave/engine/limits.hpp"

namespace tilewave {
namespace {

// A summary of the messages from one rank to another: equal on both sides where these match, in any order.
struct Traffic {
    std::int64_t from = 0, to = 0, messages = 0, bytes = 0;
    std::uint64_t hash = 0;
};

std::uint64_t mixed(std::uint64_t x) {  // splitmix64, https://prng.di.unimi.it/splitmix64.c
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

std::string traffic_of(const Schedule& s) {
    std::map<std::pair<int, bool>, Traffic> all;
    for (std::size_t l = 0; l < s.lanes.size(); ++l)
        for (std::size_t i = 0; i < s.lanes[l].size(); ++i) {
            const Step& step = s.lanes[l][i];
            if (step.op != Op::post_send && step.op != Op::post_recv) continue;
            const Message& m = s.messages[step.item];
            Traffic& t = all[{m.peer, m.send}];
            t.from = m.send ? s.rank : m.peer;
            t.to = m.send ? m.peer : s.rank;
            ++t.messages;
            t.bytes += m.bytes;
            t.hash += mixed(
                mixed(mixed(static_cast<std::uint64_t>(section_of(s, l, i))) + static_cast<std::uint64_t>(m.tag)) +
                static_cast<std::uint64_t>(m.bytes));
        }
    std::vector<Traffic> values;
    for (const auto& [key, t] : all) values.push_back(t);
    std::string bytes;
    put(bytes, values);
    return bytes;
}

std::string text_of(const Traffic* t) {
    return t ? std::to_string(t->messages) + " of " + std::to_string(t->bytes) + " bytes" : "none";
}

// The first two ranks whose messages do not meet, as text; empty where all do.
std::string verdict(const std::vector<std::string>& by_rank) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<const Traffic*, const Traffic*>> pairs;
    std::vector<std::vector<Traffic>> all;
    for (const std::string& bytes : by_rank) all.push_back(PlainBytes(bytes).take_all<Traffic>());
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        for (const Traffic& t : all[rank])
            (t.from == static_cast<std::int64_t>(rank) ? pairs[{t.from, t.to}].first : pairs[{t.from, t.to}].second) =
                &t;
    for (const auto& [ranks, both] : pairs) {
        const auto [sent, received] = both;
        if (sent && received && sent->messages == received->messages && sent->hash == received->hash) continue;
        const bool equal = sent && received && sent->messages == received->messages && sent->bytes == received->bytes;
        return concat("the messages from rank ", ranks.first, " to rank ", ranks.second, " do not meet: it sends ",
                      text_of(sent), ", the other receives ", text_of(received),
                      equal ? ", with other tags or sizes, or of another part of the block" : "");
    }
    return "";
}

// Adds the place to the exceptions of a task.
TaskFunction with_place(const TaskFunction& function, int rank) {
    if (!function) return function;
    return [function, rank](const TaskCall& call) {
        try {
            function(call);
        } catch (const KernelError&) {
            throw;
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception& e) {
            throw KernelError(concat("task ", call.number, " on rank ", rank, ": ", e.what()));
        } catch (...) {
            throw KernelError(concat("task ", call.number, " on rank ", rank, " has thrown what is no std::exception"));
        }
    };
}

void check_calls(const Schedule& s, const ScheduleCalls& calls) {
    const auto refuse = [](const char* what, int number, std::size_t given) {
        throw ConfigError(concat("a work calls ", what, " ", number, "; ", given, " were given"));
    };
    for (const Tile& tile : s.tiles) {
        const Work& work = s.works[tile.work];
        const int number = work.task() ? work.task()->operation : work.nest()->kernel;
        const auto n = static_cast<std::size_t>(number);
        if (work.task() && (number < 0 || n >= calls.operations.size() || !calls.operations[n]))
            refuse("operation", number, calls.operations.size());
        if (work.nest() && (number < 0 || n >= calls.kernels.size() || !calls.kernels[n].row))
            refuse("kernel", number, calls.kernels.size());
    }
}

// Tiles of nests stay within the storage of what their places reach.
void check_tiles(const Schedule& s) {
    for (const Tile& tile : s.tiles) {
        const NestWork* nest = s.works[tile.work].nest();
        if (!nest || nest->period.n > 0) continue;
        for (const Access& p : nest->places) {
            const Array& array = s.arrays[p.array];
            if (array.time_buffers > 0) continue;
            const Box box = array.elements(intersect(tile.box, nest->space).shifted(p.offset));
            if (auto why = inside_storage(s, p.writes ? "a tile writes" : "a tile reads", p.array, box))
                throw ConfigError("the schedule is wrong: " + *why);
        }
    }
}

// Each combine step needs an operation for its arrays, the same for both.
void check_combinings(const Schedule& s, std::span<const Combining> given) {
    const auto of = [&](std::int32_t message) {
        const auto array = static_cast<std::size_t>(s.messages[message].array);
        if (array >= given.size() || !combine_row(given[array].op, given[array].type) ||
            item_bytes(given[array].type) != s.arrays[array].item_bytes)
            throw ConfigError(
                concat("a step combines values of array ", array, ", for which no operation of its dtype was given"));
        return given[array];
    };
    for (const auto& lane : s.lanes)
        for (const Step& step : lane)
            if (step.op == Op::combine && !(of(step.item) == of(step.count >= 0 ? step.count : step.item)))
                throw ConfigError("a step combines values of arrays with different operations or dtypes");
}

}  // namespace

// Counters are 32 bits.
void check_times(const Schedule& s, std::int64_t times) {
    std::int32_t most = 1;
    for (const std::int32_t by : growth(s)) most = std::max(most, by);
    const std::int64_t allowed = std::numeric_limits<std::int32_t>::max() / most - 1;
    if (times < 1 || times > allowed) throw ConfigError(concat("times ", times, " was given; allowed: 1 to ", allowed));
}

void check_run(Context& context, const Schedule& s, std::span<const Binding> bindings, const ScheduleCalls& calls,
               std::int64_t times) {
    if (s.ranks != context.size() || s.rank != context.rank())
        throw ConfigError(concat("a schedule of rank ", s.rank, " of ", s.ranks, " ranks was given to rank ",
                                 context.rank(), " of ", context.size(), "; allowed: this rank's, of as many ranks"));
    if (auto wrong = check_rank(s)) throw ConfigError("the schedule is wrong: " + to_string(*wrong));
    check_times(s, times);
    if (s.lanes.size() > static_cast<std::size_t>(max_lanes))
        throw ConfigError(
            concat("the schedule has ", s.lanes.size(), " lanes on rank ", s.rank, "; allowed: at most ", max_lanes));
    if (bindings.size() != s.arrays.size())
        throw ConfigError(concat(bindings.size(), " bindings were given for ", s.arrays.size(), " arrays"));
    for (std::size_t a = 0; a < s.arrays.size(); ++a) {
        if (s.arrays[a].planes > 0)
            throw ConfigError(concat("array ", a, " is stored in planes; such schedules are run with their nest"));
        if (!s.arrays[a].storage.empty() && bindings[a].stride_bytes.n != s.arrays[a].storage.dims())
            throw ConfigError(concat("the binding of array ", a, " has strides ", bindings[a].stride_bytes,
                                     ", its storage is ", s.arrays[a].storage));
    }
    const int most = context.transport().max_tag() - tags::first_face;
    for (const Message& m : s.messages)
        if (m.tag > most) throw ConfigError(concat("a message has tag ", m.tag, "; this MPI allows tags up to ", most));
    check_calls(s, calls);
    check_tiles(s);
    check_combinings(s, calls.combinings);
}

void compare_messages(Transport& t, const Schedule& schedule) {
    if (t.size() == 1) return;
    const std::vector<std::string> all = gather(t, traffic_of(schedule));
    std::string text = t.rank() == 0 ? verdict(all) : "";
    broadcast(t, text, 0);
    if (!text.empty()) throw ConfigError(text);
}

ReadySchedule::ReadySchedule(Context& context, const Schedule& schedule, const ScheduleCalls& calls, std::int64_t times,
                             bool record)
    : context_(context), calls_(calls), options_(context.options()), times_(times), execution_(schedule) {
    for (const TaskFunction& f : calls.operations) operations_.push_back(with_place(f, context.rank()));
    options_.threads = context.threads();   // more lanes share threads
    options_.first_tag = tags::first_face;  // a program's tags begin at 0, as do those of the library's collectives
    options_.record = options_.record && record;  // of some schedules the steps are of no interest
    options_.events = options_.record;
    execution_.make(std::vector<Binding>(schedule.arrays.size()), programs(), context_.transport(), context_.lanes(),
                    options_);
}

ScheduleReport ReadySchedule::run(std::span<const Binding> bindings) {
    RunBlocks blocks{&execution_};
    if (times_ > 1) blocks = {&execution_, &execution_, nullptr, times_, times_};
    CollectiveRun run(context_, blocks.meetings());
    run.execute(blocks, bindings, programs(), options_);
    const RunEnding end = run.end([&](const Failure& f) {
        const Work& work = execution_.schedule().works[f.work];
        if (const NestWork* nest = work.nest(); nest && calls_.explain) return calls_.explain(nest->kernel, f);
        return concat("kernel of work ", work.number, " raised at ", f.point, " on rank ", context_.rank());
    });
    return report(end, run.timeline());
}

// The run is over: a timeline for which there is no memory is left out.
Timeline gather_events(Transport& t, const Timeline& local, int threads) try {
    const std::vector<std::string> all = gather(t, [&] {
        std::string packed;
        put(packed, std::int32_t{threads});
        put(packed, local.events);
        put(packed, local.requests);
        return packed;
    });
    Timeline timeline;
    if (t.rank() > 0) return timeline;
    timeline.ranks = t.size();
    timeline.dims = local.dims;
    for (const std::string& bytes : all) {
        PlainBytes in(bytes);
        timeline.threads.push_back(in.take<std::int32_t>());
        append(timeline.events, in.take_all<Event>());
        append(timeline.requests, in.take_all<Request>());
    }
    if (std::ranges::count(timeline.threads, 0) == t.size()) timeline.threads.clear();
    from_zero(timeline);
    return timeline;
} catch (const OutOfResources&) {
    return {};
} catch (const std::bad_alloc&) {
    return {};
}

ScheduleReport ReadySchedule::report(const RunEnding& end, const Timeline& local) {
    ScheduleReport report;
    report.time_s = end.time_s;
    report.interrupted = end.interrupted;
    if (!options_.record) return report;
    const bool shared = static_cast<int>(execution_.schedule().lanes.size()) > context_.threads();
    report.timeline = gather_events(context_.transport(), local, shared ? context_.threads() : 0);
    report.parts = parts(report.timeline);
    return report;
}

ScheduleReport run_schedule(Context& context, const Schedule& schedule, std::span<const Binding> bindings,
                            const ScheduleCalls& calls, const Caller& caller, std::int64_t times) {
    RankStatus status;
    status.caller = caller;
    status.description = "a schedule of " + std::to_string(schedule.ranks) + " ranks, " +
                         std::to_string(schedule.arrays.size()) + " arrays, " +
                         std::to_string(calls.operations.size()) + " operations, " +
                         std::to_string(calls.kernels.size()) + " kernels, " + std::to_string(times) + " times";
    std::optional<ReadySchedule> ready;
    agree_after(context, status, [&] {
        check_run(context, schedule, bindings, calls, times);
        ready.emplace(context, schedule, calls, times);
    });
    compare_messages(context.transport(), schedule);
    return ready->run(bindings);
}

}  // namespace tilewave
