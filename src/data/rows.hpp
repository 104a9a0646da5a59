// Moving and combining boxes of items in strided memory: what pack, unpack and combine steps do.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tilewave/engine/matrix.hpp"
#include "tilewave/index.hpp"

namespace tilewave {

/// Copies a box of `extents` items between two places that do not overlap. Strides may be of any
/// order and sign; those of extents of 1 do not matter. No dimensions are one item. Nothing need be
/// aligned. Fast where items are next to each other along one dimension or one direction on each side:
/// rows, transposed and skewed storage.
void copy_box(std::byte* to, const Index& to_stride_bytes, const std::byte* from, const Index& from_stride_bytes,
              const Index& extents, std::int64_t item_bytes);

/// `bytes` bytes from one place to another that does not overlap it.
void copy_run(std::byte* to, const std::byte* from, std::int64_t bytes);

/// Bytes [at, at + n) of the matrix as it is without gaps between rows, to (`pack`) or from `data`.
void copy_range(const MatrixView& m, std::int64_t at, std::byte* data, std::int64_t n, bool pack);

/// n items: into[i] = left[i] op right[i]. `into` may be `left` or `right`, but not overlap them
/// otherwise. Nothing need be aligned. False: it failed.
using CombineRow = bool (*)(std::byte* into, const std::byte* left, const std::byte* right, std::int64_t n, void* env);

/// The row function of a built-in reduction (env unused); null for min and max of complex types
/// and for user. The bits are NumPy's, except of NaNs that arithmetic makes and of complex products
/// where NumPy fuses multiply and add.
CombineRow combine_row(Reduction op, Dtype type);

}  // namespace tilewave
