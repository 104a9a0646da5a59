#include "dense/matrix_run.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "context/plans_only.hpp"
#include "measure/task_rates.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

ScheduleReport MatrixRun::run(const std::vector<Binding>& matrices) {
    ScheduleReport report = ready_.run(moving_->with(matrices));
    if (report.interrupted) throw Interrupted("a rank was interrupted");
    return report;
}

std::vector<OperationRate> on_fastest(std::vector<OperationRate> rates, const Machine& machine) {
    for (OperationRate& rate : rates) rate.call_s *= machine.speed(0), rate.amount_s *= machine.speed(0);
    return rates;
}

std::function<Prediction()> prediction_of(
    Context& context, std::function<Schedule(int rank)> schedule_of,
    std::function<std::vector<OperationRate>(const std::vector<Schedule>&)> rates) {
    if (context.rank() != 0) return {};
    return [schedule_of = std::move(schedule_of), rates = std::move(rates), machine = context.machine(),
            ranks = context.size(), threads = context.threads()] {
        std::vector<Schedule> parts;
        for (int rank = 0; rank < ranks; ++rank) parts.push_back(schedule_of(rank));
        PredictOptions options;
        options.threads = threads;
        return predict(parts, machine, Rates({KernelRate()}, on_fastest(rates(parts), machine)), options);
    };
}

FactorRun::FactorRun(Context& context, PanelWorks works, Gives gives, std::int64_t rows,
                     std::shared_ptr<MovingMemory> moving)
    : context_(context),
      works_(std::move(works)),
      gives_(gives),
      found_(std::make_shared<FactorInfo>()),
      pivots_(gives == Gives::pivots ? static_cast<std::size_t>(rows) : 0),
      room_(2 * pivots_.size()),
      run_(context, works_.schedule_of(context.rank()), factor_tasks(works_.library, works_.type, found_, works_.rows),
           std::move(moving)) {}

FactorReport FactorRun::run(const std::vector<Binding>& matrices, const std::string& moved, std::int64_t copies_bytes) {
    found_->forget();
    FactorReport report{run_.run(matrices), works_.plan, moved, copies_bytes + panels_bytes(), {}};
    report.prediction = prediction_of(
        context_, works_.schedule_of,
        [library = works_.library, type = works_.type, rows = static_cast<int>(works_.plan.grid[0])](
            const std::vector<Schedule>& parts) { return factor_task_rates(library, type, parts, rows); });
    if (gives_ != Gives::nothing) share_info();
    return report;
}

void FactorRun::share_info() {
    if (plans_only(context_)) {
        std::iota(pivots_.begin(), pivots_.end(), std::int64_t{0});
        info_ = 0;
        return;
    }
    Transport& t = context_.transport();
    std::int64_t first = found_->any() ? found_->first() : none, room[2];
    allreduce_min(t, {&first, 1}, room);
    info_ = first == none ? 0 : first;
    std::ranges::fill(pivots_, none);  // a rank knows those of the panels that it makes
    for (const auto& [row, other] : found_->pivots()) pivots_[row] = other;
    allreduce_min(t, pivots_, room_);
}

}  // namespace tilewave
