#include "generate/linalg/factor.hpp"
#include "generate/linalg/factors.hpp"

namespace tilewave {

namespace {

class Cholesky : public RightLooking {
public:
    using RightLooking::RightLooking;

private:
    // Of a step: the panel, or its tiles one after another, then tiles across, then updates by block column and tile.
    std::int64_t number(std::int64_t k, std::int64_t within) const { return k * (n_ + 1) * (n_ + 1) + within; }
    std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const override { return {k + 1, n_}; }

    void factor(std::int64_t k) override {
        if (tiles_.parts() > 1) {
            if (has_row(k)) {
                factor_top(k);
                send_down(k, of_the_panel);
            } else {
                arrive_down(k, of_the_panel);
            }
            if (has_rows(k + 1, n_)) factor_below(k, k + 1, n_);
            return;
        }
        const Region column = of_matrix(k, k, n_);
        const double width = static_cast<double>(column.box.extent(1)),
                     high = static_cast<double>(column.box.extent(0));
        std::vector<Region> writes{column};
        if (k + 1 < n_) writes.push_back(of_panel(k, k + 1, n_));
        list_.task(0, number(k, 0), cholesky_panel, {column}, std::move(writes), width * width * (high - width * 2 / 3),
                   {k, k});
    }

    bool by_tiles() const override { return true; }

    // The factored diagonal tile, as the tiles below it are made with.
    Region top(std::int64_t k) const { return tiles_.parts() > 1 ? of_across(k, n_) : of_matrix(k, k, k + 1); }

    void factor_top(std::int64_t k) override {
        const Region tile = of_matrix(k, k, k + 1);
        const double width = static_cast<double>(tile.box.extent(1));
        std::vector<Region> writes{tile};
        if (tiles_.parts() > 1) writes.push_back(top(k));
        list_.task(0, number(k, 0), cholesky_top, {tile}, std::move(writes), width * width * width / 3, {k, k});
    }

    void factor_below(std::int64_t k, std::int64_t t0, std::int64_t t1) override {
        const Region below = of_matrix(k, t0, t1);
        const std::int64_t first = tiles_.tile(row_, tiles_.before(row_, t0));  // another one in each row of ranks
        list_.task(0, number(k, 1 + first), cholesky_below, {top(k), below}, {below, of_panel(k, t0, t1)},
                   static_cast<double>(below.box.points() * tiles_.width(k)), {k, k, t0});
    }

    // Tile j of the panel goes down the column of ranks that has block column j, from where it meets the diagonal.
    int root_of(std::int64_t, std::int64_t j) const override { return tiles_.part_of(j); }
    void bring(std::int64_t k, Part part) override {
        const auto [j0, j1] = columns_of(k, part);
        for (std::int64_t j = j0; j < j1; ++j)
            if (has_column(j) && has_row(j))
                list_.task(0, number(k, 1 + n_ + j), copy_tiles, {of_panel(k, j, j + 1)}, {of_across(k, j)},
                           static_cast<double>(tiles_.block * tiles_.block * list_.schedule().arrays[0].item_bytes),
                           {k, j});
        send_down(k, part);
        arrive_down(k, part);
    }

    // Block column j without what panel k contributes, in groups of tiles of about task_flops.
    void update(int lane, std::int64_t k, std::int64_t j, std::int64_t t0, std::int64_t t1, bool looks) override {
        const Region across = tiles_.parts() > 1 ? of_across(k, j) : of_panel(k, j, j + 1);
        for_tile_groups(j, std::max(j, t0), t1, [&](std::int64_t t, std::int64_t end) {
            const Region part = of_matrix(j, t, end);
            list_.task(lane, number(k, 1 + 2 * n_ + j * n_ + t), cholesky_update, {of_panel(k, t, end), across, part},
                       {part}, 2.0 * static_cast<double>(part.box.points() * tiles_.block), {k, j, t});
            if (looks) hand_on(k);
        });
    }
};

}  // namespace

Schedule cholesky(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank,
                  int ranks) {
    require_blocks(layout, ranks, true);
    return Cholesky(layout, item_bytes, choices, rank, ranks, 0).run();
}

}  // namespace tilewave
