// Plain loops of `bench several`: the nests of a time step in turn, and by hand in one loop over rows.
#include <cstdint>

namespace {

using Size = std::int64_t;
using Real = double;

void height(Real* __restrict h, const Real* u, const Real* v, Size n, Size i, Size below) {
    for (Size j = 0; j < n - 1; ++j)
        h[i * n + j] = h[i * n + j] - 0.1 * (u[below * n + j] - u[i * n + j] + v[i * n + j + 1] - v[i * n + j]);
}
void zonal(Real* __restrict u, const Real* h, Size n, Size i, Size above) {
    for (Size j = 0; j < n; ++j) u[i * n + j] = u[i * n + j] - 0.1 * (h[i * n + j] - h[above * n + j]);
}
void meridional(Real* __restrict v, const Real* h, Size n, Size i) {
    for (Size j = 1; j < n; ++j) v[i * n + j] = v[i * n + j] - 0.1 * (h[i * n + j] - h[i * n + j - 1]);
}

}  // namespace

extern "C" {

void shallow_water(Real** a, Size n, Size steps, int periodic) {
    for (Size t = 0; t < steps; ++t) {
        for (Size i = 0; i < n - 1; ++i) height(a[0], a[1], a[2], n, i, i + 1);
        if (periodic) height(a[0], a[1], a[2], n, n - 1, 0);
        if (periodic) zonal(a[1], a[0], n, 0, n - 1);
        for (Size i = 1; i < n; ++i) zonal(a[1], a[0], n, i, i - 1);
        for (Size i = 0; i < n; ++i) meridional(a[2], a[0], n, i);
    }
}

void shallow_water_fused(Real** a, Size n, Size steps, int periodic) {
    for (Size t = 0; t < steps; ++t) {
        if (periodic) height(a[0], a[1], a[2], n, n - 1, 0);
        for (Size i = 0; i < n; ++i) {
            if (i < n - 1) height(a[0], a[1], a[2], n, i, i + 1);
            if (i > 0 || periodic) zonal(a[1], a[0], n, i, i > 0 ? i - 1 : n - 1);
            meridional(a[2], a[0], n, i);
        }
    }
}

static void electric(Real* __restrict e, const Real* x, const Real* y, Size n, Size i) {
    for (Size j = 1; j < n; ++j)
        e[i * n + j] = e[i * n + j] + 0.5 * (y[i * n + j] - y[(i - 1) * n + j] - x[i * n + j] + x[i * n + j - 1]);
}
static void magnetic_x(Real* __restrict x, const Real* e, Size n, Size i) {
    for (Size j = 0; j < n - 1; ++j) x[i * n + j] = x[i * n + j] - 0.5 * (e[i * n + j + 1] - e[i * n + j]);
}
static void magnetic_y(Real* __restrict y, const Real* e, Size n, Size i) {
    for (Size j = 0; j < n; ++j) y[i * n + j] = y[i * n + j] + 0.5 * (e[(i + 1) * n + j] - e[i * n + j]);
}

void yee(Real** a, Size n, Size steps, int) {
    for (Size t = 0; t < steps; ++t) {
        for (Size i = 1; i < n; ++i) electric(a[0], a[1], a[2], n, i);
        for (Size i = 0; i < n; ++i) magnetic_x(a[1], a[0], n, i);
        for (Size i = 0; i < n - 1; ++i) magnetic_y(a[2], a[0], n, i);
    }
}

void yee_fused(Real** a, Size n, Size steps, int) {
    for (Size t = 0; t < steps; ++t)
        for (Size i = 0; i < n; ++i) {
            if (i > 0) electric(a[0], a[1], a[2], n, i);
            magnetic_x(a[1], a[0], n, i);
            if (i > 0) magnetic_y(a[2], a[0], n, i - 1);
        }
}

static void velocity(Real* __restrict p, Real* __restrict q, const Real* x, const Real* y, const Real* s, Size n,
                     Size i) {
    for (Size j = 1; j < n - 1; ++j) {
        const Size k = i * n + j;
        p[k] = p[k] + 0.2 * (x[k + n] - x[k] + s[k] - s[k - 1]);
        q[k] = q[k] + 0.2 * (s[k] - s[k - n] + y[k + 1] - y[k]);
    }
}
static void stress(Real* __restrict x, Real* __restrict y, Real* __restrict s, const Real* p, const Real* q, Size n,
                   Size i) {
    for (Size j = 1; j < n - 1; ++j) {
        const Size k = i * n + j;
        const Real a = p[k] - p[k - n], b = q[k] - q[k - 1];
        x[k] = x[k] + 0.3 * a + 0.1 * b;
        y[k] = y[k] + 0.1 * a + 0.3 * b;
        s[k] = s[k] + 0.1 * (p[k + 1] - p[k] + q[k + n] - q[k]);
    }
}

void elastic_waves(Real** a, Size n, Size steps, int) {
    for (Size t = 0; t < steps; ++t) {
        for (Size i = 1; i < n - 1; ++i) velocity(a[0], a[1], a[2], a[3], a[4], n, i);
        for (Size i = 1; i < n - 1; ++i) stress(a[2], a[3], a[4], a[0], a[1], n, i);
    }
}

void elastic_waves_fused(Real** a, Size n, Size steps, int) {
    for (Size t = 0; t < steps; ++t)
        for (Size i = 1; i < n; ++i) {
            if (i < n - 1) velocity(a[0], a[1], a[2], a[3], a[4], n, i);
            if (i > 1) stress(a[2], a[3], a[4], a[0], a[1], n, i - 1);
        }
}
}
