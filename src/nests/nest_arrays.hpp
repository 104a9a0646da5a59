// The arrays of a nest of a C++ program, as a prepared sweep takes them.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "nests/prepared_sweep.hpp"
#include "tilewave/nest.hpp"

namespace tilewave {

/// Fields; copies of those that each rank needs whole; and windows, either what they begin with, or whole where a
/// rolling window is not enough.
class NestArrays {
public:
    /// `operands`: by array of the problem. Local.
    NestArrays(Context& context, std::span<const ArrayReads> given, std::span<const NestOperandPart> operands,
               const PreparedSweep& sweep);
    const std::vector<RunArray>& all() const { return all_; }
    bool has_copies() const { return !copies_.empty(); }
    bool has_windows() const { return !initial_.empty() || !stored_.empty(); }
    /// Before each run: windows that are stored whole are as they begin. Local.
    void begin();
    /// Before each run: what each rank needs whole is as it is now. Collective where has_copies().
    void copy_again(Context& context);

private:
    struct Stored {
        std::unique_ptr<FieldStorage> field;
        const WindowArray* window;
    };
    struct Copy {
        FieldStorage* field;
        std::vector<std::byte> memory;
    };
    Binding copy_of(const ArrayReads& array, const NestOperandPart& part);

    std::vector<std::vector<std::byte>> initial_;
    std::vector<Stored> stored_;
    std::vector<Copy> copies_;
    std::vector<RunArray> all_;
};

}  // namespace tilewave
