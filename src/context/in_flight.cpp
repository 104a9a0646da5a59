#include "context/in_flight.hpp"

#include "context/agreement.hpp"
#include "context/tuning.hpp"
#include "context/waiting.hpp"

namespace tilewave {

bool InFlight::advance() {
    try {
        if (!step()) return false;
    } catch (const MpiError&) {
        if (engine_->ended < 0) engine_->main().mark_failed();
        never_free();
        error_ = std::current_exception();
    } catch (...) {
        error_ = std::current_exception();
    }
    finish();
    over_.store(true, std::memory_order_release);
    return true;
}

void InFlight::start() {
    InsideReduction::refuse();
    if (!repeats()) throw ConfigError("this " + name_ + " was not made with start=False: it runs once");
    if (!over()) throw ConfigError("this " + name_ + " is in flight; wait for it before it is started again");
    context_.transport().must_work();
    restart();
    number = -1;  // it has a persistent tag
    begin();
}

bool InFlight::agreed(Agreement& agreement) {
    if (!agreement.advance()) return false;
    if (agreement.ended() >= 0) engine_->ended = agreement.ended();
    agreement.raise();
    return true;
}

std::string InFlight::waits_for(const Caller& caller, const std::string& what) const {
    const std::string where = engine_->where_of(caller);
    return "in " + caller.call + (where.empty() ? "" : ", " + where) + ", for " + what;
}

void run_to_the_end(const std::shared_ptr<InFlight>& call, const std::function<void()>& hold) {
    if (call->over()) return call->raise();
    Context& context = call->context();
    ProgressEngine& engine = *context.engine();
    bool added = false;
    try {
        for (int i = context.options().crowded ? tuning::quick_polls : 0; !call->advance() && i < tuning::quick_polls;
             ++i)
            engine.progress();
        if (!call->over()) {
            added = true;
            engine.add(call);
            Handle(call).wait();
        }
    } catch (...) {
        if (!call->over()) {  // its messages may still be in flight
            if (hold) hold();
            if (!added) engine.add(call);
        }
        throw;
    }
    call->raise();
}

std::exception_ptr tell_of_lack(Context& context, const Caller& caller, const std::exception_ptr& lack) {
    const Caller before = caller_of(context);
    std::exception_ptr error = lack;
    try {
        RankStatus status;
        status.caller = caller;
        set_error(status, lack, "on rank " + std::to_string(context.rank()));
        agree(context, status);
    } catch (...) {
        error = std::current_exception();
    }
    context.engine()->caller = before;  // as on the other ranks
    return error;
}

PersistentTag take_persistent_tag(Context& context) {
    const auto& tags = context.engine()->persistent_tags;
    for (std::int64_t least = 0;;) {
        const std::int64_t proposed = tags->free_from(least);
        std::vector<std::int64_t> all{proposed, -proposed};
        allreduce_min(context.transport(), all);
        least = -all[1];
        tags->must_be_there(least);
        if (all[0] == least) return {tags, least};
    }
}

bool Handle::test() {
    if (!call_->over()) call_->context().engine()->progress();
    if (!call_->over()) return false;
    call_->raise();
    return true;
}

void Handle::wait() {
    wait_until(call_->context(), [&] { return call_->over(); }, [&] { return call_->waits(); });
    call_->raise();
}

std::int64_t Handle::buffer_bytes() const {
    return call_->buffer_bytes();
}

// What another thread's call does with the same arrays is over before, or begins later.
void RepeatedHandle::start() {
    {
        const auto lock = lock_calls(call_->context());
        call_->start();
    }
    call_->context().engine()->add(call_);
}

void RepeatedHandle::run() {
    {
        const auto lock = lock_calls(call_->context());
        call_->start();
    }
    run_to_the_end(call_);
}

}  // namespace tilewave
