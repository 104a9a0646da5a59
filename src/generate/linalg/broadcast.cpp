// Panels are broadcast: the common dimension goes by in panels (SUMMA: van de Geijn and Watts 1997), or the columns of
// B do (wolfmann2010). Panels to come travel while the lanes compute.
#include <algorithm>
#include <bit>

#include "generate/linalg/panel_ring.hpp"
#include "generate/linalg/product_writer.hpp"

namespace tilewave {

namespace {

// Pieces of C that lane 0 looks at arriving chunks between, at least, where it hands them on.
constexpr int least_looks = 4;

class Broadcast {
public:
    Broadcast(const MatmulProblem& problem, const MatmulChoices& choices, bool by_columns_of_b, int rank, int ranks)
        : p_(problem),
          choices_(choices),
          rank_(rank),
          ranks_(ranks),
          lanes_(choices.lanes),
          writer_(problem, choices, rank, ranks, choices.lanes),
          relay_(writer_.list()),
          done_(static_cast<std::size_t>(choices.lanes), 0) {
        if (by_columns_of_b)
            list_columns_of_b();
        else
            list_common_dimension();
    }

    Schedule run() {
        if (steps_.empty() && p_.a.columns.extent == 0) writer_.scale();
        const int n = static_cast<int>(steps_.size());
        for (int k = 0; k < std::min(n, slots_); ++k) start(k);
        for (int k = 0; k < n; ++k) {
            relay_.arrive(k);
            if (moves_) signals_.push_back(lanes_ > 1 ? list().signal(0) : 0);
            const std::vector<int> relayed = relayed_in(k);
            compute(k, relayed);
            for (const int panel : relayed) relay_.arrive(panel);
            finish(k);
            if (k + slots_ < n) start(k + slots_);
        }
        return writer_.list().finish();
    }

private:
    TaskList& list() { return writer_.list(); }

    // Two ranks, or a tree, use all links when the roots alternate. Ranks of a longer ring lag behind each other; each
    // change of the root costs the length of the ring once more.
    bool turns() const {
        return choices_.tree != BroadcastTree::ring || std::max(p_.c.rows.parts, p_.c.columns.parts) <= 2;
    }

    // Panels of A go along the rows of the grid, panels of B along its columns.
    void list_common_dimension() {
        const int i = p_.c.row_of(rank_);
        const bool move_a = p_.c.columns.parts > 1, move_b = p_.c.rows.parts > 1;
        moves_ = move_a || move_b;
        // Without moving there is nothing to wait for: one panel.
        const std::int64_t most = moves_ ? choices_.panel : std::max<std::int64_t>(1, p_.a.columns.extent);
        const auto all = intervals(p_.a.columns, p_.b.rows, most, turns());
        std::int64_t widest = 0;
        for (const Interval& at : all) widest = std::max(widest, at.hi - at.lo);
        const auto panels = static_cast<std::int64_t>(all.size());
        slots_ = panels_ahead(choices_.lookahead, panels) + 1;
        const Box &a = writer_.owned(0), &b = writer_.owned(1), &c = writer_.owned(2);
        writer_.add_moving(move_a && i >= 0 ? panels : 0, widest, c.lo[0], c.hi[0], slots_);
        writer_.add_moving(move_b && i >= 0 ? panels : 0, widest, c.lo[1], c.hi[1], slots_);
        if (i < 0) return;
        for (int k = 0; k < static_cast<int>(panels); ++k) {
            const Interval& at = all[k];
            const auto [a_lo, a_hi] = place(p_.a.columns, at);
            const auto [b_lo, b_hi] = place(p_.b.rows, at);
            const std::int64_t width = at.hi - at.lo;
            PanelStep step;
            step.c = c;
            step.depth = width;
            step.first = k == 0;
            step.left = {array_a, {{a.lo[0], a_lo}, {a.hi[0], a_hi}}};
            step.right = {array_b, {{b_lo, b.lo[1]}, {b_hi, b.hi[1]}}};
            if (move_a) {
                const Box region{{k, 0, c.lo[0]}, {k + 1, width, c.hi[0]}};
                step.a = MovingPanel{p_.a.columns.part_of({at.lo}), step.left.box, moving_a, region};
                step.left = {moving_a, region};
            }
            if (move_b) {
                const Box region{{k, 0, c.lo[1]}, {k + 1, width, c.hi[1]}};
                step.b = MovingPanel{p_.b.rows.part_of({at.lo}), step.right.box, moving_b, region};
                step.right = {moving_b, region};
                step.right_columns = 2;
            }
            steps_.push_back(step);
        }
    }

    // Panels of B's columns go to all ranks; each makes some columns of C.
    void list_columns_of_b() {
        const int i = p_.c.row_of(rank_);
        moves_ = true;
        const auto all = column_panels(p_, choices_.panel, turns());
        const auto panels = static_cast<std::int64_t>(all.size());
        slots_ = panels_ahead(choices_.lookahead, panels) + 1;
        writer_.add_moving(0, 0, 0, 0, 1);
        writer_.add_moving(i >= 0 ? all : std::vector<ColumnPanel>(), slots_);
        if (i < 0 || p_.b.rows.extent == 0) return;
        for (int k = 0; k < static_cast<int>(panels); ++k) {
            const ColumnPanel& at = all[k];
            PanelStep step = writer_.step_of(at, moving_b, k);
            step.b = writer_.panel_of(at, p_.b.columns.part_of({at.columns.lo}), moving_b, k);
            steps_.push_back(step);
        }
        all_ranks_ = true;
    }

