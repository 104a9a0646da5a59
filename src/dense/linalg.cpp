#include "tilewave/linalg.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <type_traits>

#include "arrays/matrix_move.hpp"
#include "context/agreement.hpp"
#include "dense/matrix_run.hpp"
#include "dense/product.hpp"
#include "execute/blas/tasks.hpp"
#include "generate/linalg/sides.hpp"
#include "measure/task_rates.hpp"
#include "plan/panels/panel_plan.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

namespace {

std::mutex blas_lock;
std::shared_ptr<const Blas> chosen_blas;

std::shared_ptr<const Blas> blas() {
    const std::scoped_lock guard(blas_lock);
    if (!chosen_blas) {
        const char* name = std::getenv("TILEWAVE_BLAS");
        try {
            chosen_blas = Blas::load(name && *name ? name : "libopenblas.so.0");
        } catch (const ConfigError& problem) {
            throw ConfigError(problem.what() + std::string("; use_blas(path) or TILEWAVE_BLAS choose another library"));
        }
    }
    return chosen_blas;
}

// What a rank checks and makes by itself; then all agree on it, or throw the same.
template <class Local>
void agreed(Context& context, const std::string& call, const std::string& text, Local local) {
    Statement mine;
    mine.caller = {call, ""};
    mine.description = text;
    agree_after(context, mine, local);
}

template <class Ready>
ScheduleReport run(Ready& ready, const std::vector<Binding>& matrices) {
    return uninterrupted(ready.run(matrices));
}

// Plans of a context, by what they are of and by its machine.
template <class Plan>
struct Plans {
    std::map<std::string, Plan> kept;
};

// One plan, the same on every rank: all measure at once, and rank 0 chooses. Collective.
template <class Plan>
Plan agreed_plan(Context& context, const std::string& call, const std::string& text,
                 const std::function<void()>& measure, const std::function<Plan(const Machine&)>& choose) {
    std::map<std::string, Plan>& kept = context.own<Plans<Plan>>().kept;
    const Machine& machine = context.machine();
    const std::string key = text + std::to_string(1e9 * machine.latency_s) + std::to_string(1e12 * machine.byte_s);
    if (const auto found = kept.find(key); found != kept.end()) return found->second;
    Plan chosen;
    agreed(context, call, "planned", [&] {
        measure();
        if (context.rank() == 0) chosen = choose(machine);
    });
    static_assert(std::is_trivially_copyable_v<Plan>);
    std::string bytes(reinterpret_cast<const char*>(&chosen), sizeof chosen);
    std::vector<int> everyone(static_cast<std::size_t>(context.size()));
    std::iota(everyone.begin(), everyone.end(), 0);
    broadcast_among(context.transport(), everyone, bytes);
    std::memcpy(&chosen, bytes.data(), sizeof chosen);
    return kept[key] = chosen;
}

void require_sides(const std::string& call, const FactorStorage& f, const MatrixStorage& b) {
    require(&b.context() == &f.matrix.context() && b.type() == f.matrix.type() &&
                b.layout().rows.extent == f.matrix.layout().rows.extent,
            call + ": b is " + b.text() + ", the factor " + f.matrix.text() +
                "; allowed: as many rows, one type and context");
}

// b by columns that work alone, through some schedules, and back.
MatrixStorage through(const std::string& call, const FactorStorage& f, const MatrixStorage& b, bool triangles,
                      const std::vector<std::int64_t>& permutation,
                      const std::function<std::vector<Schedule>(const BlockCyclic&)>& schedules) {
    Context& context = b.context();
    std::optional<MatrixStorage> sides, made;
    std::deque<FactorRun> runs;
    std::optional<ReadyMove> in, out;
    agreed(context, call, f.matrix.text() + ", " + b.text(), [&] {
        require_sides(call, f, b);
        const std::int64_t count = b.layout().columns.extent, item = item_bytes(b.type());
        sides.emplace(context,
                      by_block_columns(b.layout().rows.extent, count, context.size(),
                                       std::max<std::int64_t>(1, ceil_div(count, context.size()))),
                      b.type());
        made.emplace(context, b.layout(), b.type());
        for (Schedule& schedule : schedules(sides->layout()))
            runs.emplace_back(context, std::move(schedule), blas(), b.type(), FactorRun::Tells::nothing, 0,
                              runs.empty() ? nullptr : runs.front().matrices().moving());
        in.emplace(context, MatrixMove(b.layout(), sides->layout(), item, context.size()));
        out.emplace(context, MatrixMove(sides->layout(), b.layout(), item, context.size()));
    });
    in->run(b.binding(), sides->binding());
    interchange_rows(b.type(), {sides->data(), sides->rows(), sides->columns(), 1, sides->rows()}, permutation);
    std::vector<Binding> matrices{f.matrix.binding()};
    if (triangles) matrices.push_back(f.triangles.binding());
    matrices.push_back(sides->binding());
    for (FactorRun& each : runs) run(each, matrices);
    out->run(sides->binding(), made->binding());
    return std::move(*made);
}

}  // namespace

