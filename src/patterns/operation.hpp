// One pattern in flight on this rank: agreeing with the other ranks, moving matrices, agreeing on the end.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "context/agreement.hpp"
#include "context/in_flight.hpp"
#include "patterns/call.hpp"
#include "patterns/native.hpp"
#include "patterns/transfer.hpp"

namespace tilewave {

/// The name of the call, and its place in the program.
Caller caller_of(const PatternCall& call);

class PatternOperation final : public InFlight {
public:
    /// `comparison`: that of the call whose parts this one tells; null: one is taken.
    PatternOperation(Context& context, PatternCall call, std::int64_t number,
                     std::unique_ptr<Comparison> comparison = nullptr);
    /// A call that is over, by an error.
    PatternOperation(Context& context, std::exception_ptr error) : InFlight(context, "pattern"), stage_(Stage::over) {
        end_by(std::move(error));
    }
    /// Gets the tag of a call that is repeated, after its first agreement. Collective.
    void take_tag();
    const PatternPlan& plan() const {
        static const PatternPlan none;
        return plan_ ? *plan_ : none;
    }
    std::int64_t buffer_bytes() const override { return staged_ + native_.buffer_bytes(); }
    double time_s() const { return time_s_; }
    std::string waits() override {
        if (stage_ == Stage::agreeing || asks_) return agreement().waits();
        if (stage_ == Stage::comparing_parts) return parts_call_->waits();
        return waits_for(caller(), "messages of the " + describe(call_));
    }
    void hold(std::shared_ptr<void> memory) { call_.memory = std::move(memory); }

private:
    enum class Stage { agreeing, comparing_parts, preparing, running, ending, over };
    bool step() override;
    void finish() override;
    void restart() override;
    bool repeats() const override { return call_.keep; }
    bool stage_over();
    bool make_result_again();
    void make_status();
    Caller caller() const { return caller_of(call_); }
    std::int64_t part_columns() const { return call_.kind == PatternKind::spread ? call_.in.cols : call_.out.cols; }
    bool as_before();
    bool even_parts();
    void compare_parts();
    void prepare();
    void get_ready();
    void get_memory();
    bool all_have_memory();
    void agree_on_memory();
    void check_places(const PatternProblem& q);
    PatternProblem make_problem();
    void begin_running();
    void enter_line() { place_ = engine_->enter_line(); }
    void leave_line() {
        if (place_ >= 0) engine_->leave_line(place_);
        place_ = -1;
    }
    bool run_native();

    PatternCall call_;
    const PatternProblem& problem() const { return again_ ? transfer_->problem() : made_; }
    const PatternTransfer::Compared& compared() const { return transfer_ ? transfer_->compared() : compared_; }
    Agreement& agreement() { return comparison_->agreement; }
    Transport& port() { return *comparison_->port; }

    std::unique_ptr<Comparison> comparison_, parts_comparison_;  // the other one: should parts be uneven
    std::shared_ptr<PatternOperation> parts_call_;               // then tells their columns and places
    std::array<std::int64_t, 2> part_ = {};                      // this rank's
    std::vector<std::int64_t> parts_;                            // by rank: columns, place in the whole
    std::unique_ptr<Agreement> ending_;                          // of a caller's reduction
    bool asks_ = false;                                          // the ranks agree once more: whether all have memory
    PatternTransfer::Compared compared_;
    std::shared_ptr<PatternTransfer> transfer_;
    std::shared_ptr<const PatternPlan> plan_;
    PatternProblem made_;  // from the arguments of all ranks, unless equal to the transfer's
    bool again_ = false;   // as in the call that the transfer is from
    int tag_ = 0;
    PersistentTag persistent_tag_;
    std::int64_t staged_ = 0;  // bytes
    NativePattern native_;
    bool native_posted_ = false;
    bool ran_ = false;         // the transfer's messages are over
    bool piggyback_ = false;   // the matrices have come with the comparison
    std::int64_t place_ = -1;  // in line for MPI's collectives
    std::vector<int> done_;
    Stage stage_ = Stage::agreeing;
    double begin_ = 0, time_s_ = 0;
};

}  // namespace tilewave
