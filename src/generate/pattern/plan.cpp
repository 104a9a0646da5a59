// Which algorithm, which chunk: closed forms over measured constants.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "core/concat.hpp"
#include "generate/pattern/shape.hpp"
#include "generate/pattern/tuning.hpp"
#include "tilewave/engine/pattern.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// What a wait costs because other ranks share the core; 0 where it does not show. A network that is slower than the
// processors hides it, and so do the long pipelines of a broadcast over one. The order of a reduce is its algorithm's:
// who shares cores must not change its bits.
double turn_s(const PatternProblem& problem, const Machine& machine) {
    const bool network = machine.byte_s > network_byte_s, bound = machine.ranks_per_core * tcp_byte_s > machine.byte_s;
    if (problem.kind == PatternKind::reduce || (network && !(has_parts(problem.kind) && bound))) return 0;
    return turn_of_one_s * (machine.ranks_per_core - 1);
}

// Straight from one matrix into the other, nothing is staged.
bool unstaged(const PatternProblem& problem, const PatternConditions& conditions) {
    return conditions.contiguous && problem.kind == PatternKind::broadcast;
}

std::int64_t largest_chunk(const PatternProblem& problem, const PatternConditions& conditions, const Machine& machine) {
    const bool crowded = turn_s(problem, machine) > 0;
    if (machine.byte_s > network_byte_s)
        return std::clamp(
            static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(problem.bytes() / network_chunks + 1))),
            crowded ? crowded_network_chunk : network_chunk, largest_network);
    if (unstaged(problem, conditions)) return largest_direct_chunk;
    return crowded ? largest_shared : largest_staged_chunk;
}

// Whether what exchange_all() stages is no more than it may be.
bool fits(const PatternProblem& problem, const PatternPlan& plan) {
    if (plan.algorithm != Algorithm::direct || !has_parts(problem.kind)) return true;
    const double part = static_cast<double>(problem.bytes()) / problem.ranks,
                 chunk = static_cast<double>(plan.chunk_bytes);
    return 2.0 * problem.ranks * std::min(part, plan.buffers * chunk) <= most_staged;
}

bool exists(PatternKind kind, Algorithm a) {
    switch (kind) {
        case PatternKind::broadcast: return true;
        case PatternKind::reduce: return a != Algorithm::rounds && a != Algorithm::direct;
        default: return a == Algorithm::ring || a == Algorithm::direct || a == Algorithm::native;
    }
}

std::string allowed(PatternKind kind, bool native = true) {
    std::string text = "auto";
    for (Algorithm a : {Algorithm::tree, Algorithm::ring, Algorithm::rounds, Algorithm::direct, Algorithm::native})
        if (exists(kind, a) && (native || a != Algorithm::native)) text += concat(", ", a);
    return text;
}

void check(const PatternProblem& problem, const PatternRequest& r, const PatternConditions& c) {
    const std::string name = to_string(problem.kind);
    if (r.algorithm != Algorithm::automatic && !exists(problem.kind, r.algorithm))
        throw ConfigError(concat(name, ": algorithm '", r.algorithm, "' was given; allowed: ", allowed(problem.kind)));
    if (r.algorithm == Algorithm::native && !c.native && problem.ranks > 1)
        throw ConfigError(name + ": algorithm 'mpi' was given, but this context runs without MPI; allowed: " +
                          allowed(problem.kind, false));
    if (r.algorithm == Algorithm::native && problem.block > 0)
        throw ConfigError(name + ": algorithm 'mpi' was given with columns dealt in blocks; allowed: ring, direct");
    if (r.chunk_bytes < 0 || r.chunk_bytes > most_chunk_bytes)
        throw ConfigError(
            concat(name, ": chunk_bytes ", r.chunk_bytes, " was given; 1 to ", most_chunk_bytes, " are allowed"));
    if (r.buffers != 0 && (r.buffers < 2 || r.buffers > 64))
        throw ConfigError(concat(name, ": buffers ", r.buffers, " was given; 2 to 64 are allowed"));
}