void use_blas(const std::string& library) {
    std::shared_ptr<const Blas> found = Blas::load(library);
    const std::scoped_lock guard(blas_lock);
    chosen_blas = std::move(found);
}

ProductReport multiply(const MatrixStorage& a, const MatrixStorage& b, MatrixStorage& c,
                       const ProductOptions& options) {
    std::optional<Multiplication> call;
    begin_call(c.context(), "multiply", [&] {
        call.emplace("multiply", a, b, c, options, blas());
        return a.text() + ", " + b.text() + ", " + c.text() + ", " + call->text();
    });
    return call->run(*call->ranked());
}

namespace {

// In the memory of `own`, which is a, where it is given and lies as the factor does.
FactorStorage factored(FactorKind kind, const MatrixStorage& a, MatrixStorage* own, const FactorOptions& options) {
    static const char* const names[] = {"cholesky", "lu", "qr"};
    const std::string call = names[static_cast<int>(kind)];
    Context& context = a.context();
    const Axis rows = a.layout().rows, columns = a.layout().columns;
    std::optional<MatrixStorage> copy, triangles;
    std::optional<ReadyMove> move;
    std::optional<FactorRun> ready;
    std::vector<FactorPlan> plans;
    std::shared_ptr<const Blas> library;
    PanelProblem problem{static_cast<PanelWork>(kind), a.layout(), item_bytes(a.type()), context.size(),
                         context.threads()};
    const std::string said = a.text() + ", " + text_of(options) + (own ? "in place" : "");
    agreed(context, call, said, [&] {
        require(kind == FactorKind::qr || rows.extent == columns.extent,
                call + ": " + a.text() + " was given; allowed: square matrices");
        plans = panel_plans(call, problem, options);
        library = blas();
    });
    PanelRates rates;
    if (library) rates = measured_panels(library, a.type(), problem);
    const FactorPlan plan = agreed_plan<FactorPlan>(
        context, call, call + ", " + said,
        [&] {
            for (std::size_t i = 0; plans.size() > 1 && i < plans.size(); ++i) rates(plans[i]);
        },
        [&](const Machine& machine) { return played_panels(problem, plans, machine, rates).front(); });
    const BlockCyclic layout = panel_layout(problem, plan.block);
    const bool in_place = own && layout.same(a.layout());
    agreed(context, call, "ready", [&] {
        const BlockCyclic beside =
            by_block_columns(kind == FactorKind::qr ? plan.block : 0, columns.extent, context.size(), plan.block);
        if (!in_place) copy.emplace(context, layout, a.type());
        if (!in_place) move.emplace(context, MatrixMove(a.layout(), layout, item_bytes(a.type()), context.size()));
        triangles.emplace(context, beside, a.type());
        ready.emplace(context, panel_schedule(problem, plan, context.rank()), library, a.type(),
                      kind == FactorKind::lu ? FactorRun::Tells::pivots : FactorRun::Tells::info, rows.extent);
    });
    if (move) move->run(a.binding(), copy->binding());
    FactorStorage made{std::move(in_place ? *own : *copy), std::move(*triangles), 0, {}, plan, {}};
    std::vector<Binding> matrices{made.matrix.binding()};
    if (kind == FactorKind::qr) matrices.push_back(made.triangles.binding());
    made.report = run(*ready, matrices);
    made.info = ready->info();
    made.pivots = ready->pivots();
    return made;
}

}  // namespace

FactorStorage factor(FactorKind kind, const MatrixStorage& a, const FactorOptions& options) {
    return factored(kind, a, nullptr, options);
}

FactorStorage factor(FactorKind kind, MatrixStorage&& a, const FactorOptions& options) {
    return factored(kind, a, &a, options);
}

