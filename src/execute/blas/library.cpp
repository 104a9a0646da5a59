#include "execute/blas/library.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "execute/lanes/cpu_set.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

namespace {

// Fortran's calling convention: all by address, and the lengths of texts at the end.
using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const void*, const void*,
                      const int*, const void*, const int*, const void*, void*, const int*, std::size_t, std::size_t);

using Potrf = void (*)(const char*, const int*, void*, const int*, int*, std::size_t);
using Getrf = void (*)(const int*, const int*, void*, const int*, int*, int*);
using Geqrt = void (*)(const int*, const int*, const int*, void*, const int*, void*, const int*, void*, int*);
using Trsm = void (*)(const char*, const char*, const char*, const char*, const int*, const int*, const void*,
                      const void*, const int*, void*, const int*, std::size_t, std::size_t, std::size_t, std::size_t);

// OpenBLAS starts its threads when it is loaded: one for each CPU that the loading thread may use. OPENBLAS_NUM_THREADS
// is not set here, as other threads may be reading the environment.
class OnOneCpu {
public:
    OnOneCpu() : before_(CpuSet::of_thread()) {
        for (int cpu = 0; before_ && cpu < before_->size(); ++cpu) {
            if (!before_->has(cpu)) continue;
            CpuSet one(cpu + 1);
            one.add(cpu);
            set(one);
            return;
        }
    }
    ~OnOneCpu() {
        if (before_) set(*before_);
    }
    OnOneCpu(const OnOneCpu&) = delete;
    OnOneCpu& operator=(const OnOneCpu&) = delete;

private:
    // Where it is refused, threads are there that nobody uses.
    static void set(const CpuSet& cpus) { (void)pthread_setaffinity_np(pthread_self(), cpus.bytes(), cpus.get()); }
    std::optional<CpuSet> before_;
};

// One thread for the calls of this thread, and then as many as before.
class OneThread {
public:
    explicit OneThread(int (*set_local)(int)) : set_local_(set_local), before_(set_local ? set_local(1) : 0) {}
    ~OneThread() {
        if (set_local_) (void)set_local_(before_);
    }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

private:
    int (*set_local_)(int);
    int before_;
};

void* find(void* library, const std::string& name) {
    // The names of SciPy's OpenBLAS, then everybody's.
    if (void* f = dlsym(library, ("scipy_" + name).c_str())) return f;
    return dlsym(library, name.c_str());
}

void one_thread(void* library) {
    // MKL takes its parts at the first call: those with 32-bit integers.
    constexpr int lp64 = 0;  // mkl_service.h
    if (void* f = find(library, "MKL_Set_Interface_Layer")) reinterpret_cast<int (*)(int)>(f)(lp64);
    for (const char* name : {"openblas_set_num_threads", "bli_thread_set_num_threads"})
        if (void* f = find(library, name)) reinterpret_cast<void (*)(int)>(f)(1);
}

int letter(Dtype type) {
    switch (type) {
        case Dtype::f4: return 0;
        case Dtype::f8: return 1;
        case Dtype::c8: return 2;
        case Dtype::c16: return 3;
        default:
            throw ConfigError(std::string("BLAS: dtype ") + to_string(type) +
                              " was given; allowed: float32, float64, complex64, complex128");
    }
}

int narrow(std::int64_t n) {
    if (n > std::numeric_limits<int>::max())
        throw ConfigError("BLAS: an extent of " + std::to_string(n) + " was given; allowed: less than 2^31");
    return static_cast<int>(n);
}

// A scalar in the library's type.
struct Scalar {
    alignas(16) std::byte bytes[16];
    Scalar(Dtype type, Complex value) {
        const auto put = [&](auto real, auto imaginary) {
            const decltype(real) both[2] = {real, imaginary};
            std::copy_n(reinterpret_cast<const std::byte*>(both), sizeof both, bytes);
        };
        if (type == Dtype::f4 || type == Dtype::c8)
            put(static_cast<float>(value.real), static_cast<float>(value.imaginary));
        else
            put(value.real, value.imaginary);
    }
};

