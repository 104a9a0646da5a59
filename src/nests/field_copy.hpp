// Fields that a nest needs whole.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "run/collective_run.hpp"
#include "tilewave/field.hpp"

namespace tilewave {

/// A field that a nest has whole on each rank that computes: the run's arrays and tables have it as other memory does.
struct WholeField {
    FieldStorage* field = nullptr;
    const std::byte* stand_in = nullptr;  ///< where those begin in what the run was given; never read
    std::vector<int> arrays = {};         ///< of the run, in C order from there on
    int table = -1;                       ///< of the kernel; -1: none
};

/// All elements of a field, on each rank or on rank 0 alone: a copy, or on one rank the field itself where it lies in C
/// order.
class FieldCopy {
public:
    FieldCopy(Context& context, FieldStorage& field, bool everywhere)
        : context_(context), field_(&field), everywhere_(everywhere) {}
    /// Copies the elements as they are now. Part of a run, in which it counts as one meeting; collective.
    void make(CollectiveRun& run, ExecuteOptions options);
    const FieldStorage* field() const { return field_; }
    /// Where element 0 is, after make(); null on a rank that gets none.
    std::byte* data() const;

private:
    bool in_place() const;

    Context& context_;
    FieldStorage* field_;
    bool everywhere_;
    std::shared_ptr<std::byte[]> memory_;
    int version_ = 0;  // of the field, which the schedule is for
    std::optional<Schedule> schedule_;
    std::optional<CachedExecution> execution_;
};

}  // namespace tilewave
