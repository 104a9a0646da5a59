#include "patterns/piggyback.hpp"

#include <vector>

#include "context/agreement.hpp"
#include "core/binomial.hpp"
#include "data/rows.hpp"

namespace tilewave {

namespace {

// Matrices that all ranks have given, joined one after another.
class Joined {
public:
    Joined(const PatternCall& call, const PatternProblem& problem, const std::function<const std::byte*(int)>& given)
        : join_(combine_row(call.op, call.in.type)),
          items_(call.in.rows * call.in.cols),
          bytes_(static_cast<std::size_t>(call.in.bytes())),
          problem_(problem),
          given_(given) {}

    // first, first + 1, ... once around.
    std::vector<std::byte> around(int first) const {
        const int p = problem_.ranks;
        std::vector<std::byte> all(given_(first % p), given_(first % p) + bytes_);
        for (int i = 1; i < p; ++i) join_(all.data(), all.data(), given_((first + i) % p), items_, nullptr);
        return all;
    }
    // The subtree of the v-th rank counted from the root.
    std::vector<std::byte> tree(int v) const {
        const int p = problem_.ranks, rank = (v + problem_.root) % p;
        std::vector<std::byte> all(given_(rank), given_(rank) + bytes_);
        binomial::for_children(v, p,
                               [&](int child) { join_(all.data(), all.data(), tree(child).data(), items_, nullptr); });
        return all;
    }

private:
    CombineRow join_;
    std::int64_t items_;
    std::size_t bytes_;
    const PatternProblem& problem_;
    const std::function<const std::byte*(int)>& given_;
};

}  // namespace

bool may_piggyback(const PatternCall& c, const Transport& port, PathsOff off) {
    const PatternRequest& r = c.request;
    return (port.connected() || port.size() == 1) && !c.keep && c.op != Reduction::user && c.block == 0 &&
           r.algorithm == Algorithm::automatic && r.chunk_bytes == 0 && r.buffers == 0 &&
           !without(off, FastPath::piggyback);
}

std::int64_t piggyback_limit_bytes(PatternKind kind, int p) {
    const std::int64_t all = Agreement::most_piggyback_bytes(p);
    return (kind == PatternKind::broadcast ? all : all / p) - Agreement::piggyback_head_bytes;
}

void finish_piggyback(const PatternCall& call, const PatternProblem& problem, const PatternPlan& plan, int rank,
                      const std::function<const std::byte*(int)>& given) {
    const auto put = [](const MatrixView& to, const std::byte* from) {
        if (to.bytes() > 0) copy_range(to, 0, const_cast<std::byte*>(from), to.bytes(), false);
    };
    const Joined joined(call, problem, given);
    switch (problem.kind) {
        case PatternKind::broadcast:
            if (rank != call.root) put(call.in, given(call.root));
            break;
        case PatternKind::reduce:
            if (rank != call.root || call.in.bytes() == 0) break;
            put(call.out, (plan.algorithm == Algorithm::ring ? joined.around(call.root + 1) : joined.tree(0)).data());
            break;
        case PatternKind::spread: {
            std::int64_t first = 0;
            for (int r = 0; r < problem.ranks; first += problem.columns[r++])
                if (r != rank || call.part_inside < 0) put(call.out.columns(first, problem.columns[r]), given(r));
            break;
        }
        case PatternKind::multi_reduce: {
            if (call.in.bytes() == 0) break;
            std::int64_t first = 0;
            for (int r = 0; r < rank; ++r) first += problem.columns[r];
            auto all = joined.around(rank + 1);
            MatrixView whole = call.in;
            whole.data = all.data();
            whole.row_stride_bytes = whole.row_bytes();
            const MatrixView part = whole.columns(first, problem.columns[rank]);
            copy_box(call.out.data, {call.out.row_stride_bytes, call.out.item_bytes()}, part.data,
                     {part.row_stride_bytes, part.item_bytes()}, {part.rows, part.cols}, part.item_bytes());
            break;
        }
    }
}

}  // namespace tilewave
