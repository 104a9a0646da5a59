// Writes the steps of a product: tasks on parts of C, panels that travel in chunks, lanes that share the work.
#pragma once
#include <vector>

#include "generate/linalg/panels.hpp"
#include "generate/linalg/task_list.hpp"

namespace tilewave {

Schedule broadcast_product(const MatmulProblem& problem, const MatmulChoices& choices, bool by_columns_of_b, int rank,
                           int ranks);
Schedule wavefront_product(const MatmulProblem& problem, const MatmulChoices& choices, int rank, int ranks);
Schedule pending_product(const MatmulProblem& problem, const MatmulChoices& choices, int rank, int ranks);

/// What the three have in common.
class ProductWriter {
public:
    ProductWriter(const MatmulProblem& problem, const MatmulChoices& choices, int rank, int ranks, int lanes);

    TaskList& list() { return list_; }
    const Box& owned(int matrix) const { return owned_[matrix]; }

    /// Adds an array for panels: `panels` in all, each of at most `rows` runs of the elements [lo, hi), of which
    /// `buffers` are stored at a time.
    void add_moving(std::int64_t panels, std::int64_t rows, std::int64_t lo, std::int64_t hi, int buffers);
    /// The same for panels of B's columns: [panel, column, common element].
    void add_moving(const std::vector<ColumnPanel>& panels, int buffers);
    /// One of them, of which `root` has the source; it moves as number k of an array.
    MovingPanel panel_of(const ColumnPanel& panel, int root, std::int32_t array, std::int64_t k) const;
    /// What it is multiplied with: all of this rank's A, into as many columns of C.
    PanelStep step_of(const ColumnPanel& panel, std::int32_t array, std::int64_t k) const;

    /// Copies a panel from its matrix on the root; `which` numbers the copies of one step.
    void copy(int lane, std::int64_t step, int which, const MovingPanel& panel);
    /// The product of a step on a part of C.
    void product(int lane, std::int64_t step, const PanelStep& what, const Box& part);
    /// The same on the parts of C that are share `share` of `shares`, tasks of task_flops each.
    void products(int lane, std::int64_t step, const PanelStep& what, int share, int shares);
    /// Posts the chunks of a panel; panels of equal numbers modulo `slots` have equal tags. Adds their messages to
    /// `ids`.
    void post(std::vector<int>& ids, bool send, int peer, const MovingPanel& panel, int slots, int lane = 0);
    /// C = beta C, where there is nothing to add.
    void scale();
    /// The parts of C that a lane computes in a step: at least `least` of all lanes; `finely`: of task_flops each.
    std::vector<Box> tasks_of(const PanelStep& what, int lane, int lanes, bool finely, int least) const;
    /// The chunks of a panel's region: runs of memory of at most chunk_bytes, or one row.
    std::vector<Box> chunks(const Box& region) const;

private:
    const MatmulProblem& p_;
    const MatmulChoices& choices_;
    int rank_, ranks_;
    TaskList list_;
    Box owned_[3];
    std::vector<std::int64_t> products_;                     // by step: numbered so far
    static constexpr std::int64_t most_products_ = 1 << 16;  // of a rank in a step: numbers leave room for them
    std::int64_t number(std::int64_t step, std::int64_t within) const {
        return step * (2 * ranks_ + most_products_ * ranks_) + within;
    }
};

}  // namespace tilewave
