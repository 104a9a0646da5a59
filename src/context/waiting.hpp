// Waiting for calls in flight: polls with pauses, progresses everything, and calls the heartbeat.
#pragma once
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include "context/progress_engine.hpp"
#include "execute/executor.hpp"
#include "tilewave/context.hpp"
#include "transport/ended_look.hpp"

namespace tilewave {

/// Marks the time in a caller's reduction: a call from there would wait for ranks that are not in it.
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

/// Argument of the heartbeat in waits that other ranks rely on: only a repeated interrupt ends them.
constexpr double only_insisting = 2;

/// Waits until ready(). `what` gives the text of a report of a long wait: "in tw.run, for rank 1".
/// @throws MpiError, also where a rank that is waited for has ended; Interrupted when the heartbeat returns true
template <class Ready, class What>
void wait_until(Context& context, Ready ready, What what, Backoff::Kind kind) {
    const ExecuteOptions& options = context.options();
    Backoff backoff(kind);
    double since = 0, looked = now_s();
    bool reported = false;
    EndedLook look;
    while (!ready()) {
        const bool moved = context.engine()->progress();
        if (ready()) return;
        context.transport().must_work();  // else what is waited for may be lost
        if (moved) {                      // more is likely to follow
            backoff.restart();
            since = 0;
            look.restart();
        } else {
            backoff.pause();
            if (!backoff.yielding()) continue;
        }
        const double now = now_s();
        if (options.heartbeat && now - looked >= 0.05) {
            looked = now;
            if (options.heartbeat(only_insisting)) throw Interrupted();
        }
        if (moved) continue;
        if (since == 0) since = now;
        if (const int ended = look(now, [&] { return context.engine()->find_ended_peer(); }); ended >= 0) {
            context.engine()->waited_for_ended = true;
            throw MpiError("rank " + std::to_string(ended) + " has ended; rank " + std::to_string(context.rank()) +
                           " waits " + context.engine()->paused(what));
        }
        if (reported || now - since < patience_s()) continue;
        reported = true;
        const std::string text =
            "tilewave: rank " + std::to_string(context.rank()) + " waits " + context.engine()->paused(what);
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

/// Locks the context for a call, waiting for another thread's call to end.
/// @throws Interrupted when the heartbeat returns true
inline std::unique_lock<std::recursive_timed_mutex> lock_calls(Context& context) {
    std::unique_lock lock(context.engine()->calls, std::try_to_lock);
    while (!lock.owns_lock() && !lock.try_lock_for(std::chrono::milliseconds(50)))
        if (context.options().heartbeat && context.options().heartbeat(0)) throw Interrupted();
    return lock;
}

/// The number of a call that begins, equal on every rank. `who` gives its caller, where that is needed.
/// @throws MpiError where the transport has failed or a rank has ended; ConfigError inside a caller's reduction
template <class Who>
std::int64_t take_number(Context& context, Who who) {
    InsideReduction::refuse();
    ProgressEngine& engine = *context.engine();
    context.transport().must_work();
    if (engine.ended >= 0) engine.refuse_if_ended(who());
    // The call that had this tag before must be over.
    if (engine.busy())
        wait_until(
            context, [&] { return engine.oldest() > engine.started - ProgressEngine::call_tags; },
            [&] { return "in " + who().call + ", " + engine.where_of(who()) + ", for an earlier pattern"; });
    return engine.started++;
}

}  // namespace tilewave