MatrixStorage solve(FactorKind kind, const FactorStorage& f, const MatrixStorage& b) {
    const Context& context = f.matrix.context();
    return through("solve", f, b, false, f.pivots, [&](const BlockCyclic& sides) {
        require(kind != FactorKind::qr,
                "solve: the factor of a QR factorization was given; allowed: Cholesky's and LU's");
        require(f.info == 0, "solve: info " + std::to_string(f.info) +
                                 ": the matrix is singular or not positive definite; allowed: factors with info 0");
        const bool lu = kind == FactorKind::lu;
        std::vector<Schedule> all;
        for (const TriangularSystem& system : {TriangularSystem{false, Transpose::none, lu},
                                               TriangularSystem{lu, lu ? Transpose::none : Transpose::adjoint, false}})
            all.push_back(triangular_solve(f.matrix.layout(), sides, item_bytes(b.type()), system,
                                           choices_of(f.plan, context.threads()), context.rank(), context.size()));
        return all;
    });
}

MatrixStorage apply(const FactorStorage& f, const MatrixStorage& b, bool adjoint) {
    const Context& context = f.matrix.context();
    return through("apply", f, b, true, {}, [&](const BlockCyclic& sides) {
        require(f.triangles.layout().rows.extent > 0 || f.matrix.layout().columns.extent == 0,
                "apply: a factor without reflectors was given; allowed: that of qr()");
        return std::vector{apply_reflectors(f.matrix.layout(), sides, item_bytes(b.type()), {adjoint, false},
                                            choices_of(f.plan, context.threads()), context.rank(), context.size())};
    });
}

namespace {

std::complex<double> element(const MatrixStorage& m, std::int64_t row, std::int64_t column) {
    const std::byte* at = m.data() + (row + column * m.rows()) * item_bytes(m.type());
    switch (m.type()) {
        case Dtype::f4: return *reinterpret_cast<const float*>(at);
        case Dtype::f8: return *reinterpret_cast<const double*>(at);
        case Dtype::c8: return *reinterpret_cast<const std::complex<float>*>(at);
        default: return *reinterpret_cast<const std::complex<double>*>(at);
    }
}

// Of this rank's elements on the diagonal: its numbers, from 0, and values. All rows of the matrix are this rank's.
std::vector<std::pair<std::int64_t, std::complex<double>>> diagonal(const MatrixStorage& m) {
    std::vector<std::pair<std::int64_t, std::complex<double>>> all;
    for (std::int64_t j = 0; j < m.columns(); ++j)
        if (const std::int64_t at = m.column({j}).at; at < m.rows()) all.emplace_back(at, element(m, at, j));
    return all;
}

// All ranks throw where an element of the diagonal is 0 on any. Collective.
void require_diagonal(const std::string& call, const MatrixStorage& m) {
    std::vector<std::int64_t> first{std::numeric_limits<std::int64_t>::max()};
    for (const auto& [at, value] : diagonal(m))
        if (value == 0.0) first[0] = std::min(first[0], at);
    allreduce_min(m.context().transport(), first);
    require(first[0] == std::numeric_limits<std::int64_t>::max(),
            call + ": element " + std::to_string(first[0]) +
                " of the diagonal, counted from 0, is 0: there is no unique " +
                "solution; allowed: a diagonal without 0");
}

// The first rows of a matrix by columns. Local.
MatrixStorage top(const MatrixStorage& m, std::int64_t rows) {
    MatrixStorage made(m.context(), {{rows, 1, 0}, m.layout().columns}, m.type());
    const auto item = static_cast<std::size_t>(item_bytes(m.type()));
    const auto from = static_cast<std::size_t>(m.rows()) * item, to = static_cast<std::size_t>(made.rows()) * item;
    for (std::size_t j = 0; j < static_cast<std::size_t>(made.columns()) && to > 0; ++j)
        std::memcpy(made.data() + j * to, m.data() + j * from, to);
    return made;
}

MatrixStorage solved(const std::string& call, const FactorStorage& f, const MatrixStorage& b,
                     const TriangularSystem& system) {
    const Context& context = b.context();
    return through(call, f, b, false, {}, [&](const BlockCyclic& sides) {
        return std::vector{triangular_solve(f.matrix.layout(), sides, item_bytes(b.type()), system,
                                            choices_of(f.plan, context.threads()), context.rank(), context.size())};
    });
}

}  // namespace

