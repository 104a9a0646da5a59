// Schedules that programs make: run with Python functions as tasks, and predicted.
#include "casters.hpp"
#include "data/rows.hpp"
#include "run/run_schedule.hpp"
#include "tilewave/engine/check.hpp"
#include "tilewave/engine/predict.hpp"

namespace {

using Places = std::vector<std::pair<std::uintptr_t, Index>>;  // address of storage.lo, bytes between neighbours

std::vector<Binding> bindings_of(const Places& places) {
    std::vector<Binding> all;
    for (const auto& [address, strides] : places) all.push_back({reinterpret_cast<std::byte*>(address), strides});
    return all;
}

// By array the names of an operation and a dtype; "" where no steps combine its values.
using Names = std::vector<std::pair<std::string, std::string>>;

std::vector<Combining> combinings_of(const Names& names) {
    std::vector<Combining> all;
    for (const auto& [op, type] : names) {
        Combining& c = all.emplace_back(Combining{Reduction::user, Dtype::f8});
        for (const Reduction r : {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max})
            if (op == to_string(r)) c.op = r;
        for (const Dtype d : all_dtypes)
            if (type == to_string(d)) c.type = d;
    }
    return all;
}

// What nests call: addresses of a row function and of its environment.
using Calls = std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;

std::vector<Kernel> kernels_of(const Calls& calls) {
    std::vector<Kernel> all;
    for (const auto& [row, env] : calls)
        all.push_back({reinterpret_cast<RowFunction>(row), reinterpret_cast<const void*>(env), true, {}, {}});
    return all;
}

// call(number, lane) runs a task; it gives None, or what went wrong as text, and does not raise.
TaskFunction task_of(const nb::callable& call) {
    return [&call](const TaskCall& task) {
        nb::gil_scoped_acquire gil;
        std::string error;
        try {
            const nb::object raised = call(task.number, task.lane);
            if (raised.is_none()) return;
            error = nb::cast<std::string>(raised);
        } catch (const std::exception& e) {  // its `except` was interrupted: a Python error ends with the GIL held
            error = e.what();
        }
        throw KernelError(error);
    };
}

class UsersRun {
public:
    UsersRun(Context& context, const Schedule& schedule, const Places& places, int operations, const Calls& calls,
             const Names& names, const nb::object& tasks, std::int64_t times)
        : bindings_(bindings_of(places)),
          call_(nb::cast<nb::callable>(tasks.attr("call"))),
          explain_(tasks.attr("explain")),
          operations_(static_cast<std::size_t>(operations), task_of(call_)),
          kernels_(kernels_of(calls)),
          combinings_(combinings_of(names)) {
        const auto explain = [this](int kernel, const Failure& f) {
            nb::gil_scoped_acquire gil;
            return nb::cast<std::string>(explain_(kernel, f.site, f.point));
        };
        const ScheduleCalls all{operations_, kernels_, combinings_, explain};
        check_run(context, schedule, bindings_, all, times);
        ready_.emplace(context, schedule, all, times);
    }
    ScheduleReport run() { return ready_->run(bindings_); }

private:
    std::vector<Binding> bindings_;
    nb::callable call_;
    nb::object explain_;
    std::vector<TaskFunction> operations_;
    std::vector<Kernel> kernels_;
    std::vector<Combining> combinings_;
    std::optional<ReadySchedule> ready_;
};

}  // namespace

void bind_run(nb::module_& m) {
    nb::class_<OperationRate>(m, "OperationRate", "What an operation takes on one lane, in seconds.")
        .def(Made<double, double>(), "call_s"_a = OperationRate().call_s, "amount_s"_a = OperationRate().amount_s)
        .def(READ_WRITE(call_s, amount_s));
    nb::class_<ScheduleReport>(m, "ScheduleReport", "How a run of a schedule went.")
        .def(READ_ONLY(time_s, interrupted, parts, timeline));
    m.def(
        "predict_works",
        [](const std::vector<Schedule>& schedules, const Machine& machine, const std::vector<KernelRate>& kernels,
           const std::vector<OperationRate>& operations, int threads, std::int64_t times, double poll_period_s) {
            nb::gil_scoped_release release;
            return predict(schedules, machine, Rates(kernels, operations), {poll_period_s, true, threads, times});
        },
        "schedules"_a, "machine"_a, "kernels"_a, "operations"_a, "threads"_a = 0, "times"_a = 1,
        "poll_period_s"_a = PredictOptions().poll_period_s, "As predict, with a rate for each kernel and operation.");
    nb::class_<UsersRun>(m, "ReadySchedule",
                         "A user's schedule with all that its run takes beyond the arrays; making it is local.")
        .def(nb::init<Context&, const Schedule&, const Places&, int, const Calls&, const Names&, const nb::object&,
                      std::int64_t>(),
             "context"_a, "schedule"_a, "places"_a, "operations"_a, "kernels"_a, "combinings"_a, "tasks"_a,
             "times"_a = 1, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
             "tasks.call runs a task, tasks.explain gives the text of what a kernel has raised.")
        .def("run", &UsersRun::run, Release(), "Collective.");
    m.def(
        "combines",
        [](const std::string& op, const std::string& type) {
            const Combining c = combinings_of({{op, type}})[0];
            return c.op != Reduction::user && to_string(c.type) == type && combine_row(c.op, c.type) != nullptr;
        },
        "op"_a, "dtype"_a, "Whether combine steps have this operation for this dtype.");
    m.def(
        "compare_messages",
        [](Context& context, const Schedule& schedule) { compare_messages(context.transport(), schedule); },
        "context"_a, "schedule"_a, Release(), "Raises on every rank where messages do not meet; collective.");
}
