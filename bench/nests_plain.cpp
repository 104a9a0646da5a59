// What `tilewave bench nests` is compared with: plain loops, the best OpenMP versions, and memory alone.
// Compiled when the benchmark runs: g++ -O3 -march=native -ffp-contract=off -fno-math-errno -fopenmp.
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

using Size = std::int64_t;

// --- A[i,j] = A[i-1,j] + A[i,j-1] - A[i-1,j-1] ----------------------------------------------------

static void rows_of(double* A, Size n, Size i0, Size i1, Size j0, Size j1) {
    for (Size i = i0; i < i1; ++i) {
        double* a = A + i * n;
        const double* up = a - n;
        for (Size j = j0; j < j1; ++j) a[j] = up[j] + a[j - 1] - up[j - 1];
    }
}

// Four rows at once, row r one column behind row r - 1, all between them in registers.
static void jammed_rows_of(double* A, Size n, Size i0, Size i1, Size j0, Size j1) {
    constexpr int R = 4;
    Size i = i0;
    for (; j1 - j0 > 2 * R && i + R <= i1; i += R) {
        double *a = A + i * n, last[R], before[R], fresh[R];
        for (int r = 0; r < R - 1; ++r) rows_of(A, n, i + r, i + r + 1, j0, j0 + R - 1 - r);
        Size c = j0 + R - 1;
        for (int r = 0; r < R; ++r) last[r] = a[r * n + c - r - 1], before[r] = a[r * n + c - r - 2];
        for (; c < j1; ++c) {
            fresh[0] = a[c - n] + last[0] - a[c - 1 - n];
            for (int r = 1; r < R; ++r) fresh[r] = last[r - 1] + last[r] - before[r - 1];
            for (int r = 0; r < R; ++r) before[r] = last[r], last[r] = fresh[r], a[r * n + c - r] = fresh[r];
        }
        for (int r = 1; r < R; ++r) rows_of(A, n, i + r, i + r + 1, j1 - r, j1);
    }
    rows_of(A, n, i, i1, j0, j1);
}

struct alignas(64) Count {
    std::atomic<Size> done{0};
};

static void wait_for(const Count& count, Size value) {
    for (int spins = 0; count.done.load(std::memory_order_acquire) < value; ++spins)
        if (spins > 200000) sched_yield();  // the other thread may be waiting for this core
}

extern "C" void recurrence(double* A, Size n) {
    rows_of(A, n, 1, n, 1, n);
}
extern "C" void recurrence_jammed(double* A, Size n) {
    jammed_rows_of(A, n, 1, n, 1, n);
}
// Threads take the rows of blocks in turn; a block waits for the one above it.
extern "C" void recurrence_jammed_omp(double* A, Size n) {
    const Size height = 64, width = 512, down = (n - 2) / height + 1, across = (n - 2) / width + 1;
    std::vector<Count> blocks(down);
#pragma omp parallel num_threads(2)
    for (Size i = omp_get_thread_num(); i < down; i += omp_get_num_threads())
        for (Size j = 0; j < across; ++j) {
            if (i > 0) wait_for(blocks[i - 1], j + 1);
            jammed_rows_of(A, n, 1 + i * height, std::min(n, 1 + (i + 1) * height), 1 + j * width,
                           std::min(n, 1 + (j + 1) * width));
            blocks[i].done.store(j + 1, std::memory_order_release);
        }
}

// Threads that have slept take long to come: called before what is timed.
extern "C" void wake() {
#pragma omp parallel num_threads(2)
    asm volatile("" ::: "memory");
}

// The memory's share of such a sweep: each line is read and written back once.
extern "C" void update(double* A, Size n, Size threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (Size x = 0; x < n * n; ++x) A[x] *= 0.999;
}

// --- others ---------------------------------------------------------------------------------------

// Scores of pairs of sequences by a function of parasail's, which returns a structure that the score begins.
extern "C" void parasail_scores(int* (*align)(const char*, int, const char*, int, int, int, const void*),
                                void (*release)(int*), const char* a, const char* b, Size pairs, Size n, Size m,
                                Size start, Size extend, const void* matrix, Size threads, int* scores) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64)
    for (Size p = 0; p < pairs; ++p) {
        int* result = align(a + p * n, n, b + p * m, m, start, extend, matrix);
        scores[p] = *result;
        release(result);
    }
}

// --- Gauss-Seidel sweeps over n^3 points ----------------------------------------------------------

static void gauss_seidel_line(double* u, Size n, Size i, Size j) {
    double* a = u + (i * n + j) * n;
    for (Size k = 1; k < n - 1; ++k)
        a[k] = (a[k - n * n] + a[k + n * n] + a[k - n] + a[k + n] + a[k + 1] + a[k - 1]) * 0.16;
}

// Lines j and j + 1 of a plane, the second one point behind, as are those of Treibig, Wellein and Hager (2010): what no
// point of the lines waits for is summed before, in vectors.
static void gauss_seidel_lines(double* u, Size n, Size i, Size j, double* sums) {
    double *a = u + (i * n + j) * n, *b = a + n, *c = sums + n;
    for (Size k = 1; k < n - 1; ++k) sums[k] = a[k - n * n] + a[k + n * n] + a[k - n] + a[k + n] + a[k + 1];
    for (Size k = 1; k < n - 1; ++k) c[k] = b[k - n * n] + b[k + n * n];
    double left = a[0], below = b[0];
    a[1] = left = (sums[1] + left) * 0.16;
    for (Size k = 2; k < n - 1; ++k) {
        b[k - 1] = below = (c[k - 1] + left + b[k - 1 + n] + b[k] + below) * 0.16;
        a[k] = left = (sums[k] + left) * 0.16;
    }
    b[n - 2] = (c[n - 2] + left + b[n - 2 + n] + b[n - 1] + below) * 0.16;
}

extern "C" void gauss_seidel(double* u, Size n, Size sweeps) {
    for (Size t = 0; t < sweeps; ++t)
        for (Size i = 1; i < n - 1; ++i)
            for (Size j = 1; j < n - 1; ++j) gauss_seidel_line(u, n, i, j);
}

// A wavefront in time: sweep t follows sweep t - 1, run by the thread before, a plane behind it; one thread takes
// `together` sweeps in turn, plane by plane.
extern "C" void gauss_seidel_wavefront(double* u, Size n, Size sweeps, Size together, Size threads) {
    const Size groups = (sweeps + together - 1) / together;
    std::vector<Count> planes(groups);
#pragma omp parallel num_threads(threads)
    {
        std::vector<double> sums(2 * n);
        for (Size g = omp_get_thread_num(); g < groups; g += omp_get_num_threads()) {
            const Size first = g * together, own = std::min(together, sweeps - first), last = n - 2;
            for (Size front = 1; front < last + own; ++front) {
                if (g > 0) wait_for(planes[g - 1], std::min(front + 1, last));
                for (Size t = 0; t < own; ++t) {
                    const Size i = front - t;
                    if (i < 1 || i > last) continue;
                    Size j = 1;
                    for (; j + 1 < n - 1; j += 2) gauss_seidel_lines(u, n, i, j, sums.data());
                    for (; j < n - 1; ++j) gauss_seidel_line(u, n, i, j);
                    if (t == own - 1) planes[g].done.store(i, std::memory_order_release);
                }
            }
        }
    }
}
