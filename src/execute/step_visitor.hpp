// Elements that a run changes or notes after each time step: the lane that computes one visits it, and no lanes meet.
#pragma once
#include <vector>

#include "execute/array_memory.hpp"

namespace tilewave {

/// element = element + weight * value, rounded where it is stored. An integer has no weight.
using AddItem = void (*)(std::byte* element, const std::byte* value, double weight);

class StepVisitor {
public:
    /// Of arrays with time buffers that `work` writes; of loops whose first index is time, which z begins with, too.
    explicit StepVisitor(const NestWork& work);

    /// Where the values of some points of one array go, or come from: a row a time step, an item a point.
    struct Values {
        int place = 0;  ///< that writes the array
        std::byte* first = nullptr;
        std::int64_t item_bytes = 0, points = 0;
        AddItem add = nullptr;  ///< null: they are noted
    };
    /// From here on elements belong to these values.
    void begin(const Values& values) { all_.push_back({values, 0, {}}); }
    /// The element that the point `x` writes has a column; x[0] does not matter. One that has several is visited for
    /// each in the order in which they came.
    void add(const Index& x, std::int64_t column, double weight = 1);
    /// After the last add().
    void sort();
    bool empty() const { return empty_; }

    /// Visits what the points of a tile have written that has just been computed. `first_time`: of the tile's block.
    /// `work`: the one it was made of, perhaps with other numbers of arrays.
    /// @pre of one time step
    void visit(const NestWork& work, const Box& tile, std::int64_t first_time, const ArrayMemory& memory) const;

private:
    struct Element {
        Index point;  // z at time 0
        std::int64_t column;
        double weight;
    };
    // Those of one array, sorted along the dimension of z in which they lie furthest from each other: few are near a
    // tile.
    struct Elements {
        Values values;
        int along = 0;
        std::vector<Element> list;
    };
    IndexMatrix to_z_;
    Index later_;  // from a point to the same at the next time step
    std::vector<Elements> all_;
    bool empty_ = true;
};

}  // namespace tilewave
