#include "tilewave/patterns.hpp"

#include <new>

#include "context/waiting.hpp"
#include "patterns/operation.hpp"

namespace tilewave {

namespace {

std::shared_ptr<PatternOperation> make_operation(Context& context, PatternCall call) {
    const Caller caller = caller_of(call);
    const auto number = take_number(context, [&] { return caller; });
    try {
        return std::make_shared<PatternOperation>(context, std::move(call), number);
    } catch (const std::bad_alloc&) {
        --context.engine()->started;
        return std::make_shared<PatternOperation>(context, tell_of_lack(context, caller, std::current_exception()));
    }
}

}  // namespace

PatternHandle start_pattern(Context& context, PatternCall call) {
    const bool keep = call.keep;
    const auto operation = make_operation(context, std::move(call));
    PatternHandle handle(operation);
    if (!operation->over()) context.engine()->add(operation);
    if (!keep) return handle;
    handle.wait();
    operation->take_tag();
    return handle;
}

void run_pattern(Context& context, PatternCall call, const std::function<std::shared_ptr<void>()>& memory) {
    const auto operation = make_operation(context, std::move(call));
    run_to_the_end(operation, [&] { operation->hold(memory()); });
}

PatternHandle::PatternHandle(std::shared_ptr<PatternOperation> operation) : RepeatedHandle(std::move(operation)) {}

PatternOperation& PatternHandle::operation() const {
    return static_cast<PatternOperation&>(*call_);
}

const PatternPlan& PatternHandle::plan() const {
    return operation().plan();
}

double PatternHandle::time_s() const {
    return operation().time_s();
}

void complete(Context& context) {
    wait_until(
        context,
        [&] { return !context.engine()->busy() || context.engine()->waited_for_ended || context.transport().failed(); },
        [] { return "at the end of a context, for what is in flight"; });
}

}  // namespace tilewave
