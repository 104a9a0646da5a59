// Random patterns with the values that they must leave.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "support/guarded.hpp"
#include "tilewave/patterns.hpp"

namespace tilewave {

using Random = std::mt19937;

inline int below(Random& random, int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
}

// One random pattern: the same on all ranks but for the gaps between rows.
class PatternTrial {
public:
    PatternTrial(int seed, Context& context, int threads_seed = 0)
        : seed_(seed), p_(context.size()), rank_(context.rank()) {
        Random random(static_cast<unsigned>(seed)), own(static_cast<unsigned>(1000 * seed + rank_ + threads_seed));
        call_.kind = static_cast<PatternKind>(below(random, 4));
        const std::int64_t rows = below(random, 3) ? below(random, 9) : 1,
                           cols = below(random, 3) ? below(random, 12) : 1;
        root_ = call_.root = parted() ? 0 : below(random, p_);
        call_.block = parted() ? below(random, 3) : 0;
        user_ = below(random, 2);
        if (reduces() && user_) call_.op = Reduction::user, call_.user = leftmost();
        call_.request.algorithm = parted() ? (below(random, 2) ? Algorithm::ring : Algorithm::direct)
                                           : (below(random, 2) ? Algorithm::ring : Algorithm::tree);
        if (call_.kind == PatternKind::broadcast && below(random, 2))
            call_.request.algorithm = below(random, 2) ? Algorithm::rounds : Algorithm::direct;
        call_.request.chunk_bytes = below(random, 3) ? 1 + below(random, 90) : 1 << 16;
        call_.request.buffers = 2 + below(random, 4);
        if (below(random, 3) == 0) {  // all left open: these are small enough to go with the comparison
            call_.request = {};
            call_.op = Reduction::sum;
            call_.user = {};
            user_ = false;
        }
        const bool inside = below(random, 2) && parted() && call_.block == 0;
        const std::int64_t total = parted() ? cols * p_ / 2 : cols;
        for (int r = 0, first = 0; r < p_ && parted();
             first += static_cast<int>(dealt_columns(total, call_.block, p_, r++)))
            if (r == rank_) first_ = first;
        const std::int64_t mine = dealt_columns(total, call_.block, p_, rank_);
        whole_.emplace(rows, total, below(own, 3));
        part_.emplace(rows, parted() ? mine : total, below(own, 3));
        if (call_.kind == PatternKind::spread) {
            part_->fill([&](auto i, auto j) { return value(seed_, 0, i, column(j)); });
            whole_->fill(
                [&](auto i, auto j) { return inside && j >= first_ && j < first_ + mine ? value(seed_, 0, i, j) : 0; });
            call_.in = inside ? whole_->view(first_, mine) : part_->view();
            call_.out = whole_->view();
        } else {
            const bool holds = call_.kind != PatternKind::broadcast || rank_ == root_;
            whole_->fill([&](auto i, auto j) { return holds ? value(seed_, rank_, i, j) : 0; });
            part_->fill([](auto, auto) { return 0; });
            call_.in = whole_->view();
            call_.out = inside ? whole_->view(first_, mine) : part_->view();
        }
        inside_ = inside && whole_->rows > 0 && mine > 0;
        if (inside_) call_.part_inside = first_;
    }

    const PatternCall& call() const { return call_; }

    void check() {
        const std::string what = "seed " + std::to_string(seed_) + ", " + to_string(call_.kind) + " " +
                                 to_string(call_.request.algorithm) + " on rank " + std::to_string(rank_) + " of " +
                                 std::to_string(p_);
        auto given = [&](auto i, auto j) { return value(seed_, rank_, i, j); };
        switch (call_.kind) {
            case PatternKind::broadcast:
                return whole_->expect([&](auto i, auto j) { return value(seed_, root_, i, j); }, what);
            case PatternKind::spread:
                return whole_->expect([&](auto i, auto j) { return value(seed_, 0, i, j); }, what);
            case PatternKind::reduce:
                whole_->expect(given, what);
                if (rank_ == root_)
                    part_->expect(
                        [&](auto i, auto j) {
                            return joined(i, j, call_.request.algorithm == Algorithm::tree ? root_ : root_ + 1);
                        },
                        what);
                return;
            case PatternKind::multi_reduce:
                if (!inside_) part_->expect([&](auto i, auto j) { return joined(i, column(j), rank_ + 1); }, what);
                whole_->expect(
                    [&](auto i, auto j) {
                        return inside_ && j >= first_ && j < first_ + call_.out.cols ? joined(i, j, rank_ + 1)
                                                                                     : given(i, j);
                    },
                    what);
        }
    }

private:
    bool parted() const { return call_.kind == PatternKind::spread || call_.kind == PatternKind::multi_reduce; }
    bool reduces() const { return call_.kind == PatternKind::reduce || call_.kind == PatternKind::multi_reduce; }
    // Of the whole matrix, the j-th that is this rank's.
    std::int64_t column(std::int64_t j) const {
        return call_.block ? (j / call_.block * p_ + rank_) * call_.block + j % call_.block : first_ + j;
    }
    std::int64_t joined(std::int64_t i, std::int64_t j, int first) const {
        std::int64_t total = 0;
        for (int k = 0; k < p_; ++k) {
            const std::int64_t next = value(seed_, (first + k) % p_, i, j);
            total = user_ ? (total ? total : next) : total + next;
        }
        return total;
    }

    int seed_, p_, rank_, root_ = 0;
    bool user_ = false, inside_ = false;
    std::int64_t first_ = 0;
    std::optional<Guarded> whole_, part_;
    PatternCall call_;
};

}  // namespace tilewave
