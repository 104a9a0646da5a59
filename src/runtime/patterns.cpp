#include "tilewave/patterns.hpp"

#include <algorithm>

#include "runtime/agreement.hpp"
#include "runtime/exchange.hpp"
#include "runtime/pattern_call.hpp"
#include "runtime/pattern_transfer.hpp"
#include "runtime/piggyback.hpp"
#include "runtime/tuning.hpp"
#include "runtime/waiting.hpp"

namespace tilewave {

using namespace tuning;

namespace {

constexpr std::int64_t turns = Exchange::turns;
// Numbers of tags: agreements, data, buffered sends, then those of kept calls.
constexpr int first_data = turns, first_kept = 2 * turns + 2048;

Caller caller_of(const PatternCall& call) {
    return {call.caller.call.empty() ? std::string("tw.patterns.") + to_string(call.kind) : call.caller.call,
            call.caller.where};
}

}  // namespace

class PatternOperation final : public Operation {
public:
    PatternOperation(Context& context, PatternCall call, std::int64_t number);
    bool advance() override;

    bool over() const { return stage_ == Stage::over; }
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
    std::int64_t buffer_bytes() const { return staged_ + static_cast<std::int64_t>(given_.size() + got_.size()); }
    double time_s() const { return time_s_; }
    Context& context() { return context_; }
    const std::shared_ptr<Exchange>& exchange() { return exchange_; }
    std::string waits() {
        if (stage_ == Stage::agreeing) return comparison().agreement.waits();
        if (memory_) return memory_->waits();
        const std::string where = exchange_->where_of(call_.caller);
        return "in " + caller().call + (where.empty() ? "" : ", " + where) + ", for messages of the " + describe(call_);
    }
    const std::shared_ptr<void>& memory() const { return call_.memory; }
    void hold(std::shared_ptr<void> memory) { call_.memory = std::move(memory); }

private:
    enum class Stage { agreeing, preparing, running, ending, over };
    bool step();
    void speak();
    Caller caller() const { return caller_of(call_); }
    void prepare();
    void get_memory();
    bool all_have_memory();
    void agree_on_memory();
    void check_places(const PatternProblem& q);
    PatternProblem problem();
    void take_tag();
    void begin();
    void enter_line() { place_ = exchange_->enter_line(); }
    void leave_line() {
        if (place_ >= 0) exchange_->leave_line(place_);
        place_ = -1;
    }
    bool run_native();
    void post_native();
    void take_native();

    Context& context_;
    std::shared_ptr<Exchange> exchange_;
    PatternCall call_;
    Comparison& comparison() { return transfer_ ? *transfer_->comparison() : *comparison_; }
    const Agreement& agreed() { return comparison().agreement; }
    Transport& port() { return *comparison().port; }

