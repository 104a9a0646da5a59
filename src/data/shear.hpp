// Copies of matrices whose items are next to each other along different directions on the two sides:
// transpositions, also of sheared matrices (skewed storage).
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave {

/// `rows` rows of `columns` items; row r starts at column r * shear, so that columns hold what is
/// next to each other in skewed storage. One side's items are next to each other along a row
/// (column step = item_bytes), the other's along a column (row step = item_bytes). The sides do not overlap;
/// nothing need be aligned.
struct ShearedMatrix {
    std::int64_t rows, columns, shear;
    std::int64_t to_row, to_column, from_row, from_column;  ///< steps in bytes, at equal column and at equal row
    std::int64_t item_bytes;                                ///< 1, 2, 4, 8 or 16
};

/// Whether there is room for the blocks that copy_sheared works with.
bool blocks_fit(std::int64_t rows, std::int64_t columns, std::int64_t shear, std::int64_t item_bytes);

/// Copies a matrix for which blocks_fit holds; `to` and `from` are the items of row 0, column 0.
void copy_sheared(std::byte* to, const std::byte* from, const ShearedMatrix& matrix);

}  // namespace tilewave
