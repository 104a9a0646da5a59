// What the tasks of factorizations and solves call.
#pragma once
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "execute/blas/library.hpp"
#include "tilewave/engine/block_cyclic.hpp"
#include "tilewave/engine/task.hpp"

namespace tilewave {

/// LAPACK's info of the whole matrix, as far as this rank knows: the first pivot that failed.
class FactorInfo {
public:
    void failed(std::int64_t pivot) {
        std::int64_t before = first_.load();
        while (pivot < before && !first_.compare_exchange_weak(before, pivot)) {
        }
    }
    bool any() const { return first_.load() != none; }
    /// Pivots of a panel whose first row is `first`: row first + i was interchanged with row pivots[i] - 1.
    void add_pivots(std::int64_t first, const std::vector<int>& pivots) {
        std::scoped_lock guard(lock_);
        for (const int p : pivots) pivots_.push_back({first++, p - 1});
    }
    /// The pivots of this rank: (row, the row it was interchanged with).
    const std::vector<std::pair<std::int64_t, std::int64_t>>& pivots() const { return pivots_; }
    /// Before another run.
    void forget() {
        first_ = none;
        pivots_.clear();
    }
    /// 0: none.
    std::int64_t first() const { return any() ? first_.load() : 0; }

private:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::atomic<std::int64_t> first_{none};
    std::mutex lock_;
    std::vector<std::pair<std::int64_t, std::int64_t>> pivots_;
};

/// Which tile rows a rank has: those of a part.
struct RowPart {
    Axis tiles = Axis(1, 1, 1);  ///< of any extent
    int part = 0;
};

/// The operations of FactorTask, and of TriangularSystem behind them. After a pivot has failed, panels travel
/// on and nothing more is factored on this rank.
std::vector<TaskFunction> factor_tasks(std::shared_ptr<const Blas> blas, Dtype type, std::shared_ptr<FactorInfo> info,
                                       const RowPart& rows = {});

}  // namespace tilewave
