#include "measure/task_rates.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "core/clock.hpp"
#include "execute/blas/factor_tasks.hpp"
#include "generate/linalg/factor.hpp"
#include "measure/cold_caches.hpp"
#include "measure/tuning.hpp"
#include "schedule/operations.hpp"
#include "tilewave/dtype.hpp"
#include "tilewave/engine/layout.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

namespace {

// Small numbers, and a diagonal that is larger than the rest of its row: no factorization fails.
template <class T>
void fill(T* at, const Box& box, const Index& stride, std::int64_t parts) {
    const int dims = box.dims(), row = dims == 2 ? 0 : 2, column = dims == 2 ? 1 : 3;
    std::uint32_t seed = 12345;
    Index zero = box.lo;
    Box counted = box;
    for (int k = 0; k < dims; ++k) zero[k] = 0, counted.lo[k] = 0, counted.hi[k] = box.extent(k);
    Index i = zero;
    do {
        std::int64_t offset = 0;
        for (int k = 0; k < dims; ++k) offset += i[k] * stride[k];
        for (std::int64_t part = 0; part < parts; ++part) {
            seed = seed * 1664525u + 1013904223u;
            at[offset * parts + part] = static_cast<T>(static_cast<double>(seed >> 8) * 0x1p-24 * 1e-2);
        }
        if (i[row] == i[column]) at[offset * parts] = static_cast<T>(counted.extent(row) + 1);
    } while (next_point(i, counted));
}

// A region in separate memory, with the strides of its array.
class Sample {
public:
    Sample(const Array& array, const Region& region, Dtype type) : type_(type), array_(region.array) {
        view_.box = region.box;
        view_.item_bytes = array.item_bytes;
        const Box& box = region.box;
        stride_ = box.lo;
        std::int64_t items;
        if (box.dims() == 2) {
            const std::int64_t high = std::max<std::int64_t>(array.storage.extent(0), box.extent(0));
            stride_[0] = 1;
            stride_[1] = high;
            items = high * box.extent(1);
        } else {
            items = 1;
            for (int k = box.dims() - 1; k >= 0; --k) stride_[k] = items, items *= box.extent(k);
        }
        memory_.resize(std::max<std::int64_t>(1, items) * array.item_bytes);
        view_.data = memory_.data();
        view_.stride_bytes = stride_;
        for (int k = 0; k < box.dims(); ++k) view_.stride_bytes[k] *= array.item_bytes;
        renew();
    }
    Sample(const Sample& other) : Sample(other.type_, other.array_, other.stride_, other.memory_, other.view_) {}
    Sample(Sample&&) = default;
    bool holds(const Region& region) const { return region.array == array_ && region.box == view_.box; }
    const RegionView& view() const { return view_; }
    void renew() {
        if (view_.box.empty()) return;
        const std::int64_t parts = is_complex(type_) ? 2 : 1;
        if (type_ == Dtype::f4 || type_ == Dtype::c8)
            fill(reinterpret_cast<float*>(view_.data), view_.box, stride_, parts);
        else
            fill(reinterpret_cast<double*>(view_.data), view_.box, stride_, parts);
    }
    // As a panel's pivots for `rows` rows.
    void make_pivots(std::int64_t rows) {
        int* at = reinterpret_cast<int*>(view_.data);
        for (std::int64_t i = 0; i < std::min(rows, view_.box.extent(3)); ++i)
            at[i] = static_cast<int>(i + 1 + (rows - 1 - i) / 2);
    }

private:
    Sample(Dtype type, std::int32_t array, const Index& stride, std::vector<std::byte> memory, const RegionView& view)
        : type_(type), array_(array), stride_(stride), memory_(std::move(memory)), view_(view) {
        view_.data = memory_.data();
    }

    Dtype type_;
    std::int32_t array_;
    Index stride_;
    std::vector<std::byte> memory_;
    RegionView view_;
};

// Its regions, some times over but for panels: these are in the cache when block columns meet them one after another.
struct Samples {
    std::vector<Sample> panels;
    std::vector<std::vector<Sample>> matrices;
    const Sample& find(std::size_t turn, const Region& region) const {
        for (const std::vector<Sample>* some : {&panels, &matrices[turn]})
            for (const Sample& one : *some)
                if (one.holds(region)) return one;
        throw InternalError("a region that has no sample");
    }
};

Samples samples_of(const Schedule& s, const TaskWork& task, Dtype type) {
    std::vector<Sample> panels, one;
    for (const std::vector<Region>* regions : {&task.reads, &task.writes})
        for (const Region& region : *regions) {
            const Array& array = s.arrays[region.array];
            std::vector<Sample>& some = array.time_buffers > 0 ? panels : one;
            if (std::ranges::any_of(some, [&](const Sample& x) { return x.holds(region); })) continue;
            some.emplace_back(array, region, type);
        }
    return {std::move(panels), std::vector(static_cast<std::size_t>(tuning::timed_calls), one)};
}

double time_task(const std::shared_ptr<const Blas>& blas, Dtype type, const Schedule& s, const TaskWork& task,
                 int row_parts) {
    Samples samples = samples_of(s, task, type);
    sweep_caches(s.arrays[factor_matrix].storage.points() * s.arrays[factor_matrix].item_bytes);
    const bool pivots = task.operation == lu_row || task.operation == lu_swap || task.operation == lu_trade ||
                        task.operation == lu_drop || task.operation == lu_drop_solve;
    const bool fresh = speed_of(task.operation) == TaskSpeed::panel;
    std::vector<double> seconds;
    for (std::size_t turn = 0; turn < samples.matrices.size(); ++turn) {
        if (fresh)
            for (Sample& sample : samples.matrices[turn]) sample.renew();
        if (pivots) samples.panels.front().make_pivots(task.writes.back().box.extent(0) * row_parts);
        TaskCall call;
        call.amount = task.amount;
        for (const Region& region : task.reads) call.reads.push_back(samples.find(turn, region).view());
        for (const Region& region : task.writes) call.writes.push_back(samples.find(turn, region).view());
        const std::vector<TaskFunction> tasks =
            factor_tasks(blas, type, std::make_shared<FactorInfo>(), {Axis(1, row_parts, 1), 0});
        const double begin = cpu_s();
        tasks[task.operation](call);
        seconds.push_back(cpu_s() - begin);
    }
    seconds.erase(seconds.begin());  // the first one wakes the library
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2];
}

