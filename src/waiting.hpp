// Waiting for what is in flight: moves everything on, politely, and lets the interpreter look around.
#pragma once
#include <cstdio>
#include <string>

#include "exchange.hpp"
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

/// Until ready(). `what` says what is waited for, once a wait is suspiciously long.
/// @throws MpiError; Interrupted when the heartbeat asks for it
template <class Ready, class What>
void wait_until(Context& context, Ready ready, What what) {
    InsideReduction::refuse();
    const ExecuteOptions& options = context.options();
    Backoff backoff(options.crowded ? Backoff::Kind::shared : Backoff::Kind::dedicated);
    double since = 0, looked = now_s();
    bool told = false;
    while (!ready()) {
        const bool moved = context.exchange()->progress();
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
            if (options.heartbeat(0)) throw Interrupted();
        }
        if (moved) continue;
        if (since == 0) since = now;
        if (told || now - since < options.stall_s) continue;
        told = true;
        const std::string text = "tilewave: rank " + std::to_string(context.rank()) + " has waited " +
                                 std::to_string(static_cast<int>(now - since)) + " s for " + what() + "; did every rank call it?";
        if (options.stalled)
            options.stalled(text);
        else
            std::fprintf(stderr, "%s\n", text.c_str());
    }
}

}  // namespace tilewave
