#include "tilewave/run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace tilewave {

std::string Report::to_string() const {
    char line[512];
    std::snprintf(line, sizeof line,
                  "plan           %s\nranks x threads %d x %d\nmeasured time  %.6g s\npoints         %lld (%.4g /s)\noverlap ratio  %.3f\n",
                  plan.to_string().c_str(), ranks, threads, time_s, static_cast<long long>(points), points_per_s(), overlap_ratio);
    return line;
}

PreparedSweep::PreparedSweep(Context& context, SweepProblem problem, Plan plan)
    : context_(context),
      problem_(std::move(problem)),
      plan_(std::move(plan)),
      schedule_(sweep(problem_, plan_, context.rank())),
      steps_(sweep_steps(problem_, plan_)) {
    for (const Message& m : schedule_.messages)
        if (m.tag > context.transport().max_tag())
            throw ConfigError("the plan makes " + std::to_string(m.tag) + " and more messages between two ranks, this MPI has "
                              "tags up to " + std::to_string(context.transport().max_tag()) + "; take larger tiles or chunks");
}

namespace {

// How the run ended anywhere: the lowest rank that failed, whether any was interrupted, the
// slowest rank's time.
struct Ending {
    int failed_rank = -1;
    bool interrupted = false;
    double time_s = 0;
};

Ending agree_on_end(Transport& t, const Outcome& o) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> v{o.failure ? t.rank() : none, o.interrupted ? 0 : 1,
                                -static_cast<std::int64_t>(o.time_s * 1e9)};
    allreduce_min(t, v);
    return {v[0] == none ? -1 : static_cast<int>(v[0]), v[1] == 0, static_cast<double>(-v[2]) * 1e-9};
}

void rebase(Timeline& t) {
    double zero = std::numeric_limits<double>::infinity();
    for (const Event& e : t.events) zero = std::min(zero, e.begin_s);
    for (Event& e : t.events) {
        e.begin_s -= zero;
        e.end_s -= zero;
    }
    for (Request& r : t.requests) {
        r.posted_s -= zero;
        r.completed_s -= zero;
    }
}

}  // namespace

Report PreparedSweep::run(std::span<const RunArray> arrays, const Kernel& kernel,
                          const std::function<std::string(const Failure&)>& explain) {
    if (arrays.size() != problem_.arrays.size())
        throw ConfigError("run: " + std::to_string(arrays.size()) + " arrays given, the nest has " +
                          std::to_string(problem_.arrays.size()));
    Transport& t = context_.transport();
    std::vector<Binding> bindings;
    for (std::size_t a = 0; a < arrays.size(); ++a) {
        if (arrays[a].field) arrays[a].field->relayout(problem_.layout(static_cast<int>(a), plan_.grid));
        bindings.push_back(arrays[a].field ? arrays[a].field->binding() : arrays[a].whole);
    }
    ExecuteOptions options = context_.options();
    options.crowded = options.crowded || plan_.lanes() > context_.threads();
    if (t.size() > 1 && options.record) options.clock_offset_s = context_.clock_offset_s();
    Outcome outcome = execute(schedule_, bindings, kernel, t, context_.lanes(), options);
    const Ending end = agree_on_end(t, outcome);
    if (end.failed_rank >= 0) {
        std::string text;
        if (t.rank() == end.failed_rank) text = explain(*outcome.failure);
        broadcast(t, text, end.failed_rank);
        throw KernelError(text);
    }
    Report report;
    report.plan = plan_;
    report.ranks = t.size();
    report.threads = plan_.lanes();
    report.points = problem_.space.points();
    report.steps = steps_;
    report.buffer_bytes = schedule_.buffer_bytes();
    report.time_s = end.time_s;
    report.interrupted = end.interrupted;
    report.overlap_ratio = std::numeric_limits<double>::quiet_NaN();
    if (!options.record) return report;
    report.timeline = gather(t, outcome.timeline);
    rebase(report.timeline);
    if (t.size() == 1) return report;
    const Machine& m = context_.machine();
    double ratio = t.rank() == 0 ? report.timeline.overlap_ratio(m.latency_s, m.byte_s) : 0;
    std::string bytes(reinterpret_cast<const char*>(&ratio), sizeof ratio);
    broadcast(t, bytes, 0);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&ratio));
    report.overlap_ratio = ratio;
    return report;
}

}  // namespace tilewave
