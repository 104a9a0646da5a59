#include "dense/matrix_run.hpp"

#include <algorithm>
#include <utility>

namespace tilewave {

FactorRun::FactorRun(Context& context, Schedule schedule, std::shared_ptr<const Blas> library, Dtype type, Tells tells,
                     std::int64_t rows, std::shared_ptr<MovingMemory> moving)
    : context_(context),
      tells_(tells),
      found_(std::make_shared<FactorInfo>()),
      pivots_(tells == Tells::pivots ? static_cast<std::size_t>(rows) : 0),
      room_(2 * pivots_.size()),
      run_(context, std::move(schedule), factor_tasks(std::move(library), type, found_), std::move(moving)) {}

ScheduleReport FactorRun::run(const std::vector<Binding>& matrices) {
    found_->forget();
    ScheduleReport report = run_.run(matrices);
    if (tells_ == Tells::nothing) return report;
    Transport& t = context_.transport();
    std::int64_t first = found_->any() ? found_->first() : none, room[2];
    allreduce_min(t, {&first, 1}, room);
    info_ = first == none ? 0 : first;
    std::ranges::fill(pivots_, none);  // a rank knows those of its own panels
    for (const auto& [row, other] : found_->pivots()) pivots_[static_cast<std::size_t>(row)] = other;
    allreduce_min(t, pivots_, room_);
    return report;
}

}  // namespace tilewave
