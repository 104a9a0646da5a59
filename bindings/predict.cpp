// Schedules simulated with a machine's numbers.
#include "tilewave/engine/predict.hpp"

#include <cstdio>

#include "casters.hpp"
#include "core/clock.hpp"
#include "generate/sweep/sweep.hpp"

namespace {

// Seconds that predict() alone takes for the schedules of all ranks, and their steps.
std::pair<std::int64_t, std::vector<double>> predict_times(const SweepProblem& problem, const Plan& plan,
                                                           const Machine& machine, bool record, int times) {
    std::vector<Schedule> schedules;
    std::int64_t ranks = 1, steps = 0;
    for (auto g : plan.grid) ranks *= g;
    for (int r = 0; r < ranks; ++r) steps += schedules.emplace_back(sweep(problem, plan, r)).steps();
    std::vector<double> seconds;
    for (int i = 0; i < times; ++i) {
        const double begin = now_s();
        predict(schedules, machine, {}, {PredictOptions().poll_period_s, record});
        seconds.push_back(now_s() - begin);
    }
    return {steps, seconds};
}

}  // namespace

void bind_predict(nb::module_& m) {
    nb::class_<KernelRate>(m, "KernelRate",
                           "What a kernel takes on one lane while all lanes of the host compute; seconds.")
        .def(
            "__init__",
            [](KernelRate* r, double point_s, double row_s, double tile_s, double spread, double one_lane_factor,
               int lanes) { new (r) KernelRate{point_s, row_s, tile_s, spread, one_lane_factor, lanes}; },
            "point_s"_a = KernelRate().point_s, "row_s"_a = KernelRate().row_s, "tile_s"_a = KernelRate().tile_s,
            "spread"_a = 0.0, "one_lane_factor"_a = 0.0, "lanes"_a = 0)
        .def_rw("point_s", &KernelRate::point_s)
        .def_rw("row_s", &KernelRate::row_s)
        .def_rw("tile_s", &KernelRate::tile_s)
        .def_rw("spread", &KernelRate::spread)
        .def_rw("one_lane_factor", &KernelRate::one_lane_factor)
        .def_rw("lanes", &KernelRate::lanes);
    nb::class_<Parts>(m, "Parts", "Where the time of a run went: averages over all lanes, in seconds.")
        .def_ro("total_s", &Parts::total_s)
        .def_ro("fill_s", &Parts::fill_s)
        .def_ro("compute_s", &Parts::compute_s)
        .def_ro("pack_s", &Parts::pack_s)
        .def_ro("post_s", &Parts::post_s)
        .def_ro("wait_s", &Parts::wait_s)
        .def_ro("hand_over_s", &Parts::hand_over_s)
        .def_ro("drain_s", &Parts::drain_s)
        .def("__repr__", [](const Parts& p) {
            char text[240];
            std::snprintf(text, sizeof text,
                          "Parts(total_s=%.6g, fill_s=%.6g, compute_s=%.6g, pack_s=%.6g, post_s=%.6g, wait_s=%.6g, "
                          "hand_over_s=%.6g, drain_s=%.6g)",
                          p.total_s, p.fill_s, p.compute_s, p.pack_s, p.post_s, p.wait_s, p.hand_over_s, p.drain_s);
            return std::string(text);
        });
    nb::class_<Prediction>(m, "Prediction", "What a run would take.")
        .def_ro("time_s", &Prediction::time_s)
        .def_ro("parts", &Prediction::parts)
        .def_ro("timeline", &Prediction::timeline);
    m.def("parts", &parts, "timeline"_a, "The parts of a timeline that has all ranks' events.");
    m.def(
        "predict",
        [](const std::vector<Schedule>& schedules, const Machine& machine, const KernelRate& rate, double poll_period_s,
           bool record) {
            nb::gil_scoped_release release;
            return predict(schedules, machine, rate, {poll_period_s, record});
        },
        "schedules"_a, "machine"_a, "rate"_a, "poll_period_s"_a = PredictOptions().poll_period_s, "record"_a = true,
        "What running the schedules of all ranks takes, by event simulation.");
    m.def(
        "tile_work",
        [](const Schedule& schedule) {
            const std::vector<std::pair<std::int64_t, std::int64_t>> work = tile_work(schedule);
            return work;
        },
        "schedule"_a, "(rows, points) of each tile of a schedule.");
    m.def("predict_times", &predict_times, "problem"_a, "plan"_a, "machine"_a, "record"_a, "times"_a, Release(),
          "(steps of all ranks, seconds of each prediction).");
}