std::string key_of(const Blas& blas, Dtype type, const Schedule& s, const TaskWork& task, int row_parts) {
    std::string key =
        blas.path() + "|" + to_string(type) + "|" + std::to_string(task.operation) + "|" + std::to_string(row_parts);
    for (const std::vector<Region>* regions : {&task.reads, &task.writes})
        for (const Region& region : *regions) {
            key.append("|").append(std::to_string(s.arrays[region.array].storage.extent(0)));
            for (int k = 0; k < region.box.dims(); ++k) key.append(",").append(std::to_string(region.box.extent(k)));
        }
    return key;
}

double seconds_of(const std::shared_ptr<const Blas>& blas, Dtype type, const Schedule& s, const TaskWork& task,
                  int row_parts) {
    static std::mutex lock;
    static std::map<std::string, double> known;
    const std::string key = key_of(*blas, type, s, task, row_parts);
    {
        const std::scoped_lock guard(lock);
        if (const auto found = known.find(key); found != known.end()) return found->second;
    }
    const double seconds = time_task(blas, type, s, task, row_parts);
    const std::scoped_lock guard(lock);
    return known.emplace(key, seconds).first->second;
}

struct Found {
    const Schedule* schedule = nullptr;
    const TaskWork* task = nullptr;
};

// call_s + amount amount_s through both points, neither negative.
OperationRate rate_of(double small, double small_s, double large, double large_s) {
    const double whole = large_s / std::max(large, 1.0);
    if (large <= 1.5 * small) return {0, whole};
    const double slope = std::clamp((large_s - small_s) / (large - small), 0.5 * whole, whole);
    return {std::max(0.0, large_s - slope * large), slope};
}

}  // namespace

std::vector<OperationRate> factor_task_rates(const std::shared_ptr<const Blas>& blas, Dtype type,
                                             std::span<const Schedule> schedules, int row_parts) {
    std::vector<std::vector<Found>> by_operation(factor_task_count);
    for (const Schedule& s : schedules)
        for (const Work& work : s.works)
            if (const TaskWork* task = work.task()) by_operation[task->operation].push_back({&s, task});
    std::vector<OperationRate> rates(factor_task_count, OperationRate{1e-6, 1e-10});
    for (std::size_t operation = 0; operation < by_operation.size(); ++operation) {
        std::vector<Found>& all = by_operation[operation];
        if (all.empty() || operation == columns_left_out) continue;
        std::ranges::sort(all, {}, [](const Found& f) { return f.task->amount; });
        const auto from = [&](double amount) {
            return std::ranges::lower_bound(all, amount, {}, [](const Found& f) { return f.task->amount; });
        };
        auto large = from(tuning::timed_flops);
        if (large == all.end() || (large->task->amount > tuning::timed_flops && large != all.begin())) --large;
        const auto small = std::min(from(large->task->amount / 4), large);
        const double large_s = seconds_of(blas, type, *large->schedule, *large->task, row_parts);
        const double small_s = small->task->amount == large->task->amount
                                   ? large_s
                                   : seconds_of(blas, type, *small->schedule, *small->task, row_parts);
        rates[operation] = rate_of(small->task->amount, small_s, large->task->amount, large_s);
    }
    return rates;
}

PanelRates measured_panels(std::shared_ptr<const Blas> blas, Dtype type, const PanelProblem& problem) {
    // Panels ahead change no task.
    using Known =
        std::map<std::tuple<std::int64_t, std::int64_t, FactorAlgorithm, std::int64_t>, std::vector<OperationRate>>;
    return [blas = std::move(blas), type, problem, known = std::make_shared<Known>()](const FactorPlan& plan) {
        auto& found = (*known)[{plan.grid[0], plan.block, plan.algorithm, plan.chunk_bytes}];
        if (found.empty())
            found = factor_task_rates(blas, type, timed_schedules(problem, plan), static_cast<int>(plan.grid[0]));
        return found;
    };
}

}  // namespace tilewave
