// Matrices in the caller's memory: what communication patterns move and products multiply.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tilewave/dtype.hpp"

namespace tilewave {

/// How a reduction joins two values. min and max: as NumPy's minimum and maximum (NaN wins); not
/// for complex types. b1 has only these two, as "all" and "any". Integers wrap. user: a function of the caller's.
enum class Reduction : std::uint8_t { sum, prod, min, max, user };
const char* to_string(Reduction op);

/// The four patterns in which all ranks take part.
enum class PatternKind : std::uint8_t { broadcast, reduce, spread, multi_reduce };
const char* to_string(PatternKind kind);

/// A factor of a product: as it is, transposed, or transposed and conjugate.
enum class Transpose : std::uint8_t { none, transposed, adjoint };

/// rows x cols items at unit column stride; the start of each row lies row_stride_bytes after that
/// of the one before. The bytes between rows are never touched.
struct MatrixView {
    std::byte* data = nullptr;
    std::int64_t rows = 0, cols = 0, row_stride_bytes = 0;
    Dtype type = Dtype::f8;

    std::int64_t item_bytes() const { return tilewave::item_bytes(type); }
    std::int64_t row_bytes() const { return cols * item_bytes(); }
    std::int64_t bytes() const { return rows * row_bytes(); }
    bool contiguous() const { return rows <= 1 || row_stride_bytes == row_bytes(); }
    /// Columns [first, first + count).
    MatrixView columns(std::int64_t first, std::int64_t count) const {
        return {data + first * item_bytes(), rows, count, row_stride_bytes, type};
    }
};

}  // namespace tilewave
