#include "tilewave/patterns.hpp"

#include <algorithm>

#include "agreement.hpp"
#include "exchange.hpp"
#include "pattern_transfer.hpp"
#include "waiting.hpp"

namespace tilewave {

namespace {

// Operations in flight take turns with this many tags, so the one that had a tag before must be over.
constexpr std::int64_t turns = 2048;
// Numbers of tags: agreements, data, buffered sends, then those of kept calls.
constexpr int first_data = turns, first_kept = 2 * turns + 2048;

bool has_parts(PatternKind kind) { return kind == PatternKind::spread || kind == PatternKind::multi_reduce; }

std::string shape(const MatrixView& m) {
    return std::to_string(m.rows) + "x" + std::to_string(m.cols) + " " + to_string(m.type);
}

void check_view(const MatrixView& m, const std::string& what) {
    if (m.rows < 0 || m.cols < 0) throw ConfigError(what + " has shape " + shape(m) + "; extents >= 0 are allowed");
    if (m.rows > 1 && m.cols > 0 && (m.row_stride_bytes < m.row_bytes() || m.row_stride_bytes % m.item_bytes()))
        throw ConfigError(what + " has a row stride of " + std::to_string(m.row_stride_bytes) + " bytes; allowed: a multiple of " +
                          std::to_string(m.item_bytes()) + " that is at least the row's " + std::to_string(m.row_bytes()));
}

// What can be wrong on this rank alone.
std::string check_call(const PatternCall& c, const Context& context) {
    try {
        const std::string name = to_string(c.kind);
        if (!c.error.empty()) return c.error;
        if (c.root < 0 || c.root >= context.size())
            throw ConfigError(name + ": root " + std::to_string(c.root) + " was given; allowed: 0 to " + std::to_string(context.size() - 1));
        check_view(c.in, name + ": the matrix");
        const bool gets = !c.allocate && c.kind != PatternKind::broadcast && (c.kind != PatternKind::reduce || context.rank() == c.root);
        if (gets) check_view(c.out, name + ": out");
        if (gets && c.in.type != c.out.type)
            throw ConfigError(name + ": the matrix is " + to_string(c.in.type) + ", out is " + to_string(c.out.type) + "; they must be equal");
        if (gets && (c.in.rows != c.out.rows || (c.kind == PatternKind::reduce && c.in.cols != c.out.cols)))
            throw ConfigError(name + ": the matrix is " + shape(c.in) + ", out is " + shape(c.out) + (has_parts(c.kind) ? "; they need equally many rows" : "; they must be equal"));
        const bool reduces = c.kind == PatternKind::reduce || c.kind == PatternKind::multi_reduce;
        if (reduces && c.op != Reduction::user && !combine_row(c.op, c.in.type))
            throw ConfigError(name + ": op '" + to_string(c.op) + "' of " + to_string(c.in.type) + " was asked for; complex numbers have no order");
        return "";
    } catch (const ConfigError& e) {
        return e.what();
    }
}

std::string describe(const PatternCall& c) {
    std::string text = to_string(c.kind);
    // Parts of a spread differ in columns; the whole must not.
    text += c.kind == PatternKind::spread ? " of " + std::to_string(c.in.rows) + " rows of " + to_string(c.in.type) : " of " + shape(c.in);
    if (!has_parts(c.kind)) text += ", root " + std::to_string(c.root);
    if (has_parts(c.kind)) text += ", block " + (c.block ? std::to_string(c.block) : "none");
    if (c.kind == PatternKind::reduce || c.kind == PatternKind::multi_reduce) text += std::string(", op ") + to_string(c.op);
    const auto choice = [](std::int64_t n) { return n ? std::to_string(n) : "auto"; };
    text += std::string(", algorithm ") + to_string(c.request.algorithm) + ", chunk_bytes " + choice(c.request.chunk_bytes) +
            ", buffers " + choice(c.request.buffers);
    return text + (c.keep ? ", start=False" : "");
}

}  // namespace

class PatternOperation final : public Operation {
public:
    PatternOperation(Context& context, PatternCall call);
    bool advance() override;

