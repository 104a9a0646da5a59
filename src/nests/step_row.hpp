// Rows of arrays that nests write for several time steps.
#pragma once
#include <vector>

#include "run/collective_run.hpp"
#include "tilewave/field.hpp"

namespace tilewave {

/// An array of a nest that stands for a row, along dimension 0, of a larger array: of two fields, or of memory that one
/// rank has.
struct StepRow {
    FieldStorage* whole = nullptr;  ///< null: memory
    FieldStorage* part = nullptr;
    Binding whole_memory = {}, part_memory = {};
    Index extents = {};  ///< of a row in memory
    std::int64_t item_bytes = 0;
    /// Others have the larger array or the same row, too: it is up to date after each run of the nest.
    bool shared = false;

    /// Brings the larger field to where the ranks have the part. Collective; free where it is there.
    void place();
    bool is_placed() const;
    /// Copies a row to the part, or `back`; local. @pre is_placed()
    void move(std::int64_t row, bool back) const;

private:
    Layout wanted() const;
};

/// The run of a sweep in a repetition of a chain.
struct ChainTurn {
    std::size_t sweep = 0;
    std::int64_t first_step = 0;                       ///< of time, where repetitions are no time steps
    std::optional<std::int64_t> steps = {};            ///< of time, as BoundSweep::run
    bool more = false;                                 ///< goes on with the time steps of the turn before
    std::vector<std::vector<std::int64_t>> rows = {};  ///< by StepRow of the chain, where it has any: one, or by step
};

/// The rows that a run of turns has taken from larger arrays.
class TakenRows {
public:
    explicit TakenRows(std::vector<StepRow>& rows) : rows_(rows), taken_(rows.size(), none) {}
    /// Takes the rows of a turn in a time step, and puts back others. Part of a run; collective where it moves fields.
    void take(CollectiveRun& run, const ChainTurn& turn, std::int64_t step);
    /// Puts back those that others want, or all. Part of a run; local.
    void put_back(CollectiveRun& run, bool all);

private:
    static constexpr std::int64_t none = -1;
    std::vector<StepRow>& rows_;
    std::vector<std::int64_t> taken_;
};

}  // namespace tilewave
