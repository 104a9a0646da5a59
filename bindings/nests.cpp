// Planning nests whose kernels Python makes.
#include "casters.hpp"
#include "nests/choose_together.hpp"
#include "tilewave/nest.hpp"

namespace {

// What only ends the program, as a second Ctrl-C: it is no error of what it was raised in.
struct Ends {
    nb::python_error error;
};

template <class Call>
nb::object called(Call call) {
    try {
        return call();
    } catch (nb::python_error& e) {
        if (e.matches(PyExc_Exception)) throw;
        throw Ends{e};
    }
}

// What Python's maker has prepared for a plan; the thread that calls does not hold Python's lock.
class PythonNest final : public SampledNest {
public:
    PythonNest(nb::object maker, nb::object prepared, const Plan& plan)
        : maker_(std::move(maker)),
          prepared_(std::move(prepared)),
          plan_(plan),
          digest_(nb::cast<std::string>(prepared_.attr("kernel").attr("digest"))),
          vectors_(nb::cast<int>(prepared_.attr("kernel").attr("simd_rows_from")) > 0) {}
    ~PythonNest() override {
        nb::gil_scoped_acquire gil;
        maker_.reset();
        prepared_.reset();
    }
    const Plan& plan() const override { return plan_; }
    void start() override {
        nb::gil_scoped_acquire gil;
        called([&] { return prepared_.attr("kernel").attr("start")(); });
    }
    void compile() override {
        nb::gil_scoped_acquire gil;
        called([&] { return nb::object(prepared_.attr("kernel").attr("address")); });
    }
    std::vector<RateSample> sample(double budget_s) override {
        nb::gil_scoped_acquire gil;
        return nb::cast<std::vector<RateSample>>(called([&] { return maker_.attr("sample")(prepared_, budget_s); }));
    }
    double bringing_s() override {
        nb::gil_scoped_acquire gil;
        return nb::cast<double>(called([&] { return maker_.attr("bringing_s")(prepared_); }));
    }
    bool vectors() const override { return vectors_; }
    std::string digest() const override { return digest_; }
    nb::object prepared() const { return prepared_; }

private:
    nb::object maker_, prepared_;
    Plan plan_;
    std::string digest_;
    bool vectors_;
};

class PythonMaker final : public KernelMaker {
public:
    explicit PythonMaker(nb::object maker) : maker_(std::move(maker)) {}
    bool vectors_across(const SweepProblem& problem) override {
        nb::gil_scoped_acquire gil;
        return nb::cast<bool>(maker_.attr("vectors_across")(problem));
    }
    std::shared_ptr<SampledNest> prepare(const Alternative& alternative, const Plan& plan, SampledNest* like) override {
        nb::gil_scoped_acquire gil;
        const auto* other = dynamic_cast<PythonNest*>(like);
        nb::object prepared =
            called([&] { return maker_.attr("prepare")(alternative, plan, other ? other->prepared() : nb::none()); });
        return std::make_shared<PythonNest>(maker_, std::move(prepared), plan);
    }

private:
    nb::object maker_;  // which the caller holds
};

}  // namespace

void bind_nests(nb::module_& m) {
    nb::class_<PlanCall>(m, "PlanCall", "What a nest is called with, as far as plans follow from it.")
        .def(Made<SweepProblem, PlanRequest, std::optional<Plan>, double, std::string, std::string, bool,
                  std::optional<int>, double>(),
             nb::kw_only(), "problem"_a, "request"_a, "plan"_a.none(), "blocks"_a, "body"_a, "memory"_a, "in_place"_a,
             "lanes_here"_a.none(), "ran_s"_a = 0.0);
    nb::class_<Spending>(m, "Spending", "What planning a call has cost, of which budget.")
        .def(READ_ONLY(budget_s, spent_s, before_s, samples, settled))
        .def_ro("not_measured", &Spending::not_measured, nb::rv_policy::copy);
    nb::class_<RunsOfPlan>(m, "RunsOfPlan", "The runs of a plan so far, after which planning may spend more.")
        .def(nb::init<const Spending&, double>(), "spending"_a, "ran_s"_a)
        .def_rw("ran_s", &RunsOfPlan::ran_s)
        .def_rw("enough_s", &RunsOfPlan::enough_s, nb::arg().none())
        .def("enough", &RunsOfPlan::enough);
    nb::class_<ChosenPlan>(m, "ChosenPlan", "The best plan of all alternatives.")
        .def_ro("at", &ChosenPlan::at)
        .def_prop_ro("prepared", [](const ChosenPlan& c) { return dynamic_cast<PythonNest&>(*c.prepared).prepared(); })
        // Copies: what Python keeps of a plan must not keep the call's arrays.
        .def_ro("choice", &ChosenPlan::choice, nb::rv_policy::copy)
        .def_ro("rate", &ChosenPlan::rate, nb::rv_policy::copy)
        .def_ro("spending", &ChosenPlan::spending, nb::rv_policy::copy)
        .def_prop_ro("times", [](const ChosenPlan& c) {
            std::vector<std::tuple<Alternative, double, double>> all;
            for (const ChosenPlan::Time& t : c.times) all.emplace_back(t.alternative, t.time_s, t.bringing_s);
            return all;
        });
    m.def(
        "choose_together",
        [](Context& context, std::optional<PlanCall> call, nb::object maker) -> std::optional<ChosenPlan> {
            PythonMaker makes(std::move(maker));
            try {
                nb::gil_scoped_release release;
                return choose_together(context, call ? &*call : nullptr, makes);
            } catch (Ends& end) {
                throw nb::python_error(end.error);
            }
        },
        "context"_a, "call"_a.none(), "maker"_a,
        "The best plan for a call, measured on all ranks together; None where another rank has failed. Collective.");
    m.def(
        "nest_problem",
        [](const std::vector<std::tuple<Index, std::int64_t, bool, std::vector<Index>>>& given,
           const std::optional<Box>& over, const std::vector<int>& reverse, std::optional<std::int64_t> steps,
           const std::vector<int>& periodic) {
            std::vector<ArrayReads> arrays;
            for (const auto& [shape, item_bytes, written, offsets] : given)
                arrays.push_back({nullptr, item_bytes, shape, written, offsets});
            return nest_problem({.over = over, .reverse = reverse, .steps = steps, .periodic = periodic}, arrays)
                .problem;
        },
        "arrays"_a, "over"_a = nb::none(), "reverse"_a = std::vector<int>(), "steps"_a = nb::none(),
        "periodic"_a = std::vector<int>(), "The problem of a nest as C++ programs give it, for tests.");
    nb::class_<KnownRates>(m, "KnownRates", "What a context has measured of bodies.")
        .def("clear", [](KnownRates& k) { k.clear(); })
        .def("__len__", [](const KnownRates& k) { return k.size(); });
    nb::class_<RateStore>(m, "RateStore", "The rates on disk of a context's launch.")
        .def_rw("launch", &RateStore::launch, nb::arg().none())
        .def_rw("renewed_spread", &RateStore::renewed_spread);
    m.def(
        "rate_store", [](Context& context) -> RateStore& { return context.component<RateStore>(); }, "context"_a,
        nb::rv_policy::reference, nb::keep_alive<0, 1>());
    m.def(
        "known_rates", [](Context& context) -> KnownRates& { return context.component<KnownRates>(); }, "context"_a,
        nb::rv_policy::reference, nb::keep_alive<0, 1>());
}
