#include "patterns/operation.hpp"

#include <algorithm>

#include "context/waiting.hpp"
#include "patterns/piggyback.hpp"
#include "patterns/tuning.hpp"

namespace tilewave {

namespace {

// Places of the numbers that ranks compare. Of each pair the second is the negative: all know the least and the most.
// The memory's come first, as numbers that nobody gives are not sent when they are the last. Then columns of the parts;
// columns of the whole; for parts within the whole, how far they are from where parts of equal columns end up.
constexpr std::size_t contiguous_value = PatternTransfer::memory_numbers, columns_value = contiguous_value + 1,
                      whole_value = columns_value + 2, place_value = whole_value + 2, all_values = place_value + 2;
static_assert(all_values <= Agreement::most_values);

void give(std::vector<std::int64_t>& values, std::size_t place, std::int64_t value) {
    values[place] = value;
    values[place + 1] = -value;
}

}  // namespace

Caller caller_of(const PatternCall& call) {
    return {call.caller.call.empty() ? std::string("tw.patterns.") + to_string(call.kind) : call.caller.call,
            call.caller.where};
}

PatternOperation::PatternOperation(Context& context, PatternCall call, std::int64_t its_number,
                                   std::unique_ptr<Comparison> comparison)
    : InFlight(context, "pattern"), call_(std::move(call)) {
    number = its_number;
    tag_ = data_tag();
    if (call_.error.empty() && !call_.keep) transfer_ = PatternTransfer::take(*engine_, PatternTransfer::key(call_));
    if (transfer_ && !make_result_again()) transfer_.reset();
    if (!transfer_) make_status();  // no such call was found right before
    // Now: a rank that lacks memory for the parts' call could not report it later.
    if (!comparison && has_parts(call_.kind) && context.size() > 1)
        parts_comparison_ = engine_->take_comparison(compared().status, {});
    if (comparison) comparison->agreement.set_status(compared().status, compared().given);
    comparison_ = comparison ? std::move(comparison) : engine_->take_comparison(compared().status, compared().given);
    if (call_.request.algorithm == Algorithm::native && port().native() && !call_.keep) enter_line();
    const bool gives = compared().status->kind == RankStatus::Kind::fine &&
                       may_piggyback(call_, port(), context_.paths_off()) &&
                       (call_.kind != PatternKind::broadcast || context.rank() == call_.root) &&
                       call_.in.bytes() <= piggyback_limit_bytes(call_.kind, context.size());
    agreement().start(agreement_tag(), gives ? call_.in : MatrixView{}, call_.caller.where, &engine_->where);
}

// Allocates the result of a repeated call, as large as the last time, before the ranks compare, as they agree then that
// all have the memory. False: there is none, or it has another shape.
bool PatternOperation::make_result_again() {
    if (!call_.allocate) return true;
    try {
        call_.out = call_.allocate(transfer_->problem().total_columns());
    } catch (...) {  // allocated once more when all ranks can agree on an error
        return false;
    }
    return transfer_->fits(call_);
}

// This rank's arguments: those that must be equal as text, others as numbers.
void PatternOperation::make_status() {
    compared_.key = PatternTransfer::key(call_);
    RankStatus status;
    status.error = check_call(call_, context_.rank(), context_.size());
    if (!status.error.empty())
        status.kind = call_.lacks_memory ? RankStatus::Kind::resources : RankStatus::Kind::config;
    status.description = describe(call_);
    status.caller = caller();
    compared_.status = std::make_shared<HashedStatus>(std::move(status));
    auto& values = compared_.given;
    values.assign(all_values, Agreement::none);
    values[0] = values[1] = 0;
    const bool gets =
        call_.kind != PatternKind::broadcast && (call_.kind != PatternKind::reduce || context_.rank() == call_.root);
    values[contiguous_value] = call_.in.contiguous() && (!gets || call_.allocate || call_.out.contiguous());
    give(values, columns_value, part_columns());
    if (call_.kind == PatternKind::spread && !call_.allocate) give(values, whole_value, call_.out.cols);
    if (call_.part_inside >= 0) give(values, place_value, call_.part_inside - context_.rank() * part_columns());
}

bool PatternOperation::step() {
    while (stage_ != Stage::over)
        if (!stage_over()) return false;
    return true;
}

void PatternOperation::finish() {
    stage_ = Stage::over;
    leave_line();
    if (begin_ > 0) time_s_ = now_s() - begin_;
    if (call_.keep) return;
    if (ran_) PatternTransfer::give_back(*engine_, std::move(transfer_));
    if (!error_) engine_->give_back(std::move(comparison_));
}

// One stage; false where it must wait.
bool PatternOperation::stage_over() {
    switch (stage_) {
        case Stage::agreeing:
            if (!agreed(agreement())) return false;
            again_ = as_before();
            if (!again_ && !even_parts()) {
                compare_parts();
                return true;
            }
            if (parts_comparison_) engine_->give_back(std::move(parts_comparison_));
            get_ready();
            return true;
        case Stage::comparing_parts:
            if (!parts_call_->advance()) return false;
            parts_call_->raise();
            get_ready();
            return true;
        case Stage::preparing:
            if (asks_) {
                if (!agreement().advance()) return false;
                asks_ = false;
                agreement().raise();
                agreement().set_status(compared().status, compared().given);
            }
            if (call_.keep)
                stage_ = Stage::over;
            else
                begin_running();
            return true;
        case Stage::running: {
            const bool native = plan().algorithm == Algorithm::native;
            if (native ? !run_native() : !transfer_->execution().advance()) return false;
            ran_ = !native;
            stage_ = Stage::over;
            if (call_.op != Reduction::user || native) return true;
            RankStatus status;
            if (transfer_->execution().outcome().failure) status = {RankStatus::Kind::kernel, call_.user.failure(), ""};
            ending_->set_status(std::make_shared<HashedStatus>(std::move(status)), {});
            ending_->start(engine_->tag(tag_), {}, call_.caller.where, &engine_->where);
            stage_ = Stage::ending;
            return true;
        }
        case Stage::ending:
            if (!ending_->advance()) return false;
            stage_ = Stage::over;
            ending_->raise();
            return true;
        case Stage::over: break;
    }
    return true;
}

// What follows once all ranks' parts are known.
void PatternOperation::get_ready() {
    prepare();
    if (piggyback_) {
        get_memory();
        finish_piggyback(call_, problem(), *plan_, context_.rank(), [this](int r) { return agreement().piggyback(r); });
        ran_ = true;
        stage_ = Stage::over;
    } else {
        agree_on_memory();
    }
    if (plan().algorithm != Algorithm::native) leave_line();
}

// Whether all that ranks gave is as in the call that the transfer is from. Parts that are uneven are known where all
// have the memory of that call: a rank that gives other ones has none.
bool PatternOperation::as_before() {
    const std::vector<std::int64_t>& now = agreement().values();
    return transfer_ &&
           std::equal(transfer_->compared().agreed.begin(), transfer_->compared().agreed.end(),
                      now.begin() + PatternTransfer::memory_numbers, now.end()) &&
           (even_parts() || (now[0] > 0 && now[0] == -now[1]));
}

// Whether the parts are equal and those in the whole are at their final places.
bool PatternOperation::even_parts() {
    if (!has_parts(call_.kind)) return true;
    const auto value = [&](std::size_t place) { return agreement().value(place); };
    const bool outside = value(place_value) == Agreement::none;
    return value(columns_value) == -value(columns_value + 1) &&
           (outside || (value(place_value) == 0 && value(place_value + 1) == 0 && call_.block == 0));
}

// Tells all ranks the columns and the place of each part, by a pattern of equal parts.
void PatternOperation::compare_parts() {
    stage_ = Stage::comparing_parts;
    PatternCall call;
    call.kind = PatternKind::spread;
    call.caller = caller();
    const auto matrix = [](std::int64_t* data, std::int64_t columns) {
        const auto item = static_cast<std::int64_t>(sizeof *data);
        return MatrixView{reinterpret_cast<std::byte*>(data), 1, columns, columns * item, Dtype::i8};
    };
    part_ = {part_columns(), call_.part_inside};
    call.in = matrix(part_.data(), 2);
    try {
        parts_.resize(2 * static_cast<std::size_t>(context_.size()));
    } catch (const std::bad_alloc&) {
        call.error = std::string(to_string(call_.kind)) + ": rank " + std::to_string(context_.rank()) +
                     " has not the memory for the parts of all ranks";
        call.lacks_memory = true;
    }
    call.out = matrix(parts_.data(), static_cast<std::int64_t>(parts_.size()));
    parts_call_ = std::make_shared<PatternOperation>(context_, std::move(call), number, std::move(parts_comparison_));
}

// The problem, from the arguments of all ranks.
PatternProblem PatternOperation::make_problem() {
    PatternProblem q;
    q.kind = call_.kind;
    q.ranks = context_.size();
    q.root = has_parts(q.kind) ? 0 : call_.root;
    q.rows = call_.in.rows;
    q.item_bytes = call_.in.item_bytes();
    q.block = call_.block;
    if (has_parts(q.kind))
        for (std::size_t r = 0; r < static_cast<std::size_t>(q.ranks); ++r)
            q.columns.push_back(parts_.empty() ? part_columns() : parts_[2 * r]);
    else
        q.columns = {call_.in.cols};
    // Columns of the whole matrix: the least and the most that any rank has given.
    std::int64_t least = call_.in.cols, most = least;
    if (q.kind == PatternKind::spread) {
        const bool given = agreement().value(whole_value) != Agreement::none;
        least = given ? agreement().value(whole_value) : q.total_columns();
        most = given ? -agreement().value(whole_value + 1) : q.total_columns();
    }
    if (least != q.total_columns() || most != q.total_columns())
        throw ConfigError(std::string(to_string(q.kind)) + ": the ranks' parts have " +
                          std::to_string(q.total_columns()) + " columns together, the whole matrix " +
                          std::to_string(least == q.total_columns() ? most : least) + "; they must be equal");
    return q;
}

// A part that lies in the whole matrix need not move if it is at its final place; anywhere else it would be overwritten
// while it is read.
void PatternOperation::check_places(const PatternProblem& q) {
    for (std::int64_t r = 0, first = 0; !parts_.empty() && r < q.ranks; first += q.columns[r++]) {
        const std::int64_t inside = parts_[2 * r + 1];
        if (inside >= 0 && (q.block > 0 || (inside != first && q.columns[r] > 0)))
            throw ConfigError(std::string(to_string(q.kind)) + ": on rank " + std::to_string(r) +
                              " the part lies in the whole matrix at column " + std::to_string(inside) +
                              "; allowed: outside of it" + (q.block ? "" : ", or at column " + std::to_string(first)));
    }
    if (call_.op == Reduction::user && call_.request.algorithm == Algorithm::native)
        throw ConfigError(std::string(to_string(q.kind)) +
                          ": algorithm 'mpi' was given with a function; allowed: the other algorithms");
}

void PatternOperation::take_tag() {
    persistent_tag_ = take_persistent_tag(context_);
    tag_ = ProgressEngine::first_persistent + persistent_tag_.number();
    if (transfer_) transfer_->set_tag_and_memory(call_, engine_->tag(tag_));
}

// Equal on all ranks: depends on the agreement and rank 0's numbers only.
void PatternOperation::prepare() {
    if (!again_) made_ = make_problem();
    const PatternProblem& q = problem();
    piggyback_ =
        may_piggyback(call_, port(), context_.paths_off()) && std::ranges::all_of(q.columns, [&](std::int64_t n) {
            return (q.kind == PatternKind::multi_reduce ? call_.in.bytes() : q.rows * n * q.item_bytes) <=
                   piggyback_limit_bytes(q.kind, q.ranks);
        });
    if (again_) {
        plan_ = transfer_->plan();
    } else {
        check_places(q);
        PatternConditions conditions;
        conditions.contiguous = agreement().value(contiguous_value) == 1;
        conditions.native = port().native();
        PatternPlan plan = make_pattern_plan(q, call_.request, conditions, context_.machine());
        plan.with_comparison = piggyback_;
        plan_ = std::make_shared<PatternPlan>(std::move(plan));
    }
}

// What the call needs on this rank. Where it throws, the comparison is still there.
void PatternOperation::get_memory() {
    if (call_.allocate && !again_) call_.out = call_.allocate(made_.total_columns());
    if (plan().algorithm == Algorithm::native) {
        native_.prepare(call_, problem().columns, context_.rank());
        return;
    }
    if (call_.op == Reduction::user)
        ending_ = std::make_unique<Agreement>(port(), compared().status, std::vector<std::int64_t>{});
    if (!again_) {
        if (transfer_) {
            compared_ = transfer_->compared();
            compared_.given[0] = compared_.given[1] = 0;
            transfer_.reset();
        }
        const std::vector<std::int64_t>& now = agreement().values();
        compared_.agreed.assign(now.begin() + PatternTransfer::memory_numbers, now.end());
        transfer_ = std::make_shared<PatternTransfer>(context_, compared_, made_, plan_, call_);
    }
    if (!piggyback_) transfer_->set_tag_and_memory(call_, engine_->tag(tag_));
    staged_ = transfer_->buffer_bytes();
}

// Whether every rank had its memory before this call; equal on all ranks.
bool PatternOperation::all_have_memory() {
    const std::vector<std::int64_t>& now = agreement().values();
    return again_ && now[0] > 0 && now[0] == -now[1];
}

// A rank that lacks memory would leave the others waiting for its data.
void PatternOperation::agree_on_memory() {
    RankStatus status;
    const bool native = plan().algorithm == Algorithm::native;
    const bool needs_none = native && call_.kind == PatternKind::broadcast && agreement().value(contiguous_value) == 1;
    const bool known = context_.size() == 1 || needs_none || (!native && all_have_memory());
    try {
        get_memory();
    } catch (const std::bad_alloc&) {
        if (known) throw;
        status = {RankStatus::Kind::resources,
                  std::string(to_string(call_.kind)) + ": rank " + std::to_string(context_.rank()) +
                      " has not the memory for the result or for staging; nothing was moved",
                  ""};
    }
    stage_ = Stage::preparing;
    if (known) return;
    status.caller = caller();
    agreement().set_status(std::make_shared<HashedStatus>(std::move(status)), {});
    agreement().start(engine_->tag(tag_), {}, call_.caller.where, &engine_->where);
    asks_ = true;
}

void PatternOperation::begin_running() {
    begin_ = now_s();
    native_posted_ = false;
    stage_ = Stage::running;
}

void PatternOperation::restart() {
    if (!plan_) raise();
    if (transfer_) transfer_->execution().restart();
    if (plan().algorithm == Algorithm::native) enter_line();
    begin_running();
}

bool PatternOperation::run_native() {
    if (!native_posted_) {
        if (!engine_->first_in_line(place_)) return false;
        native_posted_ = true;
        native_.post(call_, context_.rank(), port());
        leave_line();
    }
    done_.clear();
    port().poll(done_);
    if (done_.empty()) return false;
    native_.take_results(call_, context_.rank());
    return true;
}

}  // namespace tilewave
