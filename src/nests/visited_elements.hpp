// Sources and receivers of C++ programs.
#pragma once
#include <span>
#include <vector>

#include "nests/step_points.hpp"
#include "tilewave/context.hpp"
#include "tilewave/nest.hpp"

namespace tilewave {

/// Elements that a run adds to, or records, after each of its time steps.
class VisitedElements {
public:
    /// `arrays`: of all nests of the run. `elements` must live on. What is recorded is set to 0. Local. `updated`: of
    /// fields that points update in any order, too, for visit().
    /// @pre elements are of fields that a nest writes, and inside them; as many values as steps times elements
    /// (ConfigError)
    VisitedElements(std::span<const StepElements> elements, std::int64_t steps, std::span<const ArrayReads> arrays,
                    bool updated = false);
    /// For a run of one nest, whose arrays these are.
    std::span<const StepPoints> points() const { return points_; }
    /// Visits what this rank has after a step, while nothing runs; local.
    void visit(std::int64_t step) const;
    /// Each value is of one rank, and of the others nothing. Collective.
    void gather(Context& context) const;

private:
    std::span<const StepElements> elements_;
    std::vector<std::vector<std::int64_t>> subscripts_;
    std::vector<StepPoints> points_;
};

}  // namespace tilewave
