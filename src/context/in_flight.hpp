// Calls in flight: patterns, updates of halos, receives.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "context/progress_engine.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

class Agreement;

/// A call that progresses while its caller does something else, in steps that never wait. An exception of a step ends
/// the call; raise() throws it again.
class InFlight : public Operation {
public:
    /// `name`: "pattern", for error messages. `over`: it is not started yet.
    InFlight(Context& context, const char* name, bool over = false)
        : context_(context), engine_(context.engine()), name_(name), over_(over) {}

    bool advance() final;
    bool over() const { return over_.load(std::memory_order_acquire); }
    void raise() const {
        if (error_) std::rethrow_exception(error_);
    }
    /// Repeats a call that was made to be repeated, without comparing its arguments again.
    /// @throws ConfigError where it was not, or is not over; MpiError
    void start();
    /// Ends a call that is not in flight, as by an exception of its first step.
    void end_by(std::exception_ptr error) {
        error_ = std::move(error);
        over_.store(true, std::memory_order_release);
    }
    /// What this rank waits for: "in tw.exchange, script.py:7, for the halos of its neighbours".
    virtual std::string waits() = 0;
    virtual std::int64_t buffer_bytes() const { return 0; }
    Context& context() { return context_; }

protected:
    /// Goes as far as it can without waiting; true when all is done.
    virtual bool step() = 0;
    /// After the last step, or one that has thrown.
    virtual void finish() {}
    /// Makes a repeated call ready for its first step.
    virtual void restart() {}
    virtual bool repeats() const { return false; }

    void begin() {
        error_ = nullptr;
        over_.store(false, std::memory_order_relaxed);
    }
    /// Whether the agreement is over: then throws what all agreed on, if anything.
    bool agreed(Agreement& agreement);
    std::string waits_for(const Caller& caller, const std::string& what) const;
    /// The tag of messages of this call, of the calls that are numbered.
    int data_tag() const { return ProgressEngine::first_data + static_cast<int>(number % ProgressEngine::call_tags); }
    int agreement_tag() const { return engine_->tag(static_cast<int>(number % ProgressEngine::call_tags)); }

    Context& context_;
    std::shared_ptr<ProgressEngine> engine_;
    std::exception_ptr error_;

private:
    std::string name_;
    std::atomic<bool> over_;  // the last that the thread that advances it writes
};

/// Polls and waits until a call is over that nobody else has a handle of. After an interrupt the call stays in flight,
/// after hold().
void run_to_the_end(const std::shared_ptr<InFlight>& call, const std::function<void()>& hold = nullptr);

/// Tells the ranks, which wait for this one's status, that it has not the memory to begin a call: the error that all
/// get. It is raised by a wait, as on the other ranks, which may start other calls before they learn of it.
std::exception_ptr tell_of_lack(Context& context, const Caller& caller, const std::exception_ptr& lack);

/// A tag for a call that is made once and repeated, free on all ranks. Collective.
/// @throws ConfigError on every rank where there is none
PersistentTag take_persistent_tag(Context& context);

}  // namespace tilewave
