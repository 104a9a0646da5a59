// Schedules simulated with a machine's numbers.
#include "tilewave/engine/predict.hpp"

#include "casters.hpp"

void bind_predict(nb::module_& m) {
    nb::class_<KernelRate>(m, "KernelRate",
                           "What a kernel takes on one lane while all lanes of the host compute; seconds.")
        .def(Made<double, double, double, double, double, int>(), "point_s"_a = KernelRate().point_s,
             "row_s"_a = KernelRate().row_s, "tile_s"_a = KernelRate().tile_s, "spread"_a = 0.0,
             "one_lane_factor"_a = 0.0, "lanes"_a = 0)
        .def(READ_WRITE(point_s, row_s, tile_s, spread, one_lane_factor, lanes));
    nb::class_<Parts>(m, "Parts", "Where the time of a run went: averages over all lanes, in seconds.")
        .def(READ_ONLY(total_s, fill_s, compute_s, pack_s, post_s, wait_s, hand_over_s, drain_s));
    nb::class_<Prediction>(m, "Prediction", "What a run would take.").def(READ_ONLY(time_s, parts, timeline));
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
    m.def("tile_work", &tile_work, "schedule"_a, "(rows, points) of each tile of a schedule.");
}