    // The number of ranks among which a panel moves, this rank's place among them, and the rank at a place.
    int size_of(bool of_a) const { return of_a ? p_.c.columns.parts : all_ranks_ ? p_.c.ranks() : p_.c.rows.parts; }
    int place_of(bool of_a) const {
        return of_a ? p_.c.column_of(rank_) : all_ranks_ ? part_of_b(rank_) : p_.c.row_of(rank_);
    }
    int rank_of(bool of_a, int place) const {
        if (of_a) return p_.c.rank_of(p_.c.row_of(rank_), place);
        return all_ranks_ ? p_.b.rank_of(0, place) : p_.c.rank_of(place, p_.c.column_of(rank_));
    }
    int part_of_b(int rank) const { return p_.b.column_of(rank); }

    // Posts what panel k needs: on its root the copy and the sends, elsewhere the receives.
    void start(int k) {
        if (steps_[k].a) start(k, true, *steps_[k].a);
        if (steps_[k].b) start(k, false, *steps_[k].b);
    }

    void start(int k, bool of_a, const MovingPanel& panel) {
        BroadcastPlace at = broadcast_place(choices_.tree, size_of(of_a), panel.root, place_of(of_a));
        const int group = of_a ? p_.c.row_of(rank_) : ranks_ + (all_ranks_ ? 0 : p_.c.column_of(rank_));
        if (at.parent < 0)
            writer_.copy(0, k, group, panel);
        else
            at.parent = rank_of(of_a, at.parent);
        for (int& child : at.children) child = rank_of(of_a, child);
        int number = 0;
        for (const Box& region : writer_.chunks(panel.region))
            relay_.start(k, at, (number++ * slots_ + k % slots_) * 2 + (of_a ? 0 : 1), panel.array, region);
    }

    // How many panels ahead of the one in use this rank hands panel k on; 0: it does not. The nearer to the root, the
    // earlier: each hop has the time of a panel, so that nobody waits for the hops before.
    int relays_ahead(int k) const {
        if (!relay_.relays(k)) return 0;
        const PanelStep& step = steps_[k];
        int hops = slots_;
        if (step.a) hops = std::min(hops, hops_from(*step.a, true));
        if (step.b) hops = std::min(hops, hops_from(*step.b, false));
        const int least = choices_.tree == BroadcastTree::ring ? slots_ - hops : slots_ - 1 - hops;
        return std::clamp(least, 1, slots_ - 1);
    }

    int hops_from(const MovingPanel& panel, bool of_a) const {
        const int place = (place_of(of_a) - panel.root + size_of(of_a)) % size_of(of_a);
        if (place == 0) return slots_;  // the root itself hands nothing on
        return choices_.tree == BroadcastTree::ring ? place : std::popcount(static_cast<unsigned>(place));
    }

    // The panels that are handed on while panel k is used, ascending: all ranks take them in one order, so that none
    // waits for itself.
    std::vector<int> relayed_in(int k) const {
        std::vector<int> panels;
        for (int next = k + 1; next < std::min(k + slots_, static_cast<int>(steps_.size())); ++next) {
            const int ahead = relays_ahead(next);
            if (ahead == next - k || (k == 0 && ahead > next)) panels.push_back(next);
        }
        return panels;
    }

    // The lanes' work on panel k; between its pieces lane 0 hands on panels to come.
    void compute(int k, const std::vector<int>& relayed) {
        const PanelStep& step = steps_[k];
        const int least = relayed.empty() ? lanes_ : least_looks * lanes_;
        for (int lane = 0; lane < lanes_; ++lane) {
            const auto parts = writer_.tasks_of(step, lane, lanes_, moves_, least);
            if (lane > 0 && moves_) list().add(lane, Op::await, 0, signals_.back());
            std::size_t left = parts.size();
            for (const Box& part : parts) {
                writer_.product(lane, k, step, part);
                if (lane == 0) hand_on_some(relayed, left);
                --left;
            }
            if (lane > 0 && moves_) done_[lane] = list().signal(lane);
        }
    }

    // One part of `left` of the chunks that are still to come.
    void hand_on_some(const std::vector<int>& relayed, std::size_t left) {
        std::size_t rest = 0;
        for (const int k : relayed) rest += relay_.missing(k);
        std::size_t count = rest / left;
        for (const int k : relayed) {
            const std::size_t some = std::min(count, relay_.missing(k));
            relay_.arrive(k, some);
            count -= some;
        }
    }

    // The place of panel k is free: it is sent, and no lane needs it.
    void finish(int k) {
        relay_.finish(k);
        if (!moves_ || k + slots_ >= static_cast<int>(steps_.size())) return;
        for (int lane = 1; lane < lanes_; ++lane) list().add(0, Op::await, lane, done_[lane]);
    }

    const MatmulProblem& p_;
    const MatmulChoices& choices_;
    int rank_, ranks_, lanes_, slots_ = 1;
    bool moves_ = false, all_ranks_ = false;
    ProductWriter writer_;
    ChunkRelay relay_;
    std::vector<PanelStep> steps_;
    std::vector<std::int32_t> signals_, done_;
};

}  // namespace

Schedule broadcast_product(const MatmulProblem& problem, const MatmulChoices& choices, bool by_columns_of_b, int rank,
                           int ranks) {
    return Broadcast(problem, choices, by_columns_of_b, rank, ranks).run();
}

}  // namespace tilewave