// A matrix as an argument of BLAS: as it lies, column by column, or transposed.
struct Operand {
    char trans;
    int leading;
    explicit Operand(const BlasMatrix& m, const char* name) {
        // Whether columns are contiguous; a single row or column may count as either.
        const bool columns = m.row_step == 1 && !(m.conjugate && m.column_step == 1);
        if (!columns && m.column_step != 1)
            throw ConfigError(std::string("BLAS: matrix ") + name + " has steps of " + std::to_string(m.row_step) +
                              " and " + std::to_string(m.column_step) + " items; one of them must be 1");
        trans = columns ? 'N' : m.conjugate ? 'C' : 'T';
        // The step across a single row or column does not matter, but BLAS wants one that is long enough.
        leading =
            narrow(std::max<std::int64_t>({columns ? m.column_step : m.row_step, columns ? m.rows : m.columns, 1}));
        if (columns && m.conjugate)
            throw ConfigError(std::string("BLAS: matrix ") + name + " is conjugate and not transposed");
    }
};

// The leading dimension of a matrix with contiguous columns.
int leading_of(const BlasMatrix& m, const char* name) {
    if (m.row_step != 1)
        throw ConfigError(std::string("BLAS: matrix ") + name + " has a step of " + std::to_string(m.row_step) +
                          " items from row to row; allowed: 1");
    return narrow(std::max<std::int64_t>({m.column_step, m.rows, 1}));
}

}  // namespace