std::pair<std::complex<double>, std::int64_t> determinant(const FactorStorage& f) {
    std::pair<std::complex<double>, std::int64_t> whole{1, 0};
    const auto times = [&](std::complex<double> value, std::int64_t exponent) {
        whole.first *= value;
        whole.second += exponent;
        const double size = std::max(std::abs(whole.first.real()), std::abs(whole.first.imag()));
        if (size == 0 || !std::isfinite(size)) return;
        const int more = std::ilogb(size);
        whole.first = {std::ldexp(whole.first.real(), -more), std::ldexp(whole.first.imag(), -more)};
        whole.second += more;
    };
    Context& context = f.matrix.context();
    agreed(context, "determinant", f.matrix.text(), [&] {
        require(f.matrix.layout().rows.extent == static_cast<std::int64_t>(f.pivots.size()),
                "determinant: a factor without pivots was given; allowed: that of lu()");
    });
    for (const auto& [at, value] : diagonal(f.matrix)) times(value, 0);
    const std::string mine(reinterpret_cast<const char*>(&whole), sizeof whole);
    whole = {1, 0};
    for (const std::string& bytes : allgather(context.transport(), mine)) {
        std::pair<std::complex<double>, std::int64_t> part;
        std::memcpy(static_cast<void*>(&part), bytes.data(), sizeof part);
        times(part.first, part.second);
    }
    for (std::size_t i = 0; i < f.pivots.size(); ++i)
        if (f.pivots[i] != static_cast<std::int64_t>(i)) whole.first = -whole.first;
    return whole;
}

MatrixStorage solve_triangular(const MatrixStorage& a, const MatrixStorage& b, const Triangle& triangle,
                               const FactorOptions& options) {
    const std::string call = "solve_triangular";
    Context& context = a.context();
    const TriangularSystem system{triangle.upper, triangle.op, triangle.unit_diagonal};
    const std::int64_t count = b.layout().columns.extent;
    const PanelProblem problem{
        PanelWork::solve,
        a.layout(),
        item_bytes(a.type()),
        context.size(),
        context.threads(),
        by_block_columns(a.layout().rows.extent, count, context.size(), ceil_div(count, context.size())),
        system};
    std::vector<FactorPlan> plans;
    std::shared_ptr<const Blas> library;
    const std::string text =
        a.text() + ", " + b.text() + ", " + std::to_string(system.number()) + ", " + text_of(options);
    agreed(context, call, text, [&] {
        require(a.layout().rows.extent == a.layout().columns.extent,
                call + ": " + a.text() + " was given; allowed: square matrices");
        require(options.algorithm != FactorAlgorithm::wavefront, call + ": a wavefront was given; allowed: broadcasts");
        require(&b.context() == &context && b.type() == a.type() && b.layout().rows.extent == a.layout().rows.extent,
                call + ": b is " + b.text() + ", a " + a.text() + "; allowed: as many rows, one type and context");
        plans = panel_plans(call, problem, options);
        library = blas();
    });
    PanelRates rates;
    if (library) rates = measured_panels(library, a.type(), problem);
    const FactorPlan plan = agreed_plan<FactorPlan>(
        context, call, call + ", " + text,
        [&] {
            for (std::size_t i = 0; plans.size() > 1 && i < plans.size(); ++i) rates(plans[i]);
        },
        [&](const Machine& machine) { return played_panels(problem, plans, machine, rates).front(); });
    const MatrixStorage panels = a.redistributed(panel_layout(problem, plan.block));
    if (!triangle.unit_diagonal) require_diagonal(call, panels);
    return solved(call, {panels, {context, by_block_columns(0, 0, context.size()), a.type()}, 0, {}, plan, {}}, b,
                  system);
}

MatrixStorage least_squares(const FactorStorage& f, const MatrixStorage& b) {
    const Axis rows = f.matrix.layout().rows, columns = f.matrix.layout().columns;
    Context& context = f.matrix.context();
    const int ranks = context.size();
    const std::int64_t count = b.layout().columns.extent;
    agreed(context, "lstsq", f.matrix.text() + ", " + b.text(), [&] {
        require_sides("lstsq", f, b);
        require(rows.extent >= columns.extent,
                "lstsq: " + f.matrix.text() + " was given; allowed: at least as many rows as columns");
    });
    require_diagonal("lstsq", f.matrix);
    const BlockCyclic by_columns = by_block_columns(rows.extent, count, ranks, ceil_div(count, ranks));
    const MatrixStorage y = apply(f, b.redistributed(by_columns), true);
    std::optional<FactorStorage> r;
    std::optional<MatrixStorage> sides;
    agreed(context, "lstsq", "ready", [&] {
        r.emplace(FactorStorage{top(f.matrix, columns.extent), f.triangles, 0, {}, f.plan, {}});
        sides.emplace(top(y, columns.extent));
    });
    return solved("lstsq", *r, *sides, {true, Transpose::none, false});
}

}  // namespace tilewave
