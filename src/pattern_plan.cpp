// Which algorithm, which chunk: closed forms over measured constants.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "tilewave/pattern.hpp"

namespace tilewave {

namespace {

// Of the latency, what a stream of chunks still shows a chunk: the rest hides behind the others.
constexpr double shown_latency = 0.25;
// Messages of the library's own calls up to here win by having no staging and no schedule.
constexpr std::int64_t native_bytes = 4 << 10;
constexpr std::int64_t most_chunk_bytes = std::int64_t{1} << 30;  // MPI counts bytes in an int
constexpr std::int64_t least_chunk = 8 << 10, largest_chunk = 256 << 10;

bool exists(PatternKind kind, Algorithm a) {
    switch (kind) {
        case PatternKind::broadcast: return true;
        case PatternKind::reduce: return a != Algorithm::rounds;
        default: return a == Algorithm::ring || a == Algorithm::native;
    }
}

std::string allowed(PatternKind kind, bool native = true) {
    std::string text = "auto";
    for (Algorithm a : {Algorithm::tree, Algorithm::ring, Algorithm::rounds, Algorithm::native})
        if (exists(kind, a) && (native || a != Algorithm::native)) text += std::string(", ") + to_string(a);
    return text;
}

void check(const PatternProblem& problem, const PatternRequest& r, const PatternConditions& c) {
    const std::string name = to_string(problem.kind);
    if (r.algorithm != Algorithm::automatic && !exists(problem.kind, r.algorithm))
        throw ConfigError(name + ": algorithm '" + to_string(r.algorithm) + "' was given; allowed: " + allowed(problem.kind));
    if (r.algorithm == Algorithm::native && !c.native && problem.ranks > 1)
        throw ConfigError(name + ": algorithm 'mpi' was given, but this context runs without MPI; allowed: " + allowed(problem.kind, false));
    if (r.algorithm == Algorithm::native && problem.block > 0)
        throw ConfigError(name + ": algorithm 'mpi' was given with columns dealt in blocks; allowed: ring");
    if (r.chunk_bytes < 0 || r.chunk_bytes > most_chunk_bytes)
        throw ConfigError(name + ": chunk_bytes " + std::to_string(r.chunk_bytes) + " was given; 1 to " + std::to_string(most_chunk_bytes) + " are allowed");
    if (r.buffers != 0 && (r.buffers < 2 || r.buffers > 64))
        throw ConfigError(name + ": buffers " + std::to_string(r.buffers) + " was given; 2 to 64 are allowed");
}

std::string milliseconds(double s) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g ms", 1e3 * s);
    return text;
}

PatternPlan best_chunk(const PatternProblem& problem, PatternPlan plan, const PatternRequest& request, const Machine& machine) {
    plan.buffers = request.buffers ? request.buffers : 4;
    if (request.chunk_bytes) {
        plan.chunk_bytes = request.chunk_bytes;
        return plan;
    }
    double best = 0;
    for (std::int64_t c = least_chunk; c <= largest_chunk; c *= 2) {
        PatternPlan trial = plan;
        trial.chunk_bytes = c;
        const double t = pattern_time(problem, trial, machine);
        if (c == least_chunk || t < best) {
            best = t;
            plan.chunk_bytes = c;
        }
    }
    return plan;
}

}  // namespace

double pattern_time(const PatternProblem& problem, const PatternPlan& plan, const Machine& machine) {
    const int p = problem.ranks;
    if (p == 1) return 0;
    const double levels = std::ceil(std::log2(p)), bytes = static_cast<double>(problem.bytes());
    const double chunk = std::min(static_cast<double>(plan.chunk_bytes), std::max(bytes, 1.0));
    const double n = std::max(std::ceil(bytes / chunk), 1.0);
    const double step = shown_latency * machine.latency_s + chunk * machine.byte_s;
    switch (plan.algorithm) {
        case Algorithm::tree: return levels * (machine.latency_s + bytes * machine.byte_s);
        case Algorithm::rounds: return machine.latency_s + (n - 1 + levels) * step;
        default: break;
    }
    if (problem.kind == PatternKind::spread || problem.kind == PatternKind::multi_reduce) {
        const double part = bytes / p, c = std::min(chunk, std::max(part, 1.0));
        const double parts = std::max(std::ceil(part / c), 1.0);
        // A chunk that must come before it can go on shows its whole latency.
        const double lone = parts > 1 ? shown_latency : 1.0;
        return (p - 1) * parts * (lone * machine.latency_s + c * machine.byte_s);
    }
    return (p - 1) * machine.latency_s * (1 - shown_latency) + (n + p - 2) * step;
}

PatternPlan make_pattern_plan(const PatternProblem& problem, const PatternRequest& request, const PatternConditions& conditions,
                              const Machine& machine) {
    problem.validate();
    check(problem, request, conditions);
    PatternPlan plan;
    if (request.algorithm != Algorithm::automatic) {
        // Alone there is nobody to call.
        plan.algorithm = conditions.native || request.algorithm != Algorithm::native ? request.algorithm : Algorithm::ring;
        plan = best_chunk(problem, plan, request, machine);
        plan.why = "asked for";
        return plan;
    }
    const bool fixed = request.chunk_bytes || request.buffers;
    if (problem.ranks > 1 && conditions.native && !conditions.ordered && problem.block == 0 && !fixed && problem.bytes() <= native_bytes) {
        plan.algorithm = Algorithm::native;
        plan.why = std::to_string(problem.bytes()) + " bytes: up to " + std::to_string(native_bytes) + " MPI's own call costs least";
        return plan;
    }
    double best = -1;
    std::string why = std::to_string(problem.bytes()) + " bytes, " + std::to_string(problem.ranks) + " ranks, " +
                      (conditions.contiguous ? "contiguous" : "strided") + ", latency " + milliseconds(machine.latency_s) + ", " +
                      std::to_string(static_cast<long long>(1e-6 / machine.byte_s)) + " MB/s:";
    for (Algorithm a : {Algorithm::tree, Algorithm::ring, Algorithm::rounds}) {
        if (!exists(problem.kind, a)) continue;
        PatternPlan trial;
        trial.algorithm = a;
        trial = best_chunk(problem, trial, request, machine);
        const double t = pattern_time(problem, trial, machine);
        why += std::string(why.back() == ':' ? " " : ", ") + to_string(a) + " " + milliseconds(t);
        if (best < 0 || t < best) {
            best = t;
            plan = trial;
        }
    }
    plan.why = why;
    return plan;
}

}  // namespace tilewave
