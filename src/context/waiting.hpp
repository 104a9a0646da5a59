// Waiting for what is in flight: moves everything on, politely, and lets the interpreter look around.
#pragma once
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include "context/progress_engine.hpp"
#include "execute/executor.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

/// Around a caller's reduction: what is called from there would wait for ranks that are not in it.
class InsideReduction {
public:
    InsideReduction() { active() = true; }
    ~InsideReduction() { active() = false; }
    InsideReduction(const InsideReduction&) = delete;
    InsideReduction& operator=(const InsideReduction&) = delete;
    /// @throws ConfigError inside one
    static void refuse() {
        if (active()) throw ConfigError("patterns, sends and receives cannot be called from a reduction's function");
    }

private:
    static bool& active() {
        thread_local bool yes = false;
        return yes;
    }
};

/// What the heartbeat is told by waits: other ranks rely on them, so that only a caller who insists ends them early.
constexpr double only_insisting = 2;

/// Where nothing has moved for so long, ranks that have ended are looked for, which costs a message to each of those
/// that are waited for; after as long again without any message the wait is in vain.
constexpr double look_for_ended_s = 1;

/// Until ready(). `what` says for what this rank waits, "in tw.run, for rank 1", once a wait is suspiciously long.
/// @throws MpiError, where a rank that is waited for has ended, too; Interrupted when the heartbeat
/// asks for it
template <class Ready, class What>
void wait_until(Context& context, Ready ready, What what, Backoff::Kind kind) {
    const ExecuteOptions& options = context.options();
    Backoff backoff(kind);
    double since = 0, looked = now_s(), look = 0;
    bool told = false;
    int ended = -1;
    while (!ready()) {
        const bool moved = context.engine()->progress();
        if (ready()) return;
        if (moved) {  // more is likely to follow
            backoff.restart();
            since = 0;
        } else {
            backoff.pause();
            if (!backoff.slow()) continue;
        }
        const double now = now_s();
        if (options.heartbeat && now - looked >= 0.05) {
            looked = now;
            if (options.heartbeat(only_insisting)) throw Interrupted();
        }
        if (moved) continue;
        if (since == 0) {
            since = now;
            look = now + look_for_ended_s;
            ended = -1;
        }
        if (now > look) {
            look = now + look_for_ended_s;
            const int before = std::exchange(ended, context.engine()->waits_for_ended());
            if (ended >= 0 && ended == before) {
                context.engine()->in_vain = true;
                throw MpiError("rank " + std::to_string(ended) + " has ended; rank " + std::to_string(context.rank()) +
                               " waits " + context.engine()->at_rest(what));
            }
        }
        if (told || now - since < patience_s()) continue;
        told = true;
        const std::string text =
            "tilewave: rank " + std::to_string(context.rank()) + " waits " + context.engine()->at_rest(what);
        if (options.stalled)
            options.stalled(text);
        else
            std::fprintf(stderr, "%s\n", text.c_str());
    }
}

template <class Ready, class What>
void wait_until(Context& context, Ready ready, What what) {
    InsideReduction::refuse();
    wait_until(context, std::move(ready), std::move(what),
               context.options().crowded ? Backoff::Kind::shared : Backoff::Kind::dedicated);
}

/// Holds the context's calls back until it is destroyed, first waiting for another thread's to end.
/// @throws Interrupted when the heartbeat asks for it
inline std::unique_lock<std::recursive_timed_mutex> take_turn(Context& context) {
    std::unique_lock turn(context.engine()->calls, std::try_to_lock);
    while (!turn.owns_lock() && !turn.try_lock_for(std::chrono::milliseconds(50)))
        if (context.options().heartbeat && context.options().heartbeat(0)) throw Interrupted();
    return turn;
}

/// The number of a call that begins: on every rank the same. `who` gives its caller, where that is needed.
/// @throws MpiError where the transport has failed or a rank has ended; ConfigError inside a caller's reduction
template <class Who>
std::int64_t take_number(Context& context, Who who) {
    InsideReduction::refuse();
    ProgressEngine& engine = *context.engine();
    context.transport().must_work();
    if (engine.ended >= 0) engine.refuse_if_ended(who());
    // The one that had this one's tags must be over.
    if (engine.busy())
        wait_until(
            context, [&] { return engine.oldest() > engine.started - ProgressEngine::turns; },
            [&] { return "in " + who().call + ", " + engine.where_of(who()) + ", for an earlier pattern"; });
    return engine.started++;
}

}  // namespace tilewave
