// How the panels of a factorization or a triangular solve travel: what may be chosen, and what is predicted fastest.
// Pure functions of the problem, the machine and the rates of operations.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generate/linalg/factor.hpp"
#include "schedule/operations.hpp"
#include "tilewave/engine/linalg_plan.hpp"
#include "tilewave/engine/predict.hpp"

namespace tilewave {

enum class PanelWork : std::uint8_t { cholesky, lu, qr, solve };

/// What is computed.
struct PanelProblem {
    PanelWork work = PanelWork::lu;
    BlockCyclic matrix;  ///< as it lies before it is moved
    std::int64_t item_bytes = 8;
    int ranks = 1, threads = 1;
    BlockCyclic sides = {{0, 1, 0}, {0, 1, 0}};  ///< of a solve, by columns
    TriangularSystem system = {};                ///< of a solve
    Weights weights = {};                        ///< of plans in proportion; empty: there are none
};

/// Where the matrix lies while it is worked on.
BlockCyclic panel_layout(const PanelProblem& problem, const FactorPlan& plan);
/// Right-hand sides by columns, as even as can be, or as nearly in proportion.
BlockCyclic even_columns(std::int64_t rows, std::int64_t columns, int ranks, const Weights& weights = {});
FactorChoices choices_of(const FactorPlan& plan, int threads);
Schedule panel_schedule(const PanelProblem& problem, const FactorPlan& plan, int rank, const FactorPart& part = {});

/// All plans that keep to a wish, with their memory; nothing is simulated.
/// @pre as check_choices(); a memory that one of them keeps within (ConfigError, which begins with `call`)
std::vector<FactorPlan> panel_plans(const std::string& call, const PanelProblem& problem, const FactorOptions& wish);

/// The rates of all operations, by number, for the schedules of a plan.
using PanelRates = std::function<std::vector<OperationRate>(const FactorPlan&)>;

/// What is simulated of a factor with very many steps: some of its steps at three places, on some columns of the grid.
struct PanelSample {
    std::vector<std::int64_t> first = {};  ///< steps; none: all of the factor is simulated
    std::int64_t steps = 0, panel_columns = 0;
    int columns = 0;
    double cost = 0;  ///< steps of lanes that are simulated

    FactorPart part(const FactorPlan& plan, std::int64_t at, std::int64_t count) const;
    /// What was simulated; empty: all.
    std::string text(const FactorPlan& plan) const;
};
/// `most_steps`: of the lists of all lanes that are simulated at once, about.
PanelSample sample_of(const PanelProblem& problem, const FactorPlan& plan, double most_steps);
/// Steps of lanes that panels_prediction() simulates, about.
double simulated_steps(const PanelProblem& problem, const FactorPlan& plan, double most_steps);
/// Seconds by a sample: what a step takes at its places, by Simpson's rule.
double sampled_s(const PanelProblem& problem, const FactorPlan& plan, const PanelSample& sample, const Machine& machine,
                 std::vector<OperationRate> rates);
/// What a plan takes; of a sample the seconds alone.
Prediction panels_prediction(const PanelProblem& problem, const FactorPlan& plan, const Machine& machine,
                             const std::vector<OperationRate>& rates, bool record, double most_steps);
/// Schedules of rank 0 with all kinds and sizes of tasks; of very many steps those of a sample.
std::vector<Schedule> timed_schedules(const PanelProblem& problem, const FactorPlan& plan);

/// The plans simulated, the fastest first; one plan alone as it is. Of very many steps first one plan of each grid,
/// algorithm and block, then all of the best of these; others are left out.
std::vector<FactorPlan> played_panels(const PanelProblem& problem, std::vector<FactorPlan> plans,
                                      const Machine& machine, const PanelRates& rates);

}  // namespace tilewave
