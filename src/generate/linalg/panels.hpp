// The panels of a product: which part of a matrix moves, among whom, and what it is multiplied with.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "generate/linalg/matmul.hpp"

namespace tilewave {

/// A product of fewer rows or columns loses speed: OpenBLAS works on up to 32 of them at once (its unroll factors).
inline constexpr std::int64_t least_side = 32;

/// A panel of A or B that moves along a row or a column of the grid, or along all ranks.
struct MovingPanel {
    int root = 0;  ///< place within the group
    Box source;    ///< of the matrix, on the root
    std::int32_t array = moving_a;
    Box region;  ///< of the moving array: panel number, then the strided dimension, then the contiguous one
};

/// What a rank does with one panel.
struct PanelStep {
    std::optional<MovingPanel> a, b;
    Region left, right;  ///< as the product reads them: of moving arrays, or of the matrices
    Box c;
    std::int64_t depth = 0;  ///< extent of the common dimension
    bool first = false;      ///< nothing was added to this part of C yet
    int right_columns = 1;   ///< the dimension of right's box that counts columns of C
};

/// An interval of the common dimension, or of B's columns, that lies on one part of either axis.
struct Interval {
    std::int64_t lo = 0, hi = 0;  ///< global
    std::int64_t extent() const { return hi - lo; }
};
/// All intervals of an axis, in the order in which they are used: ascending, or with the parts taking turns.
std::vector<Interval> intervals(const Axis& one, const Axis& other, std::int64_t most, bool turns);

/// Some columns of one part of B, and some of the common dimension.
struct ColumnPanel {
    Interval columns, common;
    std::int64_t room = 0;  ///< common elements that its buffer has: as the longest of all panels
};
/// Columns that a panel of B has at most. Where blocks have more than `most`, and there are more common elements,
/// panels are cut along these, as a BLAS is fast on wide pieces of C; else along the columns.
std::int64_t most_columns(const MatmulProblem& problem, std::int64_t most);
/// All of B by columns, in the order in which it is used: blocks of columns ascending, or with the parts taking turns;
/// each in panels of at most `most` common elements, or of at most so many columns.
std::vector<ColumnPanel> column_panels(const MatmulProblem& problem, std::int64_t most, bool turns);

/// The coordinates of Axis::first that an interval has.
std::pair<std::int64_t, std::int64_t> place(const Axis& axis, const Interval& interval);

/// Who sends to whom in a group of ranks, counted from the root.
struct BroadcastPlace {
    int parent = -1;  ///< within the group; -1: the root
    std::vector<int> children;
};
BroadcastPlace broadcast_place(BroadcastTree tree, int size, int root, int me);

/// Panels that can travel while another one is used, of so many in all.
inline int panels_ahead(int lookahead, std::int64_t panels) {
    return static_cast<int>(std::min<std::int64_t>(lookahead, panels));
}

/// The parts of a box of C, so that each takes about `flops`: some of its rows where C lies by rows, or else columns,
/// as a BLAS prefers long ones; along the longer side where these would be few.
std::vector<Box> pieces_of(const Box& c, std::int64_t depth, double flops, int least, bool by_rows);

}  // namespace tilewave
