// Multigrid in C++
// ================
//
// ``cpp/multigrid.hpp`` solves Poisson's equation by nests of the C++ API alone: nests over coarse grids with parts of
// finer ones, bound once, run in chains. Copy the header beside your program.
//
// A room stands in a box whose outer boundary is 0. Nothing goes through its walls, cells without material. So nothing
// fixes values in the room: heat that is brought in must be taken out there, else there is no solution.
//
// Run it with ``mpiexec -n 2 ./19_multigrid_in_cpp``.
// sphinx_gallery_thumbnail_path = "gallery/images/sphx_glr_16_multigrid_001.png"
#include <algorithm>
#include <cstdio>

#include "cpp/multigrid.hpp"

int main() {
    constexpr std::int64_t n = 64, low = 20, high = 43;
    tilewave::Context context(tilewave::make_mpi_transport(), 1);
    multigrid::PoissonOptions<2> options;
    options.k = [](const tilewave::Index& cell) {
        const auto first = std::min(cell[0], cell[1]), last = std::max(cell[0], cell[1]);
        return first >= low && last <= high && (first == low || last == high) ? 0.0 : 1.0;
    };
    multigrid::Poisson<2> solver(context, {n, n}, options);

    tilewave::Field<double> heat(context, {n, n}, [](const tilewave::Index& cell) {
        const bool inside = std::min(cell[0], cell[1]) > low && std::max(cell[0], cell[1]) < high;
        return !inside ? 1.0 : cell[0] < n / 2 ? 10.0 : -10.0;
    });
    const std::vector<double> u = solver.solve(heat).gather();
    bool good = solver.norms().back() <= 1e-8 * solver.norms().front();
    if (context.rank() == 0) {
        double sum = 0;
        for (std::int64_t i = low + 1; i < high; ++i)
            for (std::int64_t j = low + 1; j < high; ++j) sum += u[static_cast<std::size_t>(i * n + j)];
        good = good && std::abs(sum) < 1e-9;
        std::printf("%d iterations; the sum in the room is %.1e\n", solver.iterations(), sum);
    }

    tilewave::Field<double> everywhere(context, {n, n}, [](const tilewave::Index&) { return 1.0; });
    try {
        solver.solve(everywhere);
        good = false;
    } catch (const tilewave::ConfigError& error) {
        if (context.rank() == 0) std::printf("%s\n", error.what());
    }
    return good ? 0 : 1;
}
