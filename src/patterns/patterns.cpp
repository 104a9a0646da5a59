#include "tilewave/patterns.hpp"

#include <new>

#include "context/exchange.hpp"
#include "context/tuning.hpp"
#include "context/waiting.hpp"
#include "patterns/operation.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// Until an operation that nobody else knows of is over: most are before anything else is worth doing.
template <class Memory>
void finish(const std::shared_ptr<PatternOperation>& operation, Memory memory) {
    Context& context = operation->context();
    auto& exchange = *operation->exchange();
    bool added = false;
    try {
        for (int i = context.options().crowded ? quick_turns : 0; !operation->advance() && i < quick_turns; ++i)
            exchange.progress();
        if (!operation->over()) {
            added = true;
            exchange.add(operation);
            PatternHandle(operation).wait();
        }
    } catch (...) {
        if (!operation->over()) {  // its messages may still be under way
            operation->hold(memory());
            if (!added) exchange.add(operation);
        }
        throw;
    }
    operation->raise();
}

void begin_again(PatternOperation& operation) {
    const auto turn = take_turn(operation.context());
    operation.start();
}

std::shared_ptr<PatternOperation> make_operation(Context& context, PatternCall call) {
    const Caller caller = caller_of(call);
    const auto number = take_number(context, [&] { return caller; });
    try {
        return std::make_shared<PatternOperation>(context, std::move(call), number);
    } catch (const std::bad_alloc&) {  // the other ranks wait for what this one says
        --context.exchange()->started;
        Statement mine;
        mine.caller = caller;
        blame(mine, std::current_exception(), "on rank " + std::to_string(context.rank()));
        agree(context, mine);
        throw;
    }
}

}  // namespace

PatternHandle start_pattern(Context& context, PatternCall call) {
    const bool keep = call.keep;
    PatternHandle handle(make_operation(context, std::move(call)));
    context.exchange()->add(handle.operation_);
    if (keep) handle.wait();
    return handle;
}

void run_pattern(Context& context, PatternCall call, const std::function<std::shared_ptr<void>()>& memory) {
    const auto operation = make_operation(context, std::move(call));
    finish(operation, memory);
}

bool PatternHandle::test() {
    if (!operation_->over()) operation_->exchange()->progress();
    if (!operation_->over()) return false;
    operation_->raise();
    return true;
}

void PatternHandle::wait() {
    wait_until(operation_->context(), [&] { return operation_->over(); }, [&] { return operation_->waits(); });
    operation_->raise();
}

void PatternHandle::start() {
    begin_again(*operation_);
    operation_->exchange()->add(operation_);
}

void PatternHandle::run() {
    begin_again(*operation_);
    finish(operation_, [this] { return operation_->memory(); });
}

const PatternPlan& PatternHandle::plan() const {
    return operation_->plan();
}
std::int64_t PatternHandle::buffer_bytes() const {
    return operation_->buffer_bytes();
}
double PatternHandle::time_s() const {
    return operation_->time_s();
}

void complete(Context& context) {
    wait_until(
        context, [&] { return !context.exchange()->busy() || context.exchange()->in_vain; },
        [] { return "at the end of a context, for what is in flight"; });
}

}  // namespace tilewave