    std::unique_ptr<Comparison> comparison_;  // until the transfer has it
    std::unique_ptr<Agreement> memory_, ending_;
    PatternTransfer::Words words_;
    std::shared_ptr<PatternTransfer> transfer_;
    std::shared_ptr<const PatternPlan> plan_;
    PatternProblem made_;  // what all ranks have said, together
    bool again_ = false;   // as in the call that the transfer is from
    int tag_ = 0;
    std::int64_t staged_ = 0;  // bytes
    NativeCall native_;
    std::vector<std::byte> given_, got_;  // its matrices without gaps, where the caller's have some
    bool native_posted_ = false;
    bool ran_ = false;         // the transfer's messages are over
    bool piggyback_ = false;   // the matrices have come with the comparison
    std::int64_t place_ = -1;  // in line for the library's calls
    std::vector<int> done_;
    Stage stage_ = Stage::agreeing;
    double begin_ = 0, time_s_ = 0;
    std::exception_ptr error_;
};

PatternOperation::PatternOperation(Context& context, PatternCall call, std::int64_t its_number)
    : context_(context), exchange_(context.exchange()), call_(std::move(call)) {
    number = its_number;
    if (call_.error.empty() && !call_.keep) transfer_ = PatternTransfer::take(*exchange_, PatternTransfer::key(call_));
    if (!transfer_) {  // no such call was found right before
        speak();
        if (call_.keep) words_.given[1] = -exchange_->kept++;
        comparison_ = std::make_unique<Comparison>(exchange_->kept_port(), words_.said, words_.given);
    }
    const PatternTransfer::Words& words = transfer_ ? transfer_->words() : words_;
    if (call_.request.algorithm == Algorithm::native && port().native() && !call_.keep) enter_line();
    const bool gives = words.said->statement.kind == Statement::Kind::fine && may_piggyback(call_, port()) &&
                       (call_.kind != PatternKind::broadcast || context.rank() == call_.root) &&
                       call_.in.bytes() <= piggyback_limit_bytes(call_.kind, context.size());
    comparison().agreement.start(exchange_->tag(static_cast<int>(number % turns)), gives ? call_.in : MatrixView{},
                                 call_.caller.where, &exchange_->where);
}

// What this rank says of its call: the same as text, what may differ between ranks as numbers.
void PatternOperation::speak() {
    words_.key = PatternTransfer::key(call_);
    Statement statement;
    statement.error = check_call(call_, context_.rank(), context_.size());
    if (!statement.error.empty()) statement.kind = Statement::Kind::config;
    statement.description = describe(call_);
    statement.caller = caller();
    words_.said = std::make_shared<Said>(std::move(statement));
    const auto p = static_cast<std::size_t>(context_.size()), mine = static_cast<std::size_t>(context_.rank());
    auto& values = words_.given;
    values.assign(4 + 2 * p + PatternTransfer::memory_numbers, Agreement::none);
    values.end()[-2] = values.end()[-1] = 0;
    const bool gets =
        call_.kind != PatternKind::broadcast && (call_.kind != PatternKind::reduce || context_.rank() == call_.root);
    values[0] = call_.in.contiguous() && (!gets || call_.allocate || call_.out.contiguous());
    values[2 + mine] = call_.kind == PatternKind::spread ? call_.in.cols : call_.out.cols;
    if (call_.part_inside >= 0) values[2 + p + mine] = call_.part_inside;
    if (call_.kind == PatternKind::spread && !call_.allocate) {
        values[2 + 2 * p] = call_.out.cols;
        values[3 + 2 * p] = -call_.out.cols;
    }
}

bool PatternOperation::advance() {
    try {
        while (stage_ != Stage::over)
            if (!step()) return false;
    } catch (const MpiError&) {
        if (exchange_->ended < 0) exchange_->main().mark_failed();
        stay_for_ever();
        error_ = std::current_exception();
        stage_ = Stage::over;
    } catch (...) {
        error_ = std::current_exception();
        stage_ = Stage::over;
    }
    leave_line();
    if (begin_ > 0) time_s_ = now_s() - begin_;
    if (ran_ && !call_.keep) PatternTransfer::give_back(*exchange_, std::move(transfer_));
    return true;
}

// One stage; false where it must wait.
bool PatternOperation::step() {
    switch (stage_) {
        case Stage::agreeing:
            if (!comparison().agreement.advance()) return false;
            if (agreed().ended() >= 0) exchange_->ended = agreed().ended();
            agreed().raise();
            prepare();
            if (piggyback_) {
                get_memory();
                finish_piggyback(call_, made_, *plan_, context_.rank(),
                                 [this](int r) { return agreed().piggyback(r); });
                ran_ = true;
                stage_ = Stage::over;
            } else {
                agree_on_memory();
            }
            if (plan().algorithm != Algorithm::native) leave_line();
            return true;
        case Stage::preparing:
            if (memory_) {
                if (!memory_->advance()) return false;
                memory_->raise();
                memory_.reset();
            }
            if (call_.keep)
                stage_ = Stage::over;
            else
                begin();
            return true;
        case Stage::running: {
            const bool native = plan().algorithm == Algorithm::native;
            if (native ? !run_native() : !transfer_->execution().advance()) return false;
            ran_ = !native;
            stage_ = Stage::over;
            if (call_.op != Reduction::user || native) return true;
            Statement mine;
            if (transfer_->execution().outcome().failure) mine = {Statement::Kind::kernel, call_.user.failure(), ""};
            ending_ = std::make_unique<Agreement>(port(), std::make_shared<Said>(std::move(mine)),
                                                  std::vector<std::int64_t>{});
            ending_->start(exchange_->tag(tag_), {}, call_.caller.where, &exchange_->where);
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

// What all ranks have said, together.
PatternProblem PatternOperation::problem() {
    PatternProblem q;
    q.kind = call_.kind;
    q.ranks = context_.size();
    q.root = has_parts(q.kind) ? 0 : call_.root;
    q.rows = call_.in.rows;
    q.item_bytes = call_.in.item_bytes();
    q.block = call_.block;
    if (has_parts(q.kind))
        for (int r = 0; r < q.ranks; ++r) q.columns.push_back(agreed().value(2 + static_cast<std::size_t>(r)));
    else
        q.columns = {call_.in.cols};
    // Of the whole matrix: the least and the most that any rank has given.
    std::int64_t least = call_.in.cols, most = least;
    if (q.kind == PatternKind::spread) {
        const bool given = agreed().value(static_cast<std::size_t>(2 + 2 * q.ranks)) != Agreement::none;
        least = given ? agreed().value(static_cast<std::size_t>(2 + 2 * q.ranks)) : q.total_columns();
        most = given ? -agreed().value(static_cast<std::size_t>(3 + 2 * q.ranks)) : q.total_columns();
    }
    if (least != q.total_columns() || most != q.total_columns())
        throw ConfigError(std::string(to_string(q.kind)) + ": the ranks' parts have " +
                          std::to_string(q.total_columns()) + " columns together, the whole matrix " +
                          std::to_string(least == q.total_columns() ? most : least) + "; they must be equal");
    return q;
}

// A part in its own place inside the whole matrix is moved by not moving it; anywhere else it
// would be overwritten while it is read.
void PatternOperation::check_places(const PatternProblem& q) {
    for (std::int64_t r = 0, first = 0; r < q.ranks && has_parts(q.kind);
         first += q.columns[static_cast<std::size_t>(r++)]) {
        const std::int64_t inside = agreed().value(static_cast<std::size_t>(2 + q.ranks + r));
        if (inside != Agreement::none &&
            (q.block > 0 || (inside != first && q.columns[static_cast<std::size_t>(r)] > 0)))
            throw ConfigError(std::string(to_string(q.kind)) + ": on rank " + std::to_string(r) +
                              " the part lies in the whole matrix at column " + std::to_string(inside) +
                              "; allowed: apart from it" +
                              (q.block ? "" : ", or at its own column " + std::to_string(first)));
    }
    if (call_.op == Reduction::user && call_.request.algorithm == Algorithm::native)
        throw ConfigError(std::string(to_string(q.kind)) +
                          ": algorithm 'mpi' was given with a function; allowed: the other algorithms");
}

void PatternOperation::take_tag() {
    tag_ = first_data + static_cast<int>(number % turns);
    if (!call_.keep) return;
    const std::int64_t kept = -agreed().value(1);
    exchange_->kept = std::max(exchange_->kept, kept + 1);
    if (kept >= exchange_->operation_tags() - first_kept)
        throw ConfigError("this context has had " + std::to_string(kept) +
                          " patterns with start=False, the most there can be; make a new context");
    tag_ = first_kept + static_cast<int>(kept);
}

// All ranks come to the same here: what was agreed, rank 0's numbers and nothing else decide.
void PatternOperation::prepare() {
    const std::vector<std::int64_t>& now = agreed().values();
    again_ = transfer_ && std::equal(transfer_->words().agreed.begin(), transfer_->words().agreed.end(), now.begin(),
                                     now.end() - PatternTransfer::memory_numbers);
    made_ = again_ ? transfer_->problem() : problem();
    piggyback_ =
        may_piggyback(call_, port()) && std::all_of(made_.columns.begin(), made_.columns.end(), [&](std::int64_t n) {
            return (made_.kind == PatternKind::multi_reduce ? call_.in.bytes() : made_.rows * n * made_.item_bytes) <=
                   piggyback_limit_bytes(made_.kind, made_.ranks);
        });
    if (again_) {
        plan_ = transfer_->plan();
    } else {
        check_places(made_);
        PatternConditions conditions;
        conditions.contiguous = agreed().value(0) == 1;
        conditions.native = port().native();
        PatternPlan plan = make_pattern_plan(made_, call_.request, conditions, context_.machine());
        if (piggyback_) plan.why += "; so small that all goes with the comparison of the arguments";
        plan_ = std::make_shared<PatternPlan>(std::move(plan));
    }
    take_tag();
}

// What the call needs on this rank. Where it throws, the comparison is still there.
void PatternOperation::get_memory() {
    if (call_.allocate) call_.out = call_.allocate(made_.total_columns());
    if (plan().algorithm == Algorithm::native) {
        native_.columns = made_.columns;
        return;
    }
    if (!again_ || !transfer_->fits(call_)) {
        if (transfer_) {
            words_ = transfer_->words();
            words_.given.end()[-2] = words_.given.end()[-1] = 0;
            comparison_ = std::move(transfer_->comparison());
            transfer_.reset();
        }
        const std::vector<std::int64_t>& now = agreed().values();
        words_.agreed.assign(now.begin(), now.end() - PatternTransfer::memory_numbers);
        transfer_ = std::make_shared<PatternTransfer>(context_, words_, made_, plan_, call_, comparison_);
    }
    if (!piggyback_) transfer_->aim(call_, exchange_->tag(tag_));
    staged_ = transfer_->buffer_bytes();
}

// Whether every rank had its memory before this call, and they know it of each other: all come to the same.
bool PatternOperation::all_have_memory() {
    const std::vector<std::int64_t>& now = agreed().values();
    return again_ && now.end()[-2] > 0 && now.end()[-2] == -now.end()[-1];
}

// A rank that lacks memory would leave the others waiting for its data. The library's own calls are left as they are.
void PatternOperation::agree_on_memory() {
    Statement mine;
    const bool known = all_have_memory() || context_.size() == 1 || plan().algorithm == Algorithm::native;
    try {
        get_memory();
    } catch (const std::bad_alloc&) {
        if (known) throw;
        mine = {Statement::Kind::resources,
                std::string(to_string(call_.kind)) + ": rank " + std::to_string(context_.rank()) +
                    " has not the memory for the result or for staging; nothing was moved",
                ""};
    }
    stage_ = Stage::preparing;
    if (known) return;
    mine.caller = caller();
    memory_ = std::make_unique<Agreement>(port(), std::make_shared<Said>(std::move(mine)), std::vector<std::int64_t>{});
    memory_->start(exchange_->tag(tag_), {}, call_.caller.where, &exchange_->where);
}

void PatternOperation::begin() {
    begin_ = now_s();
    native_posted_ = false;
    stage_ = Stage::running;
}

void PatternOperation::start() {
    InsideReduction::refuse();
    if (!call_.keep) throw ConfigError("this pattern was not made with start=False: it runs once");
    if (!over()) throw ConfigError("this pattern is in flight; wait for it before it is started again");
    if (!planned()) raise();
    error_ = nullptr;
    number = -1;  // its tag is its own
    exchange_->main().must_work();
    if (transfer_) transfer_->execution().restart();
    if (plan().algorithm == Algorithm::native) enter_line();
    begin();
}

namespace {

void copy_matrix(const MatrixView& to, const MatrixView& from) {
    const std::int64_t item = from.item_bytes();
    copy_box(to.data, {to.row_stride_bytes, item}, from.data, {from.row_stride_bytes, item}, {from.rows, from.cols},
             item);
}

MatrixView columns_of(MatrixView m, std::int64_t first, std::int64_t count) {
    m.data += first * m.item_bytes();
    m.cols = count;
    return m;
}

// The same matrix without gaps between rows, in memory that starts at `data`.
MatrixView dense(MatrixView m, std::byte* data) {
    m.data = data;
    m.row_stride_bytes = m.row_bytes();
    return m;
}

// copy(part of the whole, the same part in memory where the parts follow each other)
template <class Copy>
void for_parts(const MatrixView& whole, const std::vector<std::int64_t>& columns, std::byte* data, Copy copy) {
    std::int64_t first = 0;
    for (std::int64_t n : columns) {
        const MatrixView part = columns_of(whole, first, n);
        copy(part, dense(part, data));
        data += part.bytes();
        first += n;
    }
}

}  // namespace

// The library's own call wants matrices without gaps, and parts one after another.
void PatternOperation::post_native() {
    const PatternKind kind = call_.kind;
    const bool root = context_.rank() == call_.root;
    const bool gets = kind != PatternKind::broadcast && (kind != PatternKind::reduce || root);
    native_.kind = kind;
    native_.in = call_.in;
    native_.out = call_.out;
    native_.root = call_.root;
    native_.op = call_.op;
    native_.parts = true;
    if (kind == PatternKind::multi_reduce) {
        given_.resize(static_cast<std::size_t>(call_.in.bytes()));
        for_parts(call_.in, native_.columns, given_.data(),
                  [](const MatrixView& part, const MatrixView& to) { copy_matrix(to, part); });
        native_.in.data = given_.data();
    } else if (!call_.in.contiguous()) {
        given_.resize(static_cast<std::size_t>(call_.in.bytes()));
        native_.in = dense(call_.in, given_.data());
        if (kind != PatternKind::broadcast || root) copy_matrix(native_.in, call_.in);
    }
    if (gets && (kind == PatternKind::spread || !call_.out.contiguous())) {
        got_.resize(static_cast<std::size_t>(call_.out.bytes()));
        native_.out = dense(call_.out, got_.data());
    }
    port().post_native(0, native_);
}

void PatternOperation::take_native() {
    const bool root = context_.rank() == call_.root;
    switch (call_.kind) {
        case PatternKind::broadcast:
            if (!root && native_.in.data != call_.in.data) copy_matrix(call_.in, native_.in);
            break;
        case PatternKind::reduce:
            if (root && native_.out.data != call_.out.data) copy_matrix(call_.out, native_.out);
            break;
        case PatternKind::spread:
            for_parts(call_.out, native_.columns, got_.data(),
                      [](const MatrixView& part, const MatrixView& from) { copy_matrix(part, from); });
            break;
        case PatternKind::multi_reduce:
            if (native_.out.data != call_.out.data) copy_matrix(call_.out, native_.out);
            break;
    }
}

bool PatternOperation::run_native() {
    if (!native_posted_) {
        if (!exchange_->first_in_line(place_)) return false;
        native_posted_ = true;
        post_native();
        leave_line();
    }
    done_.clear();
    port().poll(done_);
    if (done_.empty()) return false;
    take_native();
    return true;
}

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

std::shared_ptr<PatternOperation> make_operation(Context& context, PatternCall call) {
    const auto number = take_number(context, [&] { return caller_of(call); });
    return std::make_shared<PatternOperation>(context, std::move(call), number);
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
    operation_->start();
    operation_->exchange()->add(operation_);
}

void PatternHandle::run() {
    operation_->start();
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
        context, [&] { return !context.exchange()->busy(); },
        [] { return "at the end of a context, for what is in flight"; });
}

}  // namespace tilewave
