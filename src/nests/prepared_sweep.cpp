#include "nests/prepared_sweep.hpp"

#include <algorithm>
#include <utility>

#include "arrays/converted_array.hpp"
#include "nests/bound_sweep.hpp"
#include "problem/bounded_loops.hpp"
#include "problem/rolling_window.hpp"

namespace tilewave {

using namespace tuning;

namespace {

SweepProblem completed(SweepProblem problem) {
    problem.complete();
    return problem;
}

}  // namespace

PreparedSweep::PreparedSweep(Context& context, SweepProblem problem, Plan plan)
    : context_(context),
      problem_(completed(std::move(problem))),
      plan_(std::move(plan)),
      schedule_(nest_schedule(problem_, plan_, context.rank(), context.size())),
      waves_(nest_waves(problem_, plan_)),
      points_(BoundedLoops{problem_.space, problem_.bounds}.points()) {
    for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a)
        orders_.push_back(in_window(a) ? 0 : memory_orders(problem_, plan_, a, context.size()));
    for (const Message& m : schedule_.messages)
        if (m.tag > context.transport().max_tag())
            throw ConfigError("the plan makes " + std::to_string(m.tag) +
                              " and more messages between two ranks, this MPI has "
                              "tags up to " +
                              std::to_string(context.transport().max_tag()) + "; take larger tiles or chunks");
    if (!has_tasks(plan_) && only_nest(schedule_).window.along >= 0)
        window_ = std::make_unique<RollingWindow>(schedule_);
}

PreparedSweep::~PreparedSweep() = default;

void PreparedSweep::prepare_steps(std::int64_t steps) {
    const StepBlocks blocks = StepBlocks::of(problem_, plan_, steps);
    const bool in_time = std::ranges::all_of(
        problem_.accesses, [&](const Access& p) { return !p.writes || problem_.arrays[p.array].time_buffers > 0; });
    const bool even = std::ranges::all_of(problem_.bounds, [](const Bound& b) { return b.coefficients[0] == 0; });
    if (!in_time || !even || window_)
        throw ConfigError("prepare_steps: the problem's first loop is no time that blocks of steps could be cut from");
    if (blocks.rest > 0) (void)rest_of(blocks.rest);
    repeated(blocks);
}

std::shared_ptr<const RestOfSteps> PreparedSweep::rest_of(std::int64_t steps) {
    if (!rest_ || rest_->extent() != steps)
        rest_ = std::make_shared<RestOfSteps>(problem_, plan_, steps, context_.rank(), context_.size());
    return rest_;
}

Report PreparedSweep::run(std::span<const RunArray> arrays, const Kernel& kernel,
                          const std::function<std::string(const Failure&)>& explain, std::optional<std::int64_t> steps,
                          const CallTimes& before, std::int64_t first_step, std::span<const StepPoints> points,
                          std::span<const WholeField> whole) {
    return BoundSweep(context_, *this, {arrays.begin(), arrays.end()}, kernel, explain, {whole.begin(), whole.end()})
        .run_recorded(steps, before, first_step, points);
}

PreparedSweep& PreparedSweep::widened(const LeastHalos& halos) {
    const int last = problem_.dims() - 1;
    bool rows = plan_.storage == StorageKind::plain && plan_.row.n == 0 && !window_ && !has_tasks(plan_);
    for (const NestArray& a : problem_.arrays)  // bytes to the next point of a row do not depend on halos
        rows = rows && a.scale.n == 0 &&
               (a.replicated || std::ranges::find(a.axes, last) == a.axes.end() || a.axes[a.axes.n - 1] == last);
    if (!rows) return *this;
    const auto found = std::ranges::find(wider_, halos, [](const auto& one) { return one.first; });
    if (found != wider_.end()) return *found->second;
    SweepProblem problem = problem_;
    widen(problem, halos);
    auto made = std::make_unique<PreparedSweep>(context_, std::move(problem), plan_);
    if (wider_.size() >= most_kept_rests) wider_.erase(wider_.begin());
    return *wider_.emplace_back(halos, std::move(made)).second;
}

const Schedule* PreparedSweep::repeated(const StepBlocks& blocks) {
    // Between single steps a run may look after what no point writes.
    if (blocks.whole < 2 || problem_.space.extent(0) == 1) return nullptr;
    if (!repeated_) repeated_ = std::make_unique<Schedule>(repeated_block(problem_, schedule_));
    return repeated_.get();
}