    bool over() const { return stage_ == Stage::over; }
    void raise() const {
        if (error_) std::rethrow_exception(error_);
    }
    void start();
    bool kept() const { return call_.keep; }
    bool planned() const { return planned_; }
    const PatternPlan& plan() const { return plan_; }
    std::int64_t buffer_bytes() const { return staged_ + static_cast<std::int64_t>(given_.size() + got_.size()); }
    double time_s() const { return time_s_; }
    Context& context() { return context_; }
    const std::shared_ptr<Exchange>& exchange() { return exchange_; }
    std::string name() const { return describe(call_); }

private:
    enum class Stage { agreeing, running, ending, over };
    bool step();
    void speak();
    void prepare();
    void check_places(const PatternProblem& q) const;
    PatternProblem problem() const;
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
    std::unique_ptr<Transport> port_;
    std::optional<Agreement> agreement_;
    PatternTransfer::Words words_;
    std::shared_ptr<PatternTransfer> transfer_;
    PatternPlan plan_;
    bool planned_ = false;
    int tag_ = 0;
    std::int64_t staged_ = 0;  // bytes
    NativeCall native_;
    std::vector<std::byte> given_, got_;  // its matrices without gaps, where the caller's have some
    bool native_posted_ = false;
    bool ran_ = false;                    // the transfer's messages are over
    std::int64_t place_ = -1;             // in line for the library's calls
    std::vector<int> done_;
    Stage stage_ = Stage::agreeing;
    double begin_ = 0, time_s_ = 0;
    std::exception_ptr error_;
};

PatternOperation::PatternOperation(Context& context, PatternCall call)
    : context_(context), exchange_(context.exchange()), call_(std::move(call)), port_(exchange_->port()) {
    number = exchange_->started++;
    Statement mine;
    if (call_.error.empty() && !call_.keep) transfer_ = PatternTransfer::take(*exchange_, PatternTransfer::key(call_));
    if (transfer_) {  // such a call was found right before
        words_ = transfer_->words();
    } else {
        mine.error = check_call(call_, context);
        if (!mine.error.empty()) mine.kind = Statement::Kind::config;
        speak();
    }
    mine.description = words_.description;
    words_.given[1] = -exchange_->kept;
    if (call_.keep) ++exchange_->kept;
    if (call_.request.algorithm == Algorithm::native && port_->native() && !call_.keep) enter_line();
    agreement_.emplace(*port_, exchange_->tag(static_cast<int>(number % turns)), mine, words_.given);
}

// What this rank says of its call: the same as text, what may differ between ranks as numbers.
void PatternOperation::speak() {
    words_.key = PatternTransfer::key(call_);
    words_.description = describe(call_);
    const auto p = static_cast<std::size_t>(context_.size()), mine = static_cast<std::size_t>(context_.rank());
    auto& values = words_.given;
    values.assign(4 + 2 * p, Agreement::none);
    const bool gets = call_.kind != PatternKind::broadcast && (call_.kind != PatternKind::reduce || context_.rank() == call_.root);
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
        exchange_->main().mark_failed();
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
            if (!agreement_->advance()) return false;
            agreement_->raise();
            prepare();
            if (call_.keep)
                stage_ = Stage::over;
            else
                begin();
            if (plan_.algorithm != Algorithm::native) leave_line();
            return true;
        case Stage::running: {
            const bool native = plan_.algorithm == Algorithm::native;
            if (native ? !run_native() : !transfer_->execution().advance()) return false;
            ran_ = !native;
            stage_ = Stage::over;
            if (call_.op != Reduction::user || native) return true;
            Statement mine;
            if (transfer_->execution().outcome().failure) mine = {Statement::Kind::kernel, call_.user.failure(), ""};
            agreement_.emplace(*port_, exchange_->tag(tag_), mine, std::vector<std::int64_t>{});
            stage_ = Stage::ending;
            return true;
        }
        case Stage::ending:
            if (!agreement_->advance()) return false;
            stage_ = Stage::over;
            agreement_->raise();
            return true;
        case Stage::over: break;
    }
    return true;
}

// What all ranks have said, together.
PatternProblem PatternOperation::problem() const {
    PatternProblem q;
    q.kind = call_.kind;
    q.ranks = context_.size();
    q.root = has_parts(q.kind) ? 0 : call_.root;
    q.rows = call_.in.rows;
    q.item_bytes = call_.in.item_bytes();
    q.block = call_.block;
    if (has_parts(q.kind))
        for (int r = 0; r < q.ranks; ++r) q.columns.push_back(agreement_->value(2 + static_cast<std::size_t>(r)));
    else
        q.columns = {call_.in.cols};
    // Of the whole matrix: the least and the most that any rank has given.
    std::int64_t least = call_.in.cols, most = least;
    if (q.kind == PatternKind::spread) {
        const bool given = agreement_->value(static_cast<std::size_t>(2 + 2 * q.ranks)) != Agreement::none;
        least = given ? agreement_->value(static_cast<std::size_t>(2 + 2 * q.ranks)) : q.total_columns();
        most = given ? -agreement_->value(static_cast<std::size_t>(3 + 2 * q.ranks)) : q.total_columns();
    }
    if (least != q.total_columns() || most != q.total_columns())
        throw ConfigError(std::string(to_string(q.kind)) + ": the ranks' parts have " + std::to_string(q.total_columns()) +
                          " columns together, the whole matrix " + std::to_string(least == q.total_columns() ? most : least) + "; they must be equal");
    return q;
}

