// How fast a library's operations are, at the shapes that schedules have.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "execute/blas/library.hpp"
#include "plan/panels/panel_plan.hpp"
#include "tilewave/engine/predict.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// The rates of all operations of factorizations and solves, by number: of each two tasks of the schedules are timed, a
/// large one and one that is about a quarter of it. Times of equal shapes are remembered in the process. Operations
/// that the schedules lack are counted as slow products. `row_parts`: rows of the grid.
std::vector<OperationRate> factor_task_rates(const std::shared_ptr<const Blas>& blas, Dtype type,
                                             std::span<const Schedule> schedules, int row_parts);

/// Rates for plans of factors, measured at first use of a shape.
PanelRates measured_panels(std::shared_ptr<const Blas> blas, Dtype type, const PanelProblem& problem);

}  // namespace tilewave
