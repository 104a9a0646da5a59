#include "dense/product.hpp"

#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "arrays/matrix_move.hpp"
#include "dense/matrix_run.hpp"
#include "execute/blas/tasks.hpp"
#include "measure/product_rates.hpp"

namespace tilewave {

namespace {

std::string text_of(std::complex<double> z) {
    char text[64];
    std::snprintf(text, sizeof text, "%.17g + %.17gi", z.real(), z.imag());
    return text;
}

std::string by(std::int64_t rows, std::int64_t columns) {
    return std::to_string(rows) + " x " + std::to_string(columns);
}

}  // namespace

Multiplication::Multiplication(const std::string& name, const MatrixStorage& a, const MatrixStorage& b,
                               MatrixStorage& c, const ProductOptions& options, std::shared_ptr<const Blas> library)
    : name_(name),
      text_("alpha " + text_of(options.alpha) + ", beta " + text_of(options.beta) + ", op " +
            std::to_string(static_cast<int>(options.op_a)) + std::to_string(static_cast<int>(options.op_b)) + ", " +
            text_of(options)),
      a_(a),
      b_(b),
      c_(c),
      options_(options),
      request_{ProductOperand::of(a.layout(), options.op_a, c.type()),
               ProductOperand::of(b.layout(), options.op_b, c.type()),
               ProductOperand::of(c.layout(), Transpose::none, c.type()),
               c.type(),
               options.beta != 0.0,
               c.context().size(),
               c.context().threads(),
               options},
      library_(std::move(library)) {
    require_alike(name, "b", b, a);
    require_alike(name, "c", c, a);
    require(a.memory() != c.memory() && b.memory() != c.memory(),
            name + ": c is one of the operands; allowed: another matrix");
    for (const auto& [what, z] : {std::pair{"alpha", options.alpha}, {"beta", options.beta}})
        require(is_complex(c.type()) || z.imag() == 0, name + ": " + what + ": given " + text_of(z) + " for " +
                                                           to_string(c.type()) + "; allowed: a real number");
    const BlockCyclic &left = request_.a.blocks, &right = request_.b.blocks;
    require(left.columns.extent == right.rows.extent,
            name + ": op(A) of " + by(left.rows.extent, left.columns.extent) + " and op(B) of " +
                by(right.rows.extent, right.columns.extent) + " were given; allowed: A.columns equal to B.rows");
    require(c.layout().rows.extent == left.rows.extent && c.layout().columns.extent == right.columns.extent,
            name + ": c of shape " + to_string(Index{c.layout().rows.extent, c.layout().columns.extent}) +
                " was given for a product of " + by(left.rows.extent, right.columns.extent) +
                "; allowed: equal shapes");
    request_.weights = options.weights.value_or(Weights());
    plans_ = product_plans(name, request_);
}

double Multiplication::flops() const {
    const BlockCyclic& a = request_.a.blocks;
    return (is_complex(request_.type) ? 8.0 : 2.0) * static_cast<double>(a.rows.extent) *
           static_cast<double>(request_.b.blocks.columns.extent) * static_cast<double>(a.columns.extent);
}

std::shared_ptr<RankedPlans<ProductPlan>> Multiplication::ranked() {
    if (compares() && !options_.weights && c_.layout().weights().empty()) {
        request_.weights = c_.context().machine().weights(request_.ranks, request_.threads);
        if (!request_.weights.empty()) plans_ = product_plans(name_, request_);
    }
    const std::string of = a_.text() + ", " + b_.text() + ", " + c_.text() + ", op " +
                           std::to_string(static_cast<int>(options_.op_a)) +
                           std::to_string(static_cast<int>(options_.op_b)) + ", " + tilewave::text_of(options_) +
                           (request_.adds ? ", adds" : "") + ", " + library_->path();
    const ProductRates rates = measured_products(library_, request_.type);
    return ranked_plans<ProductPlan>(
        c_.context(), of, plans_, request_.weights,
        [&](const std::vector<ProductPlan>& plans) {
            measure_products(name_, request_, plans, c_.context().rank(), rates);
        },
        [&](std::vector<ProductPlan> plans, const Machine& machine) {
            return played_products(name_, request_, std::move(plans), machine,
                                   [&](const ProductCase& one, const std::vector<Schedule>& parts) {
                                       return on_fastest(rates(one, parts), machine);
                                   });
        });
}

// Memory and schedules of a product: copies of what is redistributed, and the moves there and back.
struct Multiplication::Prepared {
    Prepared(const Multiplication& call, const ProductPlan& plan);

    ProductCase one;
    std::array<std::optional<MatrixStorage>, 3> copies;
    std::array<std::optional<ReadyMove>, 4> moves;  // of each operand, and c back
    std::vector<Binding> places;
    std::optional<MatrixRun> run;
};

Multiplication::Prepared::Prepared(const Multiplication& call, const ProductPlan& plan)
    : one(product_case(call.name_, call.request_, plan)) {
    Context& context = call.c_.context();
    const Dtype type = call.request_.type;
    const std::array<const MatrixStorage*, 3> given{&call.a_, &call.b_, &call.c_};
    const std::array<BlockCyclic, 3> stored = one.stored();
    const auto move = [&](const BlockCyclic& from, const BlockCyclic& to) {
        return MatrixMove(from, to, item_bytes(type), context.size());
    };
    for (std::size_t i = 0; i < 3; ++i) {
        if (one.moved[i]) copies[i].emplace(context, stored[i], type);
        if (one.moved[i] && (i < 2 || call.request_.adds))
            moves[i].emplace(context, move(given[i]->layout(), stored[i]));
        places.push_back(copies[i] ? copies[i]->binding() : given[i]->binding());
    }
    if (one.moved[2]) moves[3].emplace(context, move(stored[2], call.c_.layout()));
    if (one.mirrored) std::swap(places[0], places[1]);
    for (std::size_t i = 0; i < 3; ++i)
        if (one.operands[i].turned) std::swap(places[i].stride_bytes[0], places[i].stride_bytes[1]);
    const auto scalar = [](std::complex<double> z) { return Complex{z.real(), z.imag()}; };
    const ProductCall tasks{type,
                            scalar(call.options_.alpha),
                            scalar(call.options_.beta),
                            one.operands[0].conjugate,
                            one.operands[1].conjugate,
                            one.b_by_rows()};
    run.emplace(context, one.schedule(context.rank()), product_tasks(call.library_, tasks));
}

ProductReport Multiplication::run(const RankedPlans<ProductPlan>& ranked) const {
    const ProductPlan& plan = ranked.plans.front();
    Context& context = c_.context();
    std::optional<Prepared> ready;
    agree_after(context, "ready", [&] { ready.emplace(*this, plan); });
    const std::array<const MatrixStorage*, 3> given{&a_, &b_, &c_};
    for (std::size_t i = 0; i < 3; ++i)
        if (ready->moves[i]) ready->moves[i]->run(given[i]->binding(), ready->copies[i]->binding());
    ProductReport report{ready->run->run(ready->places), plan, {}};
    if (ready->moves[3]) ready->moves[3]->run(ready->copies[2]->binding(), c_.binding());
    report.prediction = prediction_of(
        context, [one = ready->one](int rank) { return one.schedule(rank); },
        [one = ready->one, rates = measured_products(library_, request_.type)](const std::vector<Schedule>& parts) {
            return rates(one, parts);
        });
    return report;
}

}  // namespace tilewave
