// Stencils in time as plain loops: contenders of `bench stencils`. Two time buffers; the outermost points stay.
// Blocks of rows over the outer two loops, whole rows inside; OpenMP shares the blocks.
#include <algorithm>
#include <cstdint>
#include <utility>

using Size = std::int64_t;

namespace {

struct Heat {
    static constexpr Size radius = 1;
    static float at(const float* u, Size p, Size i, Size j) {
        return u[p] + 0.1f * (u[p - i] + u[p + i] + u[p - j] + u[p + j] + u[p - 1] + u[p + 1] - 6.0f * u[p]);
    }
};

struct Order8 {
    static constexpr Size radius = 4;
    static float ring(const float* u, Size p, Size i, Size j, Size r) {
        return u[p - r * i] + u[p + r * i] + u[p - r * j] + u[p + r * j] + u[p - r] + u[p + r];
    }
    static float at(const float* u, Size p, Size i, Size j) {
        return u[p] + 0.05f * (-8.541666667f * u[p] + 1.6f * ring(u, p, i, j, 1) - 0.2f * ring(u, p, i, j, 2) +
                               0.025396825f * ring(u, p, i, j, 3) - 0.001785714f * ring(u, p, i, j, 4));
    }
};

template <class Stencil>
void run(float* now, float* next, Size n, Size steps, Size height, Size width, int threads) {
    constexpr Size r = Stencil::radius;
    for (Size t = 0; t < steps; ++t, std::swap(now, next)) {
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads)
        for (Size i0 = r; i0 < n - r; i0 += height)
            for (Size j0 = r; j0 < n - r; j0 += width)
                for (Size i = i0; i < std::min(i0 + height, n - r); ++i)
                    for (Size j = j0; j < std::min(j0 + width, n - r); ++j) {
                        const Size row = (i * n + j) * n;
#pragma omp simd
                        for (Size k = r; k < n - r; ++k) next[row + k] = Stencil::at(now, row + k, n * n, n);
                    }
    }
}

}  // namespace

extern "C" void heat(float* now, float* next, Size n, Size steps, Size height, Size width, int threads) {
    run<Heat>(now, next, n, steps, height, width, threads);
}

extern "C" void order8(float* now, float* next, Size n, Size steps, Size height, Size width, int threads) {
    run<Order8>(now, next, n, steps, height, width, threads);
}
