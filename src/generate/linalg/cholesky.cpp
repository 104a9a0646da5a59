#include "generate/linalg/factor.hpp"
#include "generate/linalg/factors.hpp"

namespace tilewave {

namespace {

class Cholesky : public RightLooking {
public:
    using RightLooking::RightLooking;

private:
    // Of a step: the panel, or its tiles one after another, then updates by block column and tile.
    std::int64_t number(std::int64_t k, std::int64_t within) const { return k * (n_ + 1) * (n_ + 1) + within; }
    std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const override { return {k + 1, n_}; }

    void factor(std::int64_t k) override {
        const Region column = of_matrix(k, k, n_);
        const double width = static_cast<double>(column.box.extent(1)),
                     high = static_cast<double>(column.box.extent(0));
        std::vector<Region> writes{column};
        if (k + 1 < n_) writes.push_back(of_panel(k, k + 1, n_));
        list_.task(0, number(k, 0), cholesky_panel, {column}, std::move(writes), width * width * (high - width * 2 / 3),
                   {k, k});
    }

    bool by_tiles() const override { return true; }

    void factor_top(std::int64_t k) override {
        const Region top = of_matrix(k, k, k + 1);
        const double width = static_cast<double>(top.box.extent(1));
        list_.task(0, number(k, 0), cholesky_panel, {top}, {top}, width * width * width / 3, {k, k});
    }

    void factor_below(std::int64_t k, std::int64_t t0, std::int64_t t1) override {
        const Region top = of_matrix(k, k, k + 1), below = of_matrix(k, t0, t1);
        list_.task(0, number(k, 1 + t0), cholesky_below, {top, below}, {below, of_panel(k, t0, t1)},
                   static_cast<double>(below.box.points() * top.box.extent(1)), {k, k, t0});
    }

    // Block column j without what panel k contributes, in groups of tiles of about task_flops.
    void update(int lane, std::int64_t k, std::int64_t j, std::int64_t t0, std::int64_t t1, bool looks) override {
        for_tile_groups(j, std::max(j, t0), t1, [&](std::int64_t t, std::int64_t end) {
            const Region part = of_matrix(j, t, end);
            list_.task(lane, number(k, 1 + n_ + j * n_ + t), cholesky_update,
                       {of_panel(k, t, end), of_panel(k, j, j + 1), part}, {part},
                       2.0 * static_cast<double>(part.box.points() * tiles_.block), {k, j, t});
            if (looks) hand_on(k);
        });
    }
};

}  // namespace

Schedule cholesky(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                  int ranks) {
    require_block_columns(layout, ranks, true);
    return Cholesky(layout, item_bytes, choices, rank, ranks, 0).run();
}

}  // namespace tilewave
