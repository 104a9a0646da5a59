// The fast paths, and the rewrites of calls, each declared once. Their names in TILEWAVE_WITHOUT, in errors and in
// Python are made from this list.
#pragma once
#include <cstdint>
#include <string>

namespace tilewave {

// clang-format off
/// X(name, what it does). Results do not depend on paths, bit for bit. To add a path, add a line, and ask without()
/// where it is taken. A choice of a plan that the user gives is obeyed also where its path is off. Calls of the BLAS
/// library are no paths: their results differ in the last bits.
#define TILEWAVE_FAST_PATHS(X) \
    X(windows, "rolling windows: arrays that nobody reads after the run have memory for the rows still needed") \
    X(rows_together, "several rows to a call of the kernel") \
    X(layers, "the rows of neighbouring layers in turn, each layer a row behind the one before") \
    X(simd_rows, "rows whose points depend on each other, a SIMD lane each") \
    X(wide_rows, "rows of independent points in explicit vectors, with prefetches") \
    X(residues, "rows of points that a condition on the indices makes independent, as those of one colour") \
    X(strips, "NumPy's functions of whole strips of a row") \
    X(powers, "powers with literal exponents 2, 3, 4, 0.5, -1 without the C library's pow, where its bits are sure") \
    X(permuted, "look-ups in small tables by permutations of bytes") \
    X(row_check, "one check of a row's look-ups before its loop") \
    X(bests, "a row's largest or smallest value by the kernel, for reductions") \
    X(order_free, "updates whose order does not matter, as S[i] = max(S[i], h), by rows in any order") \
    X(batches, "nests of many equal problems with a problem in each SIMD lane, and tables in rolling windows") \
    X(unreduced, "kernels without reductions for the repetitions whose reductions nobody looks at") \
    X(skewed, "storage in which the independent points across two loops are neighbours") \
    X(temporal_blocks, "several time steps of a tile, or for one exchange of halos") \
    X(lent_lanes, "lanes of one rank whose next steps another thread takes, where their own has no CPU") \
    X(aggregate, "the messages of several tiles as one") \
    X(piggyback, "small matrices of patterns go with the comparison of the arguments") \
    X(shared, "shared memory between the ranks of a host") \
    X(halos_stay, "fields keep the halos that one nest wants while others run that need less") \
    X(fused_nests, "tiles of a chain's nests in turn, over several repetitions, while their elements are in cache") \
    X(chain_layouts, "plans of a chain for which its arrays keep one layout") \
    X(straight_combines, "the last combination of a pattern writes where the result goes") \
    X(in_transport, "exchanges of halos pack into the transport's memory") \
    X(backwards, "time that runs backwards as time that runs forwards; refused without it") \
    X(strides, "loops over the points of a stride alone; without it a condition keeps the others out") \
    X(reductions, "values of points for `reduce=`, which no array has; refused without it") \
    X(step_rows, "time steps that write one row together; without it each by itself")
// clang-format on

/// One of them.
enum class FastPath : int {
#define TILEWAVE_PATH(name, text) name,
    TILEWAVE_FAST_PATHS(TILEWAVE_PATH)
#undef TILEWAVE_PATH
};

/// Those that are switched off, a bit each.
using PathsOff = std::uint32_t;

/// Whether a path is among those that are switched off.
constexpr bool without(PathsOff off, FastPath path) {
    return (off >> static_cast<int>(path) & 1) != 0;
}

/// The paths of names between commas, as in "windows,shared"; of an empty text none.
/// @throws ConfigError for a name that no path has
PathsOff paths_off(const std::string& names);
/// Their names, in the order of the list, with commas.
std::string names_of(PathsOff off);

}  // namespace tilewave
