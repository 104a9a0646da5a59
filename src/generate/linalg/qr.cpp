#include "generate/linalg/factor.hpp"
#include "generate/linalg/factors.hpp"

namespace tilewave {

namespace {

class Qr : public RightLooking {
public:
    Qr(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks)
        : RightLooking(layout, item_bytes, choices, rank, ranks, 1) {
        list_.schedule().arrays.push_back(by_columns(item_bytes, triangles_of(layout, rank)));
    }

private:
    std::int64_t number(std::int64_t k, std::int64_t within) const {
        return k * (1 + tiles_.block_columns() * tiles_.block) + within;
    }
    // Nobody needs the last panel of a matrix that is not wide.
    std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const override {
        return {k, k + 1 < tiles_.block_columns() ? n_ + 1 : k};
    }

    void factor(std::int64_t k) override {
        const Region column = of_matrix(k, k, n_);
        const std::int64_t lo = column.box.lo[1], width = column.box.extent(1);
        std::vector<Region> writes{column, {factor_triangles, {{0, lo}, {tiles_.block, lo + width}}}};
        if (const auto [t0, t1] = travels(k); t0 < t1) writes.push_back(of_panel(k, t0, t1));
        // The reflectors, and T; of a panel with fewer rows than columns as many of them as rows.
        const double w = static_cast<double>(width), high = static_cast<double>(column.box.extent(0)),
                     count = std::min(w, high);
        list_.task(0, number(k, 0), qr_panel, {column}, std::move(writes), w * count * (3 * high - count * 2 / 3),
                   {k, k});
    }

    // Block column j, some of its columns at a time: each is read twice, for V^H C and for C - V (T^H V^H C).
    void update(int lane, std::int64_t k, std::int64_t j, std::int64_t, std::int64_t t1, bool looks) override {
        if (t1 <= n_) return;  // T comes last
        const Region whole = of_matrix(j, k, n_);
        const double flops = 4.0 * static_cast<double>(whole.box.extent(0) * tiles_.block);
        const std::int64_t width = whole.box.extent(1), step = std::max(least_side, units_of_task(flops)),
                           count = (width + step - 1) / step;
        for (std::int64_t i = 0; i < count; ++i) {
            Region part = whole;
            part.box.lo[1] = whole.box.lo[1] + width * i / count;
            part.box.hi[1] = whole.box.lo[1] + width * (i + 1) / count;
            list_.task(lane, number(k, 1 + j * tiles_.block + i), qr_reflect_adjoint, {of_panel(k, k, n_ + 1), part},
                       {part}, flops * static_cast<double>(part.box.extent(1)), {k, j, i});
            if (looks) hand_on(k);
        }
    }
};

}  // namespace

Schedule qr(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks) {
    require_block_columns(layout, ranks, false);
    return Qr(layout, item_bytes, choices, rank, ranks).run();
}

}  // namespace tilewave