std::int64_t PreparedSweep::bytes() const {
    const auto of = [](const auto& list) { return static_cast<std::int64_t>(list.size() * sizeof list[0]); };
    std::int64_t bytes =
        static_cast<std::int64_t>(sizeof *this) + of(schedule_.tiles) + of(schedule_.messages) + of(schedule_.buffers);
    for (const auto& lane : schedule_.lanes) bytes += of(lane);
    return repeated_ ? 2 * bytes : bytes;
}

std::vector<std::int64_t> PreparedSweep::initial(int a) const {
    std::vector<std::int64_t> result;
    if (!window_) return result;
    const std::vector<std::int64_t> z = window_->elements(a);
    const NestArray& n = problem_.arrays[a];
    const Index shift = problem_.shift(a);
    const IndexMatrix back = inverse(problem_.loops);
    const auto dims = static_cast<std::size_t>(problem_.dims());
    for (std::size_t i = 0; i < z.size(); i += dims) {
        const Index x = back * Index(std::span(z).subspan(i, dims));
        for (auto k : n.axes) result.push_back(x[static_cast<int>(k)] + shift[static_cast<int>(k)]);
    }
    return result;
}

// Memory that is whole on the one rank is used where it lies, unless the plan wants rows of it that are not there,
// several time buffers, or elements beyond its ends: what a periodic loop reads there, of this array or of another.
bool PreparedSweep::copied(int a, const RunArray& array) const {
    const NestArray& n = problem_.arrays[a];
    if (array.field || n.scale.n) return false;
    const Layout stored = layout(problem_, plan_, a);
    if (stored.storage(0) != stored.whole()) return true;
    return !n.replicated &&
           (plan_.storage == StorageKind::skewed || lies_in_boxes(problem_, plan_, a) || n.time_buffers > 1);
}

bool PreparedSweep::lies_as_planned(int a, const RunArray& array) const {
    return array.field || problem_.arrays[a].scale.n || copied(a, array);
}

double PreparedSweep::conversion_s(std::span<const RunArray> arrays) const {
    if (arrays.size() != problem_.arrays.size())
        throw ConfigError("conversion_s: " + std::to_string(arrays.size()) + " arrays given, the nest has " +
                          std::to_string(problem_.arrays.size()));
    double seconds = 0;
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
        const RunArray& array = arrays[a];
        if (in_window(a) || !copied(a, array)) continue;
        const NestArray& n = problem_.arrays[a];
        const MemoryOrder order = memory_order(problem_, plan_, a, context_.rank());
        ConvertedArray converted(context_, a, array.whole, n, layout(problem_, plan_, a), order,
                                 std::max(n.time_buffers, 1));
        seconds += converted.copy_s(context_, problem_);
    }
    return seconds;
}

// Where array `a` lies in a field that it is, or is every so many elements of. @pre the field lies as the plan wants
Binding PreparedSweep::in_field(int a, FieldStorage& field) const {
    const NestArray& n = problem_.arrays[a];
    if (n.scale.n == 0) return field.binding();
    const MemoryOrder order = memory_order(problem_, plan_, a, context_.rank());
    Binding memory{field.data() + order.first * n.item_bytes, order.stride};
    for (auto& s : memory.stride_bytes.v) s *= n.item_bytes;
    return memory;
}

// From an array's dimensions to z coordinates: the address of the schedule's storage.lo.
Binding PreparedSweep::to_loops(int a, const Binding& memory, const Index& first, bool mirrored) const {
    const NestArray& n = problem_.arrays[a];
    const Box& storage = schedule_.arrays[a].storage;
    const Index shift = problem_.shift(a);
    Index x_stride = Index::filled(problem_.dims(), 0);
    std::int64_t at = 0;
    for (int d = 0; d < n.axes.n; ++d) {
        const int k = static_cast<int>(n.axes[d]);
        const bool back = mirrored && k == 0;
        x_stride[k] += back ? -memory.stride_bytes[d] : memory.stride_bytes[d];
        at += memory.stride_bytes[d] * ((back ? n.shape[d] - 1 - shift[k] : shift[k]) - first[d]);
    }
    Binding b;
    b.stride_bytes = x_stride * inverse(problem_.loops);
    for (int k = 0; k < problem_.dims(); ++k) at += b.stride_bytes[k] * storage.lo[k];
    b.data = reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(memory.data) + at);
    return b;
}

}  // namespace tilewave
