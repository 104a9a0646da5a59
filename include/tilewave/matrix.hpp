// Matrices in the caller's memory: what communication patterns move.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tilewave {

/// Patterns move all of them; arrays of nests have no complex numbers and no b1.
enum class Dtype : std::uint8_t { f4, f8, c8, c16, i4, i8, u1, i1, i2, b1 };
constexpr std::int64_t item_bytes(Dtype type) {
    constexpr std::int64_t bytes[] = {4, 8, 8, 16, 4, 8, 1, 1, 2, 1};
    return bytes[static_cast<int>(type)];
}
/// "float32", "complex128", ...: NumPy's names.
const char* to_string(Dtype type);

/// How a reduction joins two values. min and max: as NumPy's minimum and maximum (NaN wins); not
/// for complex types; of b1 they alone: "all" and "any". Integers wrap. user: a function of the caller's.
enum class Reduction : std::uint8_t { sum, prod, min, max, user };
const char* to_string(Reduction op);

/// The four patterns in which all ranks take part.
enum class PatternKind : std::uint8_t { broadcast, reduce, spread, multi_reduce };
const char* to_string(PatternKind kind);

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
};

}  // namespace tilewave
