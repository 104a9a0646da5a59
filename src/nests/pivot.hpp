// Nests with a pivot, ready to run: the kernel called for the rows of panels and updates.
#pragma once
#include <vector>

#include "generate/pivot/pivot.hpp"
#include "nests/task_nest.hpp"

namespace tilewave {

/// What a place of the kernel is: the point's element, the pivot row's, the pivot column's, or the one in both; or an
/// element of an array that is only read.
enum class PivotRead : std::uint8_t { point, row, column, corner, operand };

struct PivotPlace {
    PivotRead what = PivotRead::point;
    int array = 0;  ///< which of the matrices, or of the operands
};

/// An array that is only read: where its element of loop indices 0 would be, and bytes from index to index.
struct PivotOperand {
    std::byte* data = nullptr;
    Index stride_bytes;
};

struct PivotBody : NestBody {
    std::vector<PivotPlace> places;
    std::vector<PivotOperand> operands;
};

/// The functions of PivotTask. They compute any part of a problem in the plain loops' order, as far as points depend on
/// each other.
std::vector<TaskFunction> pivot_tasks(const PivotProblem& problem, const PivotPlan& plan, int ranks, PivotBody body);

}  // namespace tilewave
