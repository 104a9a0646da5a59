#include "generate/linalg/matmul.hpp"

#include <algorithm>
#include <cmath>

#include "core/concat.hpp"
#include "generate/linalg/product_writer.hpp"

namespace tilewave {

namespace {

bool by_columns_of_b(const MatmulProblem& p) {
    return p.c.columns.parts == 1 && p.b.rows.parts == 1 && p.b.columns.parts > 1;
}

std::string two(const char* what, std::int64_t a, std::int64_t b) {
    return concat(what, " of ", a, " and ", b);
}

}  // namespace

std::string fits(const MatmulProblem& p, const MatmulChoices& choices) {
    if (p.a.columns.extent != p.b.rows.extent)
        return two("common dimensions", p.a.columns.extent, p.b.rows.extent) + " elements";
    if (p.a.rows.extent != p.c.rows.extent || p.b.columns.extent != p.c.columns.extent)
        return concat("a product of ", p.a.rows.extent, " x ", p.b.columns.extent, " for C of ", p.c.rows.extent, " x ",
                      p.c.columns.extent);
    if (!p.a.rows.same(p.c.rows)) return "rows of A and C on other ranks";
    if (by_columns_of_b(p))
        return p.a.columns.parts == 1 && p.b.columns.parts == p.c.rows.parts ? "" : "grids that differ";
    if (choices.algorithm == MatmulAlgorithm::wavefront && p.c.ranks() > 1)
        return "the wavefront algorithm without C and A by rows and B by columns";
    if (!p.b.columns.same(p.c.columns)) return "columns of B and C on other ranks";
    if (p.a.columns.parts != p.c.columns.parts || p.b.rows.parts != p.c.rows.parts) return "grids that differ";
    const bool two_d = p.c.rows.parts > 1 && p.c.columns.parts > 1;
    if (two_d && (p.a.ranks_by_column != p.c.ranks_by_column || p.b.ranks_by_column != p.c.ranks_by_column))
        return "grids that count their ranks in different orders";
    return "";
}

Schedule matmul(const MatmulProblem& problem, const MatmulChoices& choices, int rank, int ranks) {
    if (const std::string why = fits(problem, choices); !why.empty())
        throw ConfigError("matmul: the layouts have " + why);
    if (choices.lookahead < 0 || choices.panel < 1 || choices.lanes < 1 || choices.chunk_bytes < 1 || rank < 0 ||
        rank >= ranks || problem.c.ranks() > ranks)
        throw ConfigError(concat("matmul: a look-ahead of ", choices.lookahead, ", panels of ", choices.panel, ", ",
                                 choices.lanes, " lanes and rank ", rank, " of ", ranks, " were given"));
    const bool waves = choices.algorithm == MatmulAlgorithm::wavefront && problem.c.ranks() > 1;
    if (waves && choices.pending) return pending_product(problem, choices, rank, ranks);
    if (waves) return wavefront_product(problem, choices, rank, ranks);
    return broadcast_product(problem, choices, by_columns_of_b(problem), rank, ranks);
}

bool moving_b_by_rows(const MatmulProblem& p, const MatmulChoices&) {
    return !by_columns_of_b(p);
}

Index product_shape(const Schedule& s) {
    double most = -1;
    Index shape;
    for (const Work& work : s.works) {
        const TaskWork* task = work.task();
        if (!task || (task->operation != first_product && task->operation != add_product) || task->amount <= most)
            continue;
        most = task->amount;
        const Box& c = task->writes[0].box;
        const double columns = 2.0 * static_cast<double>(c.points());
        shape = {c.extent(0), c.extent(1), std::llround(most / columns)};
    }
    return shape;
}

std::int64_t moving_bytes(const Schedule& s) {
    std::int64_t bytes = 0;
    for (std::size_t a = moving_a; a < s.arrays.size(); ++a) {
        const Array& array = s.arrays[a];
        if (array.storage.empty()) continue;
        bytes += array.storage.points() / array.storage.extent(0) *
                 std::min<std::int64_t>(array.time_buffers, array.storage.extent(0)) * array.item_bytes;
    }
    return bytes;
}

}  // namespace tilewave