std::string milliseconds(double s) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g ms", 1e3 * s);
    return text;
}

// One of a stream of messages. Into and out of the library's buffers the processors copy short ones: a rank
// that sends and receives in turn does both. Larger ones one of the two ranks copies at most.
double message_s(const Machine& machine, double bytes, bool both_directions) {
    const double any = machine.chunk_s + bytes * machine.byte_s;
    return machine.short_s > 0 && bytes <= short_bytes ? std::min(any, machine.short_s * (both_directions ? 2 : 1))
                                                       : any;
}

// Whether what a rank gives is little enough for short messages.
bool shorts_pay(const PatternProblem& problem, const PatternConditions& conditions) {
    if (has_parts(problem.kind)) return problem.bytes() / problem.ranks <= most_copied_twice;
    if (conditions.contiguous) return problem.bytes() <= most_copied_twice;
    if (problem.total_columns() * problem.item_bytes <= longest_filling_row)
        return problem.bytes() <= most_packed_meanwhile;
    return problem.bytes() <= (problem.kind == PatternKind::broadcast ? most_long_rows_meanwhile : most_copied_twice);
}

PatternPlan best_chunk(const PatternProblem& problem, PatternPlan plan, const PatternRequest& request,
                       const PatternConditions& conditions, const Machine& machine) {
    plan.buffers = request.buffers ? request.buffers : 4;
    if (request.chunk_bytes) {
        plan.chunk_bytes = request.chunk_bytes;
        return plan;
    }
    double best = 0;
    std::int64_t largest = largest_chunk(problem, conditions, machine);
    const bool staged = !unstaged(problem, conditions);
    if (plan.algorithm == Algorithm::direct && problem.bytes() <= largest_direct_pieces)
        largest = std::max(largest, small_bytes);
    const std::int64_t shortest = shorts_pay(problem, conditions) ? short_bytes : least_copied_once;
    // Over a network a stream of smaller chunks costs processor time that no two ranks' test shows.
    const bool network = machine.byte_s > network_byte_s, crowded = turn_s(problem, machine) > 0;
    for (std::int64_t c = !network  ? shortest
                          : crowded ? network_chunk
                                    : largest;
         c <= largest; c = c == short_bytes ? least_chunk : 2 * c) {
        PatternPlan trial = plan;
        trial.chunk_bytes = c;
        // The first chunk is packed before anything is sent, the last unpacked when all has come; on a core
        // that other ranks share, they go on meanwhile.
        const double staging =
            staged && !crowded ? 2 * static_cast<double>(std::min(c, problem.bytes())) * machine.byte_s : 0;
        const double t = pattern_time(problem, trial, machine) + staging;
        if (best == 0 || (t < best && fits(problem, trial))) {
            best = t;
            plan.chunk_bytes = c;
        }
    }
    return plan;
}

// Waits one after another. Short messages wait in the library's buffers, not for their receiver.
double waits(const PatternProblem& problem, const PatternPlan& plan, double chunks, const Machine& machine) {
    const int p = problem.ranks;
    const double levels = std::ceil(std::log2(p));
    const int group =
        plan.chunk_bytes <= short_bytes && machine.short_s > 0 ? buffered_short : std::max(plan.buffers / 2, 1);
    const double groups = std::ceil(chunks / group);
    switch (plan.algorithm) {
        case Algorithm::tree: return levels + groups - 1;
        case Algorithm::rounds: return levels + chunks - 1;
        case Algorithm::direct: return groups;
        default: return has_parts(problem.kind) ? (p - 1) * groups : p - 2 + groups;
    }
}

