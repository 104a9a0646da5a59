// What the tasks of panels on a column of ranks call.
#pragma once
#include <memory>
#include <vector>

#include "execute/blas/factor_tasks.hpp"

namespace tilewave {

/// Adds those of LU and QR: schedule/operations.hpp says which.
void add_column_tasks(std::vector<TaskFunction>& all, const std::shared_ptr<const Blas>& blas, Dtype type,
                      const std::shared_ptr<FactorInfo>& info, const RowPart& rows);

}  // namespace tilewave
