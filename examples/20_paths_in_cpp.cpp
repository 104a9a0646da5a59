// Paths and alignments in C++
// ===========================
//
// All shortest paths between the nodes of a graph: step k of the nest reads row k and column k of the matrix that it
// writes, its pivot. Then the best local alignment of two sequences: of its table, which is never stored, a run keeps a
// rolling window, and the one number that is wanted is reduced on the way. Sequences are looked up by the loop indices.
//
// Run it with ``mpiexec -n 2 ./20_paths_in_cpp [THREADS]``.
// sphinx_gallery_thumbnail_path = "gallery/images/sphx_glr_01_first_nest_001.png"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "tilewave/tilewave.hpp"

namespace {

// A ring of nodes with some longer streets across.
float street(std::int64_t from, std::int64_t to, std::int64_t nodes) {
    if (from == to) return 0;
    if ((from + 1) % nodes == to || (to + 1) % nodes == from) return 1;
    return (from * 31 + to * 17) % 23 == 0 ? 3 : 1e6f;
}

std::string sequence(std::int64_t length, std::uint32_t seed) {
    std::string letters;
    for (std::int64_t k = 0; k < length; ++k) letters += "ACGT"[(seed = seed * 1664525u + 1013904223u) >> 30];
    return letters;
}

}  // namespace

int main(int argc, char** argv) {
    tilewave::Context context(tilewave::make_mpi_transport(), argc > 1 ? std::atoi(argv[1]) : 1);

    const std::int64_t nodes = 400;
    tilewave::Field<float> D(context, {nodes, nodes},
                             [&](const tilewave::Index& at) { return street(at[0], at[1], nodes); });
    tilewave::run(context, {}, [](auto d) { return std::min(d.point(), d.column() + d.row()); }, tilewave::pivots(D));
    const double mean = D.sum() / static_cast<double>(nodes * nodes);

    const std::int64_t length = 3000;
    const std::string a = sequence(length, 1), b = sequence(length, 2);
    const tilewave::Window<int> table({length + 1, length + 1}, [](const tilewave::Index&) { return 0; });
    constexpr auto before = tilewave::reads({-1, -1}, {-1, 0}, {0, -1});
    const tilewave::Report report =
        tilewave::run(context, {},
                      tilewave::reducing<int>({tilewave::Reduction::max},
                                              [&](auto h, auto at) {
                                                  const int match = a[at(0) - 1] == b[at(1) - 1] ? 2 : -1;
                                                  const int gap = std::max(h(-1, 0), h(0, -1)) - 1;
                                                  const int best = std::max({0, h(-1, -1) + match, gap});
                                                  return std::tuple(best, best);
                                              }),
                      tilewave::writes<before>(table), tilewave::indices());

    if (context.rank() == 0)
        std::printf("mean path      %.4f\nbest alignment %d\n%s", mean, report.reduced[0].value<int>(),
                    report.to_string().c_str());
}
