// The arrays of a nest of a C++ program, as a prepared sweep takes them.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "nests/field_copy.hpp"
#include "nests/prepared_sweep.hpp"
#include "nests/step_row.hpp"
#include "tilewave/nest.hpp"

namespace tilewave {

/// Fields; what stands for those that each rank needs whole; and windows: either what they begin with, or fields that
/// begin anew where a rolling window is not enough.
class NestArrays {
public:
    /// `operands`: by array of the problem. Local.
    NestArrays(Context& context, std::span<const ArrayReads> given, std::span<const NestOperandPart> operands,
               const PreparedSweep& sweep);
    const std::vector<RunArray>& all() const { return all_; }
    const std::vector<WholeField>& whole() const { return whole_; }
    /// What those are rows of that time steps write rows of.
    const std::vector<StepRow>& rows() const { return rows_; }

private:
    Binding whole_part(int number, const ArrayReads& array, const NestOperandPart& part);
    FieldStorage* stored(Context& context, const ArrayReads& array);

    std::vector<std::vector<std::byte>> memory_;
    std::vector<std::unique_ptr<FieldStorage>> windows_;  // and rows
    std::vector<StepRow> rows_;
    std::vector<WholeField> whole_;
    std::vector<RunArray> all_;
};

}  // namespace tilewave
