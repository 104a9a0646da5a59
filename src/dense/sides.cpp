#include "dense/sides.hpp"

#include <algorithm>
#include <utility>

#include "dense/elements.hpp"
#include "execute/blas/tasks.hpp"

namespace tilewave {

void require_sides(const std::string& name, const FactorStorage& f, const MatrixStorage& b, std::int64_t rows) {
    require(&b.context() == &f.matrix.context() && b.type() == f.matrix.type() && b.layout().rows.extent == rows,
            name + ": b is " + b.text() + ", the factor " + f.matrix.text() + "; allowed: " + std::to_string(rows) +
                " rows, one type and context");
}

namespace {

// Panels that are used when all of them is there, however they came while the factor was made.
FactorChoices choices_of_sides(const FactorPlan& plan, int threads) {
    FactorChoices choices;
    choices.tree = plan.tree;
    choices.lookahead = plan.lookahead;
    choices.lanes = threads;
    return choices;
}

MatrixMove move_of(const MatrixStorage& like, const BlockCyclic& from, const BlockCyclic& to) {
    return {from, to, item_bytes(like.type()), like.context().size()};
}

}  // namespace

SidesRun::SidesRun(const FactorStorage& factor, const MatrixStorage* given, MatrixStorage made,
                   std::shared_ptr<const Blas> library, const std::optional<BlockCyclic>& working)
    : factor_(factor), given_(given), library_(std::move(library)), made_(std::move(made)) {
    Context& context = made_.context();
    const BlockCyclic& layout = made_.layout();
    const BlockCyclic works = working.value_or(even_columns(factor.matrix.layout().rows.extent, layout.columns.extent,
                                                            context.size(), factor.matrix.weights()));
    if (!works.same(layout)) copy_.emplace(context, works, made_.type());
    if (given) in_.emplace(context, move_of(made_, given->layout(), rows_of(works, given->layout().rows.extent)));
    if (copy_) out_.emplace(context, move_of(made_, rows_of(works, layout.rows.extent), layout));
}

void SidesRun::add(std::function<Schedule(int rank)> schedule_of, bool triangles) {
    const bool same = !runs_.empty() && triangles_.back() == triangles;
    runs_.emplace_back(made_.context(), PanelWorks{factor_.plan, std::move(schedule_of), library_, made_.type()},
                       FactorRun::Gives::nothing, 0, same ? runs_.back().moving() : nullptr);
    triangles_.push_back(triangles);
}

void SidesRun::solve(const TriangularSystem& system) {
    const std::int64_t n = factor_.matrix.layout().columns.extent;
    add([triangle = rows_of(factor_.matrix.layout(), n), sides = rows_of(sides().layout(), n), system,
         item = item_bytes(made_.type()), choices = choices_of_sides(factor_.plan, made_.context().threads()),
         ranks = made_.context().size()](
            int rank) { return triangular_solve(triangle, sides, item, system, choices, rank, ranks); },
        false);
}

void SidesRun::apply(const Reflection& reflection) {
    add([factor = factor_.matrix.layout(), sides = sides().layout(), reflection, item = item_bytes(made_.type()),
         choices = choices_of_sides(factor_.plan, made_.context().threads()), ranks = made_.context().size()](
            int rank) { return apply_reflectors(factor, sides, item, reflection, choices, rank, ranks); },
        true);
}

SidesResult SidesRun::run(const std::string& moved, std::int64_t copies_bytes) {
    MatrixStorage& x = sides();
    const bool moves = given_ && !given_->layout().same(rows_of(x.layout(), given_->layout().rows.extent));
    if (given_) {
        clear_rows(x, given_->layout().rows.extent);
        in_->run(given_->binding(), x.binding());
    } else {
        set_identity(x);
    }
    const BlasMatrix whole{x.data(), x.rows(), x.columns(), 1, x.rows()};
    if (!rows_last_) interchange_rows(x.type(), whole, factor_.pivots);
    SidesResult result{made_.shared(), {}};
    for (std::size_t i = 0; i < runs_.size(); ++i) {
        std::vector<Binding> matrices{factor_.matrix.binding()};
        if (triangles_[i]) matrices.push_back(factor_.triangles.binding());
        matrices.push_back(x.binding());
        const std::size_t other = runs_.size() - 1 - i;  // its panels are there, too
        const std::int64_t panels = triangles_[i] != triangles_[other] ? runs_[other].panels_bytes() : 0;
        const bool first = i == 0 || triangles_[i] == triangles_[0];
        result.reports.push_back(runs_[i].run(matrices, moved + (moves && first ? "b" : ""),
                                              copies_bytes + (copy_ ? copy_->bytes() : 0) + panels));
    }
    if (rows_last_) interchange_rows(x.type(), whole, factor_.pivots, true);
    if (out_) out_->run(x.binding(), made_.binding());
    return result;
}

std::unique_ptr<SidesRun> solving(FactorKind kind, const FactorStorage& f, const MatrixStorage& b,
                                  std::shared_ptr<const Blas> library, Transpose op) {
    require(kind != FactorKind::qr, "solve: the factor of a QR factorization was given; allowed: Cholesky's and LU's");
    require(f.info == 0, "solve: info " + std::to_string(f.info) +
                             ": the matrix is singular or not positive definite; allowed: factors with info 0");
    require_sides("solve", f, b, f.matrix.layout().rows.extent);
    auto made = std::make_unique<SidesRun>(f, &b, MatrixStorage(b.context(), b.layout(), b.type()), std::move(library));
    const bool lu = kind == FactorKind::lu;
    if (lu && op != Transpose::none) {  // op(A) = op(U) op(L) P
        made->solve({true, op, false});
        made->solve({false, op, true});
        made->interchange_rows_last();
        return made;
    }
    made->solve({false, Transpose::none, lu});
    made->solve({lu, lu ? Transpose::none : Transpose::adjoint, false});
    return made;
}

std::unique_ptr<SidesRun> inverting(const FactorStorage& f, const MatrixStorage& like,
                                    std::shared_ptr<const Blas> library) {
    const std::int64_t n = like.layout().rows.extent;
    auto made = std::make_unique<SidesRun>(
        f, nullptr, MatrixStorage(like.context(), like.layout(), like.type()), std::move(library),
        by_block_columns(n, n, like.context().size(), f.plan.block).in_proportion(f.matrix.weights()));
    made->solve({false, Transpose::none, true});
    made->solve({true, Transpose::none, false});
    return made;
}

std::unique_ptr<SidesRun> applying(const FactorStorage& f, const MatrixStorage& b, bool adjoint,
                                   std::shared_ptr<const Blas> library) {
    require(f.triangles.layout().rows.extent > 0 || f.matrix.layout().columns.extent == 0,
            "apply: a factor without reflectors was given; allowed: that of qr()");
    require_sides("apply", f, b, f.matrix.layout().rows.extent);
    auto made = std::make_unique<SidesRun>(f, &b, MatrixStorage(b.context(), b.layout(), b.type()), std::move(library));
    made->apply({adjoint, false});
    return made;
}

std::unique_ptr<SidesRun> forming(const FactorStorage& f, const MatrixStorage& q, std::shared_ptr<const Blas> library) {
    auto made = std::make_unique<SidesRun>(f, nullptr, q.shared(), std::move(library), q.layout());
    made->apply({false, true});
    return made;
}

namespace {

PanelProblem problem_of(const std::string& name, const MatrixStorage& a, const MatrixStorage& b,
                        const TriangularSystem& system) {
    const Context& context = a.context();
    const std::int64_t n = a.layout().rows.extent;
    require(n == a.layout().columns.extent, name + ": " + a.text() + " was given; allowed: square matrices");
    require(&b.context() == &context && b.type() == a.type() && b.layout().rows.extent == n,
            name + ": b is " + b.text() + ", a " + a.text() + "; allowed: as many rows, one type and context");
    return {PanelWork::solve,
            a.layout(),
            item_bytes(a.type()),
            context.size(),
            context.threads(),
            even_columns(n, b.layout().columns.extent, context.size()),
            system};
}

// A triangular solve has no wavefront.
FactorOptions by_broadcast(const std::string& name, FactorOptions options) {
    require(options.algorithm != FactorAlgorithm::wavefront, name + ": a wavefront was given; allowed: broadcasts");
    options.algorithm = FactorAlgorithm::broadcast;
    return options;
}

}  // namespace

TriangularSolution::TriangularSolution(const std::string& name, const MatrixStorage& a, const MatrixStorage& b,
                                       const TriangularSystem& system, const FactorOptions& options,
                                       std::shared_ptr<const Blas> library)
    : PanelCall(name, a, problem_of(name, a, b, system), by_broadcast(name, options), std::move(library)), b_(b) {}

std::int64_t TriangularSolution::info() const {
    return problem_.system.unit ? 0 : least_number(context(), first_zero(a_));
}

SidesResult TriangularSolution::run(const RankedPlans<FactorPlan>& ranked) const {
    const FactorPlan& plan = ranked.plans.front();
    const BlockCyclic layout = panel_layout(problem_, plan);
    const bool stays = layout.same(a_.layout());
    std::optional<FactorStorage> panels;
    std::optional<ReadyMove> move;
    std::optional<SidesRun> ready;
    agree_after(context(), "ready", [&] {
        panels.emplace(FactorStorage{stays ? a_.shared(layout) : MatrixStorage(context(), layout, a_.type()),
                                     MatrixStorage(context(), by_block_columns(0, 0, context().size()), a_.type()),
                                     0,
                                     {},
                                     plan,
                                     {}});
        if (!stays) move.emplace(context(), move_of(a_, a_.layout(), layout));
        ready.emplace(*panels, &b_, MatrixStorage(context(), b_.layout(), b_.type()), library_);
        ready->solve(problem_.system);
    });
    if (move) move->run(a_.binding(), panels->matrix.binding());
    return ready->run(stays ? "" : "a", stays ? 0 : panels->matrix.bytes());
}

}  // namespace tilewave
