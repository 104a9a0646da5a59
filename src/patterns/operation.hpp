// One pattern under way on this rank: agreeing with the other ranks, moving matrices, agreeing on the end.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "context/agreement.hpp"
#include "context/exchange.hpp"
#include "patterns/call.hpp"
#include "patterns/native.hpp"
#include "patterns/transfer.hpp"

namespace tilewave {

/// What the call is called, and where it stands in the program.
Caller caller_of(const PatternCall& call);

class PatternOperation final : public Operation {
public:
    PatternOperation(Context& context, PatternCall call, std::int64_t number);
    bool advance() override;

    bool over() const { return over_.load(std::memory_order_acquire); }
    void raise() const {
        if (error_) std::rethrow_exception(error_);
    }
    void start();
    bool kept() const { return call_.keep; }
    bool planned() const { return plan_ != nullptr; }
    const PatternPlan& plan() const {
        static const PatternPlan none;
        return plan_ ? *plan_ : none;
    }
    std::int64_t buffer_bytes() const { return staged_ + native_.buffer_bytes(); }
    double time_s() const { return time_s_; }
    Context& context() { return context_; }
    const std::shared_ptr<Exchange>& exchange() { return exchange_; }
    std::string waits() {
        if (stage_ == Stage::agreeing || asks_) return comparison().agreement.waits();
        const std::string where = exchange_->where_of(call_.caller);
        return "in " + caller().call + (where.empty() ? "" : ", " + where) + ", for messages of the " + describe(call_);
    }
    const std::shared_ptr<void>& memory() const { return call_.memory; }
    void hold(std::shared_ptr<void> memory) { call_.memory = std::move(memory); }

private:
    enum class Stage { agreeing, preparing, running, ending, over };
    bool step();
    bool make_result_again();
    void speak();
    Caller caller() const { return caller_of(call_); }
    void prepare();
    void get_memory();
    bool all_have_memory();
    void agree_on_memory();
    void check_places(const PatternProblem& q);
    PatternProblem make_problem();
    void propose_tag(std::int64_t least);
    bool take_kept_tag();
    void begin();
    void enter_line() { place_ = exchange_->enter_line(); }
    void leave_line() {
        if (place_ >= 0) exchange_->leave_line(place_);
        place_ = -1;
    }
    bool run_native();

    Context& context_;
    std::shared_ptr<Exchange> exchange_;
    PatternCall call_;
    Comparison& comparison() { return transfer_ ? *transfer_->comparison() : *comparison_; }
    const PatternProblem& problem() const { return again_ ? transfer_->problem() : made_; }
    const PatternTransfer::Words& words() const { return transfer_ ? transfer_->words() : words_; }
    const Agreement& agreed() { return comparison().agreement; }
    Transport& port() { return *comparison().port; }

    std::unique_ptr<Comparison> comparison_;  // until the transfer has it
    std::unique_ptr<Agreement> ending_;       // of a caller's reduction
    bool asks_ = false;                       // the ranks agree once more: whether all have memory
    PatternTransfer::Words words_;
    std::shared_ptr<PatternTransfer> transfer_;
    std::shared_ptr<const PatternPlan> plan_;
    PatternProblem made_;  // what all ranks have said, together, unless it is the same again
    bool again_ = false;   // as in the call that the transfer is from
    int tag_ = 0;
    KeptTag kept_tag_;
    std::int64_t staged_ = 0;  // bytes
    NativePattern native_;
    bool native_posted_ = false;
    bool ran_ = false;         // the transfer's messages are over
    bool piggyback_ = false;   // the matrices have come with the comparison
    std::int64_t place_ = -1;  // in line for the library's calls
    std::vector<int> done_;
    Stage stage_ = Stage::agreeing;
    std::atomic<bool> over_{false};  // the last that the thread that advances it writes
    double begin_ = 0, time_s_ = 0;
    std::exception_ptr error_;
};

}  // namespace tilewave