// A part in its own place inside the whole matrix is moved by not moving it; anywhere else it
// would be overwritten while it is read.
void PatternOperation::check_places(const PatternProblem& q) const {
    for (std::int64_t r = 0, first = 0; r < q.ranks && has_parts(q.kind); first += q.columns[static_cast<std::size_t>(r++)]) {
        const std::int64_t inside = agreement_->value(static_cast<std::size_t>(2 + q.ranks + r));
        if (inside != Agreement::none && (q.block > 0 || (inside != first && q.columns[static_cast<std::size_t>(r)] > 0)))
            throw ConfigError(std::string(to_string(q.kind)) + ": on rank " + std::to_string(r) + " the part lies in the whole matrix at column " +
                              std::to_string(inside) + "; allowed: apart from it" + (q.block ? "" : ", or at its own column " + std::to_string(first)));
    }
    if (call_.op == Reduction::user && call_.request.algorithm == Algorithm::native)
        throw ConfigError(std::string(to_string(q.kind)) + ": algorithm 'mpi' was given with a function; allowed: the other algorithms");
}

void PatternOperation::take_tag() {
    tag_ = first_data + static_cast<int>(number % turns);
    if (!call_.keep) return;
    const std::int64_t kept = -agreement_->value(1);
    exchange_->kept = std::max(exchange_->kept, kept + 1);
    if (kept >= exchange_->operation_tags() - first_kept)
        throw ConfigError("this context has had " + std::to_string(kept) + " patterns with start=False, the most there can be; make a new context");
    tag_ = first_kept + static_cast<int>(kept);
}

// All ranks come to the same here: what was agreed, rank 0's numbers and nothing else decide.
void PatternOperation::prepare() {
    words_.agreed = agreement_->values();
    words_.agreed[1] = 0;  // the number of kept calls makes no difference to the transfer
    const bool again = transfer_ && transfer_->words().agreed == words_.agreed;
    const PatternProblem q = again ? transfer_->problem() : problem();
    if (call_.allocate) call_.out = call_.allocate(q.total_columns());
    if (!again) {
        check_places(q);
        PatternConditions conditions;
        conditions.contiguous = agreement_->value(0) == 1;
        conditions.native = port_->native();
        plan_ = make_pattern_plan(q, call_.request, conditions, context_.machine());
    } else {
        plan_ = transfer_->plan();
    }
    take_tag();
    native_.columns = q.columns;
    planned_ = true;
    if (plan_.algorithm == Algorithm::native) return;
    if (!transfer_ || !transfer_->fits(words_.agreed, call_))
        transfer_ = std::make_shared<PatternTransfer>(context_, words_, q, plan_, call_);
    transfer_->aim(call_, exchange_->tag(tag_));
    staged_ = transfer_->buffer_bytes();
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
    if (plan_.algorithm == Algorithm::native) enter_line();
    begin();
}

namespace {

void copy_matrix(const MatrixView& to, const MatrixView& from) {
    const std::int64_t item = from.item_bytes();
    copy_box(to.data, {to.row_stride_bytes, item}, from.data, {from.row_stride_bytes, item}, {from.rows, from.cols}, item);
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
        for_parts(call_.in, native_.columns, given_.data(), [](const MatrixView& part, const MatrixView& to) { copy_matrix(to, part); });
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
    port_->post_native(0, native_);
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
            for_parts(call_.out, native_.columns, got_.data(), [](const MatrixView& part, const MatrixView& from) { copy_matrix(part, from); });
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
    port_->poll(done_);
    if (done_.empty()) return false;
    take_native();
    return true;
}

PatternHandle start_pattern(Context& context, PatternCall call) {
    InsideReduction::refuse();
    context.transport().must_work();
    const bool keep = call.keep;
    auto& exchange = *context.exchange();
    // The operation that had this one's tags must be over.
    wait_until(context, [&] { return exchange.oldest() > exchange.started - turns; }, [] { return "an earlier pattern"; });
    auto operation = std::make_shared<PatternOperation>(context, std::move(call));
    exchange.add(operation);
    PatternHandle handle(operation);
    if (keep) handle.wait();
    return handle;
}

bool PatternHandle::test() {
    if (!operation_->over()) operation_->exchange()->progress();
    if (!operation_->over()) return false;
    operation_->raise();
    return true;
}

void PatternHandle::wait() {
    wait_until(operation_->context(), [&] { return operation_->over(); }, [&] { return operation_->name(); });
    operation_->raise();
}

void PatternHandle::start() {
    operation_->start();
    operation_->exchange()->add(operation_);
}

void PatternHandle::run() {
    operation_->start();
    if (!operation_->advance()) {
        operation_->exchange()->add(operation_);
        wait();
    }
    operation_->raise();
}

const PatternPlan& PatternHandle::plan() const { return operation_->plan(); }
std::int64_t PatternHandle::buffer_bytes() const { return operation_->buffer_bytes(); }
double PatternHandle::time_s() const { return operation_->time_s(); }

void complete(Context& context) {
    wait_until(context, [&] { return !context.exchange()->busy(); }, [] { return "what is in flight, at the end of its context"; });
}

}  // namespace tilewave
