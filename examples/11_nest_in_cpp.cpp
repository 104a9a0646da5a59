// A nest in C++
// =============
//
// The body is a generic lambda over offsets: three square roots, each of a point computed before. It is the nest of the
// first example, whose timeline is its picture.
//
// Run it with ``mpiexec -n 2 ./11_nest_in_cpp [THREADS]``.
// sphinx_gallery_thumbnail_path = "gallery/images/sphx_glr_01_first_nest_001.png"
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tilewave/tilewave.hpp"

int main(int argc, char** argv) {
    tilewave::Context context(tilewave::make_mpi_transport(), argc > 1 ? std::atoi(argv[1]) : 1);
    tilewave::Field<float> A(context, {64, 64, 2048}, [](const tilewave::Index&) { return 1.0f; });

    constexpr auto before = tilewave::reads({-1, 0, 0}, {0, -1, 0}, {0, 0, -1});
    const tilewave::Report report = tilewave::run(
        context, {}, [](auto a) { return std::sqrt(a(-1, 0, 0)) + std::sqrt(a(0, -1, 0)) + std::sqrt(a(0, 0, -1)); },
        tilewave::writes<before>(A));

    const std::vector<float> whole = A.gather();
    if (context.rank() == 0) {
        std::printf("%slast value     %.6f\n", report.to_string().c_str(), static_cast<double>(whole.back()));
        std::FILE* out = std::fopen("11_nest_in_cpp.json", "w");
        if (!out) return 1;
        const std::string json = report.timeline().chrome_json();
        std::fwrite(json.data(), 1, json.size(), out);
        std::fclose(out);
    }
}
