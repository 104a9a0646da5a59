#include "measure/product_rates.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/clock.hpp"
#include "execute/blas/tasks.hpp"
#include "measure/cold_caches.hpp"
#include "measure/tuning.hpp"
#include "tilewave/dtype.hpp"

namespace tilewave {

namespace {

// To two binary digits behind the first: shapes that are nearly equal share a measurement.
std::int64_t rounded(std::int64_t n) {
    const int digits = std::bit_width(static_cast<std::uint64_t>(n));
    const std::int64_t step = std::int64_t{1} << std::max(0, digits - 3);
    return std::max<std::int64_t>(1, (n + step / 2) / step * step);
}

double copy_seconds(Dtype type) {
    constexpr int times = 3;
    constexpr std::int64_t n = tuning::copied_side;
    const std::size_t bytes = static_cast<std::size_t>(n * n * item_bytes(type));
    std::vector<std::byte> from(bytes), to(bytes);
    double best = 1e300;
    for (int i = 0; i < times; ++i) {
        const double begin = now_s();
        copy_matrix(type, {from.data(), n, n, 1, n}, {to.data(), n, n, n, 1});
        best = std::min(best, now_s() - begin);
    }
    return best / static_cast<double>(bytes);
}

std::mutex lock;

}  // namespace

// Seconds of a product of m x n x k that is a piece of a larger one of M x N x k, in the midst of the other pieces: its
// operands have the strides of the larger ones. Pieces follow each other along the rows, or where a piece has all rows,
// along the columns, so that each finds in the caches what the one before left there. What as many bytes as the larger
// product has displace is gone at first, since a run comes back to a piece when it has been at all others. The median
// of some.
double time_piece(const Blas& blas, Dtype type, const ProductShape& shape) {
    constexpr double long_enough_s = 15e-3;
    constexpr int least = 4, most = 9;
    const auto [m, n, k] = shape.piece;
    const std::int64_t item = item_bytes(type), M = std::max(shape.whole[0], m), N = std::max(shape.whole[1], n);
    std::vector<std::byte> a(static_cast<std::size_t>(M * k * item)), b(static_cast<std::size_t>(k * N * item)),
        c(static_cast<std::size_t>(M * N * item));
    const bool down = M >= 2 * m;
    const std::int64_t count = down ? M / m : N / n;
    std::vector<double> seconds;
    double spent = 0;
    sweep_caches((M * N + M * k + k * N) * item);
    for (int i = 0; i < most && (i < least || spent < long_enough_s); ++i) {
        const std::int64_t row = down ? i % count * m : 0, column = down ? 0 : i % count * n;
        const BlasMatrix left = shape.a_by_rows ? BlasMatrix{a.data() + row * k * item, m, k, k, 1}
                                                : BlasMatrix{a.data() + row * item, m, k, 1, M};
        const BlasMatrix right = shape.b_by_rows ? BlasMatrix{b.data() + column * item, k, n, N, 1}
                                                 : BlasMatrix{b.data() + column * k * item, k, n, 1, k};
        const BlasMatrix into = shape.c_by_rows ? BlasMatrix{c.data() + (row * N + column) * item, m, n, N, 1}
                                                : BlasMatrix{c.data() + (row + column * M) * item, m, n, 1, M};
        const double begin = cpu_s();
        blas.gemm(type, {1, 0}, left, right, {shape.adds ? 1.0 : 0.0, 0}, into);
        seconds.push_back(cpu_s() - begin);
        spent += seconds.back();
    }
    seconds.erase(seconds.begin());  // the first one wakes the library
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2];
}

OperationRate product_rate(const std::shared_ptr<const Blas>& blas, Dtype type, ProductShape shape) {
    using Key =
        std::tuple<std::string, Dtype, std::array<std::int64_t, 3>, std::array<std::int64_t, 2>, std::array<bool, 4>>;
    static std::map<Key, double> known;
    auto& [rows, columns, depth] = shape.piece;
    for (std::int64_t* n : {&rows, &columns, &depth, &shape.whole[0], &shape.whole[1]}) *n = rounded(*n);
    const auto flops = [&] { return 2.0 * static_cast<double>(rows) * static_cast<double>(columns * depth); };
    while (flops() > tuning::product_flops) {
        std::int64_t& longest = *std::ranges::max_element(shape.piece);
        longest = std::max<std::int64_t>(1, longest / 2);
    }
    // The operands in memory: fewer rows and columns than the whole has where they would be too many.
    const std::int64_t items = tuning::most_caches_bytes / item_bytes(type),
                       most = std::max<std::int64_t>(1, items / depth);
    shape.whole[0] = std::max(rows, std::min(shape.whole[0], most));
    shape.whole[1] = std::max(columns, std::min(shape.whole[1], most));
    if (shape.whole[0] * shape.whole[1] > items) shape.whole[1] = std::max(columns, items / shape.whole[0]);
    const Key key{
        blas->path(), type, shape.piece, shape.whole, {shape.a_by_rows, shape.b_by_rows, shape.c_by_rows, shape.adds}};
    {
        const std::scoped_lock guard(lock);
        if (const auto found = known.find(key); found != known.end()) return {1e-6, found->second};
    }
    const double seconds = time_piece(*blas, type, shape) / flops();
    const std::scoped_lock guard(lock);
    return {1e-6, known.emplace(key, seconds).first->second};
}

OperationRate copy_rate(Dtype type) {
    static std::map<Dtype, double> known;
    const std::scoped_lock guard(lock);
    if (!known.contains(type)) known[type] = copy_seconds(type);
    return {1e-6, known[type]};
}

ProductRates measured_products(std::shared_ptr<const Blas> blas, Dtype type) {
    return [blas = std::move(blas), type](const ProductCase& one, const std::vector<Schedule>& parts) {
        Index largest;
        const auto size = [](const Index& shape) { return shape.n ? shape[0] * shape[1] * shape[2] : 0; };
        for (const Schedule& part : parts)
            if (const Index shape = product_shape(part); size(shape) > size(largest)) largest = shape;
        OperationRate product;
        if (largest.n) {
            const std::array<std::int64_t, 3> piece{largest[0], largest[1], largest[2]};
            // Panels of A lie by columns; A itself, where it stays, and C as the user has them.
            const bool a_by_rows = one.problem.flipped[0] && one.problem.a.columns.parts == 1;
            const bool adds = largest[2] < one.problem.a.columns.extent;
            product = product_rate(blas, type,
                                   {piece, one.whole(), one.b_by_rows(), adds, a_by_rows, one.problem.flipped[2]});
        }
        const OperationRate copy = copy_rate(type);
        return std::vector{copy, copy, product, product, copy};
    };
}

}  // namespace tilewave
