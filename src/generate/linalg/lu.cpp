#include "generate/linalg/factor.hpp"
#include "generate/linalg/factors.hpp"

namespace tilewave {

namespace {

class Lu : public RightLooking {
public:
    using RightLooking::RightLooking;

private:
    // Of a step: the panel, then interchanges by block column, then updates by block column and tile.
    std::int64_t number(std::int64_t k, std::int64_t within) const { return k * (1 + n_ * (n_ + 1)) + within; }
    // The last panel has only interchanges for others.
    std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const override { return {k, k + 1 < n_ ? n_ : k}; }
    // The pivots, in the first column of the last tile.
    Box ahead(std::int64_t k) const override { return {{k, n_, 0, 0}, {k + 1, n_ + 1, 1, tiles_.block}}; }

    void factor(std::int64_t k) override {
        const Region column = of_matrix(k, k, n_);
        const double width = static_cast<double>(column.box.extent(1)),
                     high = static_cast<double>(column.box.extent(0));
        list_.task(0, number(k, 0), lu_panel, {column}, {column, of_panel(k, k, n_), {factor_panels, ahead(k)}},
                   width * width * (high - width / 3), {k, k});
    }

    void left(int lane, std::int64_t k, std::int64_t j) override { swap(lane, k, j, lu_swap); }

    void swap(int lane, std::int64_t k, std::int64_t j, FactorTask operation) {
        const Region column = of_matrix(j, k, n_);
        const double width = static_cast<double>(column.box.extent(1) * tiles_.block * tiles_.block);
        std::vector<Region> reads{{factor_panels, ahead(k)}, column};
        if (operation == lu_row) reads.push_back(of_panel(k, k, k + 1));
        list_.task(lane, number(k, 1 + j), operation, std::move(reads), {column},
                   operation == lu_row ? width : width / static_cast<double>(tiles_.block), {k, j, k});
    }

    // Block column j on the right of panel k: interchanged, its row of U, and the rest updated.
    void update(int lane, std::int64_t k, std::int64_t j, std::int64_t t0, std::int64_t t1, bool looks) override {
        if (t0 <= k && k < t1) swap(lane, k, j, lu_row);
        const Region row = of_matrix(j, k, k + 1);
        for_tile_groups(j, std::max(k + 1, t0), std::min(n_, t1), [&](std::int64_t t, std::int64_t end) {
            const Region part = of_matrix(j, t, end);
            list_.task(lane, number(k, 1 + n_ + j * n_ + t), lu_update, {of_panel(k, t, end), row, part}, {part},
                       2.0 * static_cast<double>(part.box.points() * tiles_.block), {k, j, t});
            if (looks) hand_on(k);
        });
    }
};

}  // namespace

Schedule lu(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks) {
    require_block_columns(layout, ranks, true);
    return Lu(layout, item_bytes, choices, rank, ranks, 1).run();
}

}  // namespace tilewave
