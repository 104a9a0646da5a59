#include "dense/factor.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "arrays/matrix_move.hpp"
#include "dense/elements.hpp"
#include "dense/matrix_run.hpp"
#include "measure/task_rates.hpp"
#include "plan/panels/tuning.hpp"

namespace tilewave {

PanelCall::PanelCall(const std::string& name, const MatrixStorage& a, const PanelProblem& problem,
                     const FactorOptions& options, std::shared_ptr<const Blas> library)
    : name_(name), a_(a), problem_(problem), options_(options), library_(std::move(library)) {
    problem_.weights = options.weights.value_or(a.weights());
    plans_ = panel_plans(name, problem_, options);
}

std::shared_ptr<RankedPlans<FactorPlan>> PanelCall::ranked() {
    if (compares() && !options_.weights && problem_.weights.empty()) {
        problem_.weights = context().machine().weights(problem_.ranks, problem_.threads);
        if (!problem_.weights.empty()) plans_ = panel_plans(name_, problem_, options_);
    }
    const auto size = [](const BlockCyclic& b) {
        return std::to_string(b.rows.extent) + " x " + std::to_string(b.columns.extent);
    };
    const std::string of = std::to_string(static_cast<int>(problem_.work)) + ", " + a_.text() + ", system " +
                           std::to_string(problem_.system.number()) + " of " + size(problem_.sides) + ", " + text() +
                           ", " + library_->path();
    const PanelRates rates = measured_panels(library_, a_.type(), problem_);
    return ranked_plans<FactorPlan>(
        context(), of, plans_, problem_.weights,
        [&](const std::vector<FactorPlan>& plans) {
            for (const FactorPlan& plan : plans) rates(plan);
        },
        [&](std::vector<FactorPlan> plans, const Machine& machine) {
            return played_panels(problem_, std::move(plans), machine,
                                 [&](const FactorPlan& plan) { return on_fastest(rates(plan), machine); });
        });
}

namespace {

PanelProblem problem_of(const std::string& name, FactorKind kind, const MatrixStorage& a) {
    require(kind == FactorKind::qr || a.layout().rows.extent == a.layout().columns.extent,
            name + ": " + a.text() + " was given; allowed: square matrices");
    return {static_cast<PanelWork>(kind), a.layout(), item_bytes(a.type()), a.context().size(), a.context().threads()};
}

}  // namespace

Factorization::Factorization(const std::string& name, FactorKind kind, const MatrixStorage& a,
                             const FactorOptions& options, std::shared_ptr<const Blas> library)
    : PanelCall(name, a, problem_of(name, kind, a), options, std::move(library)) {}

FactorStorage Factorization::run(const RankedPlans<FactorPlan>& ranked, bool in_place) const {
    using Gives = FactorRun::Gives;
    const FactorPlan& plan = ranked.plans.front();
    const BlockCyclic layout = panel_layout(problem_, plan);
    const bool stays = layout.same(a_.layout()), qr = problem_.work == PanelWork::qr;
    std::optional<FactorStorage> made;
    std::optional<ReadyMove> move;
    std::optional<FactorRun> ready;
    agree_after(context(), "ready", [&] {
        // The triangles T: the rows of one block, which the first row of ranks has.
        const Axis one_block{qr ? plan.block : 0, layout.rows.parts, plan.block};
        MatrixStorage triangles(context(), {one_block, layout.columns}, a_.type());
        std::fill_n(triangles.data(), triangles.bytes(), std::byte{0});
        FactorPlan used = plan;
        used.predicted_s = -1, used.moving_s = 0;  // of the factorization alone
        made.emplace(FactorStorage{stays && in_place ? a_.shared(layout) : MatrixStorage(context(), layout, a_.type()),
                                   std::move(triangles),
                                   0,
                                   {},
                                   used,
                                   {}});
        if (!(stays && in_place))
            move.emplace(context(), MatrixMove(a_.layout(), layout, problem_.item_bytes, context().size()));
        const auto schedule_of = [problem = problem_, plan](int rank) { return panel_schedule(problem, plan, rank); };
        const RowPart rows{Axis(1, layout.rows.parts, 1, layout.rows.weights()), layout.row_of(context().rank())};
        ready.emplace(context(), PanelWorks{plan, schedule_of, library_, a_.type(), rows},
                      problem_.work == PanelWork::lu ? Gives::pivots : Gives::info, layout.rows.extent);
    });
    if (move) move->run(a_.binding(), made->matrix.binding());
    std::vector<Binding> matrices{made->matrix.binding()};
    if (qr) matrices.push_back(made->triangles.binding());
    made->report = ready->run(matrices, stays ? "" : "a");
    made->report.sample = sample_of(problem_, plan, tuning::most_alone_steps).text(plan);
    if (context().rank() == 0)
        made->report.prediction = [problem = problem_, plan, machine = context().machine(),
                                   rates = measured_panels(library_, a_.type(), problem_)] {
            return panels_prediction(problem, plan, machine, on_fastest(rates(plan), machine), true,
                                     tuning::most_alone_steps);
        };
    if (problem_.work == PanelWork::cholesky) clear_above_diagonal(made->matrix);
    made->info = ready->info();
    made->pivots = ready->pivots();
    return std::move(*made);
}

}  // namespace tilewave
