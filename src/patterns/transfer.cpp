#include "patterns/transfer.hpp"

#include <algorithm>

#include "context/waiting.hpp"
#include "patterns/tuning.hpp"

namespace tilewave {

using namespace tuning;

namespace {

bool combine_user(std::byte* into, const std::byte* left, const std::byte* right, std::int64_t n, void* env) {
    const InsideReduction here;
    return static_cast<const UserReduction*>(env)->combine(into, left, right, n);
}

}  // namespace

PatternTransfer::Key PatternTransfer::key(const PatternCall& c) {
    return {c.kind,
            c.in.rows,
            c.in.cols,
            c.in.row_stride_bytes,
            c.out.rows,
            c.out.cols,
            c.out.row_stride_bytes,
            c.in.type,
            c.out.type,
            c.root,
            c.op,
            c.block,
            c.part_inside,
            c.request.algorithm,
            c.request.chunk_bytes,
            c.request.buffers,
            bool(c.allocate),
            c.user_name,
            c.outer,
            c.caller.call};
}

PatternTransfer::PatternTransfer(Context& context, Compared compared, const PatternProblem& problem,
                                 std::shared_ptr<const PatternPlan> plan, const PatternCall& call)
    : compared_(std::move(compared)),
      problem_(problem),
      plan_(std::move(plan)),
      out_stride_(call.out.row_stride_bytes),
      port_(context.engine()->borrowed_port()),
      options_(context.options()) {
    options_.record = false;
    options_.heartbeat = nullptr;
    schedule_ =
        pattern_schedule(problem_, *plan_, context.rank(), {call.in.row_stride_bytes, call.out.row_stride_bytes}, 0);
    // A part in its place must not be written while it is sent, not even with what it holds.
    if (problem_.kind == PatternKind::spread && call.part_inside >= 0)
        std::erase_if(schedule_.lanes[0], [&](const Step& step) {
            return (step.op == Op::pack || step.op == Op::unpack) &&
                   schedule_.messages[step.item].peer == schedule_.rank;
        });
    for (const Array& array : schedule_.arrays) {
        Index stride = array.stride;
        for (int k = 0; k < stride.n; ++k) stride[k] *= problem_.item_bytes;
        bindings_.push_back({nullptr, stride});
    }
    combine_ = call.op == Reduction::user ? Combine{combine_user, nullptr, true}
                                          : Combine{combine_row(call.op, call.in.type), nullptr, false};
    if (call.op != Reduction::user && !without(options_.paths_off, FastPath::straight_combines))
        combine_.straight = straight_combines(schedule_);  // a function gets all of a step in one call
    execution_ = std::make_unique<Execution>(schedule_, bindings_, Computers{}, combine_, *port_, options_);
    if (call.keep) return;
    std::size_t all = problem_.columns.size();  // for the calls like this one
    const auto add = [&](std::int64_t value) { all = all * 31 + std::hash<std::int64_t>()(value); };
    std::ranges::for_each(compared_.agreed, add);
    std::ranges::for_each(problem_.columns, add);
    const auto number = static_cast<std::int64_t>(all >> 2) + 1;
    compared_.given[0] = number;
    compared_.given[1] = -number;
}

void PatternTransfer::set_tag_and_memory(PatternCall& call, int tag) {
    for (Message& m : schedule_.messages) m.tag = tag;
    const auto addresses = pattern_addresses(problem_, schedule_.rank, {call.in.data, call.out.data});
    for (std::size_t a = 0; a < bindings_.size(); ++a) bindings_[a].data = addresses[a];
    if (call.op == Reduction::user) combine_.env = &call.user;
    execution_->restart();
}

std::shared_ptr<PatternTransfer> PatternTransfer::take(ProgressEngine& engine, const Key& key) {
    auto& [lock, idle] = engine.transfers;
    std::scoped_lock guard(lock);
    for (auto at = idle.rbegin(); at != idle.rend(); ++at)
        if ((*at)->compared_.key == key) {
            auto found = std::move(*at);
            idle.erase(std::next(at).base());
            return found;
        }
    return nullptr;
}

void PatternTransfer::give_back(ProgressEngine& engine, std::shared_ptr<PatternTransfer> transfer) {
    auto& [lock, idle] = engine.transfers;
    std::scoped_lock guard(lock);
    idle.push_back(std::move(transfer));
    std::int64_t bytes = 0;
    for (const auto& t : idle) bytes += t->buffer_bytes();
    while (!idle.empty() && (idle.size() > most_idle || bytes > most_idle_bytes)) {
        bytes -= idle.front()->buffer_bytes();
        idle.erase(idle.begin());
    }
}

}  // namespace tilewave