std::shared_ptr<const Blas> Blas::load(const std::string& path) {
    void* library = nullptr;
    {
        const OnOneCpu meanwhile;
        library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (!library)
        throw ConfigError("BLAS: " + path + " cannot be loaded: " + dlerror() +
                          "; allowed: a BLAS and LAPACK with 32-bit integers");
    if (void* f = find(library, "openblas_get_config"))
        if (std::strstr(reinterpret_cast<const char* (*)()>(f)(), "USE64BITINT"))
            throw ConfigError("BLAS: " + path +
                              " has integers of 64 bits; allowed: a BLAS and LAPACK with 32-bit integers");
    one_thread(library);
    std::shared_ptr<Blas> made(new Blas);
    made->path_ = path;
    made->set_local_ = reinterpret_cast<int (*)(int)>(find(library, "MKL_Set_Num_Threads_Local"));
    for (const Dtype type : {Dtype::f4, Dtype::f8, Dtype::c8, Dtype::c16}) {
        const auto get = [&](const char* what) {
            const std::string name = "sdcz"[letter(type)] + std::string(what) + "_";
            if (void* f = find(library, name)) return f;
            throw ConfigError("BLAS: " + path + " has no function " + name +
                              "; allowed: a BLAS and LAPACK with 32-bit integers");
        };
        made->gemm_[letter(type)] = get("gemm");
        made->potrf_[letter(type)] = get("potrf");
        made->trsm_[letter(type)] = get("trsm");
        made->getrf_[letter(type)] = get("getrf");
        made->geqrt_[letter(type)] = get("geqrt");
    }
    return made;  // it stays loaded: others may use it
}

void Blas::gemm(Dtype type, Complex alpha, const BlasMatrix& a, const BlasMatrix& b, Complex beta,
                const BlasMatrix& c) const {
    if (c.rows == 0 || c.columns == 0) return;
    // BLAS cannot conjugate without transposing: a C that may count as either is taken as A and B are.
    const auto awkward = [](const BlasMatrix& m) { return m.conjugate && m.column_step != 1; };
    if (c.row_step != 1 || (c.column_step == 1 && (awkward(a) || awkward(b))))
        return product(type, alpha, b.transposed(), a.transposed(), beta, c.transposed());
    product(type, alpha, a, b, beta, c);
}

void Blas::product(Dtype type, Complex alpha, const BlasMatrix& a, const BlasMatrix& b, Complex beta,
                   const BlasMatrix& c) const {
    const Operand left(a, "A"), right(b, "B"), result(c, "C");
    const int m = narrow(c.rows), n = narrow(c.columns), k = narrow(a.columns);
    const Scalar by(type, alpha), old(type, beta);
    const OneThread one_thread(set_local_);
    reinterpret_cast<Gemm>(gemm_[letter(type)])(&left.trans, &right.trans, &m, &n, &k, by.bytes, a.data, &left.leading,
                                                b.data, &right.leading, old.bytes, c.data, &result.leading, 1, 1);
}

std::int64_t Blas::potrf(Dtype type, const BlasMatrix& a) const {
    if (a.rows == 0) return 0;
    const int n = narrow(a.rows), leading = leading_of(a, "A");
    int info = 0;
    const OneThread one_thread(set_local_);
    reinterpret_cast<Potrf>(potrf_[letter(type)])("L", &n, a.data, &leading, &info, 1);
    return info;
}

std::int64_t Blas::getrf(Dtype type, const BlasMatrix& a, int* pivots) const {
    if (a.rows == 0 || a.columns == 0) return 0;
    const int m = narrow(a.rows), n = narrow(a.columns), leading = leading_of(a, "A");
    int info = 0;
    const OneThread one_thread(set_local_);
    reinterpret_cast<Getrf>(getrf_[letter(type)])(&m, &n, a.data, &leading, pivots, &info);
    return info;
}

void Blas::geqrt(Dtype type, const BlasMatrix& a, const BlasMatrix& t) const {
    const int m = narrow(a.rows), n = narrow(a.columns), k = std::min(m, n);
    if (k == 0) return;
    const int of_a = leading_of(a, "A"), of_t = leading_of(t, "T");
    if (t.rows < k || t.columns < k)
        throw ConfigError("BLAS: a triangle of " + std::to_string(t.rows) + " x " + std::to_string(t.columns) +
                          " was given for " + std::to_string(k) + " reflectors; allowed: at least as many");
    std::vector<std::byte> work(static_cast<std::size_t>(item_bytes(type)) * static_cast<std::size_t>(k) *
                                static_cast<std::size_t>(n));
    int info = 0;
    const OneThread one_thread(set_local_);
    reinterpret_cast<Geqrt>(geqrt_[letter(type)])(&m, &n, &k, a.data, &of_a, t.data, &of_t, work.data(), &info);
}

void Blas::trsm(Dtype type, Side side, const TriangularSystem& system, const BlasMatrix& a, const BlasMatrix& b) const {
    if (b.rows == 0 || b.columns == 0) return;
    // A triangle by rows is the transpose, or the adjoint, of what BLAS sees.
    const bool turned = a.row_step != 1 || a.conjugate;
    char op = "NTC"[static_cast<int>(system.op)];
    if (turned) {
        const bool plain = system.op == Transpose::none;
        if (!plain && is_complex(type) && a.conjugate != (system.op == Transpose::adjoint))
            throw ConfigError("BLAS: matrix A is conjugate and not transposed");
        op = !plain ? 'N' : a.conjugate ? 'C' : 'T';
    }
    const int m = narrow(b.rows), n = narrow(b.columns), of_a = leading_of(turned ? a.transposed() : a, "A"),
              of_b = leading_of(b, "B");
    const Scalar one(type, {1, 0});
    const OneThread one_thread(set_local_);
    reinterpret_cast<Trsm>(trsm_[letter(type)])(side == Side::right ? "R" : "L", system.upper != turned ? "U" : "L",
                                                &op, system.unit ? "U" : "N", &m, &n, one.bytes, a.data, &of_a, b.data,
                                                &of_b, 1, 1, 1, 1);
}

}  // namespace tilewave