// With a core for each rank: n chunks, each a step.
double unshared_time(const PatternProblem& problem, Algorithm algorithm, double n, double step,
                     const Machine& machine) {
    const int p = problem.ranks;
    const double levels = std::ceil(std::log2(p)), shown = std::max(machine.latency_s - machine.chunk_s, 0.0);
    switch (algorithm) {
        case Algorithm::tree: return levels * (machine.latency_s + n * step);
        // Each round waits for the one before, so it shows the whole latency.
        case Algorithm::rounds: return (n - 1 + levels) * (shown + step);
        case Algorithm::direct: return machine.latency_s + (p - 1) * n * step;
        default: break;
    }
    // A chunk that must come before the next goes shows its whole latency.
    if (has_parts(problem.kind)) return (p - 1) * n * (step + (n > 1 ? 0 : shown));
    return (p - 1) * shown + (n + p - 2) * step;
}

// Of those that exist, what may be picked.
bool considered(Algorithm a, const PatternProblem& problem, const Machine& machine) {
    const bool small = problem.bytes() <= small_bytes;
    if (a == Algorithm::direct)
        return turn_s(problem, machine) > 0 || (has_parts(problem.kind) && problem.bytes() <= largest_direct_pieces);
    return a == Algorithm::tree || !small;
}

}  // namespace

double pattern_time(const PatternProblem& problem, const PatternPlan& plan, const Machine& machine) {
    const int p = problem.ranks;
    if (p == 1) return 0;
    const bool parts = has_parts(problem.kind);
    // What one rank gives: a part or the whole.
    const double bytes = static_cast<double>(problem.bytes()) / (parts ? p : 1);
    const double chunk = std::min(static_cast<double>(plan.chunk_bytes), std::max(bytes, 1.0));
    const double n = std::max(std::ceil(bytes / chunk), 1.0);
    const double step = message_s(machine, chunk, parts || p > 2), turn = turn_s(problem, machine);
    const double unshared = unshared_time(problem, plan.algorithm, n, step, machine);
    if (turn == 0) return unshared;
    const bool network = machine.byte_s > network_byte_s;
    const double copies = (p - 1) * n * step / (parts ? 1 : p);  // of a rank, where all take part
    return std::max(unshared, network ? 0 : machine.ranks_per_core * copies) + waits(problem, plan, n, machine) * turn;
}

PatternPlan make_pattern_plan(const PatternProblem& problem, const PatternRequest& request,
                              const PatternConditions& conditions, const Machine& machine) {
    problem.validate();
    check(problem, request, conditions);
    PatternPlan plan;
    plan.bytes = problem.bytes();
    if (request.algorithm != Algorithm::automatic) {
        // Alone there is nobody to call.
        plan.algorithm =
            conditions.native || request.algorithm != Algorithm::native ? request.algorithm : Algorithm::ring;
        plan = best_chunk(problem, plan, request, conditions, machine);
        plan.why = "asked for";
        return plan;
    }
    plan.numbers = concat(conditions.contiguous ? "contiguous" : "strided", ", latency ",
                          milliseconds(machine.latency_s), ", ", std::llround(1e-6 / machine.byte_s), " MB/s");
    if (const double turn = turn_s(problem, machine); turn > 0) plan.numbers += ", " + milliseconds(turn) + " a wait";
    double best = -1;
    for (Algorithm a : {Algorithm::tree, Algorithm::ring, Algorithm::rounds, Algorithm::direct}) {
        if (!exists(problem.kind, a) || !considered(a, problem, machine)) continue;
        PatternPlan trial = plan;
        trial.algorithm = a;
        trial = best_chunk(problem, trial, request, conditions, machine);
        if (problem.bytes() > small_bytes && !fits(problem, trial)) continue;
        const double t = pattern_time(problem, trial, machine) * (a == Algorithm::rounds ? lockstep_factor : 1.0);
        plan.compared.emplace_back(a, t);
        if (best >= 0 && t >= best) continue;
        best = t;
        plan.algorithm = a;
        plan.chunk_bytes = trial.chunk_bytes;
        plan.buffers = trial.buffers;
    }
    const std::size_t count = plan.compared.size();
    plan.why =
        count > 1 ? concat("predicted to be the fastest of ", count, " algorithms") : "the only algorithm for it";
    return plan;
}

}  // namespace tilewave
