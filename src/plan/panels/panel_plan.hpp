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
};

/// Where the matrix lies while it is worked on.
BlockCyclic panel_layout(const PanelProblem& problem, const FactorPlan& plan);
FactorChoices choices_of(const FactorPlan& plan, int threads);
Schedule panel_schedule(const PanelProblem& problem, const FactorPlan& plan, int rank);

/// All plans that keep to a wish, with their memory; nothing is simulated.
/// @pre as check_choices(); a memory that one of them keeps within (ConfigError, which begins with `call`)
std::vector<FactorPlan> panel_plans(const std::string& call, const PanelProblem& problem, const FactorOptions& wish);

/// The rates of all operations, by number, for the schedules of a plan.
using PanelRates = std::function<std::vector<OperationRate>(const FactorPlan&)>;

/// The plans simulated, the fastest first; one plan alone as it is.
std::vector<FactorPlan> played_panels(const PanelProblem& problem, std::vector<FactorPlan> plans,
                                      const Machine& machine, const PanelRates& rates);

}  // namespace tilewave
